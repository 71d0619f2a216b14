"""Runtimes that serve cores inside a host program's own event loop, for `--loop tests.support.host_program:NAME`."""

from collections.abc import Sequence
from functools import partial

import anyio

from runtimes.host.host import Program
from runtimes.loops.waker import HostHandle
from runtimes.run import serve
from svc_proto.commands import Exit

__all__ = ["in_asyncio", "in_trio", "in_uvloop"]

TICK = 0.01  # s between two turns of the host program's own task


async def _host(programs: Sequence[Program], handle: HostHandle, grace: float) -> tuple[Exit, ...]:
    async def tick() -> None:
        while True:
            await anyio.sleep(TICK)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        outcomes = await serve(programs, handle=handle, grace=grace)
        tasks.cancel_scope.cancel()
    return outcomes


def in_asyncio(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Implement `runtimes.run.Runtime` by a program on asyncio in debug mode that calls `serve`."""
    main = partial(_host, programs, handle, grace)
    return anyio.run(main, backend="asyncio", backend_options={"debug": True})


def in_uvloop(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Implement `runtimes.run.Runtime` by a program on uvloop that calls `serve`."""
    main = partial(_host, programs, handle, grace)
    return anyio.run(main, backend="asyncio", backend_options={"use_uvloop": True})


def in_trio(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Implement `runtimes.run.Runtime` by a program on trio that calls `serve`."""
    return anyio.run(partial(_host, programs, handle, grace), backend="trio")
