"""asyncio and uvloop through anyio.

asyncio waits in a selector given to it, in which `SharedLoop` does this package's work. uvloop calls back when a
descriptor is ready, which is the `CallbackLoop`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from typing import Any, TypeVarTuple

import anyio
import anyio.abc
import anyio.lowlevel

from runtimes.host.host import Host, Program
from runtimes.loops.loop import Source
from runtimes.loops.shared_loop import SharedLoop, SharedSelector
from runtimes.loops.waker import HostHandle
from svc_proto.commands import Exit

__all__ = ["CallbackLoop", "run_asyncio", "run_uvloop"]

Ts = TypeVarTuple("Ts")


def run_asyncio(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Implement `runtimes.run.Runtime` on asyncio."""
    selector = SharedSelector()

    def make(tasks: anyio.abc.TaskGroup) -> SharedLoop:
        return SharedLoop(selector, asyncio.Event())

    options = {"loop_factory": partial(NotifyingLoop, selector)}
    return anyio.run(_main, programs, make, handle, grace, signals, backend="asyncio", backend_options=options)


def run_uvloop(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Implement `runtimes.run.Runtime` on uvloop."""
    options = {"use_uvloop": True}
    return anyio.run(_main, programs, CallbackLoop, handle, grace, signals, backend="asyncio", backend_options=options)


async def _main(
    programs: Sequence[Program],
    make_loop: Callable[[anyio.abc.TaskGroup], SharedLoop | CallbackLoop],
    handle: HostHandle,
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
    return host.exit_codes


class NotifyingLoop(asyncio.SelectorEventLoop):
    """An asyncio loop that marks its selector when a callback is scheduled, so that a wait in the selector ends."""

    def __init__(self, selector: SharedSelector) -> None:
        self._waits_in = selector
        super().__init__(selector)

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Implement `asyncio.AbstractEventLoop.call_soon`."""
        self._waits_in.asked = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Implement `asyncio.AbstractEventLoop.call_at`."""
        self._waits_in.asked = True
        return super().call_at(when, callback, *args, context=context)


class CallbackLoop:
    """Implementation of `runtimes.loops.loop.Loop` on a running loop of uvloop."""

    host: Host
    tells_once = True

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._on_exception)
        self._finished = asyncio.Event()
        self._bug: BaseException | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def serve(self) -> None:
        """Wait until `finish`; raise an exception that escaped from a callback, which is a bug."""
        await self._finished.wait()
        if self._timer is not None:
            self._timer.cancel()
        if self._bug is not None:
            raise self._bug

    def end(self) -> None:
        """Do nothing: this loop owns no resources."""

    def watch_read(self, source: Source) -> None:
        """Implement `Loop.watch_read`."""
        if not source.want_read:
            source.want_read = True
            self._loop.add_reader(source.sock.fileno(), source.on_readable)

    def unwatch_read(self, source: Source) -> None:
        """Implement `Loop.unwatch_read`."""
        if source.want_read:
            source.want_read = False
            self._loop.remove_reader(source.sock.fileno())

    def watch_write(self, source: Source) -> None:
        """Implement `Loop.watch_write`."""
        if not source.want_write:
            source.want_write = True
            self._loop.add_writer(source.sock.fileno(), source.on_writable)

    def unwatch_write(self, source: Source) -> None:
        """Implement `Loop.unwatch_write`."""
        if source.want_write:
            source.want_write = False
            self._loop.remove_writer(source.sock.fileno())

    def call_soon(self, source: Source) -> None:
        """Implement `Loop.call_soon` without polling: a socket is nearly always writable, a poll costs two calls."""
        self._loop.call_soon(self._write, source)

    def close(self, source: Source) -> None:
        """Implement `Loop.close`."""
        self.unwatch_read(source)
        self.unwatch_write(source)
        source.sock.close()

    def set_wake_time(self, when: float) -> None:
        """Implement `Loop.set_wake_time`."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0.0, when - time.monotonic()), self.host.on_timer)

    def finish(self) -> None:
        """Implement `Loop.finish`."""
        self._finished.set()

    def _write(self, source: Source) -> None:
        if source.sock.fileno() >= 0:  # not closed since
            source.on_writable()

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._bug = context.get("exception") or RuntimeError(context["message"])
        self._finished.set()
