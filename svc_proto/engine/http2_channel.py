"""The server's end of an HTTP/2 connection: each of its streams is served like a connection of its own.

A `Http2StreamChannel` is a `ServerChannel` for one request or one WebSocket, with its own phases, deadlines and credit.
What differs is underneath: it speaks through the connection that it shares, a stalled or broken one resets its stream
and no more, and a handler that does not read holds back its own stream only, by HTTP/2's flow control.

| the connection waits for           | deadline       | at the deadline |
|------------------------------------|----------------|-----------------|
| the preface, or the rest of a head | `head_timeout` | GOAWAY, close   |
| a request                          | `idle_timeout` | GOAWAY, close   |
| its lanes, or the peer to read     | theirs, and `write_timeout` |    |

Bodies of answers wait on their stream, not in the socket: no more of them is written than `high_water` has room for.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Level
from svc_proto.engine.http_channel import ConnectionPhase, HttpChannel
from svc_proto.engine.server_channel import HttpApp, ServerChannel
from svc_proto.facts import Accepted
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    BadRequest,
    Event,
    RequestData,
    RequestHead,
    StreamId,
    StreamReset,
)
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.limits import Limits

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["MAX_STREAM_READ", "Http2Channel", "Http2StreamChannel"]

# Requests of an unauthenticated peer that are begun in one read: packed, 200 of them fit in 4 KiB.
MAX_HEADS_PER_READ = 8
MAX_STREAM_READ = (
    16 * 1024
)  # bytes that a stream counts for: twice what it takes with a silent WebSocket (decision 101)


class Http2Channel(HttpChannel):
    """One accepted connection that speaks HTTP/2."""

    waits_for_peer = True
    __slots__ = ("_heads", "_over", "accepted", "app", "bodies", "lanes")

    conn: Http2Connection

    def __init__(self, engine: Engine, accepted: Accepted, app: HttpApp, limits: Limits) -> None:
        http2 = Http2Connection(Role.SERVER, limits=limits, entropy=engine.entropy)
        super().__init__(engine, accepted.ch, limits, http2)
        self.app = app
        self.accepted = accepted
        self.lanes: dict[StreamId, Http2StreamChannel] = {}
        self.bodies = 0  # bytes that its lanes hold, and are, for a peer that nobody knows
        self._heads = 0  # begun in this go
        self._over: list[Http2StreamChannel] = []  # to be told so at the end of this `handle`
        self.enter(ConnectionPhase.HEAD)

    # --- facts ---

    def parse(self, data: bytes) -> None:
        """Feed the connection and take what it understood."""
        self._heads = 0
        self.conn.set_time(self.engine.now.mono)
        for lane in self.lanes.values():
            if lane.socket is not None:
                lane.socket.deliver_texts()
        super().parse(data)
        if self._heads and self.admission is not None:
            self.admission.charge_requests(self._heads, more=self.has_unread)

    def closed(self, why: str) -> None:
        """Tell everything that lived on this connection."""
        super().closed(why)
        for lane in [*self._over, *self.lanes.values()]:
            lane.closed(why)
        self._over.clear()
        self.lanes.clear()

    def stop(self) -> None:
        """Finish the requests that have begun; sockets are told 1001."""
        if self.closing:
            return
        self.conn.go_away()
        for lane in list(self.lanes.values()):
            lane.stop()
        self.process_events()

    def writable(self) -> None:
        """The socket takes more of what waits, and requests that waited may come."""
        self.process_events()

    # --- events ---

    @property
    def accepts_requests(self) -> bool:
        """Requests wait, too, while too much is unsent; sockets do not, see `reads_while_unsent`."""
        return not self.has_unread and (not self.credit.blocked or self.reads_while_unsent())

    @property
    def has_unread(self) -> bool:
        """As many requests were begun for a peer that nobody knows as may be in one go; the rest waits for its turn."""
        return self.admission is not None and self._heads >= MAX_HEADS_PER_READ

    def reads_while_unsent(self) -> bool:
        """As of any channel: one that carries a WebSocket is read whatever is unsent."""
        return any(lane.socket is not None for lane in self.lanes.values())

    def handle_event(self, event: Event) -> None:
        """Pass an event on to its lane."""
        stream = event.stream
        if isinstance(event, RequestHead | BadRequest):
            self._heads += 1
            self.lanes[stream] = Http2StreamChannel(self, stream)
        lane = self.lanes.get(stream)
        if lane is None:
            return
        if isinstance(event, StreamReset):
            self.end_stream(lane)
        else:
            lane.receive_event(event)

    def protocol_error(self, error: RemoteProtocolError) -> None:
        """The connection has said GOAWAY: close it, with all that lives on it."""
        peer = self.accepted.peer.host
        self.engine.log(Level.DEBUG, "bad request", peer=peer, status=error.status, problem=str(error))
        for lane in list(self.lanes.values()):
            self.end_stream(lane)
        self.close_gracefully()

    # --- for lanes ---

    @property
    def buffered_bytes(self) -> int:
        """Bytes that are held for the peer. One lane is no more than a connection of HTTP/1.1, which is not counted."""
        return super().buffered_bytes + max(0, self.bodies - MAX_STREAM_READ)

    def end_stream(self, lane: Http2StreamChannel) -> None:
        """Nothing more is said on a lane; it is told at the end of this `handle`."""
        if not lane.gone:
            lane.gone = True
            self.bodies -= lane.counted
            del self.lanes[lane.stream]
            self._over.append(lane)
            self.mark_dirty()

    # --- between events ---

    def after_events(self) -> None:
        """Close when there is nothing left to do, else set the deadline."""
        if self.closing:
            return
        self.set_read_paused(self.is_over_budget)
        if self.gone:
            return
        if not (self.lanes or self.has_unread) and (self.conn.must_close or self.engine.stopping or self.eof):
            self.close_gracefully()
            return
        phase = (
            ConnectionPhase.HEAD
            if self.conn.has_partial_head
            else ConnectionPhase.WORKING
            if self.lanes
            else ConnectionPhase.IDLE
        )
        if phase is not self.phase:
            self.enter(phase)

    def timed_out(self) -> None:
        """No request came, or half of one, or the linger is over."""
        if self.closing:
            self.abort()
            return
        self.conn.go_away()
        for lane in list(self.lanes.values()):
            self.end_stream(lane)
        self.close_gracefully()

    def flush(self) -> None:
        """Tell lanes that are over, then write what the socket and the peer's windows have room for."""
        if self.gone:
            return
        over, self._over = self._over, []
        for lane in over:
            lane.closed("the stream is over")
        if over:
            self.after_events()
        if self.drop_if_overrun():
            return
        super().flush()

    def write_pending(self) -> None:
        """Write no more of bodies than there is room for; what is left waits on its lane."""
        data = self.conn.data_to_send(max(0, self.limits.high_water + 1 - self.credit.unsent))
        if data:
            self.write(data)
        for lane in list(self.lanes.values()):
            lane.report_usage()


