"""One reader of a run: what it is still to be told, and the stream that it is told on.

| state   | trigger | next    |
|---------|---------|---------|
| AWAITED | ATTACH  | READING | its connection is there
| AWAITED | DROP    | GONE    | nobody came in time, or too much has piled up for nobody
| READING | DROP    | GONE    | its connection is gone, or it was told everything

What waits to be told is bounded by credit: a run whose reader is behind reads nothing more from its model. While
nobody reads yet there is nobody to wait for, so a stream that grows too large is dropped, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, auto

from svc_proto.api.projections.turn_events import Projection, TurnStreamEvent
from svc_proto.basics.errors import LocalProtocolError
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import OperationId
from svc_proto.machines.transitions import Table, step
from svc_proto.wire.sse import encode_comment

__all__ = [
    "KEEPALIVE_INTERVAL",
    "SUBSCRIBER_TABLE",
    "UNREAD_TIMEOUT",
    "Subscriber",
    "SubscriberState",
    "SubscriberTrigger",
]

KEEPALIVE_INTERVAL = 30.0  # s of silence, wire api 4.2
UNREAD_TIMEOUT = 300.0  # s, wire api 6.3: an unread stream is dropped
MAX_BACKLOG_BYTES = 64 * 1024  # characters, and
MAX_BACKLOG_EVENTS = 256  # events that wait for a reader: the run is held
MAX_UNREAD = 1024 * 1024  # characters that wait without a reader: the stream is dropped
KEEPALIVE = encode_comment("keepalive")
NO_TICKET = OperationId(0)  # no wait has this ticket


class SubscriberState(IntEnum):
    """Where a reader is; GONE is final."""

    AWAITED = auto()
    READING = auto()
    GONE = auto()


class SubscriberTrigger(IntEnum):
    """What moves it."""

    ATTACH = auto()
    DETACH = auto()


SUBSCRIBER_TABLE: Table[SubscriberState, SubscriberTrigger] = {
    (SubscriberState.AWAITED, SubscriberTrigger.ATTACH): SubscriberState.READING,
    (SubscriberState.AWAITED, SubscriberTrigger.DETACH): SubscriberState.GONE,
    (SubscriberState.READING, SubscriberTrigger.DETACH): SubscriberState.GONE,
}
_READING = SubscriberState.READING  # as in `machines.session`


class Subscriber:
    """A reader with its own projection. `on_caught_up` is called when it has read, or is gone."""

    __slots__ = (
        "_engine",
        "_on_caught_up",
        "_over",
        "_pieces",
        "_projection",
        "_size",
        "_ticket",
        "_unread",
        "state",
    )

    def __init__(self, engine: Engine, projection: Projection, on_caught_up: Callable[[Subscriber], None]) -> None:
        self.state = SubscriberState.AWAITED
        self._engine = engine
        self._projection: Projection | None = projection  # until there is no reader: it may hold what was told
        self._on_caught_up = on_caught_up
        self._pieces: list[str] = []
        self._size = 0  # characters in them
        self._over = False  # there will be no more
        self._ticket = NO_TICKET
        self._unread = engine.timers.timer(self.detach)
        self._unread.set(engine.now.mono + UNREAD_TIMEOUT)

    # --- for the run ---

    @property
    def is_behind(self) -> bool:
        """There is a reader, and it has more to read than it should."""
        return self.state is SubscriberState.READING and (
            len(self._pieces) > MAX_BACKLOG_EVENTS or self._size > MAX_BACKLOG_BYTES
        )

    def add_event(self, event: TurnStreamEvent) -> None:
        """An event of the run that this reader is to be told next."""
        if self._projection is None:
            return
        piece = self._projection.encode(event, self._engine.now)
        if not piece:
            return
        self._pieces.append(piece)
        self._size += len(piece)
        if self.state is _READING:
            self._engine.dirty[self] = None
        elif self._size > MAX_UNREAD:
            self.detach()

    def end(self) -> None:
        """The run has ended: the reader is told no more."""
        self._over = True
        if self.state is SubscriberState.READING:
            self._engine.dirty[self] = None

    def detach(self) -> None:
        """There is no reader any more, and never will be. Harmless when there is none already."""
        if self.state is SubscriberState.GONE:
            return
        self.state = step(SUBSCRIBER_TABLE, self.state, SubscriberTrigger.DETACH)
        self._unread.retire()
        self._projection = None
        self._pieces = []
        self._size = 0
        self._on_caught_up(self)

    # --- for the response ---

    def produce(self, writer: ResponseWriter) -> Flow[None]:
        """Write to the reader until everything is told: the producer of a `StreamedResponse` answer."""
        if self.state is not SubscriberState.AWAITED:
            raise LocalProtocolError("a subscriber has one reader")
        self.state = step(SUBSCRIBER_TABLE, self.state, SubscriberTrigger.ATTACH)
        self._unread.cancel()
        engine = self._engine
        try:
            while True:
                if self._pieces:
                    writer.write("".join(self._taken()).encode("utf-8"))
                    yield from writer.drained()
                    self._on_caught_up(self)
                    continue  # more may have come while the reader was slow
                if self._over:
                    return
                ticket = self._ticket = engine.new_op()
                until = engine.now.mono + KEEPALIVE_INTERVAL
                yield from wait(ticket, until)
                if not (self._pieces or self._over):
                    writer.write(KEEPALIVE)
                    yield from writer.drained()
        finally:
            self.detach()

    # --- for the engine ---

    def flush(self) -> None:
        """All that a `handle` told is written at once, at its end."""
        self._engine.resume(self._ticket, None)

    # --- helpers ---

    def _taken(self) -> list[str]:
        pieces, self._pieces = self._pieces, []
        self._size = 0
        return pieces
