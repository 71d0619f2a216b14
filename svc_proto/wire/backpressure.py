"""How much of what we wrote is still unsent, and when to stop and go on reading because of it."""

from __future__ import annotations

__all__ = ["Backpressure"]


class Backpressure:
    """Counts the unsent bytes of one channel between a high and a low water mark.

    `blocked` goes True when more than `high` bytes are unsent and False again at `low` or less, so a reader is not
    switched with every write.
    """

    __slots__ = ("_high", "_low", "blocked", "unsent")

    def __init__(self, high: int, low: int) -> None:
        self._high = high
        self._low = low
        self.unsent = 0
        self.blocked = False

    def add_unsent(self, n: int) -> bool:
        """`n` bytes were ordered to be written. True if reading should pause now."""
        self.unsent += n
        if self.blocked or self.unsent <= self._high:
            return False
        self.blocked = True
        return True

    def mark_sent(self, n: int) -> bool:
        """`n` bytes have left. True if reading may go on now."""
        self.unsent -= n
        if not self.blocked or self.unsent > self._low:
            return False
        self.blocked = False
        return True
