"""Handling of SIGINT, SIGTERM and SIGHUP, from before a loop begins until after it has ended.

A loop that is interrupted while it begins or ends raises an unrelated error or hangs. Therefore Python's own handlers,
which would interrupt it, are restored only after its end.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType

from runtimes.loops.waker import HostHandle

__all__ = ["Signals"]

STANDARD = (0, 1, 2)  # descriptors


class Signals:
    """A context for the main thread: the first SIGINT or SIGTERM stops the handle, the second ends the process.

    SIGHUP is handled only if there is something to reload. It reloads, except when a terminal on a standard descriptor
    has hung up: then it stops.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, handle: HostHandle, *, reloads: bool = False, die: Callable[[int], None] = os._exit) -> None:
        self._handle = handle
        self._reloads = reloads
        self._die = die
        self._terminals = [fd for fd in STANDARD if os.isatty(fd)]
        self._before: list[tuple[int, signal._HANDLER]] = []
        self._seen = False

    def __enter__(self) -> None:
        """Install the handlers."""
        for signum in self.SIGNALS:
            self._before.append((signum, signal.signal(signum, self._on_signal)))
        if self._reloads:
            self._before.append((signal.SIGHUP, signal.signal(signal.SIGHUP, self._on_hangup)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the earlier handlers."""
        for signum, handler in self._before:
            signal.signal(signum, handler)
        self._before.clear()

    def _on_hangup(self, signum: int, frame: FrameType | None) -> None:
        gone = any(not os.isatty(fd) for fd in self._terminals)  # a terminal that has hung up is no terminal any more
        (self._handle.stop if gone else self._handle.reload)()

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if self._seen:
            for call in self._handle.waker.last_words:
                with suppress(Exception):  # an error here must not keep the process alive
                    call()
            self._die(128 + signum)  # the shell's convention for death by a signal
        self._seen = True
        self._handle.stop()
