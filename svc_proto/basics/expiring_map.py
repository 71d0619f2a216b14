"""Bounded map whose entries each have a deadline or none.

Times are plain seconds of whichever clock the owner uses (monotonic for codes and counters, wall for sessions), the
same one in every call. An entry with the deadline `t` is live before `t` and due at `t`, so that a timer set to
`next_expiry()` always finds work.
"""

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from attrs import define

__all__ = ["ExpiringMap"]

K = TypeVar("K")
V = TypeVar("V")

_SLACK = 64  # stale heap entries tolerated besides one for each live entry


@define
class _Entry(Generic[V]):
    value: V
    expires_at: float | None
    filing: int  # number of its valid heap entry


class ExpiringMap(Generic[K, V]):
    """Map with at most `cap` entries. A due entry stays in the map until it is removed, such as by `purge`.

    At the cap a `put` of a new key drops the entry that was put longest ago, and returns it. Lookups change nothing.
    """

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._entries: dict[K, _Entry[V]] = {}  # in order of the last put
        self._heap: list[tuple[float, int, K]] = []
        self._filings = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def put(self, key: K, value: V, expires_at: float | None) -> tuple[K, V] | None:
        """Set an entry, replacing one of the same key; None means never due. Returns the dropped entry, if any."""
        replaced = self._entries.pop(key, None)
        dropped: tuple[K, V] | None = None
        if replaced is None and len(self._entries) >= self._cap:
            oldest = next(iter(self._entries))
            dropped = oldest, self._entries.pop(oldest).value
        self._filings += 1
        self._entries[key] = _Entry(value, expires_at, self._filings)
        if expires_at is not None:
            heappush(self._heap, (expires_at, self._filings, key))
        if len(self._heap) > 2 * len(self._entries) + _SLACK:
            self._rebuild()
        return dropped

    def get(self, key: K, now: float) -> V | None:
        """Return the value of a live entry, or None."""
        entry = self._entries.get(key)
        return None if entry is None or _is_due(entry, now) else entry.value

    def peek(self, key: K) -> V | None:
        """Return the value of an entry, live or due, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def pop(self, key: K, now: float) -> V | None:
        """Remove an entry; return its value if it was live, else None."""
        entry = self._entries.pop(key, None)
        return None if entry is None or _is_due(entry, now) else entry.value

    def discard(self, key: K) -> None:
        """Remove an entry, if there is one."""
        self._entries.pop(key, None)

    def values(self) -> list[V]:
        """Return all values, due ones included, in the order they were put."""
        return [entry.value for entry in self._entries.values()]

    def items(self) -> list[tuple[K, V]]:
        """Return all entries, due ones included, in the order they were put."""
        return [(key, entry.value) for key, entry in self._entries.items()]

    def purge(self, now: float) -> list[tuple[K, V]]:
        """Remove every due entry; return them in order of deadline, then of `put`."""
        gone: list[tuple[K, V]] = []
        while (when := self.next_expiry()) is not None and when <= now:
            key = heappop(self._heap)[2]
            gone.append((key, self._entries.pop(key).value))
        return gone

    def next_expiry(self) -> float | None:
        """Return the earliest deadline of all entries; None if no entry has one."""
        while self._heap:
            when, filing, key = self._heap[0]
            entry = self._entries.get(key)
            if entry is not None and entry.filing == filing:
                return when
            heappop(self._heap)
        return None

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._heap.clear()

    def _rebuild(self) -> None:
        self._heap = [
            (entry.expires_at, entry.filing, key)
            for key, entry in self._entries.items()
            if entry.expires_at is not None
        ]
        heapify(self._heap)


def _is_due(entry: _Entry[V], now: float) -> bool:
    return entry.expires_at is not None and now >= entry.expires_at
