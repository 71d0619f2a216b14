"""An event stream read at the reader's own pace: it asks for the next events, and the server waits meanwhile.

    reader = yield from open_events(engine, "POST", url, body=body)
    if isinstance(reader, EventReader):
        try:
            while isinstance(batch := (yield from reader.read()), tuple):
                ...
        finally:
            reader.drop()

While more than `MAX_UNREAD` characters of events are unread, nothing is read from the connection, so that memory is
bounded and the server's writes back up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Connect
from svc_proto.engine.client import STREAM, ClientChannel, Fetched, dial
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import Event, RequestHead, ResponseData, ResponseEnd, ResponseHead, StreamReset
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent
from svc_proto.wire.urls import Url

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["MAX_UNREAD", "SILENCE", "EventReader", "open_events"]

SILENCE = 300.0  # s without a byte, comments included, after which a stream counts as dead
MAX_UNREAD = 64 * 1024  # characters of unread events from which on the connection is not read
OVERHEAD = 64  # characters that an event counts for besides its data, so that empty ones are bounded too
ACCEPT = (b"accept", b"text/event-stream")


def open_events(
    engine: Engine,
    method: str,
    url: str,
    *,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    body: bytes = b"",
    connect_within: float = 15.0,
    answer_within: float = 300.0,
    limits: Limits = DEFAULT_LIMITS,
) -> Flow[EventReader | Fetched | Failure]:
    """Make one request: a reader when it is answered with 200 and an event stream, else the whole answer.

    `answer_within` seconds are for the head, and for the whole of an answer that is no event stream. Whoever gets the
    reader has to `drop` it.
    """
    channel = yield from dial(EventReader, engine, url, within=connect_within, limits=limits)
    if isinstance(channel, Failure):
        return channel
    until = engine.now.mono + answer_within
    fields = [(b"connection", b"close"), ACCEPT, *headers, (b"content-length", b"%d" % len(body))]
    try:
        channel.request(RequestHead(STREAM, method, channel.url.target, channel.fields(fields)), body)
        answer = yield from wait(channel.ticket, until)
        assert isinstance(answer, EventReader | Fetched | Failure)  # all that `resume` is called with
        return answer
    finally:
        if not channel.streaming:
            channel.drop()


class EventReader(ClientChannel):
    """A connection whose answer is an event stream."""

    __slots__ = ("_decoder", "_end", "_events", "_heard", "_over", "_unread", "streaming")

    def __init__(self, engine: Engine, order: Connect, url: Url, limits: Limits) -> None:
        super().__init__(engine, order, url, limits)
        self._decoder = EventStreamDecoder()
        self._events: list[ServerSentEvent] = []
        self._unread = 0
        self._heard = 0.0  # monotonic seconds of the last byte
        self._end: Failure | None = None
        self._over = False
        self.streaming = False

    # --- for the flow above ---

    def read(self, *, within: float = SILENCE) -> Flow[tuple[ServerSentEvent, ...] | Failure | None]:
        """The events that came since the last call, at least one; None at the end of the stream.

        A `Failure` when the stream broke off, or when nothing came for `within` seconds.
        """
        begun = self.engine.now.mono
        while not self._events:
            if self._over:
                return self._end
            until = max(begun, self._heard) + within
            if self.engine.now.mono >= until:
                return Failure(FailureKind.TIMED_OUT, "the stream fell silent")
            yield from wait(self.ticket, until)
        events, self._events = tuple(self._events), []
        self._unread = 0
        self.hold(False)
        return events

    # --- facts and events ---

    def take(self, event: Event) -> None:
        """Keep events for the reader; any other answer is collected."""
        match event:
            case ResponseHead(status=status, headers=headers):
                kind = (headers.get(b"content-type") or b"").lower()
                self.streaming = status == 200 and kind.startswith(b"text/event-stream")
                super().take(event)
                if self.streaming:
                    self._heard = self.engine.now.mono
                    self.engine.resume(self.ticket, self)
            case ResponseData(data=data) if self.streaming:
                self._collect_events(data)
            case ResponseEnd() if self.streaming:
                self._finish(None)
            case StreamReset(why=why) if self.streaming:
                self._finish(Failure(FailureKind.UNREACHABLE, why))
            case _:
                super().take(event)

    def protocol_error(self, error: RemoteProtocolError) -> None:
        """The server does not speak as it should."""
        if self.streaming:
            self._finish(Failure(FailureKind.INVALID, str(error)))
        else:
            super().protocol_error(error)

    def closed(self, why: str) -> None:
        """What came before is still there to read."""
        if self.streaming:
            self._finish(Failure(FailureKind.UNREACHABLE, why or "the connection was closed"))
        super().closed(why)

    def settle(self) -> None:
        """After the server's FIN nothing more can come."""
        if self.eof and self.streaming:
            self._finish(Failure(FailureKind.UNREACHABLE, "the server closed the connection"))
        super().settle()

    def _collect_events(self, data: bytes) -> None:
        self._heard = self.engine.now.mono
        events = self._decoder.receive_data(data)
        if not events:
            return
        self._events += events
        for event in events:
            self._unread += len(event.data) + OVERHEAD
        if self._unread > MAX_UNREAD:
            self.hold(True)
        self.engine.resume(self.ticket, None)

    def _finish(self, end: Failure | None) -> None:
        """The stream is over, the first reason counts."""
        if not self._over:
            self._over, self._end = True, end
            self.engine.resume(self.ticket, None)
