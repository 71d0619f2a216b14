"""Bytes that a descriptor has not taken yet: in order, bounded, written as soon as it takes them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

__all__ = ["OUTBOX_LIMIT", "Outbox"]

OUTBOX_LIMIT = 64 * 1024 * 1024  # unsent bytes at which a channel is dropped: far above what a core lets pile up


class Outbox:
    """`write` hands bytes to the kernel, tells how many it took, and may lead to `close` before it returns."""

    __slots__ = ("_closed", "_items", "_size", "_write")

    def __init__(self, write: Callable[[bytes | memoryview], int]) -> None:
        self._write = write
        self._items: deque[bytes | memoryview] = deque()
        self._size = 0
        self._closed = False

    def __bool__(self) -> bool:
        """Whether something waits."""
        return bool(self._items)

    def send(self, data: bytes) -> bool:
        """Write now unless something waits already, keep the rest. False: it would be over the limit."""
        n = 0 if self._items else self._write(data)
        if self._closed or n == len(data):
            return True
        self._size += len(data) - n
        if self._size > OUTBOX_LIMIT:
            return False
        self._items.append(memoryview(data)[n:])
        return True

    def flush(self) -> bool:
        """Write what waits, until the kernel has had enough. True: nothing is left, and it is open."""
        while self._items:
            item = self._items[0]
            n = self._write(item)
            if self._closed:
                return False
            self._size -= n
            if n < len(item):
                self._items[0] = memoryview(item)[n:]
                return False
            self._items.popleft()
        return not self._closed

    def close(self) -> None:
        """Forget what waits, and keep nothing any more."""
        self._closed = True
        self._items.clear()
