"""Time as a value. The core never reads a clock: a `Moment` comes with every fact."""

from __future__ import annotations

from typing import NamedTuple


class Moment(NamedTuple):
    """A point in time on two clocks, both in seconds.

    `mono` never goes back and is used by timers and windows. `wall` is epoch time, goes on the wire and into stores,
    and may be stepped by the operator.
    """

    mono: float
    wall: float

    def at(self, mono: float) -> Moment:
        """Return the moment at another monotonic time, with the wall clock moved by the same span."""
        return Moment(mono, self.wall + (mono - self.mono))
