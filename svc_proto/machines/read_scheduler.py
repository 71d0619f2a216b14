"""Whose bytes are read next, of all peers that nobody knows yet: each in turn, and no more at once than a moment takes.

A loop serves everybody who has sent something before it looks again. A thousand strangers, each with the dearest bytes
that it may send, would make that one round of many seconds, and who is known would wait for its end. So strangers have
`at_once` bytes together, which come back at `rate`. Whoever comes while nothing is left, or while somebody waits, gets
in line; from its head one goes on at a time, with `SLICE_SIZE` bytes, and back to its end. Asked for the `next` once in
a round, as many go on as `rate` has room for by then, up to `BURST_SIZE` bytes.

Nearly every read is small, and a look at the clock costs as much as to read it. So up to half of `at_once` is taken out
beforehand, and is `at_hand`: who sends less takes it from there, and nobody is asked. While somebody waits it is empty.
The other half is as much as may have come back unseen meanwhile: together they are no more than `at_once`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["SLICE_SIZE", "ReadScheduler"]

SLICE_SIZE = 2 * 1024  # bytes of one who had to wait that are read before it is somebody else's turn
BURST_SIZE = 64 * 1024  # bytes that are read in one round of the loop of those who had to wait: 15 ms of the dearest

T = TypeVar("T")


class ReadScheduler(Generic[T]):
    """A line of those who wait. Times are monotonic seconds, sizes bytes, `rate` bytes a second."""

    __slots__ = ("_at", "_handful", "_left", "_line", "_most", "_rate", "fast_credit")

    def __init__(self, *, at_once: int, rate: float) -> None:
        self.fast_credit = self._handful = at_once // 2
        self._rate = rate
        self._most = self._left = float(at_once - self._handful)
        self._at = 0.0
        self._line: dict[T, None] = {}

    def __contains__(self, guest: T) -> bool:
        return guest in self._line

    def __len__(self) -> int:
        return len(self._line)

    def allowance_for(self, guest: T, size: int, now: float) -> int:
        """It sent so much, more than is at hand. How much of it to read now; if that is not all, it is in line."""
        taken = 0
        if not self._line:
            left = self._fill(now) + self.fast_credit
            if left > 0:
                taken = min(size, max(SLICE_SIZE, int(left)))
            self._split_credit(left - taken)
        if taken < size:
            self._line[guest] = None
        return taken

    def next(self, now: float) -> T | None:
        """Who may go on with a part now, out of the line; None when nobody may, or nobody waits."""
        if not self._line or self._fill(now) <= 0:
            return None
        guest = next(iter(self._line))
        del self._line[guest]
        self._left -= SLICE_SIZE
        return guest

    def charge(self, size: int, now: float) -> None:
        """What was read costs as much as so many bytes more."""
        self._split_credit(self._fill(now) + self.fast_credit - size)

    def enqueue(self, guest: T) -> None:
        """It has more, and goes to the end of the line."""
        self._left += self.fast_credit
        self.fast_credit = 0
        self._line[guest] = None

    def remove(self, guest: T) -> None:
        """Take the guest out of the line, if it stands there."""
        self._line.pop(guest, None)

    @property
    def next_due(self) -> float | None:
        """When the next one may go on; None when nobody waits."""
        return self._at + max(-self._left, SLICE_SIZE) / self._rate if self._line else None

    def _split_credit(self, left: float) -> None:
        """So many bytes are left, some of them at hand."""
        self.fast_credit = 0 if self._line else max(0, min(self._handful, int(left)))
        self._left = left - self.fast_credit

    def _fill(self, now: float) -> float:
        """How many bytes may be read by now."""
        most = BURST_SIZE if self._line else self._most
        self._left = min(most, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left
