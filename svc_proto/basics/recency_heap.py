"""Most-recent lookup over a changing set, in O(log n) for each change."""

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

__all__ = ["RecencyHeap"]

K = TypeVar("K")

_SLACK = 64  # stale heap entries tolerated besides one for each key


class RecencyHeap(Generic[K]):
    """Keys with their times. Of two with the same time the one that was put last counts as later."""

    def __init__(self) -> None:
        self._since: dict[K, tuple[float, int]] = {}  # time, and number of the valid heap entry
        self._heap: list[tuple[float, int, K]] = []  # the latest first
        self._puts = 0

    def __len__(self) -> int:
        return len(self._since)

    def put(self, key: K, since: float) -> None:
        """Set the time of a key, which is added if it is new."""
        self._puts += 1
        self._since[key] = since, self._puts
        heappush(self._heap, (-since, -self._puts, key))
        if len(self._heap) > 2 * len(self._since) + _SLACK:
            self._heap = [(-since, -put, key) for key, (since, put) in self._since.items()]
            heapify(self._heap)

    def discard(self, key: K) -> None:
        """Remove a key, if present."""
        self._since.pop(key, None)

    def since(self, key: K) -> float:
        """Return the time of a key. Raises KeyError for a key that is not present."""
        return self._since[key][0]

    @property
    def last(self) -> K | None:
        """The latest key; None if there is none."""
        while self._heap:
            since, put, key = self._heap[0]
            if self._since.get(key) == (-since, -put):
                return key
            heappop(self._heap)
        return None
