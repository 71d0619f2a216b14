"""An event stream read at the reader's own pace: it asks for the next events, and the server waits meanwhile.

    reader = yield from open_events(engine, "POST", url, body=body)
    if isinstance(reader, EventReader):
        try:
            while isinstance(batch := (yield from reader.read()), tuple):
                ...
        finally:
            reader.drop()

While more than `MAX_UNREAD` characters of events are unread, nothing is read from the connection; see
`svc_proto.engine.paced_reader`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.commands import Connect
from svc_proto.engine.client import Fetched
from svc_proto.engine.flow import Flow
from svc_proto.engine.paced_reader import PacedReader, open_reader
from svc_proto.facts import Failure
from svc_proto.wire.events import ResponseHead
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
    prior_knowledge: bool = False,
) -> Flow[EventReader | Fetched | Failure]:
    """Make one request: a reader when it is answered with 200 and an event stream, else the whole answer.

    `answer_within` seconds are for the head, the connection included, and for the whole of an answer that is no event
    stream. Whoever gets the reader has to `drop` it.
    """
    return open_reader(
        EventReader,
        engine,
        method,
        url,
        headers=(ACCEPT, *headers),
        body=body,
        connect_within=connect_within,
        answer_within=answer_within,
        limits=limits,
        prior_knowledge=prior_knowledge,
    )


class EventReader(PacedReader[ServerSentEvent]):
    """A connection whose answer is an event stream."""

    __slots__ = ("_decoder",)

    def __init__(self, engine: Engine, order: Connect, url: Url, limits: Limits, *, http2: bool = False) -> None:
        super().__init__(engine, order, url, limits, most=MAX_UNREAD, http2=http2)
        self._decoder = EventStreamDecoder()

    def read(self, *, within: float = SILENCE) -> Flow[tuple[ServerSentEvent, ...] | Failure | None]:
        """The events that came since the last call, at least one; None at the end of the stream.

        A `Failure` when the stream broke off, or when nothing came for `within` seconds.
        """
        events = yield from self.pieces(within)
        return tuple(events) if isinstance(events, list) else events

    @property
    def fetched(self) -> Fetched:
        """The answer without its events."""
        return Fetched(self._answer.status, self._answer.headers, b"")

    def wants(self, head: ResponseHead) -> bool:
        """Only a success can be an event stream."""
        kind = (head.headers.get(b"content-type") or b"").lower()
        return head.status == 200 and kind.startswith(b"text/event-stream")

    def collect(self, data: bytes) -> None:
        """Keep the events that are complete now."""
        events = self._decoder.receive_data(data)
        if events:
            self.keep(events, sum(len(event.data) + OVERHEAD for event in events))
