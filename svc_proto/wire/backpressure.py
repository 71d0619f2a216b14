"""Backpressure: the number of unsent bytes, and when reading pauses and resumes because of it."""

__all__ = ["Backpressure"]


class Backpressure:
    """Counter of the unsent bytes of a channel between a high and a low water mark.

    `blocked` becomes True when more than `high` bytes are unsent, and False again at `low` or less, so that reading is
    not switched with every write.
    """

    __slots__ = ("_high", "_low", "blocked", "unsent")

    def __init__(self, high: int, low: int) -> None:
        self._high = high
        self._low = low
        self.unsent = 0
        self.blocked = False

    def add_unsent(self, n: int) -> bool:
        """Add `n` bytes that were ordered to be written; return True if `blocked` has become true by them."""
        self.unsent += n
        if self.blocked or self.unsent <= self._high:
            return False
        self.blocked = True
        return True

    def mark_sent(self, n: int) -> bool:
        """Subtract `n` bytes that have left; return True if `blocked` has become False by that."""
        self.unsent -= n
        if not self.blocked or self.unsent > self._low:
            return False
        self.blocked = False
        return True
