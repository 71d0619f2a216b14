"""Access policies of the relay's routes (wire core 0.3): which clients each policy admits, and how that is checked.

Loopback means a program on this host that acts for itself: see `svc_proto.engine.request_origin` and
`relay.local_access`.
"""

from enum import Enum

from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.moment import Moment
from svc_proto.engine.message import ANONYMOUS, AnonymousType, Request
from svc_proto.engine.request_origin import is_browser_request, is_foreign_page, is_trusted_host_name
from svc_proto.machines.grants import AUDIENCES, FILES, MANAGE, NOTIFICATIONS
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
    "has_right",
    "withheld_from",
]
__all__ += ["bearer_token"]


class RelayAccess(Enum):
    """Access policy of a route: which clients it admits.

    The comments name these clients; in brackets, the result of the check. `authorize` applies all but two kinds of
    policy: `monitoring.monitoring_routes` applies MONITOR, and `relay.voice.access` the VOICE policies.
    """

    PUBLIC = "public"  # any client [ANONYMOUS]
    SOCKET = "socket"  # any client but a page of another site, else 403 [ANONYMOUS]
    LOOPBACK = "loopback"  # loopback only, else 403 [None]
    MONITOR = "monitor"  # loopback, or the monitoring token: see `monitoring.monitoring_routes`
    BEARER = "bearer"  # a live session token, on loopback too [Session]
    LOOPBACK_OR_BEARER = "loopback or bearer"  # loopback without Authorization [None], else as BEARER [Session]
    FILES = "files"  # a session token with the right `files`, else 403 [Session]
    MANAGE = "manage"  # a session token with the right `manage`, else 403 [Session]
    # Loopback, whatever its Authorization, or a session token with the right `notifications`, else 403 [None, Session]
    LOCAL_OR_NOTIFICATIONS = "local or notifications"
    BRIDGE = "bridge"  # a session token whose `bridge` grant is live, else 403 [Session]
    # As BRIDGE, but no page of another site, else 403. The read grant suffices, too, and so do OAuth access tokens and
    # tokens for MCP alone.
    AGENT = "agent"  # [Session]
    # A session token with the named grant, or the API server's bearer: see `relay.voice.access` [Principal]
    VOICE_CONFIG = "voice:config"
    VOICE_STT = "voice:stt"
    VOICE_TTS = "voice:tts"
    VOICE_REALTIME = "voice:realtime"
    VOICE_OUTPUT_SOCKET = "voice:tts, while speech output is on"
    VOICE_REALTIME_SOCKET = "voice:realtime, while realtime is on"

    __hash__ = object.__hash__  # Enum's is a Python function, too slow for each request


# Refusals are JSON; for other voice paths, text.
BASIC_PATHS = ("/voice/config", "/voice/transcribe", "/voice/synthesize")
(MCP_AUDIENCE,) = AUDIENCES
_BRIDGE, _PUBLIC = RelayAccess.BRIDGE, RelayAccess.PUBLIC  # as in `machines.paired_session`
RIGHTS_NEEDED = {
    RelayAccess.FILES: FILES,
    RelayAccess.MANAGE: MANAGE,
    RelayAccess.LOCAL_OR_NOTIFICATIONS: NOTIFICATIONS,
}
# Grants of the policies that `relay.voice.access` applies.
GRANTS = {
    RelayAccess.VOICE_CONFIG: "voice:config",
    RelayAccess.VOICE_STT: "voice:stt",
    RelayAccess.VOICE_TTS: "voice:tts",
    RelayAccess.VOICE_REALTIME: "voice:realtime",
    RelayAccess.VOICE_OUTPUT_SOCKET: "voice:tts",
    RelayAccess.VOICE_REALTIME_SOCKET: "voice:realtime",
}


def authorize(
    access: RelayAccess, request: Request, sessions: PairedSessionRegistry, local: LocalAuthorizer, now: Moment
) -> PairedSession | AnonymousType | None:
    """Check a request by a policy; return the session that admits it, ANONYMOUS, or None for a program of this host.

    ANONYMOUS is the result of PUBLIC and SOCKET. The request gets the session's `token_hash` as its credential id.
    Raise `Refused` 401 or 403, and `LocalProtocolError` for MONITOR and the policies of voice, which are checked
    elsewhere.
    """
    if access is _BRIDGE:
        return require_bridge_grant(_bearer(request, sessions, now), now)
    if access is _PUBLIC:
        return ANONYMOUS
    match access:
        case RelayAccess.SOCKET:
            if is_foreign_page(request):
                # Before the limiter counts: a page in a user's browser must not block the user's own clients.
                raise Refused(403, "origin_not_allowed", "web pages may not open this WebSocket")
            return ANONYMOUS
        case RelayAccess.LOOPBACK:
            local.check(request)
            return None
        case RelayAccess.LOCAL_OR_NOTIFICATIONS if local.is_allowed(request):
            return None
        case RelayAccess.BEARER:
            return _bearer(request, sessions, now)
        case RelayAccess.LOOPBACK_OR_BEARER:
            return _local_or_bearer(request, sessions, local, now)
        case RelayAccess.FILES | RelayAccess.MANAGE | RelayAccess.LOCAL_OR_NOTIFICATIONS:
            return _require_right(_bearer(request, sessions, now), RIGHTS_NEEDED[access], now)
        case RelayAccess.AGENT:
            _refuse_pages(request)
            return require_bridge_grant(_bearer(request, sessions, now, agents=True), now, looks=True)
        case _:
            raise LocalProtocolError("voice routes have a gate of their own")


