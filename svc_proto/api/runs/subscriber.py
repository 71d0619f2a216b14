"""Reader of a run: its backlog, and the stream that it reads.

| state   | trigger | next    |
|---------|---------|---------|
| AWAITED | ATTACH  | READING | the connection is there
| AWAITED | DETACH  | GONE    | no reader connected in time, or the backlog is too large
| READING | DETACH  | GONE    | the connection is closed, or everything is written

The backlog is bounded: a run whose reader is behind reads nothing more from its model. Before a reader connects, the
run does not wait: a stream whose backlog grows too large is dropped, and the run goes on.
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
PROBE_INTERVAL = 1.0  # s of silence, once the client has closed its end: the second of two probes finds it gone
UNREAD_TIMEOUT = 300.0  # s, wire api 6.3: an unread stream is dropped
MAX_BACKLOG_BYTES = 64 * 1024  # characters of the backlog at which the run pauses
MAX_BACKLOG_EVENTS = 256  # events of the backlog at which the run pauses
MAX_UNREAD = 1024 * 1024  # characters of the backlog without a reader at which the stream is dropped
KEEPALIVE = encode_comment("keepalive")
NO_TICKET = OperationId(0)  # no wait has this ticket


class SubscriberState(IntEnum):
    """State of a reader; GONE is final."""

    AWAITED = auto()
    READING = auto()
    GONE = auto()


class SubscriberTrigger(IntEnum):
    """Event that can change the state of a subscriber."""

    ATTACH = auto()
    DETACH = auto()


SUBSCRIBER_TABLE: Table[SubscriberState, SubscriberTrigger] = {
    (SubscriberState.AWAITED, SubscriberTrigger.ATTACH): SubscriberState.READING,
    (SubscriberState.AWAITED, SubscriberTrigger.DETACH): SubscriberState.GONE,
    (SubscriberState.READING, SubscriberTrigger.DETACH): SubscriberState.GONE,
}
_READING = SubscriberState.READING  # as in `machines.session`


class Subscriber:
    """Reader of a run's events, as texts of a projection.

    `on_caught_up` is called when the collected backlog is written, though events may have come meanwhile, and when the
    reader is gone.
    """

    __slots__ = (
        "_engine",
        "_on_caught_up",
        "_pieces",
        "_projection",
        "_run_ended",
        "_size",
        "_ticket",
        "_unread",
        "state",
    )

    def __init__(self, engine: Engine, projection: Projection, on_caught_up: Callable[[Subscriber], None]) -> None:
        self.state = SubscriberState.AWAITED
        self._engine = engine
        self._projection: Projection | None = projection  # None once the reader is gone: the projection may hold texts
        self._on_caught_up = on_caught_up
        self._pieces: list[str] = []
        self._size = 0  # characters in `_pieces`
        self._run_ended = False  # no event follows
        self._ticket = NO_TICKET
        self._unread = engine.timers.timer(self.detach)
        self._unread.set(engine.now.mono + UNREAD_TIMEOUT)

    # --- for the run ---

    @property
    def is_behind(self) -> bool:
        """Report whether a reader is connected and its backlog is over the limit."""
        return self.state is SubscriberState.READING and (
            len(self._pieces) > MAX_BACKLOG_EVENTS or self._size > MAX_BACKLOG_BYTES
        )

    def add_event(self, event: TurnStreamEvent) -> None:
        """Append an event of the run to the backlog, as text of the projection; do nothing once the reader is gone.

        If no reader has connected, the reader is dropped when the backlog exceeds `MAX_UNREAD`.
        """
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
        """End the stream after the backlog: the run has ended."""
        self._run_ended = True
        if self.state is SubscriberState.READING:
            self._engine.dirty[self] = None

    def detach(self) -> None:
        """Drop the reader for good. A second call does nothing."""
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
        """Write events, and keepalives between them, until the run ends or the reader disconnects.

        This is the producer of a `StreamedResponse`. Raises `LocalProtocolError` if a reader has connected before, or
        the stream was dropped.
        """
        if self.state is not SubscriberState.AWAITED:
            raise LocalProtocolError("a subscriber has one reader")
        self.state = step(SUBSCRIBER_TABLE, self.state, SubscriberTrigger.ATTACH)
        self._unread.cancel()
        engine = self._engine
        writer.on_half_close = self.flush
        try:
            while True:
                if self._pieces:
                    writer.write("".join(self._drain_pieces()).encode("utf-8"))
                    yield from writer.drained()
                    self._on_caught_up(self)
                    continue  # the backlog may have grown while the reader was slow
                if self._run_ended:
                    return
                ticket = self._ticket = engine.new_op()
                interval = PROBE_INTERVAL if writer.half_closed else KEEPALIVE_INTERVAL
                yield from wait(ticket, engine.now.mono + interval)
                if not (self._pieces or self._run_ended):
                    writer.write(KEEPALIVE)
                    yield from writer.drained()
        finally:
            self.detach()

    # --- for the engine ---

    def flush(self) -> None:
        """Resume the producer, which writes the collected events.

        The engine calls this at the end of a `handle` in which an event was added or the run ended; it is also called
        when the client closes its end. If the producer does not wait for events, nothing happens.
        """
        self._engine.resume(self._ticket, None)

    # --- helpers ---

    def _drain_pieces(self) -> list[str]:
        pieces, self._pieces = self._pieces, []
        self._size = 0
        return pieces
