"""Tests of a descriptor's outbox: order, limit, and closing during a write."""

import pytest

from runtimes.net import outbox as outbox_module
from runtimes.net.outbox import Outbox


class Kernel:
    """Fake of a descriptor that accepts `room` bytes, and no more until a test sets `room` again."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken = b""
        self.outbox = Outbox(self.write)
        self.closes = False

    def write(self, data: bytes | memoryview) -> int:
        n = min(self.room, len(data))
        self.room -= n
        self.taken += bytes(data[:n])
        if self.closes:
            self.outbox.close()
        return n


def test_the_rest_is_written_in_order() -> None:
    kernel = Kernel(2)
    assert kernel.outbox.send(b"abc")
    kernel.room = 100
    assert kernel.outbox.send(b"def")  # not before the `c`
    assert kernel.outbox
    assert kernel.taken == b"ab"
    kernel.room = 3
    assert not kernel.outbox.flush()
    assert kernel.taken == b"abcde"
    kernel.room = 1
    assert kernel.outbox.flush()
    assert kernel.taken == b"abcdef"
    assert not kernel.outbox


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "OUTBOX_LIMIT", 4)
    kernel = Kernel(1)
    assert kernel.outbox.send(b"abcde")
    assert not kernel.outbox.send(b"f")
    kernel = Kernel(1)
    assert kernel.outbox.send(b"abcde")
    kernel.room = 2
    assert not kernel.outbox.flush()
    assert kernel.outbox.send(b"fg")  # in the room of the two bytes
    assert not kernel.outbox.send(b"h")
    kernel.outbox.close()
    assert not kernel.outbox


def test_a_write_may_close_it() -> None:
    kernel = Kernel(1)
    kernel.closes = True
    assert kernel.outbox.send(b"ab")
    assert not kernel.outbox
    kernel = Kernel(0)
    assert kernel.outbox.send(b"ab")
    kernel.closes, kernel.room = True, 1
    assert not kernel.outbox.flush()
    assert not kernel.outbox
    assert kernel.taken == b"a"
