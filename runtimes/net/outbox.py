"""Bytes that a descriptor has not taken yet: in order, limited, written as soon as the kernel takes them."""

from collections import deque
from collections.abc import Callable

__all__ = ["OUTBOX_LIMIT", "Outbox"]

OUTBOX_LIMIT = 64 * 1024 * 1024  # unsent bytes above which a channel is closed: far more than a core lets accumulate


class Outbox:
    """Queue of unsent bytes. The function `write` passes bytes to the kernel and returns how many it took.

    It may call `close`.
    """

    __slots__ = ("_closed", "_items", "_size", "_write")

    def __init__(self, write: Callable[[bytes | memoryview], int]) -> None:
        self._write = write
        self._items: deque[bytes | memoryview] = deque()
        self._size = 0
        self._closed = False

    def __bool__(self) -> bool:
        """Report whether bytes are queued."""
        return bool(self._items)

    def send(self, data: bytes) -> bool:
        """Write `data` unless bytes are queued, and queue the rest. Return False if the queue has no room for it."""
        n = 0 if self._items else self._write(data)
        if self._closed or n == len(data):
            return True
        self._size += len(data) - n
        if self._size > OUTBOX_LIMIT:
            return False
        self._items.append(memoryview(data)[n:])
        return True

    def flush(self) -> bool:
        """Write queued bytes until the kernel takes no more. Return True if all are written and the queue is open."""
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
        """Discard the queued bytes."""
        self._closed = True
        self._items.clear()
