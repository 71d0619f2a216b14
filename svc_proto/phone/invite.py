"""Invite of a phone, from a pairing QR or invite URL: the relay, the code, and the candidates (wire core 3).

Malformed candidates are left out, as clients do. The same applies to those that the user's preferences do not allow:
"Plain ws:// and http:// routes require explicit user consent in the client" (spec "Client storage").
"""

from attrs import frozen

from svc_proto.basics.errors import Refused
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.machines.pairing_codes import MAX_ENDPOINTS
from svc_proto.machines.pairing_payload import parse_invite
from svc_proto.phone.preferences import Preferences
from svc_proto.service_clients.candidate_prober import is_usable, parse_candidate

__all__ = ["Invite", "parse_phone_invite"]


@frozen(kw_only=True)
class Invite:
    """Parsed invite: the code, and the candidates, best first.

    `remote` is the address of the best candidate; without candidates the relay's address in the invite.
    """

    remote: str
    code: str
    routes: tuple[Candidate, ...] = ()


def parse_phone_invite(text: str, preferences: Preferences) -> Invite:
    """Parse an invite in one of the forms of `parse_invite`; raise `Refused` 400 `invalid_invite` if it is unusable.

    Raise `Refused` 400 `plain_route` if the preferences allow none of its candidates or, without candidates, not the
    relay's address.
    """
    payload = parse_invite(text)
    relay = payload.get_object("relay")
    url, code = relay.text("url"), relay.text("code")
    if not (code and is_usable(url)):
        raise Refused(400, "invalid_invite", "the invite names no relay and code")
    listed = payload.array("endpoints")[:MAX_ENDPOINTS]
    known = [candidate for candidate in map(parse_candidate, listed) if candidate is not None]
    routes = [candidate for candidate in known if preferences.may_save(candidate.url)]
    if not routes and (known or not preferences.may_save(url)):
        raise Refused(400, "plain_route", "the invite's routes are not encrypted, which has not been allowed")
    routes.sort(key=lambda candidate: candidate.priority)
    return Invite(remote=routes[0].url if routes else url, code=code, routes=tuple(dict.fromkeys(routes)))
