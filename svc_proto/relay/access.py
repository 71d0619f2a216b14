"""Who may call a route: the caller classes of wire core 0.3 as policies that the route table names.

Loopback means a program on this host that speaks for itself: see `svc_proto.engine.request_origin` and
`relay.local_door`.
"""

from __future__ import annotations

from enum import Enum

from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.moment import Moment
from svc_proto.engine.message import ANONYMOUS, AnonymousType, Request
from svc_proto.engine.request_origin import is_browser_request, is_foreign_page, is_trusted_host_name
from svc_proto.machines.paired_session_registry import PairedSession, PairedSessionRegistry
from svc_proto.relay.local_access import LocalAuthorizer
from svc_proto.schema.oauth import SCOPE_READ

__all__ = [
    "BASIC_PATHS",
    "GRANTS",
    "RelayAccess",
    "authorize",
    "quick_bridge_session",
    "may_read_phone",
    "require_bridge_grant",
    "bearer_session",
]
__all__ += ["bearer_token"]


class RelayAccess(Enum):
    """A policy. What `authorize` returns for it is in brackets."""

    PUBLIC = "public"  # anybody [STRANGER]
    SOCKET = "socket"  # anybody but another site's page, else 403 [STRANGER]
    LOOPBACK = "loopback"  # loopback only, else 403 [None]
    MONITOR = "monitor"  # loopback, or the monitor's token: see `openapi.monitor` [None]
    BEARER = "bearer"  # a live session token, on loopback too [Session]
    LOOPBACK_OR_BEARER = "loopback or bearer"  # loopback without Authorization [None], else as BEARER [Session]
    LOCAL_OR_BEARER = "local or bearer"  # loopback, whatever its Authorization [None], else as BEARER [Session]
    BRIDGE = "bridge"  # a session token whose `bridge` grant is live, else 403 [Session]
    # As BRIDGE, but no other site's page, else 403; the grant to look, and the token of an OAuth client are enough too
    AGENT = "agent"  # [Session]
    # A session token with the named grant, or the API server's bearer: see `relay.voice_access` [Principal]
    VOICE_CONFIG = "voice:config"
    VOICE_STT = "voice:stt"
    VOICE_TTS = "voice:tts"
    VOICE_REALTIME = "voice:realtime"
    VOICE_OUTPUT_SOCKET = "voice:tts, while speech output is on"
    VOICE_REALTIME_SOCKET = "voice:realtime, while realtime is on"

    __hash__ = object.__hash__  # Enum's is a function of Python, and every request asks for it


BASIC_PATHS = ("/voice/config", "/voice/transcribe", "/voice/synthesize")  # refusals are JSON; of other voice, text
_BRIDGE, _PUBLIC = RelayAccess.BRIDGE, RelayAccess.PUBLIC  # as in `machines.session`
GRANTS = {  # of the policies that are `relay.voice_access`'s
    RelayAccess.VOICE_CONFIG: "voice:config",
    RelayAccess.VOICE_STT: "voice:stt",
    RelayAccess.VOICE_TTS: "voice:tts",
    RelayAccess.VOICE_REALTIME: "voice:realtime",
    RelayAccess.VOICE_OUTPUT_SOCKET: "voice:tts",
    RelayAccess.VOICE_REALTIME_SOCKET: "voice:realtime",
}


def authorize(
    access: RelayAccess, request: Request, sessions: PairedSessionRegistry, door: LocalAuthorizer, now: Moment
) -> PairedSession | AnonymousType | None:
    """Apply a policy: the caller's session, which holds the request, where the policy asks for one.

    Raises `Refused` 401 or 403.
    """
    if access is _BRIDGE:
        return require_bridge_grant(_bearer(request, sessions, now), now)
    if access is _PUBLIC:
        return ANONYMOUS
    match access:
        case RelayAccess.SOCKET:
            if is_foreign_page(request):
                # Before the limiter counts: a page that somebody looks at must not lock out their own clients.
                raise Refused(403, "origin_not_allowed", "web pages may not open this WebSocket")
            return ANONYMOUS
        case RelayAccess.LOOPBACK:
            door.check(request)
            return None
        case RelayAccess.BEARER:
            return _bearer(request, sessions, now)
        case RelayAccess.LOOPBACK_OR_BEARER:
            if request.headers.get(b"authorization") is None and door.is_allowed(request):
                return None
            return _bearer(request, sessions, now)
        case RelayAccess.LOCAL_OR_BEARER:
            return None if door.is_allowed(request) else _bearer(request, sessions, now)
        case RelayAccess.AGENT:
            if is_browser_request(request) and (is_foreign_page(request) or _is_rebound(request)):
                raise Refused(403, "origin_not_allowed", "web pages may not call this")
            return require_bridge_grant(_bearer(request, sessions, now, agents=True), now, looks=True)
        case _:
            raise LocalProtocolError("voice routes have a gate of their own")


def quick_bridge_session(request: Request, sessions: PairedSessionRegistry, now: Moment) -> PairedSession | None:
    """Whoever BRIDGE lets in, found as quickly as can be; None: `authorize` knows, and why."""
    session = sessions.hashed(request.headers.bearer_hash)
    if session is None or session.tokens is not None or not session.holds("bridge", now.wall):
        return None
    session.last_seen, request.credential_id = now.wall, session.token_hash
    return session


def bearer_session(request: Request, sessions: PairedSessionRegistry, now: Moment) -> PairedSession | None:
    """The live session whose token `Authorization` shows."""
    return sessions.find_by_token_hash(request.headers.bearer_hash, now) if request.headers.bearer else None


def require_bridge_grant(session: PairedSession, now: Moment, *, looks: bool = False) -> PairedSession:
    """This session; one that may not drive the phone, or not any more, is refused with 403.

    What only looks is done with the grant `bridge:read`, too.
    """
    if session.holds("bridge", now.wall) or (looks and may_read_phone(session, now)):
        return session
    raise Refused(403, "grant_required", "this session holds no live bridge grant")


def may_read_phone(session: PairedSession, now: Moment) -> bool:
    """Whether it may see what is on the phone, at least."""
    return session.holds("bridge", now.wall) or session.holds(SCOPE_READ, now.wall)


def bearer_token(request: Request) -> str:
    """The bearer that `Authorization` shows; empty without one."""
    return request.headers.bearer


def _is_rebound(request: Request) -> bool:
    """Whether a page says that it is ours, by a name that anybody may point here; we have none that calls this."""
    headers = request.headers
    return headers.get(b"origin") is not None and not is_trusted_host_name(headers.get(b"host") or b"")


def _bearer(request: Request, sessions: PairedSessionRegistry, now: Moment, *, agents: bool = False) -> PairedSession:
    """Whose token it is; of `agents`, access tokens of OAuth are good, too."""
    session = bearer_session(request, sessions, now)
    if session is None and agents:
        session = sessions.find_by_access_token(request.headers.bearer, now)
    if session is None:
        text = "this route needs Authorization: Bearer <session token>, with a token that is known and not expired"
        raise Refused(401, "unauthorized", text)
    request.credential_id = session.token_hash
    return session
