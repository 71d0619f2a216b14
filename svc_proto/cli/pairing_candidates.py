"""The candidate routes of a pairing QR: which there are, in which order (wire core 3.3).

Spec order: LAN, mesh, public; priorities 0, 1, 2 as emitted. `--prefer` moves one role to the front and renumbers.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.cli.errors import MISUSED, Problem
from svc_proto.cli.mesh_vpn import Mesh
from svc_proto.service_clients.advertised_address import WILDCARD_ADDRESSES, bracket_ipv6
from svc_proto.wire.urls import parse_url

__all__ = ["ApiRoute", "Mode", "HostRoute", "candidate", "lan_route", "mesh_route", "prefer", "public_route"]


class Mode(Enum):
    """Which routes go into the QR; `auto` takes all that there are."""

    AUTO = "auto"
    LAN = "lan"
    MESH = "mesh"
    PUBLIC = "public"


@frozen
class ApiRoute:
    """Where the API server is on a route."""

    host: str
    port: int
    tls: bool

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'https' if self.tls else 'http'}://{bracket_ipv6(self.host)}:{self.port}"


@frozen
class HostRoute:
    """One way to this host."""

    role: str
    api: ApiRoute
    relay_url: str


def lan_route(api: ApiRoute, relay_url: str) -> HostRoute:
    """The route over the local network."""
    return HostRoute("lan", api, relay_url)


def mesh_route(mesh: Mesh, role: str, api: ApiRoute, *, relay_port: int, relay_tls: bool) -> HostRoute:
    """The name with TLS when the mesh serves both ports, else its address with the schemes of the servers."""
    if mesh.name is not None and api.port in mesh.served and relay_port in mesh.served:
        return HostRoute(role, ApiRoute(mesh.name, api.port, True), f"wss://{mesh.name}:{relay_port}")
    scheme = "wss" if relay_tls else "ws"
    return HostRoute(
        role, ApiRoute(mesh.address, api.port, api.tls), f"{scheme}://{bracket_ipv6(mesh.address)}:{relay_port}"
    )


def public_route(url: str, relay_port: int, root_path: str = "") -> HostRoute:
    """The route over a public address. Raises `Problem`, code 2, for what is no http or https URL.

    A relay with a `root_path` is there, whether the address says so or not.
    """
    try:
        parsed = parse_url(url.strip())
    except RemoteProtocolError as error:
        raise Problem(f"--public-url cannot be used: {error}", code=MISUSED) from None
    if parsed.scheme not in ("http", "https"):
        raise Problem("--public-url must be an http:// or https:// URL", code=MISUSED)
    if parsed.host in WILDCARD_ADDRESSES:
        raise Problem(f"--public-url must be where others find this host: nobody can call {parsed.host}", code=MISUSED)
    scheme, host = "wss" if parsed.tls else "ws", bracket_ipv6(parsed.host)
    path = parsed.target.partition("?")[0].rstrip("/") or root_path
    # With a path a proxy is behind it, on the port that was named; without one the relay has its own port.
    port = "" if parsed.port == (443 if parsed.tls else 80) else f":{parsed.port}"
    relay = f"{scheme}://{host}{port}{path}" if path else f"{scheme}://{host}:{relay_port}"
    return HostRoute("public", ApiRoute(parsed.host, parsed.port, parsed.tls), relay)


def prefer(routes: list[HostRoute], role: str | None) -> tuple[list[HostRoute], str | None]:
    """The routes with those of a role first, and a warning if there is none of it."""
    if role is None:
        return routes, None
    wanted = role.strip().lower()
    first = [route for route in routes if route.role.lower() == wanted]
    if not first:
        there = ", ".join(route.role for route in routes) or "none"
        return routes, f"--prefer {role!r} changes nothing: the routes are {there}"
    return first + [route for route in routes if route not in first], None


def candidate(route: HostRoute, priority: int) -> dict[str, object]:
    """A member of the payload's `endpoints`."""
    hint = "wss" if route.relay_url.startswith("wss:") else "ws"
    return {
        "role": route.role,
        "priority": priority,
        "api": {"host": route.api.host, "port": route.api.port, "tls": route.api.tls},
        "relay": {"url": route.relay_url, "transport_hint": hint},
    }
