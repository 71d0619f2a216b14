"""Routes to this host for an invite, and the addresses that are left out, with the reason (wire core 3.3)."""

from collections.abc import Sequence

from attrs import frozen

from svc_proto.cli.mesh_vpn import MeshStatus, find_mesh
from svc_proto.cli.pairing_candidates import (
    ApiCandidate,
    CandidateMode,
    HostCandidate,
    mesh_candidate,
    prefer_role,
    public_candidate,
)
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.advertised_address import relay_url_at
from svc_proto.service_clients.bind_addresses import LOCAL_HOSTS, WILDCARD_ADDRESSES
from svc_proto.service_clients.host_addresses import HostAddresses, find_host_addresses

__all__ = ["FoundRoutes", "LeftOut", "RouteRequest", "find_routes"]

NO_ADDRESS = "this host has no address on a network, so only programs on this host can use the invite"
HERE_ALONE = "the relay listens on this host alone, so no other device finds it: see RELAY_HOST"
API_HERE_ALONE = "the API listens on this host alone, so phones cannot chat: see API_SERVER_HOST"


@frozen(kw_only=True)
class RouteRequest:
    """Requested routes. `host` overrides the address of both servers in the local network."""

    mode: CandidateMode
    api: ApiCandidate  # as configured
    public_url: str | None = None
    prefer: str | None = None
    host: str | None = None


@frozen
class LeftOut:
    """An address of this host, or a route, that is not in the invite."""

    what: str
    why: str


@frozen(kw_only=True)
class FoundRoutes:
    """The routes found for an invite, best first, with warnings, notes, and addresses that were left out."""

    routes: tuple[HostCandidate, ...]
    mesh_is_missing: bool = False  # requested, and not found
    warning: str | None = None  # about `prefer`
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def find_routes(engine: Engine, config: RelayConfig, request: RouteRequest) -> Flow[FoundRoutes]:
    """Find the routes of a request. Raises `CliError` for an unusable public address.

    There is at least one, unless the mode requests a mesh or a public route alone and there is none.
    """
    mode = request.mode
    public_url = request.public_url or config.public_url
    public = None if public_url is None else public_candidate(public_url, config.port, config.root_path)
    if mode not in (CandidateMode.AUTO, CandidateMode.PUBLIC):
        public = None
    addresses = yield from find_host_addresses(engine)
    lan = lan_candidate(config, request, addresses)
    reaches = _host_of(lan) not in LOCAL_HOSTS
    mesh = None
    if mode in (CandidateMode.AUTO, CandidateMode.MESH):
        mesh = yield from find_mesh(engine)
    routes: list[HostCandidate] = []
    if mode in (CandidateMode.AUTO, CandidateMode.LAN) and reaches:
        routes.append(lan)
    if mesh is not None:
        api = ApiCandidate(mesh.address, request.api.port, request.api.tls)
        role = config.brand.mesh_role
        routes.append(mesh_candidate(mesh, role, api, relay_port=config.port, relay_tls=config.tls))
    if public is not None:
        routes.append(public)
    if mode is CandidateMode.LAN or (mode is CandidateMode.AUTO and not routes):
        routes = [lan]  # for programs of this host, and a phone on a cable
    ordered, warning = prefer_role(routes, request.prefer)
    return FoundRoutes(
        routes=tuple(ordered),
        mesh_is_missing=mode is CandidateMode.MESH and mesh is None,
        warning=warning,
        notes=tuple(_notes(config, request, addresses, reaches=reaches, ordered=ordered)),
        left_out=tuple(_left_out(config, addresses, ordered, mesh=mesh, reaches=reaches)),
    )


def lan_candidate(config: RelayConfig, request: RouteRequest, addresses: HostAddresses) -> HostCandidate:
    """Return the route over the local network, by `request.host` or by the addresses on which the servers listen.

    Without `request.host` it leads to loopback if the relay listens there alone, or the host has no other address.
    """
    named = (request.host or "").strip()
    relay_host = named or _reached_at(config.host, addresses)
    api_host = named or _reached_at(request.api.host, addresses)
    if api_host in LOCAL_HOSTS:  # it is where a phone can try it (wire core 2.6)
        api_host = relay_host
    return HostCandidate(
        "lan", ApiCandidate(api_host, request.api.port, request.api.tls), relay_url_at(config, relay_host)
    )


def _reached_at(host: str, addresses: HostAddresses) -> str:
    """Return the address at which other hosts reach a server bound to `host`; a loopback address if there is none."""
    host = host.strip().lower()
    if host in WILDCARD_ADDRESSES:
        return addresses.best(host) or WILDCARD_ADDRESSES[host]
    return "127.0.0.1" if host == "localhost" else host


def _host_of(route: HostCandidate) -> str:
    host = route.relay_url.partition("://")[2].partition("/")[0]
    return host.rpartition(":")[0].strip("[]")


def _notes(
    config: RelayConfig,
    request: RouteRequest,
    addresses: HostAddresses,
    *,
    reaches: bool,
    ordered: Sequence[HostCandidate],
) -> list[str]:
    if reaches:
        bound = request.api.host.strip().lower()
        here = config.webapi_inside is not None and bound in LOCAL_HOSTS and bound not in WILDCARD_ADDRESSES
        lan = any(route.role == "lan" for route in ordered)
        return [API_HERE_ALONE] if here and lan and request.host is None else []
    if config.host.strip().lower() in WILDCARD_ADDRESSES and addresses.best(config.host) is None:
        return [NO_ADDRESS]
    return [] if any(route.role == "public" for route in ordered) else [HERE_ALONE]


def _left_out(
    config: RelayConfig,
    addresses: HostAddresses,
    ordered: Sequence[HostCandidate],
    *,
    mesh: MeshStatus | None,
    reaches: bool,
) -> list[LeftOut]:
    used = [*(route.api.host for route in ordered), *(_host_of(route) for route in ordered)]
    if mesh is not None:
        used.append(mesh.address)
    bound = config.host.strip().lower()
    left = list[LeftOut]()
    for row, reason in addresses.left_out(used):
        listens = bound == row.address or bound == "::" or (bound in WILDCARD_ADDRESSES and row.version == 4)
        why = reason if listens else f"the relay listens on {config.host} alone"
        left.append(LeftOut(f"{row.address} ({row.interface})", why))
    return left
