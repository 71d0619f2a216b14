"""Pairing by the operator: a code at the relay, the routes to this host, the signed QR payload (spec "Pairing flow").

If the relay does not answer, the QR leads to the API server alone, and a note reports that.
"""

from __future__ import annotations

from attrs import evolve, field, frozen

from svc_proto.basics.entropy import new_code
from svc_proto.cli.errors import USAGE_ERROR, CliError, failure_reason
from svc_proto.cli.mesh_vpn import MeshStatus, find_mesh
from svc_proto.cli.one_shot_service import announce_progress
from svc_proto.cli.operator_requests import PROBE_TIMEOUT, local_relay, register
from svc_proto.cli.pairing_candidates import (
    ApiCandidate,
    CandidateMode,
    HostCandidate,
    candidate_member,
    lan_candidate,
    mesh_candidate,
    prefer_role,
    public_candidate,
)
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.machines.pairing_codes import CODE_LIFETIME, PairingMeta
from svc_proto.machines.pairing_payload import build_payload, relay_block
from svc_proto.relay_config import LocalTrustPolicy, RelayConfig
from svc_proto.service_clients.advertised_address import (
    LOCAL_HOSTS,
    advertised_host,
    lan_address,
    relay_address,
    sign_invite,
)
from svc_proto.service_clients.dashboard_address import name_dashboard
from svc_proto.service_clients.local_api import find_local_api
from svc_proto.service_clients.service_client import ServiceCallError
from svc_proto.wire.urls import parse_url

__all__ = ["NewInvite", "PairingRequest", "create_invite"]

HERE_ALONE = "the relay listens on this host alone, so no other device finds it: see RELAY_HOST"
KEY_ELSEWHERE = (
    "the API server on this host asks for a key that stands in no file of its home: "
    "set API_SERVER_KEY for this command, as it was set for the server"
)
LOCAL_SECRET_NEEDED = (
    "the relay now has a public route, so programs on this host must send its local secret: "
    "the dashboard works only with a password (SVC_DASHBOARD_PASSWORD)"
)
NOTHING_PRESET = PairingMeta()


@frozen(kw_only=True)
class PairingRequest:
    """The operator's options, validated; None where an option was not given."""

    config: RelayConfig
    meta: PairingMeta = NOTHING_PRESET
    mode: CandidateMode = CandidateMode.AUTO
    public_url: str | None = None
    prefer: str | None = None
    host: str | None = None
    port: int | None = None
    dashboard_url: str | None = None
    with_relay: bool = True
    keyed: bool = False  # the API that runs on this host is known to require a key


@frozen(kw_only=True)
class NewInvite:
    """A new invite. `code` and `relay_url` are None when it is for the API server alone."""

    api: ApiCandidate
    key: str = field(repr=False)
    own_key: bool  # of this pairing, else the API's main key
    code: str | None = field(repr=False)
    expires_at: int | None  # epoch seconds, of the code
    relay_url: str | None
    meta: PairingMeta
    max_ttl: float | None  # s: the operator's maximum
    routes: tuple[HostCandidate, ...]
    qr_payload: str = field(repr=False)
    pairing_url: str = field(repr=False)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # problems for standard error


