"""An open WebSocket as a service uses it, on either end: messages, keepalive, a clean end exactly once.

| state   | trigger | next    |
|---------|---------|---------|
| OPEN    | CLOSE   | CLOSING | we sent a close frame and wait for the peer's, at most `close_timeout`
| OPEN    | END     | CLOSED  | the peer closed, broke a rule, disconnected, or was silent for too long; or we cut it
| CLOSING | END     | CLOSED  |

An exception of a handler is a bug: it is logged with a reference and the WebSocket closes with 1011. A
`RemoteProtocolError` of a handler blames the peer: the WebSocket closes with the code of the error.
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
    TextFragment,
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
    """Handler of a WebSocket. `on_closed` is called last, exactly once, if `on_open` was called."""

    __slots__ = ()

    def on_open(self, socket: WebSocketConnection) -> None:
        """Handle the opened WebSocket; `socket` sends and closes."""
        ...

    def on_text(self, text: str) -> None:
        """Handle a text message."""
        ...

    def on_binary(self, data: bytes) -> None:
        """Handle a binary message; by default, ignore it."""
        return

    def on_writable(self) -> None:
        """Handle that `socket.writable` is True again after it was False; by default, do nothing."""
        return

    def on_closed(self, code: int, reason: str) -> None:
        """Handle the end; `code` as in RFC 6455 section 7.4, 1006 for no close frame."""
        ...


class WebSocketConnectionState(IntEnum):
    """States of a WebSocket after its opening handshake."""

    OPEN = auto()
    CLOSING = auto()
    CLOSED = auto()


class WebSocketConnectionTrigger(IntEnum):
    """Triggers of the state changes of a WebSocket."""

    CLOSE = auto()
    END = auto()


WEBSOCKET_CONNECTION_TABLE: Table[WebSocketConnectionState, WebSocketConnectionTrigger] = {
    (WebSocketConnectionState.OPEN, WebSocketConnectionTrigger.CLOSE): WebSocketConnectionState.CLOSING,
    (WebSocketConnectionState.OPEN, WebSocketConnectionTrigger.END): WebSocketConnectionState.CLOSED,
    (WebSocketConnectionState.CLOSING, WebSocketConnectionTrigger.END): WebSocketConnectionState.CLOSED,
}
_OPEN = WebSocketConnectionState.OPEN  # alias, as in `machines.paired_session`


class WebSocketConnection:
    """A WebSocket on a stream of a channel."""

    __slots__ = (
        "_carrier",
        "_handler",
        "_keepalive",
        "_on_fragment",
        "_timer",
        "buffered_bytes",
        "ch",
        "is_read_paused",
        "on_end",
        "state",
        "stays",
        "stream",
    )

    def __init__(self, carrier: HttpChannel, stream: StreamId, handler: WebSocketHandler) -> None:
        engine, limits = carrier.engine, carrier.limits
        self._carrier = carrier
        self._handler = handler
        self._on_fragment: Callable[[str, bool], None] | None = None
        self.on_end: Callable[[int], None] | None = None  # called with the close code, once, for the log
        self._keepalive = Keepalive(limits.ping_interval, limits.ping_timeout, engine.now.mono)
        self._timer = engine.timers.timer(self._due)
        self._timer.set(self._keepalive.due)
        self.stream = stream
        self.ch = carrier.ch  # the channel that carries it
        self.state = _OPEN
        self.is_read_paused = False  # by the handler
        self.buffered_bytes = 0  # that the handler has of a message whose parts are still arriving
        self.stays = False  # whether the service closes it by itself when the process stops

    # --- for the service ---

    @property
    def number(self) -> int:
        """A number that is unique among the WebSockets of its engine."""
        return self.ch

    @property
    def writable(self) -> bool:
        """Report whether unsent bytes are within the water marks: if False, defer output that can wait."""
        return not self._carrier.credit.blocked

    def send_text(self, message: str | bytes, *, binary: bool = False) -> bool:
        """Send a message; return False, with nothing sent, when the WebSocket is closing, closed or dropped.

        Bytes are UTF-8 text, unless `binary`. A WebSocket with more than `max_unsent` unsent bytes is dropped.
        """
        carrier = self._carrier
        if self.state is not _OPEN or carrier.gone:
            return False
        if carrier.credit.unsent and carrier.drop_if_overrun():
            return False
        carrier.send_message(self.stream, message, binary)
        return True

    def send_binary(self, data: bytes) -> bool:
        """Send a binary message; the result is that of `send_text`."""
        return self.send_text(data, binary=True)

    def send_fragment(self, text: str, is_last: bool) -> bool:
        """Send a part of a text message; return False, with nothing sent, if the WebSocket is closing.

        It also returns False after the end of the WebSocket or of its channel.
        """
        carrier = self._carrier
        if self.state is not _OPEN or carrier.gone:
            return False
        carrier.send_event(TextFragment(self.stream, text, is_last))
        return True

    def receive_fragments(self, size: int, on_fragment: Callable[[str, bool], None]) -> None:
        """Have long text messages delivered in parts, with the arguments of `send_fragment`.

        When an incomplete message takes more than `size` bytes of memory, what is held of it is passed to
        `on_fragment`. A message that is complete before that is delivered whole, as are all messages over HTTP/2.
        """
        self._on_fragment = on_fragment
        self._carrier.enable_fragments(size)

    def set_read_paused(self, holding: bool) -> None:
        """Pause or resume reading from the peer. `Keepalive` prevents that the peer times out meanwhile."""
        if self.state is _OPEN and holding is not self.is_read_paused:
            self.is_read_paused = holding
            self._carrier.update_handler_pause()

    def set_ping_interval(self, seconds: float) -> None:
        """Set the silence in seconds after which a ping is sent, in place of `ping_interval`."""
        engine = self._carrier.engine
        self._keepalive = Keepalive(seconds, self._carrier.limits.ping_timeout, engine.now.mono)
        if self.state is _OPEN:
            self._timer.set(self._keepalive.due)

    def mark_authenticated(self) -> None:
        """Mark the peer as authenticated: the message limit of anonymous callers no longer applies."""
        self._carrier.mark_websocket_authenticated(self.stream)

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Begin the closing handshake; `on_closed` follows. Harmless when already closing."""
        if self.state is _OPEN:
            if self._keepalive.held:
                self._carrier.set_read_paused(False)  # so that the peer's close frame is read
            self._carrier.send_event(CloseWebSocket(self.stream, code, reason))
            self._timer.set(self._carrier.engine.now.mono + self._carrier.limits.close_timeout)
            self.state = step(WEBSOCKET_CONNECTION_TABLE, self.state, WebSocketConnectionTrigger.CLOSE)

    # --- for the channel ---

    def pause_keepalive(self, holding: bool) -> None:
        """Record that the channel is not read, or is read again; meanwhile pings are sent, but no peer is dropped."""
        if self.state is _OPEN and holding is not self._keepalive.held:
            self._keepalive.set_paused(holding, self._carrier.engine.now.mono)
            self._timer.set(self._keepalive.due)

    def deliver_open(self) -> None:
        """Notify the handler that the WebSocket is open."""
        self._call_handler(self._handler.on_open, self)

    def deliver_texts(self, texts: Sequence[str] = ()) -> None:
        """Deliver text messages, and record that the peer has sent bytes."""
        if self._keepalive.mark_received(self._carrier.engine.now.mono) and self.state is _OPEN:
            self._timer.set(self._keepalive.due)  # otherwise the timer finds the later deadline when it fires
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
        """Handle an event of this stream. The wire layer drops messages that come after our close frame."""
        if self.state is _OPEN:
            self._carrier.extend_write_timeout()  # the peer sends, so it is alive, although it may not read
        match event:
            case TextMessage(text=text):
                self._call_handler(self._handler.on_text, text)
            case TextFragment(text=text, is_last=is_last):
                assert self._on_fragment is not None  # the wire layer returns fragments on request
                self._call_handler(self._on_fragment, text, is_last)
            case BinaryMessage(data=data):
                self._call_handler(self._handler.on_binary, data)
            case WebSocketClosed(code=code, reason=reason):
                self.end(code, reason)
            case _:
                pass  # the wire layer answers pings; `deliver_texts` counts pongs

    def deliver_writable(self) -> None:
        """Notify the handler that the channel is writable again."""
        if self.state is _OPEN:
            self._call_handler(self._handler.on_writable)

    def end(self, code: int, reason: str) -> None:
        """End the WebSocket and notify the handler, once."""
        if self.state is not WebSocketConnectionState.CLOSED:
            self.state = step(WEBSOCKET_CONNECTION_TABLE, self.state, WebSocketConnectionTrigger.END)
            self._timer.retire()
            handler = self._handler
            self._on_fragment = None
            del self._handler  # the handler references this object: without this the cycle would wait for the collector
            self._call_handler(handler.on_closed, code, reason)
            if self.on_end is not None:
                self.on_end(code)

    def _due(self) -> None:
        if self.state is not _OPEN:
            self._carrier.abort()  # the peer does not close its side
            return
        engine = self._carrier.engine
        action = self._keepalive.advance(engine.now.mono, engine.woken)
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
