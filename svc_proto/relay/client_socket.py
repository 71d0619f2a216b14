"""One client's WebSocket: authentication first, then messages by channel (wire core 1).

| state   | trigger | next   |                                                              |
|---------|---------|--------|--------------------------------------------------------------|
| WAITING | CODE    | SAVING | a code was consumed; its session is being stored              |
| WAITING | TOKEN   | OPEN   | a session token was accepted                                  |
| WAITING | REFUSE  | ENDED  | bad credentials, a bad first frame, or 30 s without one       |
| SAVING  | STORED  | OPEN   | `auth.ok` goes out only when the session would survive a crash |
| OPEN    | REFUSE  | ENDED  | the session was revoked or has expired                        |
| any     | GONE    | ENDED  | the socket closed                                             |
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.errors import Refused
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.message import Request
from svc_proto.engine.socket import Socket
from svc_proto.facts import Failure
from svc_proto.machines.pairing import PairingMeta, operator_first, phone_wishes
from svc_proto.machines.session import Session, parse_device
from svc_proto.machines.table import Table, step
from svc_proto.relay.access import client_address
from svc_proto.relay.channels import dispatch
from svc_proto.wire.envelope import Envelope, parse_envelope, write_envelope
from svc_proto.version import VERSION

if TYPE_CHECKING:
    from svc_proto.relay.service import Relay

__all__ = ["AUTH_TIMEOUT", "LIFE", "ClientSocket", "ClientState", "ClientTrigger"]

AUTH_TIMEOUT = 30.0  # s from the upgrade to the first text frame, wire core 1.6

# Android reads these texts: the first must hold "auth" and "timeout", the code's "pairing" and "invalid", the
# token's "token" and nothing of pairing (wire core 1.6).
TIMED_OUT = "auth timeout: no authentication within 30 seconds"
NOT_AUTH = "the first message must be system/auth"
BAD_CODE = "the pairing code is invalid, expired or already used"
BAD_TOKEN = "the session token is not accepted any more"
NO_CREDENTIAL = "authentication needs a session token or a code"


class ClientState(Enum):
    """Where a client's socket is."""

    WAITING = "waiting"
    SAVING = "saving"
    OPEN = "open"
    ENDED = "ended"


class ClientTrigger(Enum):
    """What moves it."""

    CODE = "code"
    TOKEN = "token"
    STORED = "stored"
    REFUSE = "refuse"
    GONE = "gone"


LIFE: Table[ClientState, ClientTrigger] = {
    (ClientState.WAITING, ClientTrigger.CODE): ClientState.SAVING,
    (ClientState.WAITING, ClientTrigger.TOKEN): ClientState.OPEN,
    (ClientState.WAITING, ClientTrigger.REFUSE): ClientState.ENDED,
    (ClientState.WAITING, ClientTrigger.GONE): ClientState.ENDED,
    (ClientState.SAVING, ClientTrigger.STORED): ClientState.OPEN,
    (ClientState.SAVING, ClientTrigger.REFUSE): ClientState.ENDED,
    (ClientState.SAVING, ClientTrigger.GONE): ClientState.ENDED,
    (ClientState.OPEN, ClientTrigger.REFUSE): ClientState.ENDED,
    (ClientState.OPEN, ClientTrigger.GONE): ClientState.ENDED,
    (ClientState.ENDED, ClientTrigger.GONE): ClientState.ENDED,
}


