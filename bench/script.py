"""What a stream is to say, and when it said it: shared by the model's server, the bare servers and the load."""

from __future__ import annotations

import re
import time

from attrs import frozen

__all__ = ["STAMP", "Script", "stamp"]

STAMP = re.compile(rb'"delta":"(\d+) (\d+) "')  # in a delta of a session's stream


@frozen
class Script:
    """So many deltas with `pause` seconds between them; no pause: as fast as they are read."""

    deltas: int
    pause: float

    @classmethod
    def parse(cls, text: str) -> Script:
        """The inverse of `str`."""
        deltas, pause = text.split()
        return cls(int(deltas), float(pause))

    def __str__(self) -> str:
        return f"{self.deltas} {self.pause:g}"


def stamp(asked_at: int) -> str:
    """The text of a delta: when the request was there, and now. All processes share the clock, clock_gettime(2)."""
    return f"{asked_at} {time.monotonic_ns()} "
