"""Script of a stream and time stamps in it, shared by the model's server, the bare servers and the load."""

from __future__ import annotations

import re
import time

from attrs import frozen

__all__ = ["STAMP", "Script", "stamp"]

STAMP = re.compile(rb'"delta":"(\d+) (\d+) "')  # in a delta of a session's stream


@frozen
class Script:
    """A number of deltas with `pause` seconds between them; with pause 0 they are written without waiting."""

    deltas: int
    pause: float

    @classmethod
    def parse(cls, text: str) -> Script:
        """Parse the result of `str(script)`."""
        deltas, pause = text.split()
        return cls(int(deltas), float(pause))

    def __str__(self) -> str:
        return f"{self.deltas} {self.pause:g}"


def stamp(asked_at: int) -> str:
    """Return the text of a delta: time of the request, and now, in monotonic nanoseconds.

    All processes share the clock, clock_gettime(2).
    """
    return f"{asked_at} {time.monotonic_ns()} "
