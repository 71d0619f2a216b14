"""Whose bytes are read next, of all peers that nobody knows yet: each in turn, and no more at once than a moment takes.

A loop serves everybody who has sent something before it looks again. A thousand strangers, each with the dearest bytes
that it may send, would make that one round of many seconds, and who is known would wait for its end. So strangers have
`at_once` bytes together, which come back at `rate`. Whoever comes while nothing is left, or while somebody waits, gets
in line; from its head one goes on at a time, with `PART` bytes, and back to its end. Asked for the `next` once in a
round, as many go on as `rate` has room for by then, up to `ROUND` bytes.

Nearly every read is small, and a look at the clock costs as much as to read it. So up to half of `at_once` is taken out
beforehand, and is `at_hand`: who sends less takes it from there, and nobody is asked. While somebody waits it is empty.
The other half is as much as may have come back unseen meanwhile: together they are no more than `at_once`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["PART", "Turns"]

PART = 2 * 1024  # bytes of one who had to wait that are read before it is somebody else's turn
ROUND = 64 * 1024  # bytes that are read in one round of the loop of those who had to wait: 15 ms of the dearest

T = TypeVar("T")


class Turns(Generic[T]):
    """A line of those who wait. Times are monotonic seconds, sizes bytes, `rate` bytes a second."""

    __slots__ = ("_at", "_handful", "_left", "_line", "_most", "_rate", "at_hand")

    def __init__(self, *, at_once: int, rate: float) -> None:
        self.at_hand = self._handful = at_once // 2
        self._rate = rate
        self._most = self._left = float(at_once - self._handful)
        self._at = 0.0
        self._line: dict[T, None] = {}

    def __contains__(self, guest: T) -> bool:
        return guest in self._line

    def __len__(self) -> int:
        return len(self._line)

    def take(self, guest: T, size: int, now: float) -> int:
        """It sent so much, more than is at hand. How much of it to read now; if that is not all, it is in line."""
        taken = 0
        if not self._line:
            left = self._fill(now) + self.at_hand
            if left > 0:
                taken = min(size, max(PART, int(left)))
            self._keep(left - taken)
        if taken < size:
            self._line[guest] = None
        return taken

    def next(self, now: float) -> T | None:
        """Who may go on with a part now, out of the line; None when nobody may, or nobody waits."""
        if not self._line or self._fill(now) <= 0:
            return None
        guest = next(iter(self._line))
        del self._line[guest]
        self._left -= PART
        return guest

    def charge(self, size: int, now: float) -> None:
        """What was read costs as much as so many bytes more."""
        self._keep(self._fill(now) + self.at_hand - size)

    def wait(self, guest: T) -> None:
        """It has more, and goes to the end of the line."""
        self._left += self.at_hand
        self.at_hand = 0
        self._line[guest] = None

    def leave(self, guest: T) -> None:
        """Take the guest out of the line, if it stands there."""
        self._line.pop(guest, None)

    @property
    def due(self) -> float | None:
        """When the next one may go on; None when nobody waits."""
        return self._at + max(-self._left, PART) / self._rate if self._line else None

    def _keep(self, left: float) -> None:
        """So many bytes are left, some of them at hand."""
        self.at_hand = 0 if self._line else max(0, min(self._handful, int(left)))
        self._left = left - self.at_hand

    def _fill(self, now: float) -> float:
        """How many bytes may be read by now."""
        most = ROUND if self._line else self._most
        self._left = min(most, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left
