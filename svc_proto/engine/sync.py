"""Ways to wait that are made of `wait`: for a bell, for several flows at once, for one's turn, behind a shield.

    yield from bell.wait(until)               # somebody calls `bell.ring()`
    answers = yield from gather(engine, [first(), second()])
    answer = yield from shield(engine, write(), within=30.0)

    yield from queue.enter()
    try:
        ...
    finally:
        queue.leave()

Each ends with whoever waits; what a shield is held over goes on. Those without a deadline wait for flows, which have
deadlines of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, TypeVar, cast

from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure, OperationId

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["Condition", "Lock", "Semaphore", "gather", "shield"]

T = TypeVar("T")


class Condition:
    """Wakes all who wait for it, or the first of them. What it rings while nobody waits is lost."""

    __slots__ = ("_engine", "waiting")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.waiting: list[OperationId] = []  # in the order in which they came

    def wait(self, until: float) -> Flow[object]:
        """None when it rings; a `Failure` at the monotonic time `until`."""
        ticket = self._engine.new_op()
        self.waiting.append(ticket)
        try:
            return (yield from wait(ticket, until))
        finally:
            if ticket in self.waiting:
                self.waiting.remove(ticket)

    def notify_all(self) -> None:
        """Wake all who wait for this bell."""
        waiting, self.waiting = self.waiting, []
        for ticket in waiting:
            self._engine.resume(ticket, None)

    def notify(self) -> bool:
        """Wake the one who has waited longest; False if nobody waits."""
        return bool(self.waiting) and self._engine.resume(self.waiting.pop(0), None)


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

    def run(place: int, flow: Flow[T]) -> Flow[None]:
        try:
            results[place] = yield from flow
        except Exception as error:
            errors[place] = error
        engine.resume(ticket, None)

    tasks = [engine.spawn(run(place, flow)) for place, flow in enumerate(flows)]
    try:
        while len(results) + len(errors) < len(flows):
            yield from wait(ticket, inf)
    finally:
        for task in reversed(tasks):  # or one that waits for another would go on when that ends
            task.cancel()
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(flows))]


class Semaphore:
    """So many flows may be here at a time; the others wait in the order in which they came."""

    def __init__(self, engine: Engine, free: int) -> None:
        self._engine = engine
        self._free = free
        self._queue = Condition(engine)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._queue.waiting)

    def try_acquire(self) -> bool:
        """A place, if one is free; as with `acquire`."""
        free = self._free > 0
        self._free -= free
        return free

    def acquire(self, within: float = inf) -> Flow[bool]:
        """Wait for a place, so many seconds at the most. Whoever gets it (True) has to `release`."""
        return self.try_acquire() or (yield from self._queue.wait(self._engine.now.mono + within)) is None

    def release(self) -> None:
        """Give the place to the next."""
        if not self._queue.notify():
            self._free += 1


class Lock(Semaphore):
    """A place where one flow may be at a time."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, 1)
