"""Store of the messages of one event stream, as server-sent events for a reader.

Events of a stream with a number have ids, from which a reconnected reader resumes. There is one reader at a time; a new
reader replaces the previous one.
"""

from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Condition
from svc_proto.facts import Failure
from svc_proto.mcp.pending_request import OutgoingMessage
from svc_proto.wire.sse import encode_comment, encode_event, encode_retry

__all__ = ["NotificationStore", "EventStore"]

MAX_EVENTS = 64  # of one request; a reader that is further behind cannot resume
KEEPALIVE_INTERVAL = 15.0  # s of silence
KEEPALIVE = encode_comment("keepalive")


class EventStore:
    """Stored messages of one stream, oldest first, which one reader at a time receives as server-sent events."""

    __slots__ = ("_bell", "_dropped", "_engine", "_events", "_retry", "number", "over", "reader")

    def __init__(self, engine: Engine, number: int | None = None) -> None:
        self.number = number  # the stream's number for resuming readers; None: no resuming
        self.over = False  # no further message
        self.reader: object = None
        self._engine = engine
        self._events: list[bytes] = []
        self._dropped = 0
        self._retry: int | None = None  # ms, see `end`
        self._bell: Condition | None = None  # notifies readers

    # --- for the conversation ---

    @property
    def size(self) -> int:
        """Return the size of the stored messages in bytes; of a `NotificationStore`, 0."""
        return sum(map(len, self._events))

    def append(self, outgoing: OutgoingMessage) -> None:
        """Append a message and notify the reader; the oldest above `MAX_EVENTS` is dropped.

        A `final` message ends the stream. One without text is not stored.
        """
        if outgoing.text:
            self._events.append(outgoing.text)
        if len(self._events) > MAX_EVENTS:
            del self._events[0]
            self._dropped += 1
        self.over = self.over or outgoing.final
        self._wake()

    def end(self, retry: int | None = None) -> None:
        """End the stream; no later message opens it again.

        With `retry`, the reader is to reconnect after that many ms.
        """
        self.over = True
        self._retry = self._retry if retry is None else retry
        self._wake()

    # --- for the answer ---

    def stream_to(self, writer: ResponseWriter, after: int, *, greet: bool = False) -> Flow[None]:
        """Write events after the number `after`, and keepalives, until the end of the stream.

        It ends early when another reader starts, or when a message that this reader needs next was dropped. With
        `greet` an event without data, which has only an id, comes first.
        """
        at = after
        mine = self.reader = object()
        self._wake()
        if greet:
            writer.write(encode_event("", id=f"{self.number}-{at}"))
        try:
            while self.reader is mine and at >= self._dropped:
                new = self._after(at)
                if new:
                    for at, text in new:
                        name = None if self.number is None else f"{self.number}-{at}"
                        writer.write(encode_event(text.decode("utf-8"), id=name))
                    yield from writer.drained()
                elif self.over:
                    if self._retry is not None:
                        writer.write(encode_retry(self._retry))
                    return
                elif isinstance((yield from self._wait(KEEPALIVE_INTERVAL)), Failure):
                    writer.write(KEEPALIVE)
        finally:
            if self.reader is mine:
                self.reader = None

    def _after(self, at: int) -> list[tuple[int, bytes]]:
        """Return the messages after a number, with their numbers."""
        return list(enumerate(self._events[at - self._dropped :], at + 1))

    def _wake(self) -> None:
        if self._bell is not None:
            self._bell.notify_all()

    def _wait(self, within: float) -> Flow[object]:
        if self._bell is None:
            self._bell = Condition(self._engine)
        return self._bell.wait(self._engine.now.mono + within)


class NotificationStore(EventStore):
    """Store for the notifications of a listening client. Of equal notifications only the latest is stored."""

    __slots__ = ("_count", "_notes", "last_received")

    def __init__(self, engine: Engine, number: int | None = None) -> None:
        super().__init__(engine, number)
        self.last_received = 0  # the highest number that a reader has received
        self._count = 0
        self._notes: dict[bytes, int] = {}  # numbers by text, oldest first

    def append(self, outgoing: OutgoingMessage) -> None:
        """Store a notification at the end in place of an equal one, and notify the reader.

        A `final` one ends the stream.
        """
        self._count += 1
        self._notes.pop(outgoing.text, None)
        self._notes[outgoing.text] = self._count
        self.over = self.over or outgoing.final
        self._wake()

    def _after(self, at: int) -> list[tuple[int, bytes]]:
        self.last_received = max(at, self.last_received)
        new = [(number, text) for text, number in self._notes.items() if number > at]
        self.last_received = new[-1][0] if new else self.last_received
        return new
