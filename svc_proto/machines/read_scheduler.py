"""Fair read scheduling for unauthenticated connections: a shared token bucket, then round robin in 2 KiB slices.

The connections share a bucket of `at_once` bytes, or of `BURST_SIZE` while connections are queued, refilled at `rate`.
When it has not enough, or others are queued, a connection is queued, too. `next` dequeues one connection for a read of
`SLICE_SIZE` bytes. Up to half of `at_once` is taken from the bucket in advance as `fast_credit`, which is spent without
a call. It is zero while connections are queued.
"""

from typing import Generic, TypeVar

__all__ = ["SLICE_SIZE", "ReadScheduler"]

SLICE_SIZE = 2 * 1024  # bytes that a queued connection reads before the next one's turn
BURST_SIZE = 64 * 1024  # bytes that queued connections read in one round of the loop: 15 ms of the most expensive ones

T = TypeVar("T")


class ReadScheduler(Generic[T]):
    """Queue of connections that wait to read. Times are monotonic seconds, sizes bytes, `rate` bytes a second."""

    __slots__ = ("_at", "_handful", "_left", "_line", "_most", "_rate", "fast_credit")

    def __init__(self, *, at_once: int, rate: float) -> None:
        self.fast_credit = self._handful = at_once // 2
        self._rate = rate
        self._most = self._left = float(at_once - self._handful)
        self._at = 0.0
        self._line: dict[T, None] = {}

    def __contains__(self, peer: T) -> bool:
        return peer in self._line

    def __len__(self) -> int:
        return len(self._line)

    def allowance_for(self, peer: T, size: int, now: float) -> int:
        """Return how many of `size` bytes to read now; if not all, the connection is queued."""
        taken = 0
        if not self._line:
            left = self._fill(now) + self.fast_credit
            if left > 0:
                taken = min(size, max(SLICE_SIZE, int(left)))
            self._split_credit(left - taken)
        if taken < size:
            self._line[peer] = None
        return taken

    def next(self, now: float) -> T | None:
        """Dequeue the connection that may read a slice now; None if the bucket or the queue is empty."""
        if not self._line or self._fill(now) <= 0:
            return None
        peer = next(iter(self._line))
        del self._line[peer]
        self._left -= SLICE_SIZE
        return peer

    def charge(self, size: int, now: float) -> None:
        """Take `size` bytes from the bucket, for work that a read caused besides its own bytes."""
        self._split_credit(self._fill(now) + self.fast_credit - size)

    def enqueue(self, peer: T) -> None:
        """Queue a connection that has more input."""
        self._left += self.fast_credit
        self.fast_credit = 0
        self._line[peer] = None

    def remove(self, peer: T) -> None:
        """Remove a connection from the queue, if it is queued."""
        self._line.pop(peer, None)

    @property
    def next_due(self) -> float | None:
        """Time at which to call `next` again: after a refill by a slice or more; None with an empty queue."""
        return self._at + max(-self._left, SLICE_SIZE) / self._rate if self._line else None

    def _split_credit(self, left: float) -> None:
        """Divide the remaining bytes into fast credit and bucket."""
        self.fast_credit = 0 if self._line else max(0, min(self._handful, int(left)))
        self._left = left - self.fast_credit

    def _fill(self, now: float) -> float:
        """Refill the bucket and return its content."""
        most = BURST_SIZE if self._line else self._most
        self._left = min(most, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left
