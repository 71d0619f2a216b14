"""Detection of exited children, and reaping, including children whose channel has closed.

The kernel reports an exit on a descriptor (pidfd_open(2)). Where the system has none, a thread waits for each child.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable

from runtimes.loops.loop import Descriptor, Loop, Source
from runtimes.processes.spawn import SpawnedProcess

__all__ = ["MAX_CHILDREN", "Reaper"]

MAX_CHILDREN = 256  # children at a time, including those whose channel has closed; more is TOO_LARGE
HANGUP_TIMEOUT = 1.0  # s at the host's exit between SIGHUP and SIGKILL
EXIT_TIMEOUT = 5.0  # s at the host's exit for killed children to end; long, because a busy machine schedules them late

ExitCallback = Callable[[int], None]


class Reaper:
    """Reaper of the children that cores have started, at most `MAX_CHILDREN`."""

    def __init__(self, loop: Loop, post: Callable[[Callable[[], None]], None]) -> None:
        self._loop = loop
        self._post = post
        self._watches: dict[int, _Watch] = {}
        self._starting = 0

    def reserve(self) -> bool:
        """Reserve room for one more child, or return False; after True, a call of `starting_over` must follow."""
        if len(self._watches) + self._starting >= MAX_CHILDREN:
            return False
        self._starting += 1
        return True

    def starting_over(self) -> None:
        """Release a reservation: the child is watched next, or was not started."""
        self._starting -= 1

    def watch(self, process: SpawnedProcess, exited: ExitCallback) -> None:
        """Reap a child when it exits, then call `exited(status)`; a negative status is the signal that ended it."""
        watch = self._watches[process.pid] = _Watch(self, process, exited)
        if process.pidfd is not None:
            self._loop.watch_read(watch)
        else:
            threading.Thread(target=self._wait, args=(watch,), name=f"child-{process.pid}", daemon=True).start()

    def exited(self, watch: _Watch) -> None:
        """Reap a child and call its callback, unless it still runs or was reaped before."""
        status = watch.process.popen.poll()
        if status is None or self._watches.pop(watch.process.pid, None) is None:
            return
        self._loop.close(watch)
        watch.exited(status)

    def close(self) -> None:
        """End and reap the remaining children: SIGHUP for those with a terminal, otherwise SIGKILL.

        A child that does not exit in time receives SIGKILL, too, and is awaited for a limited time.
        """
        watches = list(self._watches.values())
        self._watches.clear()
        for watch in watches:
            self._loop.close(watch)
            watch.process.signal(signal.SIGHUP if watch.process.terminal else signal.SIGKILL)
        deadline = time.monotonic() + HANGUP_TIMEOUT
        clinging = [watch.process for watch in watches if not _reaped(watch.process, deadline - time.monotonic())]
        for process in clinging:
            process.signal(signal.SIGKILL)
        deadline = time.monotonic() + EXIT_TIMEOUT
        for process in clinging:
            _reaped(process, deadline - time.monotonic())

    def _wait(self, watch: _Watch) -> None:
        """Wait for a child on a thread, then have the loop's thread call `exited`.

        Where `os.waitid` exists, the child stays a zombie until then, so its id is not reused.
        """
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, watch.process.pid, os.WEXITED | os.WNOWAIT)
        else:  # macOS before Python 3.13
            watch.process.popen.wait()
        self._post(lambda: self.exited(watch))


class _Watch(Source):
    """A child and the callback for its exit."""

    __slots__ = ("_reaper", "exited", "process")

    def __init__(self, reaper: Reaper, process: SpawnedProcess, exited: ExitCallback) -> None:
        super().__init__(Descriptor(-1 if process.pidfd is None else process.pidfd))
        self._reaper = reaper
        self.process = process
        self.exited = exited

    def on_readable(self) -> None:
        """Reap the child, whose pidfd is readable because it has exited."""
        self._reaper.exited(self)


def _reaped(process: SpawnedProcess, timeout: float) -> bool:
    try:
        process.popen.wait(max(0.0, timeout))
    except subprocess.TimeoutExpired:
        return False
    return True
