"""The client's end of an event stream: one request whose answer comes as server-sent events (WHATWG HTML 9.2).

    answer = yield from fetch_events(engine, "POST", url, on_event=self.take, body=body)

`on_event` is called for each event as it comes. The answer comes when the stream has ended: `Fetched` with an empty
body, a `Fetched` with its body when the server sent no event stream, or a `Failure`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.commands import Connect
from svc_proto.engine.channel import Channel
from svc_proto.engine.client import STREAM, ClientChannel, Fetched, dial
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import Event, RequestHead, ResponseData, ResponseHead
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent
from svc_proto.wire.urls import Url

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["EventChannel", "fetch_events"]

SILENCE = 300.0  # s without a byte after which a stream counts as dead; a comment comes every 30 s (wire api 4.2)
ACCEPT = (b"accept", b"text/event-stream")


def fetch_events(
    engine: Engine,
    method: str,
    url: str,
    *,
    on_event: Callable[[ServerSentEvent], None],
    on_open: Callable[[Channel], None] | None = None,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    body: bytes = b"",
    within: float = 30.0,
    limits: Limits = DEFAULT_LIMITS,
) -> Flow[Fetched | Failure]:
    """Make one request and read its events to the end. `within` seconds are for the connection and the head.

    `on_open` gets the channel, to `hold` it while the events have nowhere to go.
    """
    until = engine.now.mono + within
    channel = yield from dial(EventChannel, engine, url, within=within, limits=limits)
    if isinstance(channel, Failure):
        return channel
    channel.listen(on_event, until)
    if on_open is not None:
        on_open(channel)
    fields = [(b"connection", b"close"), ACCEPT, *headers, (b"content-length", b"%d" % len(body))]
    try:
        channel.request(RequestHead(STREAM, method, channel.url.target, channel.fields(fields)), body)
        while True:
            answer = yield from wait(channel.ticket, channel.due)
            if isinstance(answer, Fetched):
                return answer
            if isinstance(answer, Failure) and (answer.kind is not FailureKind.TIMED_OUT or channel.is_due):
                return answer
    finally:
        channel.drop()


class EventChannel(ClientChannel):
    """A connection whose answer is read as it comes."""

    __slots__ = ("_decoder", "_on_event", "_streaming", "due")

    def __init__(self, engine: Engine, order: Connect, url: Url, limits: Limits) -> None:
        super().__init__(engine, order, url, limits)
        self._decoder = EventStreamDecoder()
        self._on_event: Callable[[ServerSentEvent], None] = _nobody
        self._streaming = False
        self.due = 0.0  # monotonic seconds by which the next byte has to come

    def listen(self, on_event: Callable[[ServerSentEvent], None], until: float) -> None:
        """Whom to tell, and when to give up."""
        self._on_event = on_event
        self.due = until

    @property
    def is_due(self) -> bool:
        """Whether nothing has come for too long."""
        return self.engine.now.mono >= self.due

    def take(self, event: Event) -> None:
        """Pass events on; any other answer is collected."""
        if isinstance(event, ResponseHead):
            kind = event.headers.get(b"content-type") or b""
            self._streaming = event.status == 200 and kind.startswith(b"text/event-stream")
        if not self._streaming or not isinstance(event, ResponseData):
            super().take(event)
            return
        self.due = self.engine.now.mono + SILENCE
        for found in self._decoder.receive_data(event.data):
            if not self.gone:  # whoever listened may have had enough
                self._on_event(found)


def _nobody(event: ServerSentEvent) -> None:
    """Before `listen`."""
