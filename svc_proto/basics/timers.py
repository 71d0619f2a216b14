"""Timers of a core: a heap of deadlines, of which a runtime sees the first.

A timer that is moved later costs one attribute write: its old heap entry stays and is re-filed when it is reached.
Connections move their idle timer with every request, so that case has to be cheap. Entries of cancelled timers are
removed when the heap has doubled since the last sweep, so that dead connections are soon freed.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf
from types import MethodType

__all__ = ["Timer", "Timers"]

SWEEP_FROM = 64  # heap entries below which a sweep would not pay


class Timer:
    """A deadline that can be set, moved and cancelled. Made by `Timers.timer`."""

    __slots__ = ("_bound", "_call", "_filed", "_timers", "when")

    def __init__(self, timers: Timers, fire: Callable[[], None]) -> None:
        self._timers = timers
        self._bound: object = None
        self._call: Callable[..., None] = fire
        if isinstance(fire, MethodType):  # its two parts take less memory, and each connection has several timers
            self._bound, self._call = fire.__self__, fire.__func__
        self._filed: float | None = None  # the earliest heap entry of this timer
        self.when: float | None = None

    def set(self, when: float) -> None:
        """Set the deadline to `when` (monotonic seconds)."""
        self.when = when
        if self._filed is None or when < self._filed:
            self._filed = when
            self._timers.file(when, self)

    def cancel(self) -> None:
        """Remove the deadline. Cancelling twice is fine."""
        self.when = None

    def schedule(self, when: float | None) -> None:
        """Set the deadline to `when`, or remove the deadline if `when` is None."""
        if when is None:
            self.cancel()
        else:
            self.set(when)

    def retire(self) -> None:
        """Cancel for good and drop the owner, so that an entry left on the heap keeps no object alive."""
        self.when = self._bound = None
        self._call = _nothing

    def unfile(self, filed: float) -> None:
        """Handle that an entry of this timer was taken off the heap early.

        The timer is filed again at its current deadline, if it has one, unless another entry is its earliest.
        """
        if filed != self._filed:
            return  # an older entry; an earlier one has taken its place
        self._filed = self.when
        if self.when is not None:
            self._timers.file(self.when, self)

    def sweep(self, filed: float) -> bool:
        """Report whether a heap entry of this timer with the time `filed` is still valid.

        `Timers.sweep` drops invalid entries.
        """
        if filed != self._filed:
            return False
        if self.when is None:
            self._filed = None
        return self.when is not None

    @property
    def owner(self) -> object:
        """The object whose method this timer calls, or None for a plain function."""
        return getattr(self._call, "__self__", None) if self._bound is None else self._bound

    def fire(self) -> None:
        """Call the timer's function; the deadline is removed first."""
        self.when = self._filed = None
        if self._bound is None:
            self._call()
        else:
            self._call(self._bound)


class Timers:
    """The timers of a core. They fire in order of deadline, then of filing, so that replays agree."""

    def __init__(self) -> None:
        self.first = inf  # time of the next check: the next deadline, or earlier if a timer was moved or cancelled
        self._heap: list[tuple[float, int, Timer]] = []
        self._filings = 0
        self._sweep_at = SWEEP_FROM

    def timer(self, fire: Callable[[], None]) -> Timer:
        """Return a new timer without a deadline."""
        return Timer(self, fire)

    def file(self, when: float, timer: Timer) -> None:
        """Add an entry to the heap; for `Timer` only."""
        self._filings += 1
        heappush(self._heap, (when, self._filings, timer))
        if when < self.first:
            self.first = when
        if len(self._heap) >= self._sweep_at:
            self.sweep()

    def sweep(self) -> None:
        """Remove the entries of timers that were cancelled or filed anew."""
        self._heap[:] = [entry for entry in self._heap if entry[2].sweep(entry[0])]
        heapify(self._heap)
        self._sweep_at = max(SWEEP_FROM, 2 * len(self._heap))
        self._drop_stale()

    def next(self) -> float | None:
        """Return the next deadline (monotonic seconds), or None when no timer is set."""
        heap = self._heap
        while heap:
            when, _, timer = heap[0]
            if timer.when == when:
                return when
            heappop(heap)
            timer.unfile(when)
            self._drop_stale()
        return None

    def pop_due(self, mono: float) -> Timer | None:
        """Remove and return the next timer due at or before `mono`, for the caller to fire; None if none is due."""
        if self.first > mono or self.next() is None or self.first > mono:  # no timer is due before its entry
            return None
        timer = heappop(self._heap)[2]
        self._drop_stale()
        return timer

    def _drop_stale(self) -> None:
        self.first = self._heap[0][0] if self._heap else inf


def _nothing() -> None:
    """Do nothing, for a retired timer."""
