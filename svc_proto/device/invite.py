"""What a phone takes from a pairing QR or invite URL: the relay, the code, and the routes to choose from (wire core 3).

Candidates that are malformed are left out, as clients do, and so are those that the person's preferences do not allow:
"Plain ws:// and http:// routes require explicit user consent in the client" (spec "Client storage").
"""

from __future__ import annotations

from attrs import frozen

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.device.preferences import Preferences
from svc_proto.machines.pairing import MAX_ENDPOINTS
from svc_proto.machines.qr import parse_invite
from svc_proto.machines.route_choice import Candidate
from svc_proto.schema.members import Members
from svc_proto.wire.urls import parse_url

__all__ = ["Invite", "read_candidate", "read_invite"]

LONGEST_ROLE = 64  # characters; the vocabulary is open


@frozen(kw_only=True)
class Invite:
    """The relay's address, the code, and the routes, best first; without routes there is only the one address."""

    remote: str
    code: str
    routes: tuple[Candidate, ...] = ()


def read_invite(text: str, preferences: Preferences) -> Invite:
    """Read it in any of its forms. `Refused` 400: `invalid_invite`, or `plain_route` where consent is missing."""
    payload = parse_invite(text)
    relay = payload.inner("relay")
    url, code = relay.text("url"), relay.text("code")
    if not (code and _usable(url)):
        raise Refused(400, "invalid_invite", "the invite names no relay and code")
    listed = payload.array("endpoints")[:MAX_ENDPOINTS]
    known = [candidate for candidate in map(read_candidate, listed) if candidate is not None]
    routes = [candidate for candidate in known if preferences.may_save(candidate.url)]
    if not routes and (known or not preferences.may_save(url)):
        raise Refused(400, "plain_route", "the invite's routes are not encrypted, which has not been allowed")
    routes.sort(key=lambda candidate: candidate.priority)
    return Invite(remote=routes[0].url if routes else url, code=code, routes=tuple(dict.fromkeys(routes)))


def read_candidate(value: object) -> Candidate | None:
    """One of an invite's routes (wire core 3.3); None for what cannot be used."""
    members = Members.of(value)
    role, url = members.text("role"), members.inner("relay").text("url")
    priority = members.whole("priority") if "priority" in members else 0
    if priority is None or not 0 < len(role) <= LONGEST_ROLE:
        return None
    return Candidate(role, priority, url) if _usable(url) else None


def _usable(url: str) -> bool:
    try:
        return parse_url(url).scheme in ("ws", "wss")
    except RemoteProtocolError:
        return False
