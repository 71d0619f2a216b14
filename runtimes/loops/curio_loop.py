"""curio, which waits in a selector given to it, in which `SharedLoop` does this package's work (decision 172)."""

from __future__ import annotations

from collections.abc import Sequence

import curio

from runtimes.host.host import Host, Program
from runtimes.loops.shared_loop import SharedLoop, SharedSelector
from runtimes.loops.waker import HostHandle
from svc_proto.commands import Exit

__all__ = ["run"]


def run(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Implement `runtimes.run.Runtime` on curio."""
    selector = SharedSelector()
    outcomes: tuple[Exit, ...] = curio.run(_main, selector, programs, handle, grace, signals, selector=selector)
    return outcomes


async def _main(
    selector: SharedSelector, programs: Sequence[Program], handle: HostHandle, grace: float, signals: bool
) -> tuple[Exit, ...]:
    loop = SharedLoop(selector, curio.UniversalEvent())
    loop.host = Host(programs, loop, handle=handle, grace=grace, signals=signals)
    try:
        loop.host.start()
        await loop.serve()
    finally:
        loop.host.close()
        loop.end()
    return loop.host.exit_codes
