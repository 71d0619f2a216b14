"""curio: a task that waits for one selector with all sockets, which is readable when it has something to tell."""

from __future__ import annotations

from collections.abc import Sequence

import curio
from curio.traps import _io_release, _read_wait

from runtimes.host import Host, Program
from runtimes.threads_loop import ThreadsLoop
from runtimes.waker import Handle
from svc_proto.commands import Exit

__all__ = ["run"]


def run(programs: Sequence[Program], *, handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """See `runtimes.run.Runtime`."""
    outcomes: tuple[Exit, ...] = curio.run(_main, programs, handle, grace, signals)
    return outcomes


async def _main(programs: Sequence[Program], handle: Handle, grace: float, signals: bool) -> tuple[Exit, ...]:
    loop = ThreadsLoop()
    loop.host = Host(programs, loop, handle=handle, grace=grace, signals=signals)
    try:
        loop.host.start()
        loop.turn(0.0)
        while not loop.finished:
            async with curio.ignore_after(loop.left):
                await _read_wait(loop.selector)
            loop.turn(0.0)
        await _io_release(loop.selector)
    finally:
        loop.host.close()
        loop.end()
    return loop.host.outcomes
