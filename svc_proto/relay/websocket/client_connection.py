"""WebSocket of one client: authentication first, then messages by channel (wire core 1).

| state           | trigger | next            |                                                                       |
|-----------------|---------|-----------------|-----------------------------------------------------------------------|
| UNAUTHENTICATED | CLAIM   | STORING_SESSION | `system/auth` without a token known here: token and code are checked  |
| UNAUTHENTICATED | TOKEN   | OPEN            | a session token was accepted                                          |
| UNAUTHENTICATED | REFUSE  | ENDED           | a first text that is not `system/auth`, or 30 s without any text      |
| STORING_SESSION | STORED  | OPEN            | the store has the token, or a new session; its errors are only logged |
| STORING_SESSION | REFUSE  | ENDED           | bad credentials, a block, too many early messages, or an error         |
| OPEN            | REFUSE  | ENDED           | the session was revoked or has expired                                |
| any             | GONE    | ENDED           | the socket closed                                                     |
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Protocol

from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.errors import Refused
from svc_proto.basics.timers import Timer
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.message import Request
from svc_proto.engine.request_origin import TrustedProxies
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter
from svc_proto.machines.paired_session import PairedSession, parse_device, recognize_client
from svc_proto.machines.pairing_codes import PairingCodes, PairingMeta, merge_terms, parse_requested_terms
from svc_proto.machines.transitions import Table, step
from svc_proto.relay.ports import PairedSessionsPort
from svc_proto.relay.terminals.terminal_channel import TerminalChannelHandler
from svc_proto.relay.terminals.tui_channel import TuiChannelHandler
from svc_proto.relay.websocket.message_dispatch import DispatchPort, dispatch, read_deviating_message
from svc_proto.schema.envelope import Envelope, parse_envelope, write_envelope

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import ProfileJson

__all__ = ["AUTH_TIMEOUT", "CLIENT_TABLE", "ClientConnection", "ClientState", "ClientTrigger"]

MAX_EARLY = 64  # messages before `auth.ok`; a further one closes the socket
AUTH_TIMEOUT = 30.0  # s from the upgrade to the first text frame, wire core 1.6

# Android searches these texts: the first must contain "auth" and "timeout", the code's "pairing" and "invalid", the
# token's "token" but no "pairing", the block's "rate" and "limit" (wire core 1.6).
TIMED_OUT = "auth timeout: no authentication within 30 seconds"
NOT_AUTH = "the first message must be system/auth"
BAD_CODE = "the pairing code is invalid, expired or already used"
BAD_TOKEN = "the session token is not accepted any more"
BLOCKED = "rate limited: too many failed attempts from this address"
TOO_EARLY = "too many messages before authentication was over"
NO_CREDENTIAL = "authentication needs a session token or a code"
PAIRED_AGAIN = "the device has paired again"


class ClientState(Enum):
    """State of a client's socket."""

    UNAUTHENTICATED = "unauthenticated"
    STORING_SESSION = "storing session"
    OPEN = "open"
    ENDED = "ended"


class ClientTrigger(Enum):
    """Event that can change the state of a client's socket."""

    CLAIM = "claim"
    TOKEN = "token"
    STORED = "stored"
    REFUSE = "refuse"
    GONE = "gone"


CLIENT_TABLE: Table[ClientState, ClientTrigger] = {
    (ClientState.UNAUTHENTICATED, ClientTrigger.CLAIM): ClientState.STORING_SESSION,
    (ClientState.UNAUTHENTICATED, ClientTrigger.TOKEN): ClientState.OPEN,
    (ClientState.UNAUTHENTICATED, ClientTrigger.REFUSE): ClientState.ENDED,
    (ClientState.UNAUTHENTICATED, ClientTrigger.GONE): ClientState.ENDED,
    (ClientState.STORING_SESSION, ClientTrigger.STORED): ClientState.OPEN,
    (ClientState.STORING_SESSION, ClientTrigger.REFUSE): ClientState.ENDED,
    (ClientState.STORING_SESSION, ClientTrigger.GONE): ClientState.ENDED,
    (ClientState.OPEN, ClientTrigger.REFUSE): ClientState.ENDED,
    (ClientState.OPEN, ClientTrigger.GONE): ClientState.ENDED,
    (ClientState.ENDED, ClientTrigger.GONE): ClientState.ENDED,
}
_OPEN = ClientState.OPEN  # as in `machines.paired_session`


