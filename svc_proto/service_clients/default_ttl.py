"""Default lifetime that a client requests when it pairs (spec "Limits", default pre-selection)."""

from ipaddress import ip_address, ip_network

from svc_proto.basics.brand import BRANDS
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.wire.urls import parse_url

__all__ = ["PLAIN_LIFETIME", "default_ttl"]

PLAIN_LIFETIME = 7 * 86_400  # s, over plain ws
_MESH_ROLES = tuple(brand.mesh_role for brand in BRANDS.values())
# Addresses and names that a mesh VPN assigns: RFC 6598, and the prefix and the zone of Tailscale.
_MESH_NETWORKS = tuple(map(ip_network, ("100.64.0.0/10", "fd7a:115c:a1e0::/48")))
_MESH_ZONE = ".ts.net"


def default_ttl(route: Candidate) -> int | None:
    """Return the seconds to request on a candidate: 7 days over plain ws outside of a mesh VPN, else None.

    None leaves the choice to the relay. A mesh VPN is recognized by the candidate's role or its host. Raises
    `RemoteProtocolError` for an invalid address.
    """
    url = parse_url(route.url)
    return None if url.tls or route.role.lower() in _MESH_ROLES or _is_mesh_host(url.host) else PLAIN_LIFETIME


def _is_mesh_host(host: str) -> bool:
    if host.lower().removesuffix(".").endswith(_MESH_ZONE):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in _MESH_NETWORKS)