def create_invite(engine: Engine, order: PairingRequest) -> Flow[NewInvite]:
    """Register a code and make the invite. Raises `CliError`."""
    config, notes, warnings = order.config, list[str](), list[str]()
    if order.mode is CandidateMode.PUBLIC and not order.public_url:
        raise CliError("--mode public needs --public-url https://…", code=USAGE_ERROR)
    public = None if order.public_url is None else public_candidate(order.public_url, config.port, config.root_path)
    relay = local_relay(config)
    unreachable = list[str]()
    api, key, address = yield from _api(engine, order, unreachable)
    announce_progress(engine, f"asking the relay at {relay.url}")
    code = own = None
    if order.with_relay:
        try:
            yield from relay.health(engine, within=PROBE_TIMEOUT)
        except ServiceCallError as error:
            if error.failure is None:
                raise
            why = f"cannot be reached ({failure_reason(error.failure)})"
            notes.append(f"the relay at {relay.url} {why}, so the QR is for the API server only; {relay.remedy}")
        else:
            code = new_code(engine.entropy)
            # A relay with a public route requires the local secret of programs on this host from then on.
            outside = public if order.mode in (CandidateMode.AUTO, CandidateMode.PUBLIC) else None
            meta = evolve(order.meta, carries_key=bool(key), own_key=order.meta.grants_chat)
            meta = meta if outside is None else evolve(meta, endpoints=[candidate_member(outside, 0)])
            own = yield from register(engine, relay, code, meta)
            key = own or key
            if outside is not None and _requires_secret_from_now(config):
                notes.append(LOCAL_SECRET_NEEDED)
    if order.keyed and order.meta.grants_chat and not key:
        raise CliError(KEY_ELSEWHERE)
    expires_at = None if code is None else int(engine.now.wall + CODE_LIFETIME)
    announce_progress(engine, "looking for ways to this host")
    notes += unreachable
    relay_url = relay_address(config, address)
    mesh = None
    if order.mode in (CandidateMode.AUTO, CandidateMode.MESH):
        mesh = yield from find_mesh(engine)
    routes, warning = prefer_role(_routes(order, lan_candidate(api, relay_url), mesh, public), order.prefer)
    if warning is not None:
        warnings.append(warning)
    if code is not None and not unreachable and all(parse_url(route.relay_url).host in LOCAL_HOSTS for route in routes):
        notes.append(HERE_ALONE)
    top = routes[0].api if code is None else api  # without a relay there are no candidates: only the best route is used
    payload = build_payload(
        brand=config.brand,
        host=top.host,
        port=top.port,
        key=key,
        tls=top.tls,
        relay=None if code is None else relay_block(relay_url, code, order.meta),
        endpoints=None if code is None else [candidate_member(route, place) for place, route in enumerate(routes)],
        dashboard_url=order.dashboard_url,
    )
    payload = name_dashboard(payload, config.dashboard if order.meta.grants_chat else None)
    text, url, unsigned = yield from sign_invite(engine, config, payload)
    if unsigned is not None:
        warnings.append(f"the QR is not signed: the signing key cannot be used ({failure_reason(unsigned)})")
    return NewInvite(
        api=top,
        key=key,
        own_key=own is not None,
        code=code,
        expires_at=expires_at,
        relay_url=None if code is None else relay_url,
        meta=order.meta,
        max_ttl=config.max_session_ttl,
        routes=tuple(routes),
        qr_payload=text,
        pairing_url=url,
        notes=tuple(notes),
        warnings=tuple(warnings),
    )


def _requires_secret_from_now(config: RelayConfig) -> bool:
    """Report whether a first public route changes what the relay requires of programs on this host."""
    policies = [config.local_trust_policy(public_route=public) for public in (False, True)]
    return policies == [LocalTrustPolicy.ADDRESS, LocalTrustPolicy.SECRET]


def _api(engine: Engine, order: PairingRequest, notes: list[str]) -> Flow[tuple[ApiCandidate, str, str]]:
    """Return the API server's address for phones, its key unless chat is withheld, and this host's LAN address."""
    server = yield from find_local_api(engine, order.config)
    address = yield from lan_address(engine)
    host = advertised_host(order.host or server.host, address)
    if host in LOCAL_HOSTS:
        notes.append("this host has no address on a network, so only programs on this host can use the invite")
    key = server.key if order.meta.grants_chat else ""
    return ApiCandidate(host, order.port or server.port, server.tls), key, address


def _routes(
    order: PairingRequest, lan: HostCandidate, mesh: MeshStatus | None, public: HostCandidate | None
) -> list[HostCandidate]:
    routes: list[HostCandidate] = []
    mode, config = order.mode, order.config
    if mode in (CandidateMode.AUTO, CandidateMode.LAN):
        routes.append(lan)
    if mesh is not None:
        role = config.brand.mesh_role
        routes.append(mesh_candidate(mesh, role, lan.api, relay_port=config.port, relay_tls=config.tls))
    elif mode is CandidateMode.MESH:
        raise CliError("--mode mesh finds no mesh VPN: start tailscale on this host, or use --mode lan")
    if public is not None and mode in (CandidateMode.AUTO, CandidateMode.PUBLIC):
        routes.append(public)
    return routes
