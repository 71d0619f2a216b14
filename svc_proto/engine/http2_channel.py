"""Server end of an HTTP/2 connection, with a `Http2StreamChannel` for each stream.

A stream's channel serves one request or one WebSocket, with its own phases and credit, as a `ServerChannel`.

| the connection waits for           | deadline       | at the deadline |
|------------------------------------|----------------|-----------------|
| the rest of a head                 | `head_timeout` | GOAWAY, close   |
| a request                          | `idle_timeout` | GOAWAY, close   |
| its streams                        | theirs         | theirs          |
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

MAX_HEADS_PER_READ = 8  # requests that an unauthenticated peer may begin in one read: HPACK packs 200 into 4 KiB
MAX_STREAM_READ = 16 * 1024  # bytes that a stream counts for: twice its cost with a silent WebSocket (decision 101)


class Http2Channel(HttpChannel):
    """An accepted connection that uses HTTP/2."""

    waits_for_peer = True
    __slots__ = ("_heads", "_over", "accepted", "app", "bodies", "stream_channels")

    conn: Http2Connection

    def __init__(self, engine: Engine, accepted: Accepted, app: HttpApp, limits: Limits) -> None:
        http2 = Http2Connection(Role.SERVER, limits=limits, entropy=engine.entropy)
        super().__init__(engine, accepted.ch, limits, http2)
        self.app = app
        self.accepted = accepted
        self.stream_channels: dict[StreamId, Http2StreamChannel] = {}
        self.bodies = 0  # bytes that its streams buffer, and cost themselves, for an unauthenticated peer
        self._heads = 0  # begun in this read
        self._over: list[Http2StreamChannel] = []  # ended streams, notified at the end of this `handle`
        self.enter(ConnectionPhase.HEAD)

    # --- facts ---

    def parse(self, data: bytes) -> None:
        """Parse received bytes and handle the events."""
        self._heads = 0
        self.conn.set_time(self.engine.now.mono)
        for stream_channel in self.stream_channels.values():
            if stream_channel.socket is not None:
                stream_channel.socket.deliver_texts()
        super().parse(data)
        if self._heads and self.admission is not None:
            self.admission.charge_requests(self._heads, more=self.has_unread)

    def parse_end(self) -> None:
        """Handle the end of input, and pass it to the request of each open stream."""
        super().parse_end()
        for stream_channel in list(self.stream_channels.values()):
            stream_channel.half_close()

    def closed(self, why: str) -> None:
        """Close all streams of this connection."""
        super().closed(why)
        for stream_channel in [*self._over, *self.stream_channels.values()]:
            stream_channel.closed(why)
        self._over.clear()
        self.stream_channels.clear()

    def stop(self) -> None:
        """Send GOAWAY, and stop each stream: requests are finished, WebSockets close unless they have `stays`."""
        if self.closing:
            return
        self.conn.go_away()
        for stream_channel in list(self.stream_channels.values()):
            stream_channel.stop()
        self.process_events()

    def writable(self) -> None:
        """Handle the requests that waited until fewer bytes were unsent."""
        self.process_events()

    # --- events ---

    @property
    def accepts_requests(self) -> bool:
        """Report whether events are handled now: not while too much is unsent, unless a WebSocket is open.

        They also wait after the last request that an unauthenticated peer may begin in one read.
        """
        return not self.has_unread and (not self.credit.blocked or self.reads_while_unsent())

    @property
    def has_unread(self) -> bool:
        """Report whether an unauthenticated peer has begun as many requests as one read may; the rest is scheduled."""
        return self.admission is not None and self._heads >= MAX_HEADS_PER_READ

    def reads_while_unsent(self) -> bool:
        """Report whether reading continues while bytes are unsent: True if a stream is a WebSocket."""
        return any(stream_channel.socket is not None for stream_channel in self.stream_channels.values())

    def handle_event(self, event: Event) -> None:
        """Pass an event to the channel of its stream; an event of an unknown stream is dropped.

        A request head, or a bad request, creates the channel; a reset ends it.
        """
        stream = event.stream
        if isinstance(event, RequestHead | BadRequest):
            self._heads += 1
            self.stream_channels[stream] = Http2StreamChannel(self, stream)
        stream_channel = self.stream_channels.get(stream)
        if stream_channel is None:
            return
        if isinstance(event, StreamReset):
            self.end_stream(stream_channel)
        else:
            stream_channel.receive_event(event)

    def protocol_error(self, error: RemoteProtocolError) -> None:
        """End all streams and close the connection."""
        peer = self.accepted.peer.host
        self.engine.log(Level.DEBUG, "bad request", peer=peer, status=error.status, problem=str(error))
        for stream_channel in list(self.stream_channels.values()):
            self.end_stream(stream_channel)
        self.close_gracefully()

    # --- for streams ---

    @property
    def buffered_bytes(self) -> int:
        """Bytes buffered for the peer; the first `MAX_STREAM_READ` bytes of its streams are not counted."""
        return super().buffered_bytes + max(0, self.bodies - MAX_STREAM_READ)

    def end_stream(self, stream_channel: Http2StreamChannel) -> None:
        """End a stream: it sends no more, and is closed at the end of this `handle`."""
        if not stream_channel.gone:
            stream_channel.gone = True
            self.bodies -= stream_channel.counted
            del self.stream_channels[stream_channel.stream]
            self._over.append(stream_channel)
            self.mark_dirty()

    # --- between events ---

    def after_events(self) -> None:
        """Pause or resume reading; close if no work is left and none may follow, otherwise set the deadline."""
        if self.closing:
            return
        self.set_read_paused(self.is_over_budget)
        if self.gone:
            return
        if not (self.stream_channels or self.has_unread) and (self.conn.must_close or self.engine.stopping or self.eof):
            self.close_gracefully()
            return
        phase = (
            ConnectionPhase.HEAD
            if self.conn.has_partial_head
            else ConnectionPhase.WORKING
            if self.stream_channels
            else ConnectionPhase.IDLE
        )
        if phase is not self.phase:
            self.enter(phase)

    def timed_out(self) -> None:
        """Send GOAWAY, end all streams and close; cut the connection if it is closing already."""
        if self.closing:
            self.abort()
            return
        self.conn.go_away()
        for stream_channel in list(self.stream_channels.values()):
            self.end_stream(stream_channel)
        self.close_gracefully()

    def flush(self) -> None:
        """Close ended streams, then write what the socket and the peer's windows have room for.

        A connection with more than `max_unsent` unsent bytes is dropped instead.
        """
        if self.gone:
            return
        over, self._over = self._over, []
        for stream_channel in over:
            stream_channel.closed("the stream is over")
        if over:
            self.after_events()
        if self.drop_if_overrun():
            return
        super().flush()

    def write_pending(self) -> None:
        """Write pending output, but bodies only up to the high-water mark of unsent bytes."""
        data = self.conn.data_to_send(max(0, self.limits.high_water + 1 - self.credit.unsent))
        if data:
            self.write(data)
        for stream_channel in list(self.stream_channels.values()):
            stream_channel.report_usage()


class Http2StreamChannel(ServerChannel):
    """A stream of an HTTP/2 connection, with one request of the client."""

    __slots__ = ("_events", "_under", "_window_debt", "counted", "stream")

    conn: Http2Connection

    def __init__(self, under: Http2Channel, stream: StreamId) -> None:
        engine = under.engine
        self._under = under
        self._events: deque[Event] = deque()  # received, not handled yet
        self._window_debt = 0  # bytes of received body for which the peer's window is not opened again yet
        self.counted = 0  # part of `Http2Channel.bodies`
        self.stream = stream
        super().__init__(
            engine, under.accepted, under.app, under.limits, stream_channel=(engine.new_channel(), under.conn)
        )
        self.proxy_admission = under.proxy_admission  # a stream has the origin of its connection

    def receive_event(self, event: Event) -> None:
        """Handle an event of this stream; while the stream is closing, bytes of the body are discarded."""
        if isinstance(event, BadRequest):
            error = RemoteProtocolError(event.why, status=event.status, code=event.code)
            self.protocol_error(error, RequestHead(self.stream, event.method, "/", http_version="2"))
            return
        if isinstance(event, RequestData):
            self._window_debt += len(event.data)
            if self.closing:
                self._discard(len(event.data))
                return
        elif self.closing:
            if not self.credit.unsent:  # the end of the request
                self.all_sent()
            return
        self._events.append(event)
        self.process_events()

    def next_event(self) -> Event | None:
        """Return the next queued event, or None."""
        return self._events.popleft() if self._events else None

    @property
    def is_half_closed(self) -> bool:
        """Report whether the peer has closed its end of the connection."""
        return self._under.eof

    def finished(self) -> None:
        """Close the stream after its response, since no other request follows."""
        self.exchange = None
        self.close_gracefully()
        self.after_events()

    @property
    def buffered_bytes(self) -> int:
        """Bytes for the budget of unauthenticated peers; 0 when the stream is closing.

        They are a fixed cost of the stream, received body for which the window is still to be opened, and the
        `buffered_bytes` of the exchange.
        """
        kept = 0 if self.exchange is None else self.exchange.buffered_bytes
        return 0 if self.closing else MAX_STREAM_READ + self._window_debt + kept

    def after_events(self) -> None:
        """Handle the end of a batch of events, and update the connection's count for an unauthenticated peer."""
        super().after_events()
        under = self._under
        if under.admission is not None and not self.gone:
            held = self.buffered_bytes
            under.bodies += held - self.counted
            self.counted = held

    def mark_authenticated(self) -> None:
        """Mark the peer as authenticated for all streams of the connection."""
        self._under.mark_authenticated()

    def set_read_paused(self, holding: bool) -> None:
        """Pause or resume reading by this stream's window: received bytes are acknowledged on resume."""
        if self._window_debt and not holding:
            debt, self._window_debt = self._window_debt, 0
            self._under.conn.acknowledge_data(self.stream, debt)
            self._under.mark_dirty()

    def write_pending(self) -> None:
        """Update the count of unsent bytes; the output is written at the end of this `handle`."""
        self.report_usage()
        self._under.mark_dirty()

    def report_usage(self) -> None:
        """Update the count of bytes that wait on the stream."""
        change = self._under.conn.unsent(self.stream) - self.credit.unsent
        if change:
            self.change_stream_unsent(change)

    def send_end(self) -> None:
        """Reset the stream after its pending output, unless it has ended or the rest of the request is expected."""
        http2 = self._under.conn
        if http2.knows(self.stream) and not http2.awaits_request_end(self.stream):
            http2.send(StreamReset(self.stream))
        self.report_usage()

    def all_sent(self) -> None:
        """After `send_end`, end the stream, or linger if the rest of the request is still to come."""
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
        """Do nothing: the window holds the peer back, see `set_read_paused`."""
