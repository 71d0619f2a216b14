"""Loop adapter for curio: a task waits until the poller is ready (decision 172)."""

import math
from collections.abc import Sequence
from contextlib import nullcontext

import curio
from curio import traps  # its names are public: `__all__` has them, for makers of primitives

from runtimes.host.host import Program
from runtimes.loops.nested_loop import serve_on
from runtimes.loops.threads_loop import ThreadsLoop
from runtimes.loops.waker import HostHandle
from svc_proto.commands import Exit

__all__ = ["CurioLoop", "run"]


def run(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Run the programs on curio; return the `Exit` of each core."""
    outcomes: tuple[Exit, ...] = curio.run(_serve, programs, handle, grace, signals)
    return outcomes


async def _serve(programs: Sequence[Program], handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    return await serve_on(
        CurioLoop(),
        programs,
        handle=handle,
        grace=grace,
        signals=signals,
        cancelled=curio.TaskCancelled,
        shield=nullcontext,  # curio cancels a task once
    )


class CurioLoop(ThreadsLoop):
    """A `ThreadsLoop` that runs in a task of curio."""

    async def wait(self) -> None:
        """Implement `NestedLoop.wait` by curio's traps for readable descriptors and timeouts."""
        ready, due = self.polling.fileno(), math.inf
        self.run_once(0.0)
        while not self.finished:
            if due != self._wake:
                due = self._wake
                await traps._unset_timeout(None)
                if due < math.inf:
                    await traps._set_timeout(due)
            try:
                await traps._read_wait(ready)
            except curio.TaskTimeout:
                due = math.inf
            self.run_once(0.0)
