"""Synchronization of flows, built on `wait`: conditions, gathering, semaphores, shields.

 yield from condition.wait(until)   # until `condition.notify_all()`
 answers = yield from gather(engine, [first(), second()])
 answer = yield from shield(engine, write(), within=30.0)

 yield from lock.acquire()
 try:
     ...
 finally:
     lock.release()

If a waiting flow is cancelled, its wait ends, too; a shielded flow continues.
"""

from collections.abc import Sequence
from math import inf
from typing import TypeVar, cast

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure, OperationId

__all__ = ["Condition", "Lock", "Semaphore", "gather", "shield"]

T = TypeVar("T")


class Condition:
    """Condition that wakes all waiting flows, or the first. Notifications without a waiting flow are lost."""

    __slots__ = ("_engine", "waiting")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.waiting: list[OperationId] = []  # in order of arrival

    def wait(self, until: float) -> Flow[object]:
        """Wait for a notification and return None, or return a `Failure` at the monotonic time `until`."""
        ticket = self._engine.new_op()
        self.waiting.append(ticket)
        try:
            return (yield from wait(ticket, until))
        finally:
            if ticket in self.waiting:
                self.waiting.remove(ticket)

    def notify_all(self) -> None:
        """Wake all waiting flows."""
        waiting, self.waiting = self.waiting, []
        for ticket in waiting:
            self._engine.resume(ticket, None)

    def notify(self) -> bool:
        """Wake the flow that has waited longest; return False if none waits."""
        return bool(self.waiting) and self._engine.resume(self.waiting.pop(0), None)


def shield(engine: Engine, flow: Flow[T], *, within: float) -> Flow[T | Failure]:
    """Run a flow that continues to its end even if the caller is cancelled; return its result.

    Return a `Failure` after `within` seconds. If the flow raises, the exception is logged as a bug and the caller waits
    until then.
    """
    ticket = engine.new_op()
    results: list[T] = []

    def on_done(result: T) -> None:
        results.append(result)
        engine.resume(ticket, result)

    engine.spawn(flow, on_done=on_done)
    if results:
        return results[0]
    return cast("T | Failure", (yield from wait(ticket, engine.now.mono + within)))


def gather(engine: Engine, flows: Sequence[Flow[T]]) -> Flow[list[T]]:
    """Run flows concurrently and return their results in the given order; cancelling this cancels them all.

    Raises the exception of the first flow in that order which raised, after all have ended.
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
        for task in reversed(tasks):  # else a task that waits for another would continue when that one ends
            task.cancel()
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(flows))]


class Semaphore:
    """Semaphore with a number of slots; flows wait in order of arrival.

    A flow that gets a slot runs until its next wait before the next one gets a slot. So any number of flows may wait:
    none runs within the `release` of another.
    """

    def __init__(self, engine: Engine, free: int) -> None:
        self._engine = engine
        self._free = free
        self._queue = Condition(engine)
        self._passing = False  # a `release` passes slots to waiting flows

    @property
    def waiting(self) -> int:
        """Number of waiting flows."""
        return len(self._queue.waiting)

    def try_acquire(self) -> bool:
        """Acquire a slot if one is free and no flow waits; return True if the caller has to `release` it."""
        free = self._free > 0 and not self._queue.waiting
        self._free -= free
        return free

    def acquire(self, within: float = inf) -> Flow[bool]:
        """Wait at most `within` seconds for a slot; return whether the caller has one, and so has to `release` it."""
        return self.try_acquire() or (yield from self._queue.wait(self._engine.now.mono + within)) is None

    def release(self) -> None:
        """Release the slot; the next waiting flow, if any, acquires it."""
        self._free += 1
        if self._passing:
            return
        self._passing = True
        try:
            while self._free and self._queue.waiting:
                self._free -= 1
                taken = self._queue.notify()  # what runs meanwhile changes `_free`
                self._free += not taken
        finally:
            self._passing = False


class Lock(Semaphore):
    """Semaphore with one slot, held by one flow at a time."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, 1)
