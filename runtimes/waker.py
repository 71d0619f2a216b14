"""The door into the loop from threads and signal handlers: a queue of calls and a socket pair to tell of them."""

from __future__ import annotations

import os
import signal
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from runtimes.loop import Source

__all__ = ["Handle", "Signals", "Waker"]

Call = Callable[[], None]
STANDARD = (0, 1, 2)  # descriptors


class Waker(Source):
    """Calls posted from anywhere, made on the loop's thread in the order of posting."""

    sock: socket.socket
    __slots__ = ("_calls", "_poked", "last_words", "poke_sock")

    def __init__(self) -> None:
        reader, self.poke_sock = socket.socketpair()
        reader.setblocking(False)
        self.poke_sock.setblocking(False)
        super().__init__(reader)
        self._calls: deque[Call] = deque()
        self._poked = False
        self.last_words: list[Call] = []  # made before a second signal ends the process: they must be short

    def post(self, call: Call) -> None:
        """Have `call` made on the loop's thread, soon. Safe in threads and in signal handlers."""
        self._calls.append(call)
        if not self._poked:  # cleared before the queue is emptied, so no call is left behind
            self._poked = True
            try:
                self.poke_sock.send(b"\0")
            except OSError:
                return  # full: it wakes anyway; closed: nobody is left to call

    def on_readable(self) -> None:
        """Make the calls that were posted."""
        try:
            self.sock.recv(4096)
        except BlockingIOError:
            return
        self.drain()

    def drain(self) -> None:
        """Make the calls that are queued now."""
        self._poked = False
        while self._calls:
            self._calls.popleft()()

    def dispose(self) -> None:
        """Close both ends; the loop has let go of the source."""
        self.sock.close()
        self.poke_sock.close()


class Handle:
    """Stops a running host from another thread, or has it reload; make one, give it to `run`, keep it."""

    def __init__(self) -> None:
        self.waker = Waker()
        self.on_stop: Callable[[float | None], None] | None = None
        self.on_reload: Call | None = None

    def stop(self, grace: float | None = None) -> None:
        """Ask every core to finish within `grace` seconds (the host's own when None). Safe from any thread."""
        self.waker.post(lambda: self._stop(grace))

    def reload(self) -> None:
        """Have every core read its certificates again, as SIGHUP does. Safe from any thread."""
        self.waker.post(lambda: self.on_reload() if self.on_reload is not None else None)

    def _stop(self, grace: float | None) -> None:
        if self.on_stop is not None:
            self.on_stop(grace)


class Signals:
    """SIGINT and SIGTERM as one call on the loop's thread; the second one ends the process at once.

    SIGHUP is left as it was unless there is something to `reload`. Then it means that, except when it says what its
    name says: that the terminal we were started from has gone.

    Python runs signal handlers on the main thread between two instructions, so a loop that sleeps in the kernel must
    be woken for it. uvloop and trio see to that themselves; for the others the waker's socket is the wake-up fd.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, waker: Waker, stop: Call, die: Callable[[int], None], *, reload: Call | None = None) -> None:
        self._waker = waker
        self._stop = stop
        self._die = die
        self._reload = reload
        self._terminals = [fd for fd in STANDARD if os.isatty(fd)]
        self._before: list[tuple[int, signal._HANDLER]] = []
        self._wakeup_fd: int | None = None
        self._seen = False

    def install(self) -> None:
        """Take the signals over. Main thread only, with the loop running."""
        for signum in self.SIGNALS:
            self._before.append((signum, signal.signal(signum, self._on_signal)))
        if self._reload is not None:
            self._before.append((signal.SIGHUP, signal.signal(signal.SIGHUP, self._on_hangup)))
        previous = signal.set_wakeup_fd(self._waker.poke_sock.fileno(), warn_on_full_buffer=False)
        if previous != -1:
            signal.set_wakeup_fd(previous)  # the loop has its own
        else:
            self._wakeup_fd = self._waker.poke_sock.fileno()

    def restore(self) -> None:
        """Give the signals back."""
        if self._wakeup_fd is not None:
            signal.set_wakeup_fd(-1)
            self._wakeup_fd = None
        for signum, handler in self._before:
            signal.signal(signum, handler)
        self._before.clear()

    def _on_hangup(self, signum: int, frame: FrameType | None) -> None:
        gone = any(not os.isatty(fd) for fd in self._terminals)  # a terminal that has hung up is none any more
        if self._reload is not None:
            self._waker.post(self._stop if gone else self._reload)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        if self._seen:
            for call in self._waker.last_words:
                with suppress(Exception):  # nothing holds the process back
                    call()
            self._die(128 + signum)  # the shell's convention for death by a signal
        self._seen = True
        self._waker.post(self._stop)
