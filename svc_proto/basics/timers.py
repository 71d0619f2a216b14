"""Every deadline of a core: a heap of named timers that a runtime sees as one number.

A timer that is moved later costs one attribute write: its old heap entry stays and is re-filed when it comes up.
Connections move their idle timer with every request, so that is the case that must be cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

__all__ = ["Deadline", "Timer", "Timers"]


class Deadline(NamedTuple):
    """When (monotonic seconds) the next timer is due, and which one, for people who debug."""

    when: float
    reason: str


class Timer:
    """One deadline that can be set, moved and cancelled. Made by `Timers.timer`."""

    __slots__ = ("_filed", "_fire", "_timers", "reason", "when")

    def __init__(self, timers: Timers, reason: str, fire: Callable[[], None]) -> None:
        self._timers = timers
        self._fire = fire
        self._filed: float | None = None  # the earliest heap entry that stands for this timer
        self.reason = reason
        self.when: float | None = None

    def set(self, when: float) -> None:
        """Be due at `when` (monotonic seconds), instead of whenever it was due before."""
        self.when = when
        if self._filed is None or when < self._filed:
            self._filed = when
            self._timers.file(when, self)

    def cancel(self) -> None:
        """Not be due at all. Cancelling twice is fine."""
        self.when = None

    def surface(self, filed: float) -> bool:
        """Called for a heap entry at the top: keep it, or re-file the timer at its real deadline."""
        if filed != self._filed:
            return False  # an older entry; an earlier one has taken its place
        if self.when is None:
            self._filed = None
            return False
        if self.when > filed:
            self._filed = self.when
            self._timers.file(self.when, self)
            return False
        return True

    @property
    def owner(self) -> object:
        """The object whose method this timer calls, or None for a plain function."""
        return getattr(self._fire, "__self__", None)

    def fire(self) -> None:
        """Run what the timer is for; it is not due any more then."""
        self.when = self._filed = None
        self._fire()


class Timers:
    """The timers of one core. Fires in order of deadline, then of filing, so replays agree."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._filings = 0

    def timer(self, reason: str, fire: Callable[[], None]) -> Timer:
        """A new timer, not set. `reason` names it in `next()` and in logs."""
        return Timer(self, reason, fire)

    def file(self, when: float, timer: Timer) -> None:
        """For `Timer` alone: put an entry on the heap."""
        self._filings += 1
        heappush(self._heap, (when, self._filings, timer))

    def next(self) -> Deadline | None:
        """The next deadline, or None when no timer is set."""
        heap = self._heap
        while heap:
            when, _, timer = heap[0]
            if timer.surface(when):
                return Deadline(when, timer.reason)
            heappop(heap)
        return None

    def pop_due(self, mono: float) -> Timer | None:
        """Take the next timer due at or before `mono`; the caller fires it."""
        due = self.next()
        if due is None or due.when > mono:
            return None
        return heappop(self._heap)[2]
