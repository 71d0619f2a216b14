"""Runtimes that serve cores inside a host program's own event loop, for `--loop tests.support.host_program:NAME`."""

from collections.abc import Sequence
from functools import partial

import anyio

from runtimes.host.host import Program
from runtimes.loops.waker import HostHandle
from runtimes.run import Runtime, serve
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


def _runtime(backend: str, **options: bool) -> Runtime:
    """Return a program on a loop of `backend` with these options that calls `serve`."""

    def run(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
        return anyio.run(partial(_host, programs, handle, grace), backend=backend, backend_options=options)

    return run


in_asyncio, in_uvloop, in_trio = _runtime("asyncio", debug=True), _runtime("asyncio", use_uvloop=True), _runtime("trio")
