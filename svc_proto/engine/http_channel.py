"""Base of both ends of an HTTP connection: bytes to events, events to bytes, one flush, an orderly close.

Closing is the same for both ends. Pending output is flushed and a FIN follows. When all of it has left, the peer has
`linger` seconds to send its own FIN before the channel is cut. So a reset does not destroy the last response (RFC 9112
section 9.6). Until the output has left, `write_timeout` applies.
"""

from __future__ import annotations

from abc import abstractmethod
from enum import Enum
from typing import TYPE_CHECKING

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import CloseWrite
from svc_proto.engine.channel import Channel
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import ChannelId, Closed
from svc_proto.wire.connection import Connection
from svc_proto.wire.events import BinaryMessage, Event, StreamId, TextMessage, WebSocketClosed
from svc_proto.wire.limits import Limits

if TYPE_CHECKING:
    from svc_proto.engine.admission import UnauthenticatedConnection
    from svc_proto.engine.core import Engine
    from svc_proto.wire.websocket import WebSocket

__all__ = ["HttpChannel", "ConnectionPhase"]


class ConnectionPhase(Enum):
    """Phases of a server's connection, by the next input or output that it needs."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    WORKING = "working"


_IDLE, _WORKING = ConnectionPhase.IDLE, ConnectionPhase.WORKING  # aliases, as in `machines.paired_session`


class HttpChannel(Channel):
    """A channel for HTTP or WebSocket through a wire connection."""

    __slots__ = (
        "_discarded",
        "_fin_sent",
        "_frames",
        "_pumping",
        "_timer",
        "admission",
        "closing",
        "conn",
        "eof",
        "phase",
        "proxy_admission",
        "socket",
    )

    def __init__(self, engine: Engine, ch: ChannelId, limits: Limits, conn: Connection) -> None:
        super().__init__(engine, ch, limits)
        self.conn = conn
        self._frames: WebSocket | None = None  # set once the connection has switched to a WebSocket
        self.socket: WebSocketConnection | None = None  # a connection has one stream, so one WebSocket at most
        self.set_admission(None)
        self.closing = False  # our FIN was sent or will be: input is discarded
        self.eof = False
        self._fin_sent = False
        self._pumping = False
        self._discarded = 0  # bytes that arrived while closing
        self._timer = engine.timers.timer(self.timed_out)
        self.phase = _WORKING

    def set_admission(self, admission: UnauthenticatedConnection | None) -> None:
        """Set the unauthenticated connection of this channel; None: the peer is authenticated, or the channel is gone.

        Whether a proxy may be in front is decided here, once instead of for each request.
        """
        self.admission = admission
        # The peer may be a proxy.
        self.proxy_admission = (
            None if admission is None or admission.admission.address_behind_proxy is None else admission
        )

    # --- facts ---

    def ended(self, fact: Closed) -> None:
        """Handle `Closed`, the last fact of the channel, and release the connection's state."""
        super().ended(fact)
        self.conn.release()

    def received(self, data: bytes) -> None:
        """Parse received bytes; of an unauthenticated peer, keep those that the read scheduler does not admit yet."""
        admission = self.admission
        if admission is not None:
            scheduler = admission.admission.read_scheduler
            credit_left = scheduler.fast_credit - len(data)
            if credit_left >= 0:
                scheduler.fast_credit = credit_left
            elif not self.closing:
                data = admission.admit_bytes(data)
                if not data:
                    return
        if self._frames is None:
            self.parse(data)
        else:
            HttpChannel.parse(self, data)  # a subclass's `parse` concerns HTTP only

    def parse(self, data: bytes) -> None:
        """Parse received bytes and handle the events; discard the bytes if the channel is closing."""
        if self.closing:
            self._discard(len(data))
            return
        frames = self._frames
        if frames is None or self.admission is not None or self._pumping or self._holding:
            if self.socket is not None:
                self.socket.deliver_texts()
            self.conn.receive_data(data)
            self.process_events()
            return
        socket = self.socket
        assert socket is not None
        self._pumping = True
        try:
            texts, more = frames.receive_texts(data)
            socket.deliver_texts(texts)
        finally:
            self._pumping = False
        if more:
            self.process_events()

    def read_closed(self) -> None:
        """Handle the peer's FIN, after the bytes before it."""
        if self.admission is None or not self.admission.defer_end():
            self.parse_end()

    def parse_end(self) -> None:
        """Handle the end of input, and the events that were received before it."""
        self.eof = True
        if self.closing:
            return
        self.conn.receive_eof()
        self.process_events()

    def closed(self, why: str) -> None:
        """Release the timer, the admission and a permit for large input, and end an open WebSocket with 1006."""
        super().closed(why)
        self._timer.retire()
        self.engine.large_inputs.release(self)
        if self.admission is not None:
            self.admission.end()
            self.set_admission(None)
        socket, self.socket = self.socket, None
        if socket is not None:
            socket.end(1006, why)

    def writable(self) -> None:
        """Notify the WebSocket, if there is one, that it is writable."""
        if self.socket is not None:
            self.socket.deliver_writable()

    def all_sent(self) -> None:
        """Start the linger time, if the FIN was sent."""
        if self._fin_sent:
            self._timer.set(self.engine.now.mono + self.limits.linger)

    def flush(self) -> None:
        """Send the output of this `handle` together, then the FIN if the channel is closing.

        A channel with a WebSocket that has more than `max_unsent` unsent bytes is dropped instead.
        """
        if self.gone:
            return
        if self.credit.unsent > self.limits.max_unsent and self.socket is not None and self.drop_if_overrun():
            return
        self.write_pending()
        if self.closing and not self._fin_sent:
            self._fin_sent = True
            self._timer.cancel()
            self.send_end()
            if not self.credit.unsent:
                self.all_sent()

    def enter(self, phase: ConnectionPhase) -> None:
        """Enter a phase and set its deadline: `idle_timeout` or `head_timeout` from now, none for WORKING."""
        self.phase = phase
        if phase is _WORKING:
            self._timer.cancel()
        else:
            timeout = self.limits.idle_timeout if phase is _IDLE else self.limits.head_timeout
            self._timer.set(self.engine.now.mono + timeout)

    def send_end(self) -> None:
        """Send the FIN after all output."""
        self.engine.emit(CloseWrite(self.ch))

    def abort(self) -> None:
        """Cut the channel now; further input is discarded."""
        super().abort()
        self.closing = True
        self._timer.cancel()

    def reads_while_unsent(self) -> bool:
        """Report whether reading continues while bytes are unsent: with a WebSocket always, or both ends could stop."""
        return self.socket is not None

    # --- for exchanges, sockets and subclasses ---

    @property
    def buffered_bytes(self) -> int:
        """Number of received bytes that are buffered and not handled yet."""
        return self.conn.buffered_bytes

    @property
    def has_unread(self) -> bool:
        """Report whether input is left unread for another reason than missing bytes; False by default."""
        return False

    @property
    def is_over_budget(self) -> bool:
        """Return whether reading has to pause, after an update of what the buffered bytes count for.

        They count for the memory budget of unauthenticated peers, otherwise for the permits of large inputs.
        """
        admission = self.admission
        if admission is None:
            return self.engine.large_inputs.must_wait(self)
        return admission.update_usage(self.buffered_bytes)

    def update_handler_pause(self) -> None:
        """Pause or resume reading after the handler of the WebSocket has requested it."""
        assert self.socket is not None
        self.set_read_paused(self.socket.is_read_paused)
        self.socket.pause_keepalive(self.socket.is_read_paused)

    @property
    def is_handler_paused(self) -> bool:
        """Report whether the channel has a WebSocket whose handler has paused reading."""
        return self.socket is not None and self.socket.is_read_paused

    def mark_authenticated(self) -> None:
        """Mark the peer as authenticated: the connection leaves the budget of unauthenticated ones."""
        admission = self.admission
        if admission is not None:
            self.set_admission(None)
            admission.authenticated()

    def mark_websocket_authenticated(self, stream: StreamId) -> None:
        """Mark the peer as authenticated by a WebSocket, whose message limit for anonymous callers ends."""
        self.conn.lift_limits(stream)
        self.mark_authenticated()

    def send_event(self, event: Event) -> None:
        """Send an event, unless the channel is gone; it is flushed at the end of this `handle`."""
        if not self.gone:
            self.conn.send(event)
            self.mark_dirty()

    def send_message(self, stream: StreamId, message: str | bytes, binary: bool) -> None:
        """Send a WebSocket message; bytes are sent as text in UTF-8, unless `binary`."""
        if self._frames is not None:
            self._frames.send_message(message, binary)
            self.engine.dirty[self] = None
        elif isinstance(message, str):
            self.send_event(TextMessage(stream, message))
        else:
            self.send_event(BinaryMessage(stream, message) if binary else TextMessage(stream, message.decode("utf-8")))

    def enable_fragments(self, size: int) -> None:
        """Deliver what is held of an incomplete text message as a part once it exceeds `size` bytes of memory.

        A WebSocket over HTTP/2 delivers all messages whole.
        """
        if self._frames is not None:
            self._frames.enable_fragments(size)

    def change_stream_unsent(self, change: int) -> None:
        """Add `change` bytes that wait on an HTTP/2 stream to the unsent bytes; a negative number removes them."""
        if change > 0:
            if not self.credit.unsent:
                self._stall.set(self.engine.now.mono + self.limits.write_timeout)
            self.credit.add_unsent(change)
        else:
            Channel.sent(self, -change)

    def switch_to_websocket(
        self, stream: StreamId, handler: WebSocketHandler, frames: WebSocket | None
    ) -> WebSocketConnection:
        """Switch the channel to its one WebSocket; `frames`, if given, replaces the HTTP connection."""
        if frames is not None:
            self.write_pending()
            self.conn = self._frames = frames
        self.socket = WebSocketConnection(self, stream, handler)
        return self.socket

    def close_gracefully(self) -> None:
        """Close in an orderly way: flush, FIN, linger."""
        if self.closing:
            return
        self.closing = True
        self.set_read_paused(False)
        self.mark_dirty()

    def process_events(self) -> None:
        """Handle the available events, as long as events are accepted and the channel is not closing.

        It is called again when an event that blocked the next one is done.
        """
        if self._pumping:
            return
        self._pumping = True
        try:
            while not self.closing and self.accepts_requests and (event := self.next_event()) is not None:
                self.handle_event(event)
        except RemoteProtocolError as error:
            self.protocol_error(error)
        finally:
            self._pumping = False
        self.mark_dirty()
        self.after_events()

    def next_event(self) -> Event | None:
        """Return the next event of the peer, or None."""
        return self.conn.next_event()

    @property
    def accepts_requests(self) -> bool:
        """Report whether a further event may be handled; call `process_events` when that becomes true again."""
        return True

    def write_pending(self) -> None:
        """Write pending output now, so that backpressure counts it before the end of this `handle`."""
        data = self.conn.data_to_send()
        if data:
            self.write(data)

    def socket_event(self, event: Event) -> None:
        """Pass an event to the WebSocket; after its end, close the channel."""
        assert self.socket is not None
        self.socket.deliver_event(event)
        if isinstance(event, WebSocketClosed):
            self.socket = None
            self.close_gracefully()

    def _discard(self, n: int) -> None:
        """Count discarded input of a closing channel, and stop reading after more than `max_linger` bytes."""
        self._discarded += n
        self.set_read_paused(self._discarded > self.limits.max_linger)

    @abstractmethod
    def handle_event(self, event: Event) -> None:
        """Handle an event of the connection."""

    @abstractmethod
    def protocol_error(self, error: RemoteProtocolError) -> None:
        """Handle a protocol error of the peer."""

    @abstractmethod
    def after_events(self) -> None:
        """Set timers, pause or resume reading, or close, after all events were handled."""

    def timed_out(self) -> None:
        """Cut the channel: unless a subclass sets other times, the timer is that of the linger."""
        self.abort()
