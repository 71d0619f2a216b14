"""asyncio, uvloop and trio, by way of anyio.

asyncio and uvloop call back when a file descriptor is ready, and keep it registered from one read to the next: that is
`CallbackLoop`. Everywhere else anyio's `wait_readable` in a task of its own does the same: `TaskLoop`, which knows
nothing but anyio.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel

from runtimes.host import Host, Program
from runtimes.loop import Source
from runtimes.waker import Handle
from svc_proto.commands import Exit

__all__ = ["CallbackLoop", "TaskLoop", "run_asyncio", "run_trio", "run_uvloop"]


def run_asyncio(programs: Sequence[Program], *, handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
    return anyio.run(_main, programs, CallbackLoop, handle, grace, signals, backend="asyncio")


def run_uvloop(programs: Sequence[Program], *, handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
    options = {"use_uvloop": True}
    return anyio.run(_main, programs, CallbackLoop, handle, grace, signals, backend="asyncio", backend_options=options)


def run_trio(programs: Sequence[Program], *, handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
    return anyio.run(_main, programs, TaskLoop, handle, grace, signals, backend="trio")


async def _main(
    programs: Sequence[Program],
    make_loop: type[CallbackLoop | TaskLoop],
    handle: Handle,
    grace: float,
    signals: bool,
) -> tuple[Exit, ...]:
    async with anyio.create_task_group() as tasks:
        loop = make_loop(tasks)
        host = Host(programs, loop, handle=handle, grace=grace, signals=signals)
        loop.host = host
        try:
            host.start()
            await loop.run()
        finally:
            host.close()
            tasks.cancel_scope.cancel()
    return host.outcomes


class CallbackLoop:
    """The orders of `runtimes.loop.Loop` on a running asyncio loop, uvloop's included."""

    host: Host

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._loop = asyncio.get_running_loop()
        self.tells_once = type(self._loop).__module__.startswith("uvloop")
        self._loop.set_exception_handler(self._on_exception)
        self._finished = asyncio.Event()
        self._bug: BaseException | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Wait until `finish`; raises what escaped from a callback, which is a bug."""
        await self._finished.wait()
        if self._timer is not None:
            self._timer.cancel()
        if self._bug is not None:
            raise self._bug

    def watch_read(self, source: Source) -> None:
        """See `Loop`."""
        if not source.want_read:
            source.want_read = True
            self._loop.add_reader(source.sock.fileno(), source.on_readable)

    def unwatch_read(self, source: Source) -> None:
        """See `Loop`."""
        if source.want_read:
            source.want_read = False
            self._loop.remove_reader(source.sock.fileno())

    def watch_write(self, source: Source) -> None:
        """See `Loop`."""
        if not source.want_write:
            source.want_write = True
            self._loop.add_writer(source.sock.fileno(), source.on_writable)

    def unwatch_write(self, source: Source) -> None:
        """See `Loop`."""
        if source.want_write:
            source.want_write = False
            self._loop.remove_writer(source.sock.fileno())

    def soon(self, source: Source) -> None:
        """See `Loop`. To have the kernel asked would be two orders to it, and it says yes nearly always."""
        self._loop.call_soon(self._write, source)

    def close(self, source: Source) -> None:
        """See `Loop`."""
        self.unwatch_read(source)
        self.unwatch_write(source)
        source.sock.close()

    def wake_at(self, when: float) -> None:
        """See `Loop`."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0.0, when - time.monotonic()), self.host.on_timer)

    def finish(self) -> None:
        """See `Loop`."""
        self._finished.set()

    def _write(self, source: Source) -> None:
        if source.sock.fileno() >= 0:  # nobody has closed it meanwhile
            source.on_writable()

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._bug = context.get("exception") or RuntimeError(context["message"])
        self._finished.set()


class TaskLoop:
    """The orders of `runtimes.loop.Loop` as tasks that wait for one socket each, and end when nothing is wanted."""

    host: Host
    tells_once = False

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self._finished = anyio.Event()
        self._alarm: anyio.CancelScope | None = None  # its deadline is the time to wake
        self._offset = anyio.current_time() - time.monotonic()  # trio's clock has another origin

    async def run(self) -> None:
        """Wait until `finish`. What escapes from a callback, which is a bug, ends the task group."""
        await self._finished.wait()

    def watch_read(self, source: Source) -> None:
        """See `Loop`."""
        source.want_read = True
        if source.read_task is None:
            source.read_task = self
            self._tasks.start_soon(self._read, source)

    def unwatch_read(self, source: Source) -> None:
        """See `Loop`."""
        source.want_read = False

    def watch_write(self, source: Source) -> None:
        """See `Loop`."""
        source.want_write = True
        if source.write_task is None:
            source.write_task = self
            self._tasks.start_soon(self._write, source)

    def unwatch_write(self, source: Source) -> None:
        """See `Loop`."""
        source.want_write = False

    soon = watch_write

    def close(self, source: Source) -> None:
        """See `Loop`."""
        source.want_read = source.want_write = False
        if source.sock.fileno() >= 0:
            anyio.notify_closing(source.sock)
            source.sock.close()

    def wake_at(self, when: float) -> None:
        """See `Loop`."""
        deadline = when + self._offset
        if self._alarm is None:
            self._alarm = anyio.CancelScope(deadline=deadline)
            self._tasks.start_soon(self._sleep, self._alarm)
        else:
            self._alarm.deadline = deadline

    def finish(self) -> None:
        """See `Loop`."""
        self._finished.set()

    async def _read(self, source: Source) -> None:
        with contextlib.suppress(anyio.ClosedResourceError):
            while source.want_read:
                await anyio.wait_readable(source.sock)
                if source.want_read:
                    source.on_readable()
        source.read_task = None

    async def _write(self, source: Source) -> None:
        with contextlib.suppress(anyio.ClosedResourceError):
            while source.want_write:
                await anyio.wait_writable(source.sock)
                if source.want_write:
                    source.on_writable()
        source.write_task = None

    async def _sleep(self, alarm: anyio.CancelScope) -> None:
        with alarm:
            await anyio.sleep_forever()
        if not self._finished.is_set():
            self._alarm = None
            self.host.on_timer()
