"""One open WebSocket as a service sees it, whoever opened it: messages, keepalive, a clean end exactly once.

| state   | trigger | next    |
|---------|---------|---------|
| OPEN    | CLOSE   | CLOSING | we sent a close frame and wait for the peer's, at most `close_timeout`
| OPEN    | END     | CLOSED  | the peer closed, broke a rule, vanished, or was silent for too long
| CLOSING | END     | CLOSED  |

A handler that raises has a bug: it is logged with a reference and the socket closes with 1011. One that raises a
`RemoteProtocolError` blames the peer: the socket closes with the code that the error carries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Protocol

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.machines.transitions import Table, step
from svc_proto.wire.events import (
    BinaryMessage,
    CloseWebSocket,
    Event,
    Ping,
    StreamId,
    TextMessage,
    WebSocketClosed,
)
from svc_proto.wire.keepalive import Keepalive, KeepaliveAction

if TYPE_CHECKING:
    from svc_proto.engine.http_channel import HttpChannel

__all__ = [
    "WEBSOCKET_CONNECTION_TABLE",
    "WebSocketConnection",
    "WebSocketHandler",
    "WebSocketConnectionState",
    "WebSocketConnectionTrigger",
]


class WebSocketHandler(Protocol):
    """What a service makes of one WebSocket. `on_closed` comes last, exactly once, if `on_open` came."""

    def on_open(self, socket: WebSocketConnection) -> None:
        """The socket is open; keep it to send."""
        ...

    def on_text(self, text: str) -> None:
        """A text message came."""
        ...

    def on_binary(self, data: bytes) -> None:
        """A binary message came."""
        ...

    def on_writable(self) -> None:
        """After `socket.writable` was False: it is True again."""
        ...

    def on_closed(self, code: int, reason: str) -> None:
        """The socket is gone; `code` as in RFC 6455 section 7.4, 1006 for no close frame."""
        ...


class WebSocketConnectionState(IntEnum):
    """Life of a socket after its opening handshake."""

    OPEN = auto()
    CLOSING = auto()
    CLOSED = auto()


class WebSocketConnectionTrigger(IntEnum):
    """What moves it."""

    CLOSE = auto()
    END = auto()


WEBSOCKET_CONNECTION_TABLE: Table[WebSocketConnectionState, WebSocketConnectionTrigger] = {
    (WebSocketConnectionState.OPEN, WebSocketConnectionTrigger.CLOSE): WebSocketConnectionState.CLOSING,
    (WebSocketConnectionState.OPEN, WebSocketConnectionTrigger.END): WebSocketConnectionState.CLOSED,
    (WebSocketConnectionState.CLOSING, WebSocketConnectionTrigger.END): WebSocketConnectionState.CLOSED,
}
_OPEN = WebSocketConnectionState.OPEN  # as in `machines.session`


class WebSocketConnection:
    """A WebSocket on one stream of a channel."""

    __slots__ = ("_carrier", "_handler", "_keepalive", "_timer", "ch", "on_end", "state", "stream")

    def __init__(self, carrier: HttpChannel, stream: StreamId, handler: WebSocketHandler) -> None:
        engine, limits = carrier.engine, carrier.limits
        self._carrier = carrier
        self._handler = handler
        self.on_end: Callable[[int], None] | None = None  # gets the close code, once, for the log
        self._keepalive = Keepalive(limits.ping_interval, limits.ping_timeout, engine.now.mono)
        self._timer = engine.timers.timer(self._due)
        self._timer.set(self._keepalive.due)
        self.stream = stream
        self.ch = carrier.ch  # the channel that carries it
        self.state = _OPEN

    # --- for the service ---

    @property
    def number(self) -> int:
        """A number that no other socket of this process ever has."""
        return self.ch

    @property
    def writable(self) -> bool:
        """False while more than `high_water` bytes wait to be sent: hold back what can wait."""
        return not self._carrier.credit.blocked

    def send_text(self, message: str | bytes, *, binary: bool = False) -> bool:
        """Send one message; False when the socket is closing or closed and nothing was sent.

        Bytes are text in UTF-8, unless it is `binary`. A peer that leaves `max_unsent` bytes unread is dropped.
        """
        carrier = self._carrier
        if self.state is not _OPEN or carrier.gone:
            return False
        if carrier.credit.unsent and carrier.drop_if_overrun():
            return False
        carrier.send_message(self.stream, message, binary)
        return True

    def send_binary(self, data: bytes) -> bool:
        """The same, of bytes that are no text."""
        return self.send_text(data, binary=True)

    def set_read_paused(self, holding: bool) -> None:
        """Read no more from the peer for now, or go on. It is kept from giving us up meanwhile: see `Keepalive`.

        For sockets that we have opened: a server reads whatever its peers say.
        """
        if self.state is _OPEN:
            self._carrier.set_read_paused(holding)
            self._keepalive.set_paused(holding, self._carrier.engine.now.mono)
            self._timer.set(self._keepalive.due)

    def set_ping_interval(self, seconds: float) -> None:
        """Ping after so much silence, in place of `ping_interval`."""
        engine = self._carrier.engine
        self._keepalive = Keepalive(seconds, self._carrier.limits.ping_timeout, engine.now.mono)
        if self.state is _OPEN:
            self._timer.set(self._keepalive.due)

    def mark_authenticated(self) -> None:
        """Whoever speaks here is known from now on, and may say more at a time than strangers may."""
        self._carrier.mark_websocket_authenticated(self.stream)

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Begin the closing handshake; `on_closed` follows. Harmless when already closing."""
        if self.state is _OPEN:
            if self._keepalive.held:
                self._carrier.set_read_paused(False)  # the peer's close frame is to be read
            self._carrier.send_event(CloseWebSocket(self.stream, code, reason))
            self._timer.set(self._carrier.engine.now.mono + self._carrier.limits.close_timeout)
            self.state = step(WEBSOCKET_CONNECTION_TABLE, self.state, WebSocketConnectionTrigger.CLOSE)

    # --- for the channel ---

    def deliver_open(self) -> None:
        """Tell the handler."""
        self._call_handler(self._handler.on_open, self)

    def deliver_texts(self, texts: Sequence[str] = ()) -> None:
        """Bytes came from the peer, and it said these messages: it lives."""
        if self._keepalive.mark_received(self._carrier.engine.now.mono) and self.state is _OPEN:
            self._timer.set(self._keepalive.due)  # else it is due later than it was, and finds out
        for text in texts:
            if self.state is not _OPEN:
                return
            if self._carrier.credit.unsent:
                self._carrier.extend_write_timeout()
            try:
                self._handler.on_text(text)
            except Exception as error:
                self._failed(error)

    def deliver_event(self, event: Event) -> None:
        """Take an event of this stream. The wire drops messages that come after our close frame."""
        if self.state is _OPEN:
            self._carrier.extend_write_timeout()  # it says something, so it lives, however long it does not read
        match event:
            case TextMessage(text=text):
                self._call_handler(self._handler.on_text, text)
            case BinaryMessage(data=data):
                self._call_handler(self._handler.on_binary, data)
            case WebSocketClosed(code=code, reason=reason):
                self.end(code, reason)
            case _:
                pass  # pings are answered by the wire, pongs counted by `deliver_texts`

    def deliver_writable(self) -> None:
        """The channel is writable again."""
        if self.state is _OPEN:
            self._call_handler(self._handler.on_writable)

    def end(self, code: int, reason: str) -> None:
        """The socket is over. Tells the handler once."""
        if self.state is not WebSocketConnectionState.CLOSED:
            self.state = step(WEBSOCKET_CONNECTION_TABLE, self.state, WebSocketConnectionTrigger.END)
            self._timer.retire()
            handler = self._handler
            del self._handler  # it keeps this socket, and would until cycles are next collected
            self._call_handler(handler.on_closed, code, reason)
            if self.on_end is not None:
                self.on_end(code)

    def _due(self) -> None:
        if self.state is not _OPEN:
            self._carrier.abort()  # the peer does not close its side
            return
        action = self._keepalive.advance(self._carrier.engine.now.mono)
        if action is KeepaliveAction.DROP:
            self._carrier.abort()
            return
        if action is KeepaliveAction.PING:
            self._carrier.send_event(Ping(self.stream))
        self._timer.set(self._keepalive.due)

    def _call_handler(self, call: Callable[..., None], *what: object) -> None:
        try:
            call(*what)
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, RemoteProtocolError):
            self.close(error.close_code, str(error))
        else:
            self.close(1011, f"internal error, reference {self._carrier.engine.log_bug(error)}")
