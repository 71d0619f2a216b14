"""Which of many came last, while they come and go: what each step costs does not grow with how many there are."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

__all__ = ["RecencyHeap"]

K = TypeVar("K")

_SLACK = 64  # entries of the heap that count no more, beside one for each that does


class RecencyHeap(Generic[K]):
    """Keys, and when each came. Of two that came at the same time the one that was put last is the later."""

    def __init__(self) -> None:
        self._since: dict[K, tuple[float, int]] = {}  # and which entry of the heap stands for it
        self._heap: list[tuple[float, int, K]] = []  # the latest first
        self._puts = 0

    def __len__(self) -> int:
        return len(self._since)

    def put(self, key: K, since: float) -> None:
        """It came then, whatever was known of it before."""
        self._puts += 1
        self._since[key] = since, self._puts
        heappush(self._heap, (-since, -self._puts, key))
        if len(self._heap) > 2 * len(self._since) + _SLACK:
            self._heap = [(-since, -put, key) for key, (since, put) in self._since.items()]
            heapify(self._heap)

    def discard(self, key: K) -> None:
        """It is gone, if it was there."""
        self._since.pop(key, None)

    def since(self, key: K) -> float:
        """When it came; KeyError for one that is not there."""
        return self._since[key][0]

    @property
    def last(self) -> K | None:
        """The latest; None: there is none."""
        while self._heap:
            since, put, key = self._heap[0]
            if self._since.get(key) == (-since, -put):
                return key
            heappop(self._heap)
        return None