class ClientSocket:
    """The relay's side of one WebSocket; a `SocketHandler`."""

    def __init__(self, relay: Relay, request: Request) -> None:
        self.relay = relay
        self.state = ClientState.WAITING
        self.session: Session | None = None
        self.socket: Socket | None = None
        self.address = client_address(request, trust_proxy=relay.config.trust_proxy_headers)
        self._secure = request.secure
        self._task: Task | None = None
        self._timer = relay.engine.timers.timer("authentication", self._timed_out)

    # --- SocketHandler ---

    def on_open(self, socket: Socket) -> None:
        """Wait for `system/auth`."""
        self.socket = socket
        self._timer.set(self.relay.engine.now.mono + AUTH_TIMEOUT)

    def on_text(self, text: str) -> None:
        """Authenticate with the first message, pass on the others."""
        envelope = parse_envelope(text)
        if self.state is ClientState.OPEN:
            if envelope is not None:
                dispatch(self, envelope)
        elif self.state is ClientState.WAITING:
            self._authenticate(envelope)

    def on_binary(self, data: bytes) -> None:
        """Binary frames are skipped and do not restart the authentication timer (wire core 1.1)."""

    def on_writable(self) -> None:
        """Nothing is held back here."""

    def on_closed(self, code: int, reason: str) -> None:
        """Forget the client; whoever waits for its phone is told."""
        was_open = self.state is ClientState.OPEN
        self._step(ClientTrigger.GONE)
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        if was_open:
            self.relay.engine.log(Level.INFO, "client left", device=self._name(), code=code)
        self.relay.forget(self)

    # --- for the relay and its channels ---

    @property
    def number(self) -> int:
        """Names this socket for as long as the process lives."""
        return 0 if self.socket is None else self.socket.number

    def send(self, channel: str, kind: str, payload: dict[str, object], identity: str = "") -> bool:
        """Send an envelope; False if the socket is closing. A fresh id is made when none is given."""
        if self.socket is None:
            return False
        identity = identity or new_uuid(self.relay.engine.entropy)
        return self.socket.send_text(write_envelope(channel, kind, identity, payload))

    def complain(self, message: str, code: str, identity: str = "") -> None:
        """Send `system/error`: clients ignore it, people read it in a trace."""
        self.send("system", "error", {"message": message, "error": code}, identity)

    def evict(self, reason: str) -> None:
        """The session is over: say so and close with 1008 (policy violation)."""
        self._step(ClientTrigger.REFUSE)
        self.complain(reason, "session_ended")
        if self.socket is not None:
            self.socket.close(1008, reason)

    # --- authentication ---

    def _authenticate(self, envelope: Envelope | None) -> None:
        self._timer.cancel()
        if envelope is None or (envelope.channel, envelope.type) != ("system", "auth"):
            self._refuse(NOT_AUTH, envelope)
            return
        token, code = envelope.payload.get("session_token"), envelope.payload.get("pairing_code")
        now = self.relay.engine.now
        if isinstance(token, str) and token:
            session = self.relay.sessions.lookup(token, now)
            if session is not None:
                self._step(ClientTrigger.TOKEN)
                self._welcome(session, token, envelope.id)
                return
        if isinstance(code, str) and code:
            operator = self.relay.codes.consume(code, now)
            if operator is not None:
                self._step(ClientTrigger.CODE)
                self._task = self.relay.engine.spawn(
                    self._pair(operator, envelope), name="pairing", on_error=self._pairing_failed
                )
                return
            self._refuse(BAD_CODE, envelope, counted=True)
            return
        self._refuse(BAD_TOKEN if isinstance(token, str) and token else NO_CREDENTIAL, envelope, counted=True)

    def _pair(self, operator: PairingMeta, envelope: Envelope) -> Flow[None]:
        relay = self.relay
        meta = operator_first(operator, phone_wishes(envelope.payload))
        token, session = relay.sessions.create(
            relay.engine.now,
            relay.engine.entropy,
            ttl=meta.ttl_seconds,
            preset=meta.grants,
            transport_hint=meta.transport_hint or ("wss" if self._secure else "ws"),
            device=parse_device(envelope.payload),
            max_ttl=relay.config.max_session_ttl,
        )
        delivered = False
        try:
            stored = yield from relay.save(session)
            if isinstance(stored, Failure):
                # wire core 4.5: an error of the store is logged only; the session lives until the relay restarts.
                relay.engine.log(
                    Level.ERROR, "session not stored", problem=stored.kind.value, device=session.device_name
                )
            if not session.is_active(relay.engine.now.wall):
                self._step(ClientTrigger.REFUSE)
                self._fail(BAD_TOKEN, envelope.id)
                return
            self._step(ClientTrigger.STORED)
            delivered = True
            relay.engine.log(
                Level.INFO, "paired", device=session.device_name, session=session.token_prefix, address=self.address
            )
            self._welcome(session, token, envelope.id)
        finally:
            if not delivered:  # nobody has the token: nobody may use it
                relay.discard(session)

    def _pairing_failed(self, error: Exception) -> None:
        reason = error.message if isinstance(error, Refused) else f"internal error {self.relay.engine.bug(error)}"
        self._step(ClientTrigger.REFUSE)
        self._fail(reason, "")

    def _welcome(self, session: Session, token: str, identity: str) -> None:
        relay = self.relay
        self.session = session
        relay.limiter.success(self.address, relay.engine.now)
        self.send(
            "system",
            "auth.ok",
            {
                "session_token": token,
                "server_version": VERSION,
                "expires_at": session.expires_at,
                "grants": session.grants,
                "transport_hint": session.transport_hint,
                "client_surface": session.client_surface,
                "device_form_factor": session.device_form_factor,
                "profiles": relay.profiles,
            },
            identity,
        )
        relay.welcome(self, session)

    def _timed_out(self) -> None:
        self._step(ClientTrigger.REFUSE)
        self._fail(TIMED_OUT, "")

    def _refuse(self, reason: str, envelope: Envelope | None, *, counted: bool = False) -> None:
        if counted:
            blocked = self.relay.limiter.failure(self.address, self.relay.engine.now)
            self.relay.engine.log(Level.WARNING, "authentication failed", address=self.address, blocked=blocked)
        self._step(ClientTrigger.REFUSE)
        self._fail(reason, "" if envelope is None else envelope.id)

    def _fail(self, reason: str, identity: str) -> None:
        self.send("system", "auth.fail", {"reason": reason}, identity)
        if self.socket is not None:
            self.socket.close(1000)

    def _name(self) -> str:
        return "" if self.session is None else self.session.device_name

    def _step(self, trigger: ClientTrigger) -> None:
        self.state = step(LIFE, self.state, trigger)
