"""Interface of the event loops, and the descriptors that they watch.

An adapter of a loop has no deadline, protocol rule or retry of its own.
"""

import os
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Descriptor", "Loop", "OneWaySource", "Pollable", "Source"]


class Pollable(Protocol):
    """An object that a loop can wait for: a socket, or a `Descriptor`."""

    def fileno(self) -> int:
        """Return the descriptor; -1 when closed."""

    def close(self) -> None:
        """Close the descriptor; does nothing when closed."""


class Descriptor:
    """A file descriptor (a pipe, a terminal, a pidfd) with `fileno` and `close`, as a socket has them."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        """Implement `Pollable.fileno`."""
        return self._fd

    def close(self) -> None:
        """Implement `Pollable.close`: close the descriptor once."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class Source:
    """A non-blocking descriptor and its callbacks.

    The `want_*` flags state what is watched now. Only the adapter writes the flags and the `*_task` slots.
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
        """Handle that the descriptor is readable; a subclass reads or accepts, this class does nothing."""

    def on_writable(self) -> None:
        """Handle that the descriptor is writable; a subclass writes or finishes connecting, this class does nothing."""


class OneWaySource(Source):
    """A descriptor of one direction; `ready` is called whenever it is readable or writable."""

    __slots__ = ("_ready",)

    def __init__(self, fd: int, ready: Callable[[], None]) -> None:
        super().__init__(Descriptor(fd))
        self._ready = ready

    def on_readable(self) -> None:
        """Implement `Source.on_readable`: call the function of the constructor."""
        self._ready()

    on_writable = on_readable


class Loop(Protocol):
    """The methods that a host and its channels call, also inside a callback.

    It has no effect to watch or unwatch a source again, to close it again, or to finish again.
    """

    def watch_read(self, source: Source) -> None:
        """Call `source.on_readable()` whenever the source is readable, until `unwatch_read`."""

    def unwatch_read(self, source: Source) -> None:
        """Stop calling `source.on_readable()`."""

    def watch_write(self, source: Source) -> None:
        """Call `source.on_writable()` whenever the source is writable, until `unwatch_write`."""

    def unwatch_write(self, source: Source) -> None:
        """Stop calling `source.on_writable()`."""

    def call_soon(self, source: Source) -> None:
        """Call `source.on_writable()` soon; a loop may first wait until the source is writable."""

    def close(self, source: Source) -> None:
        """Stop watching the source and close its descriptor."""

    def set_wake_time(self, when: float) -> None:
        """Call the host's `on_timer()` at `when` (monotonic seconds), replacing the earlier time."""

    def finish(self) -> None:
        """End the loop: every core has exited."""
