"""Calls into the loop from threads and signal handlers: a queue of calls and a socket pair that wakes the loop."""

import signal
import socket
from collections import deque
from collections.abc import Callable

from runtimes.loops.loop import Source

__all__ = ["HostHandle", "Waker"]

Call = Callable[[], object]


class Waker(Source):
    """Calls posted from any thread, made on the loop's thread in the order of posting."""

    sock: socket.socket
    __slots__ = ("_calls", "_is_wakeup_fd", "_poked", "last_words", "poke_sock")

    def __init__(self) -> None:
        reader, self.poke_sock = socket.socketpair()
        reader.setblocking(False)
        self.poke_sock.setblocking(False)
        super().__init__(reader)
        self._calls: deque[Call] = deque()
        self._poked = False
        self._is_wakeup_fd = False
        self.last_words: list[Call] = []  # made before a second signal ends the process; they must be short

    def post(self, call: Call) -> None:
        """Schedule `call` on the loop's thread. Safe in threads and in signal handlers."""
        self._calls.append(call)
        if not self._poked:  # cleared before the queue is emptied, so no call is left behind
            self._poked = True
            try:
                self.poke_sock.send(b"\0")
            except OSError:
                return  # full: the loop wakes anyway; closed: the loop has ended

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
        for _ in range(len(self._calls)):
            self._calls.popleft()()

    def watch_signals(self) -> None:
        """Wake the loop when a signal arrives; call this on the main thread. Does nothing if the loop wakes by itself.

        Python runs signal handlers on the main thread between two instructions, so a loop that sleeps in the kernel
        must be woken for a signal that another thread took. uvloop and trio do that themselves.
        """
        previous = signal.set_wakeup_fd(self.poke_sock.fileno(), warn_on_full_buffer=False)
        self._is_wakeup_fd = previous == -1
        if previous != -1:
            signal.set_wakeup_fd(previous)  # the loop has its own

    def unwatch_signals(self) -> None:
        """Stop waking this loop for signals."""
        if self._is_wakeup_fd:
            signal.set_wakeup_fd(-1)
            self._is_wakeup_fd = False

    def dispose(self) -> None:
        """Close both ends; the loop does not watch the source any more."""
        self.sock.close()
        self.poke_sock.close()


class HostHandle:
    """Handle that stops or reloads a running host from another thread: create one and pass it to `run`."""

    def __init__(self) -> None:
        self.waker = Waker()
        self.on_stop: Callable[[float | None], None] | None = None
        self.on_reload: Call | None = None

    def stop(self, grace: float | None = None) -> None:
        """Give `Stopping` to every core that is not stopping already, while the host runs. Safe from any thread.

        A core has `grace` s to finish (None: the host's grace), or its program's `patience` if that is longer.
        """
        self.waker.post(lambda: self._stop(grace))

    def reload(self) -> None:
        """Give `Reloading` to every core that has not exited, while the host runs. Safe from any thread."""
        self.waker.post(lambda: self.on_reload() if self.on_reload is not None else None)

    def _stop(self, grace: float | None) -> None:
        if self.on_stop is not None:
            self.on_stop(grace)
