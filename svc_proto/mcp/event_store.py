"""What is said about one request as server-sent events, for whoever reads it.

Nothing is lost with a connection: a stream keeps what was said, and each event has a number by which a reader who comes
back goes on. There is one reader at a time, and the last who came is it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Condition
from svc_proto.facts import Failure
from svc_proto.wire.sse import encode_comment, encode_event

if TYPE_CHECKING:
    from svc_proto.engine.body_streams import ResponseWriter
    from svc_proto.engine.core import Engine
    from svc_proto.mcp.pending_request import OutgoingMessage

__all__ = ["NotificationStore", "EventStore"]

MAX_EVENTS = 64  # of one request: a reader who is further behind cannot go on
KEEPALIVE_INTERVAL = 15.0  # s of silence
KEEPALIVE = encode_comment("keepalive")


class EventStore:
    """What was said, oldest first."""

    __slots__ = ("_bell", "_dropped", "_engine", "_said", "number", "over", "reader")

    def __init__(self, engine: Engine, number: int | None = None) -> None:
        self.number = number  # by which readers come back; None: there is no way back
        self.over = False  # nothing more will be said
        self.reader: object = None
        self._engine = engine
        self._said: list[bytes] = []
        self._dropped = 0
        self._bell: Condition | None = None  # of readers

    # --- for the conversation ---

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return sum(map(len, self._said))

    def append(self, said: OutgoingMessage) -> None:
        """Add what was said to the list, and wake who waits for it."""
        if said.text:
            self._said.append(said.text)
        if len(self._said) > MAX_EVENTS:
            del self._said[0]
            self._dropped += 1
        self.over = said.final
        self._wake()

    def end(self) -> None:
        """End the list: nothing more will be said about this request."""
        self.over = True
        self._wake()

    # --- for the answer ---

    def stream_to(self, writer: ResponseWriter, after: int, *, greet: bool = False) -> Flow[None]:
        """Write what comes after the event of that number, until all was said or another reader comes."""
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
                    return
                elif isinstance((yield from self._wait(KEEPALIVE_INTERVAL)), Failure):
                    writer.write(KEEPALIVE)
        finally:
            if self.reader is mine:
                self.reader = None

    def _after(self, at: int) -> list[tuple[int, bytes]]:
        """What comes after the event of that number, with the numbers."""
        return list(enumerate(self._said[at - self._dropped :], at + 1))

    def _wake(self) -> None:
        if self._bell is not None:
            self._bell.notify_all()

    def _wait(self, within: float) -> Flow[object]:
        if self._bell is None:
            self._bell = Condition(self._engine)
        return self._bell.wait(self._engine.now.mono + within)


class NotificationStore(EventStore):
    """What is said for as long as somebody listens. Each note is kept once, at its last place: a slow reader misses
    none, and no reader at all costs no more than each of them once.
    """

    __slots__ = ("_count", "_notes", "told")

    def __init__(self, engine: Engine, number: int | None = None) -> None:
        super().__init__(engine, number)
        self.told = 0  # the number up to which some reader was told
        self._count = 0
        self._notes: dict[bytes, int] = {}  # numbers, oldest first

    def append(self, said: OutgoingMessage) -> None:
        """Keep a note at the end, and wake who waits for it."""
        self._count += 1
        self._notes.pop(said.text, None)
        self._notes[said.text] = self._count
        self.over = said.final
        self._wake()

    def _after(self, at: int) -> list[tuple[int, bytes]]:
        self.told = max(at, self.told)
        new = [(number, text) for text, number in self._notes.items() if number > at]
        self.told = new[-1][0] if new else self.told
        return new