class Http2StreamChannel(ServerChannel):
    """One stream of an HTTP/2 connection, on which a client asks for one thing."""

    __slots__ = ("_heard", "_owed", "_under", "counted", "stream")

    conn: Http2Connection

    def __init__(self, under: Http2Channel, stream: StreamId) -> None:
        engine = under.engine
        self._under = under
        self._heard: deque[Event] = deque()  # and not taken yet
        self._owed = 0  # bytes of body that were heard, and for which the peer may not send others yet
        self.counted = 0  # of `Http2Channel.bodies`
        self.stream = stream
        super().__init__(engine, under.accepted, under.app, under.limits, lane=(engine.new_channel(), under.conn))
        self.behind = under.behind  # a stream comes from nowhere else

    def receive_event(self, event: Event) -> None:
        """Take an event of this stream."""
        if isinstance(event, BadRequest):
            error = RemoteProtocolError(event.why, status=event.status, code=event.code)
            self.protocol_error(error, RequestHead(self.stream, event.method, "/", http_version="2"))
            return
        if isinstance(event, RequestData):
            self._owed += len(event.data)
            if self.closing:
                self._discard(len(event.data))
                return
        elif self.closing:
            if not self.credit.unsent:  # the end of the request
                self.all_sent()
            return
        self._heard.append(event)
        self.process_events()

    def next_event(self) -> Event | None:
        """The next thing that was heard."""
        return self._heard.popleft() if self._heard else None

    def finished(self) -> None:
        """The answer was said, and there is no other request."""
        self.exchange = None
        self.close_gracefully()
        self.after_events()

    @property
    def buffered_bytes(self) -> int:
        """What came and was not taken, what was taken and is kept, and the lane itself, unless it is done."""
        kept = 0 if self.exchange is None else self.exchange.buffered_bytes
        return 0 if self.closing else MAX_STREAM_READ + self._owed + kept

    def after_events(self) -> None:
        """As of any connection; the one below knows what all of them hold for a stranger."""
        super().after_events()
        under = self._under
        if under.admission is not None and not self.gone:
            held = self.buffered_bytes
            under.bodies += held - self.counted
            self.counted = held

    def mark_authenticated(self) -> None:
        """Whoever has shown one stream who it is has shown all."""
        self._under.mark_authenticated()

    def set_read_paused(self, holding: bool) -> None:
        """A handler that has to read first holds its stream back; the peer may go on once it has."""
        if self._owed and not holding:
            owed, self._owed = self._owed, 0
            self._under.conn.acknowledge_data(self.stream, owed)
            self._under.mark_dirty()

    def write_pending(self) -> None:
        """Count what waits now; it is written at the end of this `handle`."""
        self.report_usage()
        self._under.mark_dirty()

    def report_usage(self) -> None:
        """Count anew what waits on the stream."""
        change = self._under.conn.unsent(self.stream) - self.credit.unsent
        if change:
            self.change_stream_unsent(change)

    def send_end(self) -> None:
        """Give the stream up behind what was said."""
        http2 = self._under.conn
        if http2.knows(self.stream) and not http2.awaits_request_end(self.stream):
            http2.send(StreamReset(self.stream))
        self.report_usage()

    def all_sent(self) -> None:
        """Behind the end of the stream there is at most the rest of the request to wait for: then the linger begins."""
        if self._fin_sent and not self._under.conn.awaits_request_end(self.stream):
            self._under.end_stream(self)
        else:
            super().all_sent()

    def abort(self) -> None:
        """Reset the stream now."""
        self.closing = True
        self._timer.cancel()
        self._stall.cancel()
        self._under.conn.reset_stream(self.stream)
        self._under.end_stream(self)

    def _update_reading(self) -> None:
        """The peer is held back by its window, see `set_read_paused`."""