def quick_bridge_session(request: Request, sessions: PairedSessionRegistry, now: Moment) -> PairedSession | None:
    """Return the session of the bearer token if BRIDGE admits it, by one dictionary lookup.

    Return None if the slower `authorize` must decide. A returned session is marked as seen, and is the request's
    credential.
    """
    session = sessions.hashed(request.headers.bearer_hash)
    if session is None or not session.is_for_device or not session.holds("bridge", now.wall):
        return None
    session.last_seen, request.credential_id = now.wall, session.token_hash
    return session


def bearer_session(request: Request, sessions: PairedSessionRegistry, now: Moment) -> PairedSession | None:
    """Return the live session of a device's bearer token, which counts as seen; None without one."""
    return sessions.find_by_token_hash(request.headers.bearer_hash, now) if request.headers.bearer else None


def require_bridge_grant(session: PairedSession, now: Moment, *, looks: bool = False) -> PairedSession:
    """Return the session if it may control the phone; raise `Refused` 403 otherwise.

    With `looks`, for requests that only read, the grant `bridge:read` suffices.
    """
    if session.holds("bridge", now.wall) or (looks and may_read_phone(session, now)):
        return session
    raise Refused(403, "grant_required", "this session holds no live bridge grant")


def _require_right(session: PairedSession, right: str, now: Moment) -> PairedSession:
    if session.may(right, now.wall):
        return session
    raise Refused(403, "grant_required", f"this session does not have the right {right}: its pairing withheld it")


def may_read_phone(session: PairedSession, now: Moment) -> bool:
    """Report whether the session holds the grant `bridge` or the read grant."""
    return session.holds("bridge", now.wall) or session.holds(SCOPE_READ, now.wall)


def has_right(session: PairedSession, right: str, now: Moment) -> bool:
    """Report whether the session is active and has the right."""
    return session.may(right, now.wall)


def withheld_from(session: PairedSession, now: Moment) -> tuple[str, ...]:
    """Return which of `chat`, `bridge` and `manage` the session has neither as a grant nor as a right."""
    return tuple(
        name
        for name in ("chat", "bridge", MANAGE)
        if not (session.holds(name, now.wall) or session.may(name, now.wall))
    )


def bearer_token(request: Request) -> str:
    """Return the bearer token of `Authorization`; empty without one."""
    return request.headers.bearer


def _refuse_pages(request: Request) -> None:
    if is_browser_request(request) and (is_foreign_page(request) or _is_rebound(request)):
        raise Refused(403, "origin_not_allowed", "web pages may not call this")


def _is_rebound(request: Request) -> bool:
    """Report whether a request with `Origin` names an untrusted host in `Host`, as after DNS rebinding."""
    headers = request.headers
    return headers.get(b"origin") is not None and not is_trusted_host_name(headers.get(b"host") or b"")


def _local_or_bearer(
    request: Request, sessions: PairedSessionRegistry, local: LocalAuthorizer, now: Moment
) -> PairedSession | None:
    """Return None for an allowed program of this host without `Authorization`, else the session of the bearer token.

    Raise `Refused` 401 for any other client.
    """
    if request.headers.get(b"authorization") is None:
        if local.is_allowed(request):
            return None
        if text := local.refusal_text(request):
            raise Refused(401, "unauthorized", text)
    return _bearer(request, sessions, now)


def _bearer(request: Request, sessions: PairedSessionRegistry, now: Moment, *, agents: bool = False) -> PairedSession:
    """Return the session of the bearer token, which becomes the request's credential. Raise `Refused` 401.

    With `agents`, OAuth access tokens and tokens for MCP alone are valid, too.
    """
    session = bearer_session(request, sessions, now)
    if session is None and agents:
        token = request.headers.bearer
        session = sessions.find_by_access_token(token, now) or sessions.find_by_audience(token, MCP_AUDIENCE, now)
    if session is None:
        text = "this route needs Authorization: Bearer <session token>, with a token that is known and not expired"
        raise Refused(401, "unauthorized", text)
    request.credential_id = session.token_hash
    return session