class ClientSocketPort(DispatchPort, PairedSessionsPort, Protocol):
    """Members of the relay that a client's socket uses."""

    codes: PairingCodes
    limiter: AuthRateLimiter
    profiles: list[ProfileJson]
    proxies: TrustedProxies

    def welcome(self, client: ClientConnection, session: PairedSession) -> None:
        """Register an authenticated client; also as a phone if it is one by its surface and has the bridge grant."""

    def forget(self, client: ClientConnection) -> None:
        """Unregister a client whose socket is closed, or is about to be closed with its session."""

    def forget_session(self, session: PairedSession) -> None:
        """Revoke a session that no client uses; erase its record in the background."""


class ClientConnection:
    """The relay's side of one WebSocket; a `WebSocketHandler`."""

    __slots__ = (
        "_early",
        "_secure",
        "_task",
        "_timer",
        "address",
        "number",
        "relay",
        "session",
        "socket",
        "state",
        "terminals",
        "tui",
    )

    socket: WebSocketConnection  # both set by `on_open`
    number: int  # identifies this socket while the process runs

    def __init__(self, relay: ClientSocketPort, request: Request) -> None:
        self.relay = relay
        self.state = ClientState.UNAUTHENTICATED
        self.session: PairedSession | None = None
        self.address = relay.proxies.client_address(request)
        self._secure = request.secure or relay.proxies.forwarded_https(request)
        self.terminals: TerminalChannelHandler | None = None
        self.tui: TuiChannelHandler | None = None
        self._early: tuple[Envelope, ...] = ()
        self._task: Task | None = None
        self._timer: Timer | None = None  # until the first message, which must authenticate

    # --- WebSocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        """Store the socket and its number, and start the timeout for `system/auth`."""
        self.socket, self.number = socket, socket.number
        engine = self.relay.engine
        self._timer = engine.coarse_timers.timer(self._timed_out)
        self._timer.set(engine.now.mono + AUTH_TIMEOUT)

    def on_text(self, text: str) -> None:
        """Authenticate with the first message, and dispatch readable ones that arrive after `auth.ok`.

        Valid messages during authentication are queued until then; more than `MAX_EARLY` end it. Those of an ended
        client are ignored.
        """
        envelope = parse_envelope(text)
        if self.session is not None:  # `_mark_seen`, inlined
            self.session.last_seen = self.relay.engine.now.wall
        if self.state is _OPEN:
            envelope = envelope or read_deviating_message(self.relay.engine, text)
            if envelope is not None:
                dispatch(self, envelope)
        elif self.state is ClientState.UNAUTHENTICATED:
            self._authenticate(envelope)
        elif self.state is ClientState.STORING_SESSION and envelope is not None:
            self._early += (envelope,)  # messages before `auth.ok` are stored, up to a limit
            if len(self._early) > MAX_EARLY:
                self._too_early()

    def on_binary(self, data: bytes) -> None:
        """Ignore a binary frame, except that the session counts as seen (wire core 1.1)."""
        self._mark_seen()

    def on_writable(self) -> None:
        """Resume the programs that write to this client."""
        if self.terminals is not None:
            self.terminals.writable()
        if self.tui is not None:
            self.tui.writable()

    def on_closed(self, code: int, reason: str) -> None:
        """Unregister the client, close its terminals and stop its gateway; pending commands to its phone fail."""
        self._step(ClientTrigger.GONE)
        self._stop_timer()
        self._cancel()
        self.close_children()
        self._mark_seen()
        if self.session is not None:
            self.relay.engine.log(Level.INFO, "client left", device=self.session.device_name, code=code)
        self.relay.forget(self)

    # --- for the relay and its channels ---

    @property
    def log_fields(self) -> dict[str, object]:
        """Log fields of an authenticated client."""
        assert self.session is not None
        return {"device": self.session.device_name, "session": self.session.token_prefix, "address": self.address}

    @property
    def writable(self) -> bool:
        """Report whether the client keeps up with reading; when it does again, `on_writable` resumes its programs."""
        return self.socket.writable

    def stop_children(self) -> None:
        """Close the client's terminals, report that, and stop its gateway, since the relay stops."""
        if self.terminals is not None:
            self.terminals.stop()
        if self.tui is not None:
            self.tui.close()

    def close_children(self) -> None:
        """Close the client's terminals without messages, and stop its gateway."""
        if self.terminals is not None:
            self.terminals.close()
        if self.tui is not None:
            self.tui.close()

    def has_grant(self, channel: str) -> bool:
        """Report whether the client's session holds a live grant for a channel."""
        return self.session is not None and self.session.holds(channel, self.relay.engine.now.wall)

    def send(self, channel: str, kind: str, payload: dict[str, object], identity: str = "") -> bool:
        """Send an envelope, with a new id if none is given; return False if the socket is closing."""
        identity = identity or new_uuid(self.relay.engine.entropy)
        return self.socket.send_text(write_envelope(channel, kind, identity, payload))

    def send_profiles(self, profiles: list[ProfileJson]) -> None:
        """Send `profiles.updated` with the profiles, in the payload and beside it (wire core 1.8)."""
        identity, payload = new_uuid(self.relay.engine.entropy), {"profiles": profiles}
        self.socket.send_text(write_envelope("pairing", "profiles.updated", identity, payload, profiles=profiles))

    def send_error(self, message: str, code: str, identity: str = "") -> None:
        """Send `system/error` with a text and a code."""
        self.send("system", "error", {"message": message, "error": code}, identity)

    def close_for(self, reason: str) -> None:
        """Close the client's terminals, stop its gateway, report the session's end and close the socket with 1008."""
        self._step(ClientTrigger.REFUSE)
        self.close_children()
        self.send_error(reason, "session_ended")
        self.socket.close(1008, reason)

    def _mark_seen(self) -> None:
        if self.session is not None:
            self.session.last_seen = self.relay.engine.now.wall

    # --- authentication ---

    def _authenticate(self, envelope: Envelope | None) -> None:
        self._stop_timer()
        if envelope is None or (envelope.channel, envelope.type) != ("system", "auth"):
            self._refuse(NOT_AUTH, envelope)
            return
        relay, now = self.relay, self.relay.engine.now
        token, code = envelope.payload.text("session_token"), envelope.payload.text("pairing_code")
        session = relay.sessions.lookup(token, now) if token else None
        # Despite a block: other clients behind the address can cause one, and tokens cannot be guessed.
        if session is not None:
            self._step(ClientTrigger.TOKEN)
            self._sign_in(session, token, envelope)
            return
        self._step(ClientTrigger.CLAIM)
        flow = self._look_up(token, code, envelope)
        self._task = relay.engine.spawn(flow, on_done=self._pairing_over, on_error=self._pairing_failed)

    def _look_up(self, token: str, code: str, envelope: Envelope) -> Flow[None]:
        relay = self.relay
        seeking = relay.coordinator.lookup_session(token) if token else None
        if seeking is not None:
            try:
                yield from seeking
            except Refused as refused:  # a client that gets `auth.fail` would give up its token, which may be valid
                self._step(ClientTrigger.REFUSE)
                self.socket.close(1013, refused.message)
                return
            session = relay.sessions.lookup(token, relay.engine.now)
            if session is not None:
                self._step(ClientTrigger.STORED)
                self._sign_in(session, token, envelope)
                return
        if relay.limiter.blocked_for(self.address, relay.engine.now) > 0:
            # The socket may be older than the block: else a stock of open sockets would be a stock of guesses.
            self._refuse(BLOCKED, envelope)
            return
        operator = (yield from relay.coordinator.consume_code(code)) if code else None
        if operator is not None:
            yield from self._pair(operator, envelope)
            return
        blocked = relay.limiter.failure(self.address, relay.engine.now)
        relay.engine.log(Level.WARNING, "authentication failed", address=self.address, blocked=blocked)
        if code:
            relay.codes.refused += 1
            self._refuse(BAD_CODE, envelope)
        else:
            self._refuse(BAD_TOKEN if token else NO_CREDENTIAL, envelope)

    def _sign_in(self, session: PairedSession, token: str, envelope: Envelope) -> None:
        brand = recognize_client(envelope.payload)
        session.names = session.names if brand is None else brand.name  # an update of the app may change them
        self._welcome(session, token, envelope.id)

    def _pair(self, operator: PairingMeta, envelope: Envelope) -> Flow[None]:
        relay = self.relay
        meta = merge_terms(operator, parse_requested_terms(envelope.payload))
        token, session = relay.sessions.create(
            relay.engine.now,
            relay.engine.entropy,
            ttl=meta.ttl_seconds,
            preset=meta.grants,
            transport_hint=meta.transport_hint or ("wss" if self._secure else "ws"),
            device=parse_device(envelope.payload),
            max_ttl=relay.config.max_session_ttl,
            knows_key=meta.carries_key,
            key_hash=meta.key_hash,
            audience=meta.audience,
        )
        delivered = False
        try:
            # wire core 4.5: an error of the store is logged only; the session lives until the relay restarts.
            yield from relay.save(session)
            if not session.is_active(relay.engine.now.wall):
                self._step(ClientTrigger.REFUSE)
                self._fail(BAD_TOKEN, envelope.id)
                return
            self._step(ClientTrigger.STORED)
            relay.engine.log(
                Level.INFO, "paired", device=session.device_name, session=session.token_prefix, address=self.address
            )
            delivered = self._welcome(session, token, envelope.id, pairs=True)
            if delivered and not meta.keep_earlier:
                relay.engine.spawn(_end_earlier_sessions(relay, session))
        finally:
            if not delivered:  # no client has the token, so the session must not remain
                relay.forget_session(session)

    def _catch_up(self) -> None:
        early, self._early = self._early, ()
        for envelope in early:
            dispatch(self, envelope)

    def _too_early(self) -> None:
        self._cancel()
        self._step(ClientTrigger.REFUSE)
        self._fail(TOO_EARLY, "")

    def _pairing_over(self, _: object) -> None:
        self._task = None

    def _pairing_failed(self, error: Exception) -> None:
        reason = error.message if isinstance(error, Refused) else f"internal error {self.relay.engine.log_bug(error)}"
        self._step(ClientTrigger.REFUSE)
        self._fail(reason, "")

    def _welcome(self, session: PairedSession, token: str, identity: str, *, pairs: bool = False) -> bool:
        relay = self.relay
        sent = self.send(
            "system",
            "auth.ok",
            {
                "session_token": token,
                "server_version": relay.config.version,
                "expires_at": session.expires_at,
                "grants": session.grants,
                "transport_hint": session.transport_hint,
                "client_surface": session.client_surface,
                "device_form_factor": session.device_form_factor,
                "profiles": relay.profiles,
            },
            identity,
        )
        if sent:  # else the socket is closing, since the relay stops
            self.session = session
            self.socket.mark_authenticated()
            relay.limiter.success(self.address, relay.engine.now)
            relay.audit.record_sign_in(session, self.address, pairs=pairs)
            relay.welcome(self, session)
            self._catch_up()
        return sent

    def _timed_out(self) -> None:
        self._step(ClientTrigger.REFUSE)
        self._fail(TIMED_OUT, "")

    def _refuse(self, reason: str, envelope: Envelope | None) -> None:
        self._step(ClientTrigger.REFUSE)
        self._fail(reason, "" if envelope is None else envelope.id)

    def _fail(self, reason: str, identity: str) -> None:
        self.send("system", "auth.fail", {"reason": reason}, identity)
        self.socket.close(1000)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.retire()
            self._timer = None

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _step(self, trigger: ClientTrigger) -> None:
        self.state = step(CLIENT_TABLE, self.state, trigger)


def _end_earlier_sessions(relay: ClientSocketPort, session: PairedSession) -> Flow[None]:
    """Revoke the earlier sessions of a device that has paired again: it does not use their tokens (wire core 1.9)."""
    yield from relay.coordinator.wait_until_loaded(inf)
    for earlier in relay.sessions.of_device(session.device_id, relay.engine.now):
        if earlier is not session and earlier.created_at <= session.created_at:
            yield from relay.revoke(earlier, PAIRED_AGAIN)
    yield from relay.coordinator.flush_best_effort()
