"""Candidates of a pairing QR: local network, mesh and public address (wire core 3.3)."""

import re
from enum import Enum

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.cli.mesh_vpn import MeshStatus
from svc_proto.service_clients.bind_addresses import WILDCARD_ADDRESSES, bracket_ipv6
from svc_proto.wire.urls import parse_url

__all__ = [
    "ApiCandidate",
    "CandidateMode",
    "HostCandidate",
    "candidate_member",
    "mesh_candidate",
    "prefer_role",
    "public_candidate",
]


class CandidateMode(Enum):
    """Routes to include in the QR; `auto` includes all available ones."""

    AUTO = "auto"
    LAN = "lan"
    MESH = "mesh"
    PUBLIC = "public"


@frozen
class ApiCandidate:
    """Address of the API server on a route."""

    host: str
    port: int
    tls: bool

    @property
    def url(self) -> str:
        """URL of the API server."""
        return f"{'https' if self.tls else 'http'}://{bracket_ipv6(self.host)}:{self.port}"


@frozen
class HostCandidate:
    """A route to this host: its role, and the addresses of API server and relay on it."""

    role: str
    api: ApiCandidate
    relay_url: str


def mesh_candidate(
    mesh: MeshStatus, role: str, api: ApiCandidate, *, relay_port: int, relay_tls: bool
) -> HostCandidate:
    """Return the mesh route: by name with TLS if the mesh serves both ports, else by address.

    With an address, the schemes are those of the servers.
    """
    if mesh.name is not None and api.port in mesh.served and relay_port in mesh.served:
        return HostCandidate(role, ApiCandidate(mesh.name, api.port, True), f"wss://{mesh.name}:{relay_port}")
    scheme = "wss" if relay_tls else "ws"
    return HostCandidate(
        role, ApiCandidate(mesh.address, api.port, api.tls), f"{scheme}://{bracket_ipv6(mesh.address)}:{relay_port}"
    )


def public_candidate(url: str, relay_port: int, root_path: str = "") -> HostCandidate:
    """Return the route over a public address. Raises `CliError`, code 2, if it is no HTTP URL or has a bind address.
    The relay is at the URL's port and path, or at `root_path` if the URL has no path. Without both, the relay is at
    `relay_port`, unless the URL ends with a slash: then a proxy at the URL's port serves it.
    """
    try:
        parsed = parse_url(_ascii_url(url.strip()))
    except RemoteProtocolError as error:
        raise CliError(f"--public-url cannot be used: {error}", code=USAGE_ERROR) from None
    if parsed.scheme not in ("http", "https"):
        raise CliError("--public-url must be an http:// or https:// URL", code=USAGE_ERROR)
    if parsed.host in WILDCARD_ADDRESSES:
        raise CliError(
            f"--public-url must be where others find this host: no other host can call {parsed.host}", code=USAGE_ERROR
        )
    scheme, host = "wss" if parsed.tls else "ws", bracket_ipv6(parsed.host)
    path = parsed.target.partition("?")[0].rstrip("/") or root_path
    proxied = bool(path) or url.strip().partition("?")[0].endswith("/")
    port = "" if parsed.port == (443 if parsed.tls else 80) else f":{parsed.port}"
    relay = f"{scheme}://{host}{port}{path}" if proxied else f"{scheme}://{host}:{relay_port}"
    return HostCandidate("public", ApiCandidate(parsed.host, parsed.port, parsed.tls), relay)


def prefer_role(routes: list[HostCandidate], role: str | None) -> tuple[list[HostCandidate], str | None]:
    """Return the routes with those of a role first, and a warning if none has that role."""
    if role is None:
        return routes, None
    wanted = role.strip().lower()
    first = [route for route in routes if route.role.lower() == wanted]
    if not first:
        there = ", ".join(route.role for route in routes) or "none"
        return routes, f"--prefer {role!r} changes nothing: the routes are {there}"
    return first + [route for route in routes if route not in first], None


def candidate_member(route: HostCandidate, priority: int) -> dict[str, object]:
    """Return a route as a member of the payload's `endpoints` (wire core 3.3)."""
    hint = "wss" if route.relay_url.startswith("wss:") else "ws"
    return {
        "role": route.role,
        "priority": priority,
        "api": {"host": route.api.host, "port": route.api.port, "tls": route.api.tls},
        "relay": {"url": route.relay_url, "transport_hint": hint},
    }


def _ascii_url(url: str) -> str:
    """Return an address with an international host name in the form of DNS (`xn--…`); else, return it unchanged."""
    scheme, separator, rest = url.partition("://")
    name = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2].partition(":")[0]
    if name.isascii():
        return url
    try:
        plain = name.encode("idna").decode("ascii")
    except UnicodeError:
        return url
    return f"{scheme}{separator}{rest.replace(name, plain, 1)}"
