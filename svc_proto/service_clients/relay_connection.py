"""An authenticated WebSocket to a relay (wire core 1): open, `system/auth`, then envelopes in both directions.

| state      | trigger       | next       |                                                    |
|------------|---------------|------------|----------------------------------------------------|
| NEW        | OPENED        | SIGNING_IN | the socket is open; `system/auth` is sent          |
| SIGNING_IN | AUTHENTICATED | ONLINE     | `auth.ok`                                          |
| SIGNING_IN | REJECTED      | OVER       | `auth.fail`, or an `auth.ok` without a valid token |
| SIGNING_IN | LOST          | OVER       | the socket closed without an answer                |
| ONLINE     | LOST          | OVER       |                                                    |
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import cast

from attrs import field, frozen

from svc_proto.basics.entropy import new_uuid
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.envelope import Envelope, parse_envelope, write_envelope
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.service_client import ServiceCallError, ServiceClient, ServiceFault

__all__ = [
    "RELAY_CONNECTION_TABLE",
    "SIGN_IN_TIMEOUT",
    "RelayConnection",
    "RelayConnectionState",
    "RelayConnectionTrigger",
    "AuthOk",
    "connect_relay",
]

SIGN_IN_TIMEOUT = 15.0  # s, wire core 1.6; as much for the connection and the handshake
CLOSE_TIMEOUT = 1.0  # s for the relay to answer our close frame


class RelayConnectionState(Enum):
    """State of a connection to a relay."""

    NEW = "new"
    SIGNING_IN = "signing in"
    ONLINE = "online"
    OVER = "over"


class RelayConnectionTrigger(Enum):
    """Event that can change the state of a relay connection."""

    OPENED = "opened"
    AUTHENTICATED = "authenticated"
    REJECTED = "rejected"
    LOST = "lost"


RELAY_CONNECTION_TABLE: Table[RelayConnectionState, RelayConnectionTrigger] = {
    (RelayConnectionState.NEW, RelayConnectionTrigger.OPENED): RelayConnectionState.SIGNING_IN,
    (RelayConnectionState.SIGNING_IN, RelayConnectionTrigger.AUTHENTICATED): RelayConnectionState.ONLINE,
    (RelayConnectionState.SIGNING_IN, RelayConnectionTrigger.REJECTED): RelayConnectionState.OVER,
    (RelayConnectionState.SIGNING_IN, RelayConnectionTrigger.LOST): RelayConnectionState.OVER,
    (RelayConnectionState.ONLINE, RelayConnectionTrigger.LOST): RelayConnectionState.OVER,
}


@frozen(kw_only=True)
class AuthOk:
    """Content of `auth.ok`. Times in epoch seconds, None for never."""

    token: str = field(repr=False)
    server_version: str
    expires_at: float | None
    grants: Mapping[str, float | None]
    transport_hint: str


class RelayConnection(WebSocketHandler):
    """Connection to a relay, online after `connect_relay`. It calls `on_envelope`, `on_lost` and `on_drained`."""

    def __init__(self, engine: Engine, payload: Mapping[str, object]) -> None:
        self._engine = engine
        self._payload = payload
        self._socket: WebSocketConnection | None = None
        self.ticket = engine.new_op()  # of the answer to `system/auth`
        self._end = engine.new_op()
        self.state = RelayConnectionState.NEW
        self.on_envelope: Callable[[Envelope], None] = _ignore
        self.on_lost: Callable[[str], None] = _ignore
        self.on_drained: Callable[[], None] = _nothing

    # --- for users of the connection ---

    @property
    def writable(self) -> bool:
        """Report whether the unsent bytes are below the limit."""
        return self._socket is not None and self._socket.writable

    def send(self, channel: str, kind: str, payload: Mapping[str, object]) -> str:
        """Send an envelope, if the socket was opened; return its id."""
        identity = new_uuid(self._engine.entropy)
        if self._socket is not None:
            self._socket.send_text(write_envelope(channel, kind, identity, payload))
        return identity

    def set_read_paused(self, holding: bool) -> None:
        """Pause or resume reading from the relay."""
        if self._socket is not None:
            self._socket.set_read_paused(holding)

    def close(self) -> None:
        """Begin to close the connection; no callback follows."""
        self.on_envelope = self.on_lost = _ignore
        self.on_drained = _nothing
        if self._socket is not None:
            self._socket.close()

    def finish(self) -> Flow[None]:
        """Close the connection; unless it is over, wait for the relay to confirm, for at most `CLOSE_TIMEOUT`."""
        self.close()
        if self.state is not RelayConnectionState.OVER:
            yield from wait(self._end, self._engine.now.mono + CLOSE_TIMEOUT)

    # --- WebSocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        """Send `system/auth`."""
        self._socket = socket
        self._step(RelayConnectionTrigger.OPENED)
        self.send("system", "auth", self._payload)

    def on_text(self, text: str) -> None:
        """Pass an envelope to `on_envelope` once online; before that, handle only `auth.ok` and `auth.fail`.

        A message that is no envelope is ignored.
        """
        envelope = parse_envelope(text)
        if envelope is None:
            return
        if self.state is RelayConnectionState.ONLINE:
            self.on_envelope(envelope)
        elif self.state is RelayConnectionState.SIGNING_IN and envelope.channel == "system":
            if envelope.type == "auth.ok":
                self._welcomed(_welcome(envelope.payload))
            elif envelope.type == "auth.fail":
                self._step(RelayConnectionTrigger.REJECTED)
                self._engine.resume(self.ticket, Failure(FailureKind.DENIED, envelope.payload.text("reason")))

    def on_writable(self) -> None:
        """Call `on_drained`: the unsent bytes are below the limit again."""
        self.on_drained()

    def on_closed(self, code: int, reason: str) -> None:
        """Report the loss of the socket to the flow that signs in, or by `on_lost` once online."""
        was, why = self.state, reason or f"closed with {code}"
        if was is not RelayConnectionState.OVER:
            self._step(RelayConnectionTrigger.LOST)
        if was is RelayConnectionState.SIGNING_IN:
            self._engine.resume(self.ticket, Failure(FailureKind.UNREACHABLE, why))
        elif was is RelayConnectionState.ONLINE:
            self.on_lost(why)
            self._engine.resume(self._end, None)

    def _welcomed(self, welcome: AuthOk | Failure) -> None:
        self._step(
            RelayConnectionTrigger.AUTHENTICATED if isinstance(welcome, AuthOk) else RelayConnectionTrigger.REJECTED
        )
        self._engine.resume(self.ticket, welcome)

    def _step(self, trigger: RelayConnectionTrigger) -> None:
        self.state = step(RELAY_CONNECTION_TABLE, self.state, trigger)


def connect_relay(
    engine: Engine, relay: ServiceClient, payload: Mapping[str, object], *, within: float = SIGN_IN_TIMEOUT
) -> Flow[tuple[RelayConnection, AuthOk]]:
    """Connect to the socket at the relay's `url` and authenticate with this payload of `system/auth`.

    The client's token is sent in the handshake already, so a valid one opens the socket even if wrong codes have
    blocked this address. `within` s are for the connection, and as many for the answer. Raises `ServiceCallError`.
    """
    link = RelayConnection(engine, payload)
    yield from relay.socket(engine, "", link, within=within)
    try:
        answer = cast("AuthOk | Failure", (yield from wait(link.ticket, engine.now.mono + within)))
    finally:
        if link.state is not RelayConnectionState.ONLINE:
            link.close()
    if isinstance(answer, Failure):
        raise ServiceCallError(
            relay, _FAULTS.get(answer.kind, ServiceFault.CONNECTION_LOST), answer, lacks="session token"
        )
    return link, answer


_FAULTS = {FailureKind.DENIED: ServiceFault.REJECTED, FailureKind.INVALID: ServiceFault.UNAVAILABLE}


def _welcome(payload: JsonObject) -> AuthOk | Failure:
    token, grants = payload.text("session_token"), payload.get_object("grants")
    if not token or not is_printable_ascii(token):
        return Failure(FailureKind.INVALID, "no session token")
    times = {channel: grants.number(channel) for channel in grants}
    return AuthOk(
        token=token,
        server_version=payload.text("server_version"),
        expires_at=payload.number("expires_at"),
        grants={channel: time for channel, time in times.items() if time is not None or grants[channel] is None},
        transport_hint=payload.text("transport_hint") or "unknown",
    )


def _ignore(what: object) -> None:
    """Ignore the event."""


def _nothing() -> None:
    """Ignore the event."""
