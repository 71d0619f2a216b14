"""Notices when children exit, and reaps them, those that a core has let go of included.

The kernel says so by a descriptor that becomes readable (pidfd_open(2)); where there is none, a thread waits for each.
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

MAX_CHILDREN = 256  # children at a time, those that were let go of included: TOO_LARGE
HANGUP_TIMEOUT = 1.0  # s at the end from a hangup to SIGKILL
EXIT_TIMEOUT = 5.0  # s from there to the end of all of them: on a busy machine they have to get their turn to die

ExitCallback = Callable[[int], None]


class Reaper:
    """All children of one process."""

    def __init__(self, loop: Loop, post: Callable[[Callable[[], None]], None]) -> None:
        self._loop = loop
        self._post = post
        self._watches: dict[int, _Watch] = {}
        self._starting = 0

    def reserve(self) -> bool:
        """May one more child be started? Then `starting_over` has to follow."""
        if len(self._watches) + self._starting >= MAX_CHILDREN:
            return False
        self._starting += 1
        return True

    def starting_over(self) -> None:
        """It runs and is being watched, or it does not run."""
        self._starting -= 1

    def watch(self, process: SpawnedProcess, exited: ExitCallback) -> None:
        """Reap it when it exits, then call `exited(status)`: negative for the signal that ended it."""
        watch = self._watches[process.pid] = _Watch(self, process, exited)
        if process.pidfd is not None:
            self._loop.watch_read(watch)
        else:
            threading.Thread(target=self._wait, args=(watch,), name=f"child-{process.pid}", daemon=True).start()

    def exited(self, watch: _Watch) -> None:
        """A child has exited."""
        status = watch.process.popen.poll()
        if status is None or self._watches.pop(watch.process.pid, None) is None:
            return
        self._loop.close(watch)
        watch.exited(status)

    def close(self) -> None:
        """End what is left: those with a terminal are hung up, the others are killed, and all are reaped."""
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
        """On a thread of its own. The child stays a zombie until the loop's thread reaps it: its number is ours."""
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, watch.process.pid, os.WEXITED | os.WNOWAIT)
        else:  # macOS before Python 3.13
            watch.process.popen.wait()
        self._post(lambda: self.exited(watch))


class _Watch(Source):
    """A child and whom to tell."""

    __slots__ = ("_reaper", "exited", "process")

    def __init__(self, reaper: Reaper, process: SpawnedProcess, exited: ExitCallback) -> None:
        super().__init__(Descriptor(-1 if process.pidfd is None else process.pidfd))
        self._reaper = reaper
        self.process = process
        self.exited = exited

    def on_readable(self) -> None:
        """The child has exited: collect its status."""
        self._reaper.exited(self)


def _reaped(process: SpawnedProcess, timeout: float) -> bool:
    try:
        process.popen.wait(max(0.0, timeout))
    except subprocess.TimeoutExpired:
        return False
    return True
