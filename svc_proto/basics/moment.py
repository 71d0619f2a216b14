"""Time as a value. The core never reads a clock: a `Moment` comes with every fact."""

from __future__ import annotations

from typing import NamedTuple


class Moment(NamedTuple):
    """One instant on two clocks, both in seconds.

    `mono` never goes back and is what timers and windows use; `wall` is the epoch time that goes on the wire
    and into stores, and may be stepped by the operator.
    """

    mono: float
    wall: float

    def at(self, mono: float) -> Moment:
        """The same clocks read at another monotonic instant (used when a timer fires late)."""
        return Moment(mono, self.wall + (mono - self.mono))
