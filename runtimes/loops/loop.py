"""What differs between event loops: eight synchronous orders, and a descriptor with what to do when it is ready.

Everything else in this package is the same code on every loop. An adapter calls `on_readable` and `on_writable` of the
sources it watches, `on_timer` of the host, and nothing more: no deadline, no protocol rule, no retry of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Descriptor", "Loop", "OneWaySource", "Pollable", "Source"]


class Pollable(Protocol):
    """What a loop can wait for: a socket, or a `Descriptor`."""

    def fileno(self) -> int:
        """The descriptor; -1 when it is closed."""

    def close(self) -> None:
        """Close it; fine when it is closed."""


class Descriptor:
    """A file descriptor (a pipe, a terminal, a pidfd) in the manner of a socket; -1 is a closed one."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        """See `Pollable`."""
        return self._fd

    def close(self) -> None:
        """See `Pollable`."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class Source:
    """A non-blocking descriptor and what to do when it is ready.

    The `want_*` flags say what is watched now; they and the `*_task` slots are the adapter's to write.
    """

    __slots__ = ("closing", "read_task", "sock", "want_read", "want_write", "write_task")

    def __init__(self, sock: Pollable) -> None:
        self.sock = sock
        self.want_read = False
        self.want_write = False
        self.read_task: Any = None
        self.write_task: Any = None
        self.closing = False

    def on_readable(self) -> None:
        """Data, a connection or an end is there to be read."""

    def on_writable(self) -> None:
        """The kernel takes bytes again, or a connection attempt has ended."""


class OneWaySource(Source):
    """A descriptor of one direction, of which `ready` is told whenever it is."""

    __slots__ = ("_ready",)

    def __init__(self, fd: int, ready: Callable[[], None]) -> None:
        super().__init__(Descriptor(fd))
        self._ready = ready

    def on_readable(self) -> None:
        """See `Source`."""
        self._ready()

    on_writable = on_readable


class Loop(Protocol):
    """The orders of the synchronous part; all may be given from inside a callback, and all are idempotent."""

    tells_once: bool
    """A reset that comes while data is unread is told together with that data and not again: read on until there is
    nothing more. libuv is like that, and so uvloop."""

    def watch_read(self, source: Source) -> None:
        """Call `source.on_readable()` whenever it is readable, until `unwatch_read`."""

    def unwatch_read(self, source: Source) -> None:
        """Stop calling `source.on_readable()`."""

    def watch_write(self, source: Source) -> None:
        """Call `source.on_writable()` whenever it is writable, until `unwatch_write`."""

    def unwatch_write(self, source: Source) -> None:
        """Stop calling `source.on_writable()`."""

    def call_soon(self, source: Source) -> None:
        """Call `source.on_writable()` once the loop has done what is ready now; it may be watched for that."""

    def close(self, source: Source) -> None:
        """Watch it no more and close its descriptor."""

    def set_wake_time(self, when: float) -> None:
        """Call the host's `on_timer()` at `when` (monotonic seconds), in place of the time ordered before."""

    def finish(self) -> None:
        """Leave the loop: every core has exited."""
