"""curio: a task that waits for one selector with all sockets, and one that sleeps (decision 172)."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import curio
from curio.traps import _io_release, _read_wait

from runtimes.host import Host, Program
from runtimes.threads_loop import ThreadsLoop
from runtimes.waker import Handle
from svc_proto.commands import Exit

__all__ = ["CurioLoop", "run"]


def run(programs: Sequence[Program], *, handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
    outcomes: tuple[Exit, ...] = curio.run(_main, programs, handle, grace, signals)
    return outcomes


async def _main(programs: Sequence[Program], handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    loop = CurioLoop()
    loop.host = Host(programs, loop, handle=handle, grace=grace, signals=signals)
    try:
        loop.host.start()
        await loop.serve()
    finally:
        loop.host.close()
        loop.end()
    return loop.host.outcomes


class CurioLoop(ThreadsLoop):
    """What `ThreadsLoop` is, inside a curio kernel. A sleeper of its own costs less than a time-out for each wait."""

    def __init__(self) -> None:
        super().__init__()
        self._over = curio.Event()
        self._bug: Exception | None = None
        self._armed = math.inf  # when the sleeper wakes, monotonic seconds
        self._sleeper: Any = None

    async def serve(self) -> None:
        """Until `finish`; raises what escaped from a callback, which is a bug."""
        reader = await curio.spawn(self._read, daemon=True)
        await self._over.wait()
        await reader.cancel()
        if self._sleeper is not None:
            await self._sleeper.cancel()
        if self._bug is not None:
            raise self._bug

    async def _read(self) -> None:
        try:
            await self._go()
            while True:
                await _read_wait(self.polling)
                await self._go()
        finally:
            await _io_release(self.polling)

    async def _sleep(self, armed: float) -> None:
        await curio.sleep(max(0.0, armed - time.monotonic()))
        if armed == self._armed:  # else another one has taken its place
            self._armed, self._sleeper = math.inf, None
            await self._go()

    async def _go(self) -> None:
        try:
            self.turn(0.0)
        except Exception as error:  # noqa: BLE001, RUF100 - kept for `serve` to raise
            self._bug = error
        if self._bug is not None or self.finished:
            await self._over.set()
        elif self._wake < self._armed:
            if self._sleeper is not None:
                await self._sleeper.cancel(blocking=False)
            self._armed = self._wake
            self._sleeper = await curio.spawn(self._sleep, self._armed, daemon=True)
