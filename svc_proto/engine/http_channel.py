"""What the two ends of an HTTP connection share: bytes to events, events to bytes, one flush, an orderly close.

Closing is the same for both: what was said is flushed, a FIN follows, and once all of it has left, the peer gets
`linger` seconds to send its own FIN before the channel is cut, so that the last answer is not lost to a reset
(RFC 9112 section 9.6). Until it has left, `write_timeout` watches over it.
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
    """What a server's connection waits for."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    WORKING = "working"


_IDLE, _WORKING = ConnectionPhase.IDLE, ConnectionPhase.WORKING  # as in `machines.session`


class HttpChannel(Channel):
    """A channel that speaks HTTP or WebSocket through a wire connection."""

    __slots__ = (
        "_fin_sent",
        "_frames",
        "_pumping",
        "_thrown",
        "_timer",
        "admission",
        "behind",
        "closing",
        "conn",
        "eof",
        "phase",
        "socket",
    )

    def __init__(self, engine: Engine, ch: ChannelId, limits: Limits, conn: Connection) -> None:
        super().__init__(engine, ch, limits)
        self.conn = conn
        self._frames: WebSocket | None = None  # once the connection has become that
        self.socket: WebSocketConnection | None = None  # one stream, one WebSocket at the most
        self.set_admission(None)
        self.closing = False  # we will send, or have sent, our FIN: nothing is read any more
        self.eof = False
        self._fin_sent = False
        self._pumping = False
        self._thrown = 0  # bytes that came while we were closing
        self._timer = engine.timers.timer(self.timed_out)
        self.phase = _WORKING

    def set_admission(self, visit: UnauthenticatedConnection | None) -> None:
        """From here on nobody knows the peer, who is on this visit; None: somebody does, or it is gone.

        What each request would ask of the visit is asked here, once.
        """
        self.admission = visit
        self.behind = (
            None if visit is None or visit.door.address_behind_proxy is None else visit
        )  # whoever sits there may be a proxy

    # --- facts ---

    def ended(self, fact: Closed) -> None:
        """As of any channel; nothing of the connection is kept."""
        super().ended(fact)
        self.conn.release()

    def received(self, data: bytes) -> None:
        """Read it, or keep it until it is the turn of a peer that nobody knows."""
        visit = self.admission
        if visit is not None:
            turns = visit.door.read_scheduler
            left = turns.fast_credit - len(data)
            if left >= 0:
                turns.fast_credit = left
            elif not self.closing:
                data = visit.admit_bytes(data)
                if not data:
                    return
        if self._frames is None:
            self.parse(data)
        else:
            HttpChannel.parse(self, data)  # the same for all

    def parse(self, data: bytes) -> None:
        """Feed the connection and take what it understood."""
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
        """The peer's FIN: it is taken behind what came before."""
        if self.admission is None or not self.admission.defer_end():
            self.parse_end()

    def parse_end(self) -> None:
        """No more will come: what was asked is still answered."""
        self.eof = True
        if self.closing:
            return
        self.conn.receive_eof()
        self.process_events()

    def closed(self, why: str) -> None:
        """Tell everything that lived on this channel."""
        super().closed(why)
        self._timer.retire()
        if self.admission is not None:
            self.admission.end()
            self.set_admission(None)
        socket, self.socket = self.socket, None
        if socket is not None:
            socket.end(1006, why)

    def writable(self) -> None:
        """Pass it on to the socket."""
        if self.socket is not None:
            self.socket.deliver_writable()

    def all_sent(self) -> None:
        """Behind a FIN the linger begins."""
        if self._fin_sent:
            self._timer.set(self.engine.now.mono + self.limits.linger)

    def flush(self) -> None:
        """Join what was said in this `handle` and send it; then the FIN if this is the end."""
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
        """Wait for this from now on; whoever works is waited for elsewhere."""
        self.phase = phase
        if phase is _WORKING:
            self._timer.cancel()
        else:
            within = self.limits.idle_timeout if phase is _IDLE else self.limits.head_timeout
            self._timer.set(self.engine.now.mono + within)

    def send_end(self) -> None:
        """Behind all that was said: the FIN."""
        self.engine.emit(CloseWrite(self.ch))

    def abort(self) -> None:
        """Cut the channel now; what still comes from the peer is thrown away."""
        super().abort()
        self.closing = True
        self._timer.cancel()

    def reads_while_unsent(self) -> bool:
        """A WebSocket is read whatever is unsent: its peer may have stopped reading for the same reason."""
        return self.socket is not None

    # --- for exchanges, sockets and subclasses ---

    @property
    def buffered_bytes(self) -> int:
        """Bytes that are held for the peer."""
        return self.conn.buffered_bytes

    @property
    def has_unread(self) -> bool:
        """More has come than was read in this go, and it is not for want of bytes."""
        return False

    @property
    def is_over_budget(self) -> bool:
        """Tell what is held for a peer that nobody knows: True, and nothing more of it is to be read for now."""
        visit = self.admission
        return visit is not None and visit.update_usage(self.buffered_bytes)

    def mark_authenticated(self) -> None:
        """The peer is known from here on."""
        visit = self.admission
        if visit is not None:
            self.set_admission(None)
            visit.authenticated()

    def mark_websocket_authenticated(self, stream: StreamId) -> None:
        """The peer of a WebSocket is known."""
        self.conn.lift_limits(stream)
        self.mark_authenticated()

    def send_event(self, event: Event) -> None:
        """Say something, unless it is `gone`; it is flushed at the end of this `handle`."""
        if not self.gone:
            self.conn.send(event)
            self.mark_dirty()

    def send_message(self, stream: StreamId, message: str | bytes, binary: bool) -> None:
        """Say a message of a WebSocket."""
        if self._frames is not None:
            self._frames.send_message(message, binary)
            self.engine.dirty[self] = None
        elif isinstance(message, str):
            self.send_event(TextMessage(stream, message))
        else:
            self.send_event(BinaryMessage(stream, message) if binary else TextMessage(stream, message.decode("utf-8")))

    def change_stream_unsent(self, change: int) -> None:
        """So many bytes more wait on a stream of HTTP/2, or fewer: they count as unsent."""
        if change > 0:
            if not self.credit.unsent:
                self._stall.set(self.engine.now.mono + self.limits.write_timeout)
            self.credit.add_unsent(change)
        else:
            Channel.sent(self, -change)

    def switch_to_websocket(
        self, stream: StreamId, handler: WebSocketHandler, frames: WebSocket | None
    ) -> WebSocketConnection:
        """Its one socket. A connection that has switched has said what it said, and is `frames` from here on."""
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
        """Take every event there is. Called again whenever something that blocked the next one is done."""
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
        """The next thing the peer said; None when there is none for now."""
        return self.conn.next_event()

    @property
    def accepts_requests(self) -> bool:
        """Whether a further event may be taken now; once it is so again, call `process_events`."""
        return True

    def write_pending(self) -> None:
        """Order what was said so far to be written, so that the credit knows of it before the end of this `handle`."""
        data = self.conn.data_to_send()
        if data:
            self.write(data)

    def socket_event(self, event: Event) -> None:
        """Pass an event on to its socket. When that is over, so is its HTTP/1.1 connection."""
        assert self.socket is not None
        self.socket.deliver_event(event)
        if isinstance(event, WebSocketClosed):
            self.socket = None
            self.close_gracefully()

    def _discard(self, n: int) -> None:
        """Whatever comes while we linger: it is read so that the peer reads us, but not without end."""
        self._thrown += n
        self.set_read_paused(self._thrown > self.limits.max_linger)

    @abstractmethod
    def handle_event(self, event: Event) -> None:
        """Take one event of the connection."""

    @abstractmethod
    def protocol_error(self, error: RemoteProtocolError) -> None:
        """The peer broke a rule: answer if an answer is possible, then close."""

    @abstractmethod
    def after_events(self) -> None:
        """All events are taken: set timers, pause or resume, close when there is nothing left to do."""

    def timed_out(self) -> None:
        """The channel's timer is due: here, the linger is over."""
        self.abort()
