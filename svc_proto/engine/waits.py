"""Ways to wait that are made of `wait`: for a bell, for several flows at once, for one's turn, behind a shield.

    yield from bell.wait(until)               # somebody calls `bell.ring()`
    answers = yield from gather(engine, [first(), second()])
    answer = yield from shield(engine, write(), within=30.0)

    yield from queue.enter()
    try:
        ...
    finally:
        queue.leave()

Each has a deadline, if only one at which it is begun anew, and ends with whoever waits; what a shield is held over
goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, cast

from svc_proto.engine.flow import Flow, Task, wait
from svc_proto.facts import Failure, OperationId

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["Bell", "OneAtATime", "SomeAtATime", "gather", "shield"]

T = TypeVar("T")
LONG = 86_400.0  # s after which a wait is begun anew: what is waited for has deadlines of its own


class Bell:
    """Wakes all who wait for it. What it rings while nobody waits is lost."""

    __slots__ = ("_engine", "_waiting")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[OperationId] = []

    def wait(self, until: float) -> Flow[object]:
        """None when it rings; a `Failure` at the monotonic time `until`."""
        ticket = self._engine.new_op()
        self._waiting.append(ticket)
        try:
            return (yield from wait(ticket, until))
        finally:
            if ticket in self._waiting:
                self._waiting.remove(ticket)

    def ring(self) -> None:
        """Wake all who wait for this bell."""
        waiting, self._waiting = self._waiting, []
        for ticket in waiting:
            self._engine.resume(ticket, None)


def shield(engine: Engine, flow: Flow[T], *, within: float) -> Flow[T | Failure]:
    """Run a flow that goes on to its end even if whoever waits for it here goes away; what it raises is a bug."""
    ticket = engine.new_op()
    engine.spawn(flow, on_done=partial(engine.resume, ticket))
    return cast("T | Failure", (yield from wait(ticket, engine.now.mono + within)))


def gather(engine: Engine, flows: Sequence[Flow[T]]) -> Flow[list[T]]:
    """Run flows side by side; their results in the order given. Who cancels this cancels them all.

    Raises what the first of them in that order raised, after all have ended.
    """
    ticket = engine.new_op()
    results: dict[int, T] = {}
    errors: dict[int, Exception] = {}
    tasks: list[Task] = []

    def ended(into: dict[int, Any], place: int, what: object) -> None:
        into[place] = what
        engine.resume(ticket, None)

    try:
        for place, flow in enumerate(flows):
            on_done, on_error = partial(ended, results, place), partial(ended, errors, place)
            tasks.append(engine.spawn(flow, on_done=on_done, on_error=on_error))
        while len(results) + len(errors) < len(flows):
            yield from wait(ticket, engine.now.mono + LONG)
    finally:
        for task in reversed(tasks):  # or one that waits for another would go on when that ends
            task.cancel()
    for place in sorted(errors):
        raise errors[place]
    return [results[place] for place in range(len(flows))]


class SomeAtATime:
    """So many flows may be here at a time; the others wait in the order in which they came."""

    def __init__(self, engine: Engine, free: int) -> None:
        self._engine = engine
        self._free = free
        self._queue: deque[OperationId] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._queue)

    def take(self) -> bool:
        """A place, if one is free; as with `enter`."""
        free = self._free > 0
        self._free -= free
        return free

    def enter(self, within: float = inf) -> Flow[bool]:
        """Wait for a place, so many seconds at the most. Whoever gets it (True) has to `leave`."""
        if self.take():
            return True
        ticket, until = self._engine.new_op(), self._engine.now.mono + within
        self._queue.append(ticket)
        try:
            while self._engine.now.mono < until:
                if (yield from wait(ticket, min(self._engine.now.mono + LONG, until))) is self:
                    return True
            return False
        finally:
            if ticket in self._queue:  # cancelled before its turn came, or too late
                self._queue.remove(ticket)

    def leave(self) -> None:
        """Give the place to the next."""
        while self._queue:
            if self._engine.resume(self._queue.popleft(), self):
                return
        self._free += 1


class OneAtATime(SomeAtATime):
    """A place where one flow may be at a time."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, 1)
