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
from svc_proto.engine.websocket import Socket, SocketHandler
from svc_proto.facts import ChannelId, Closed
from svc_proto.wire.connection import Connection
from svc_proto.wire.events import BinaryMessage, Event, StreamId, TextMessage, WebSocketClosed
from svc_proto.wire.limits import Limits

if TYPE_CHECKING:
    from svc_proto.engine.admission import Visit
    from svc_proto.engine.core import Engine
    from svc_proto.wire.websocket import WebSocket

__all__ = ["HttpChannel", "Phase"]


class Phase(Enum):
    """What a server's connection waits for."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    WORKING = "working"


_IDLE, _WORKING = Phase.IDLE, Phase.WORKING  # as in `machines.session`


class HttpChannel(Channel):
    """A channel that speaks HTTP or WebSocket through a wire connection."""

    __slots__ = (
        "_fin_sent",
        "_frames",
        "_pumping",
        "_thrown",
        "_timer",
        "behind",
        "closing",
        "conn",
        "eof",
        "phase",
        "socket",
        "visit",
    )

    def __init__(self, engine: Engine, ch: ChannelId, limits: Limits, conn: Connection) -> None:
        super().__init__(engine, ch, limits)
        self.conn = conn
        self._frames: WebSocket | None = None  # once the connection has become that
        self.socket: Socket | None = None  # one stream, one WebSocket at the most
        self.receive(None)
        self.closing = False  # we will send, or have sent, our FIN: nothing is read any more
        self.eof = False
        self._fin_sent = False
        self._pumping = False
        self._thrown = 0  # bytes that came while we were closing
        self._timer = engine.timers.timer(self.timed_out)
        self.phase = _WORKING

    def receive(self, visit: Visit | None) -> None:
        """From here on nobody knows the peer, who is on this visit; None: somebody does, or it is gone.

        What each request would ask of the visit is asked here, once.
        """
        self.visit = visit
        self.behind = None if visit is None or visit.door.behind is None else visit  # whoever sits there may be a proxy

    # --- facts ---

    def ended(self, fact: Closed) -> None:
        """As of any channel; nothing of the connection is kept."""
        super().ended(fact)
        self.conn.release()

    def received(self, data: bytes) -> None:
        """Read it, or keep it until it is the turn of a peer that nobody knows."""
        visit = self.visit
        if visit is not None:
            turns = visit.door.turns
            left = turns.fast_credit - len(data)
            if left >= 0:
                turns.fast_credit = left
            elif not self.closing:
                data = visit.takes(data)
                if not data:
                    return
        if self._frames is None:
            self.parse(data)
        else:
            HttpChannel.parse(self, data)  # the same for all

    def parse(self, data: bytes) -> None:
        """Feed the connection and take what it understood."""
        if self.closing:
            self._throw_away(len(data))
            return
        frames = self._frames
        if frames is None or self.visit is not None or self._pumping or self._holding:
            if self.socket is not None:
                self.socket.heard()
            self.conn.receive_data(data)
            self.pump()
            return
        socket = self.socket
        assert socket is not None
        self._pumping = True
        try:
            texts, more = frames.receive_texts(data)
            socket.heard(texts)
        finally:
            self._pumping = False
        if more:
            self.pump()

    def read_closed(self) -> None:
        """The peer's FIN: it is taken behind what came before."""
        if self.visit is None or not self.visit.ends():
            self.parse_end()

    def parse_end(self) -> None:
        """No more will come: what was asked is still answered."""
        self.eof = True
        if self.closing:
            return
        self.conn.receive_eof()
        self.pump()

    def closed(self, why: str) -> None:
        """Tell everything that lived on this channel."""
        super().closed(why)
        self._timer.retire()
        if self.visit is not None:
            self.visit.end()
            self.receive(None)
        socket, self.socket = self.socket, None
        if socket is not None:
            socket.end(1006, why)

    def writable(self) -> None:
        """Pass it on to the socket."""
        if self.socket is not None:
            self.socket.drained()

    def all_sent(self) -> None:
        """Behind a FIN the linger begins."""
        if self._fin_sent:
            self._timer.set(self.engine.now.mono + self.limits.linger)

    def flush(self) -> None:
        """Join what was said in this `handle` and send it; then the FIN if this is the end."""
        if self.gone:
            return
        if self.credit.unsent > self.limits.max_unsent and self.socket is not None and self.overrun():
            return
        self.spill()
        if self.closing and not self._fin_sent:
            self._fin_sent = True
            self._timer.cancel()
            self.say_end()
            if not self.credit.unsent:
                self.all_sent()

    def enter(self, phase: Phase) -> None:
        """Wait for this from now on; whoever works is waited for elsewhere."""
        self.phase = phase
        if phase is _WORKING:
            self._timer.cancel()
        else:
            within = self.limits.idle_timeout if phase is _IDLE else self.limits.head_timeout
            self._timer.set(self.engine.now.mono + within)

    def say_end(self) -> None:
        """Behind all that was said: the FIN."""
        self.engine.emit(CloseWrite(self.ch))

    def drop(self) -> None:
        """Cut the channel now; what still comes from the peer is thrown away."""
        super().drop()
        self.closing = True
        self._timer.cancel()

    def reads_on(self) -> bool:
        """A WebSocket is read whatever is unsent: its peer may have stopped reading for the same reason."""
        return self.socket is not None

    # --- for exchanges, sockets and subclasses ---

    @property
    def held(self) -> int:
        """Bytes that are held for the peer."""
        return self.conn.buffered_bytes

    @property
    def unheard(self) -> bool:
        """More has come than was read in this go, and it is not for want of bytes."""
        return False

    @property
    def crowded(self) -> bool:
        """Tell what is held for a peer that nobody knows: True, and nothing more of it is to be read for now."""
        visit = self.visit
        return visit is not None and visit.weigh(self.held)

    def vouch(self) -> None:
        """The peer is known from here on."""
        visit = self.visit
        if visit is not None:
            self.receive(None)
            visit.known()

    def trust(self, stream: StreamId) -> None:
        """The peer of a WebSocket is known."""
        self.conn.lift_limits(stream)
        self.vouch()

    def put(self, event: Event) -> None:
        """Say something, unless it is `gone`; it is flushed at the end of this `handle`."""
        if not self.gone:
            self.conn.send(event)
            self.soil()

    def say(self, stream: StreamId, message: str | bytes, binary: bool) -> None:
        """Say a message of a WebSocket."""
        if self._frames is not None:
            self._frames.send_message(message, binary)
            self.engine.dirty[self] = None
        elif isinstance(message, str):
            self.put(TextMessage(stream, message))
        else:
            self.put(BinaryMessage(stream, message) if binary else TextMessage(stream, message.decode("utf-8")))

    def waits(self, change: int) -> None:
        """So many bytes more wait on a stream of HTTP/2, or fewer: they count as unsent."""
        if change > 0:
            if not self.credit.unsent:
                self._stall.set(self.engine.now.mono + self.limits.write_timeout)
            self.credit.add_unsent(change)
        else:
            Channel.sent(self, -change)

    def become(self, stream: StreamId, handler: SocketHandler, frames: WebSocket | None) -> Socket:
        """Its one socket. A connection that has switched has said what it said, and is `frames` from here on."""
        if frames is not None:
            self.spill()
            self.conn = self._frames = frames
        self.socket = Socket(self, stream, handler)
        return self.socket

    def shut(self) -> None:
        """Close in an orderly way: flush, FIN, linger."""
        if self.closing:
            return
        self.closing = True
        self.hold(False)
        self.soil()

    def pump(self) -> None:
        """Take every event there is. Called again whenever something that blocked the next one is done."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while not self.closing and self.willing and (event := self.next_event()) is not None:
                self.take(event)
        except RemoteProtocolError as error:
            self.protocol_error(error)
        finally:
            self._pumping = False
        self.soil()
        self.settle()

    def next_event(self) -> Event | None:
        """The next thing the peer said; None when there is none for now."""
        return self.conn.next_event()

    @property
    def willing(self) -> bool:
        """Whether a further event may be taken now; once it is so again, call `pump`."""
        return True

    def spill(self) -> None:
        """Order what was said so far to be written, so that the credit knows of it before the end of this `handle`."""
        data = self.conn.data_to_send()
        if data:
            self.write(data)

    def socket_event(self, event: Event) -> None:
        """Pass an event on to its socket. When that is over, so is its HTTP/1.1 connection."""
        assert self.socket is not None
        self.socket.event(event)
        if isinstance(event, WebSocketClosed):
            self.socket = None
            self.shut()

    def _throw_away(self, n: int) -> None:
        """Whatever comes while we linger: it is read so that the peer reads us, but not without end."""
        self._thrown += n
        self.hold(self._thrown > self.limits.max_linger)

    @abstractmethod
    def take(self, event: Event) -> None:
        """Take one event of the connection."""

    @abstractmethod
    def protocol_error(self, error: RemoteProtocolError) -> None:
        """The peer broke a rule: answer if an answer is possible, then close."""

    @abstractmethod
    def settle(self) -> None:
        """All events are taken: set timers, pause or resume, close when there is nothing left to do."""

    def timed_out(self) -> None:
        """The channel's timer is due: here, the linger is over."""
        self.drop()
