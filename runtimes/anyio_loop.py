"""asyncio, uvloop and trio, by way of anyio.

asyncio and uvloop call back when a file descriptor is ready, and keep it registered from one read to the next: that is
`CallbackLoop`. trio has a task wait for one selector with all of them: `NestedLoop`, which knows nothing but anyio.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel

from runtimes.host import Host, Program
from runtimes.loop import Source
from runtimes.threads_loop import ThreadsLoop
from runtimes.waker import Handle
from svc_proto.commands import Exit

__all__ = ["CallbackLoop", "NestedLoop", "run_asyncio", "run_trio", "run_uvloop"]


def run_asyncio(programs: Sequence[Program], *, handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
    return anyio.run(_main, programs, CallbackLoop, handle, grace, signals, backend="asyncio")


def run_uvloop(programs: Sequence[Program], *, handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
    options = {"use_uvloop": True}
    return anyio.run(_main, programs, CallbackLoop, handle, grace, signals, backend="asyncio", backend_options=options)


def run_trio(programs: Sequence[Program], *, handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
    return anyio.run(_main, programs, NestedLoop, handle, grace, signals, backend="trio")


async def _main(
    programs: Sequence[Program],
    make_loop: type[CallbackLoop | NestedLoop],
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
            await loop.serve()
        finally:
            host.close()
            loop.end()
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

    async def serve(self) -> None:
        """Wait until `finish`; raises what escaped from a callback, which is a bug."""
        await self._finished.wait()
        if self._timer is not None:
            self._timer.cancel()
        if self._bug is not None:
            raise self._bug

    def end(self) -> None:
        """Nothing is to be disposed of."""

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


class NestedLoop(ThreadsLoop):
    """A selector of our own has the sockets, and a task of trio waits for that: it is readable when it has something.

    So trio is asked once for all that is ready, in place of once for each socket (decision 172).
    """

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        super().__init__()
        self._tasks = tasks
        self._serving = anyio.CancelScope()
        self._alarm = anyio.CancelScope()  # its deadline is the time to wake
        self._offset = anyio.current_time() - time.monotonic()  # trio's clock has another origin

    async def serve(self) -> None:
        """Until `finish`. What escapes from a callback, which is a bug, ends the task group."""
        self.turn(0.0)
        self._tasks.start_soon(self._sleep)
        with self._serving:
            while not self.finished:
                await anyio.wait_readable(self.selector)
                self.turn(0.0)

    def wake_at(self, when: float) -> None:
        """See `Loop`."""
        super().wake_at(when)
        self._alarm.deadline = when + self._offset

    def finish(self) -> None:
        """See `Loop`."""
        super().finish()
        self._serving.cancel()

    async def _sleep(self) -> None:
        while True:
            with self._alarm:
                await anyio.sleep_forever()
            self._alarm = anyio.CancelScope()
            self.turn(0.0)
            self._alarm.deadline = self._wake + self._offset  # the clocks may differ by a little
