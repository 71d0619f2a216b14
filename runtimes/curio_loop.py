"""curio: a task per watched socket. Synchronous code cannot spawn or cancel there, so orders that need it are noted
down and carried out by `_settle` as soon as the callback that gave them has returned.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import curio
from curio.traps import _io_release, _read_wait, _write_wait

from runtimes.host import Host, Program
from runtimes.loop import Source
from runtimes.waker import Handle
from svc_proto.commands import Exit

__all__ = ["CurioLoop", "run"]

_COMING = object()  # stands for a task that is about to be spawned


def run(programs: Sequence[Program], *, handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
    outcomes: tuple[Exit, ...] = curio.run(_main, programs, handle, grace, signals)
    return outcomes


async def _main(programs: Sequence[Program], handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    loop = CurioLoop()
    host = Host(programs, loop, handle=handle, grace=grace, signals=signals)
    loop.host = host
    try:
        await loop.call(host.start)
        await loop.run()
    finally:
        await loop.call(host.close)
        await loop.end()
    return host.outcomes


class CurioLoop:
    """The orders of `runtimes.loop.Loop` on a curio kernel."""

    host: Host
    tells_once = False

    def __init__(self) -> None:
        self._orders: deque[Callable[[], Awaitable[None]]] = deque()
        self._finished = curio.Event()
        self._bug: BaseException | None = None
        self._wake: float | None = None
        self._sleeper: Any = None
        self._tasks: set[Any] = set()

    async def run(self) -> None:
        """Wait until `finish`; raises what escaped from a callback, which is a bug."""
        await self._finished.wait()
        if self._bug is not None:
            raise self._bug

    async def end(self) -> None:
        """Cancel the tasks that are left."""
        for task in list(self._tasks):
            await task.cancel()

    async def call(self, function: Callable[[], None]) -> None:
        """Call synchronous code, then carry out what it ordered."""
        try:
            function()
        except Exception as error:  # noqa: BLE001, RUF100 - kept for `run` to raise
            self._bug = error
            await self._finished.set()
        while self._orders:
            await self._orders.popleft()()

    def watch_read(self, source: Source) -> None:
        """See `Loop`."""
        source.want_read = True
        if source.read_task is None:
            source.read_task = _COMING
            self._orders.append(lambda: self._spawn_read(source))

    def unwatch_read(self, source: Source) -> None:
        """See `Loop`."""
        source.want_read = False

    def watch_write(self, source: Source) -> None:
        """See `Loop`."""
        source.want_write = True
        if source.write_task is None:
            source.write_task = _COMING
            self._orders.append(lambda: self._spawn_write(source))

    def unwatch_write(self, source: Source) -> None:
        """See `Loop`."""
        source.want_write = False

    soon = watch_write

    def close(self, source: Source) -> None:
        """See `Loop`. The socket is closed when no task waits for it any more: the kernel must forget it first."""
        source.want_read = source.want_write = False
        if not source.closing:
            source.closing = True
            if source.read_task is None and source.write_task is None:
                source.sock.close()
            else:
                self._orders.append(lambda: self._cancel(source))

    def wake_at(self, when: float) -> None:
        """See `Loop`."""
        if self._wake is None:
            self._orders.append(self._rearm)
        self._wake = when

    def finish(self) -> None:
        """See `Loop`."""
        self._orders.append(self._finished.set)

    # --- carrying out --------------------------------------------------------------------------------------------

    async def _spawn_read(self, source: Source) -> None:
        source.read_task = await self._spawn(self._read, source)

    async def _spawn_write(self, source: Source) -> None:
        source.write_task = await self._spawn(self._write, source)

    async def _spawn(self, function: Callable[..., Awaitable[None]], *args: object) -> Any:
        task = await curio.spawn(function, *args, daemon=True)
        self._tasks.add(task)
        return task

    async def _cancel(self, source: Source) -> None:
        current = await curio.current_task()
        for task in (source.read_task, source.write_task):
            if task is not None and task is not current:
                await task.cancel(blocking=False)

    async def _rearm(self) -> None:
        """Sleep until the new time instead of the old one."""
        if self._sleeper is not None and self._sleeper is not await curio.current_task():
            await self._sleeper.cancel(blocking=False)
        when, self._wake = self._wake, None
        if when is not None:
            self._sleeper = await self._spawn(self._sleep, when)

    async def _read(self, source: Source) -> None:
        try:
            while source.want_read:
                await _read_wait(source.sock)
                if source.want_read:
                    await self.call(source.on_readable)
        except curio.TaskCancelled:
            pass  # the source is being closed
        finally:
            source.read_task = None
            await self._ended(source)

    async def _write(self, source: Source) -> None:
        try:
            while source.want_write:
                await _write_wait(source.sock)
                if source.want_write:
                    await self.call(source.on_writable)
        except curio.TaskCancelled:
            pass  # the source is being closed
        finally:
            source.write_task = None
            await self._ended(source)

    async def _ended(self, source: Source) -> None:
        """Called by a task as its last deed: have the kernel forget the socket, then close it if that is due."""
        await _io_release(source.sock)
        self._tasks.discard(await curio.current_task())
        if source.closing and source.read_task is None and source.write_task is None:
            source.sock.close()

    async def _sleep(self, when: float) -> None:
        try:
            await curio.sleep(max(0.0, when - time.monotonic()))
            await self.call(self.host.on_timer)
        except curio.TaskCancelled:
            pass  # an earlier time was ordered
        finally:
            self._tasks.discard(await curio.current_task())
