"""Default lifetime that a client requests when it pairs (spec "Limits", default pre-selection)."""

from __future__ import annotations

from svc_proto.basics.brand import BRANDS
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.wire.urls import parse_url

__all__ = ["PLAIN_LIFETIME", "default_ttl"]

PLAIN_LIFETIME = 7 * 86_400  # s, over plain ws
_MESH_ROLES = tuple(brand.mesh_role for brand in BRANDS.values())


def default_ttl(route: Candidate) -> int | None:
    """Return the seconds to request on a candidate; None leaves the choice to the relay, which gives 30 days.

    "operator TTL if given; otherwise 30 days on secure or mesh-VPN routes, 7 days on plain ws". At the relay the
    operator's value takes precedence. Raises `RemoteProtocolError` for an invalid address.
    """
    return None if parse_url(route.url).tls or route.role.lower() in _MESH_ROLES else PLAIN_LIFETIME
