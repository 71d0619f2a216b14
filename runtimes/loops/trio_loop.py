"""Loop adapter for trio: a task waits until the poller is ready (decision 172)."""

import signal
import time
from collections.abc import Sequence
from functools import partial

import trio

from runtimes.host.host import Program
from runtimes.host.signals import Signals
from runtimes.loops.nested_loop import serve_on
from runtimes.loops.threads_loop import ThreadsLoop
from runtimes.loops.waker import HostHandle
from svc_proto.commands import Exit

__all__ = ["TrioLoop", "run", "serve"]


async def serve(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Run the programs in a task of trio; return the `Exit` of each core.

    A cancellation gives the programs `grace` s to stop, or their longer `patience`, and is then raised.
    """
    return await serve_on(
        TrioLoop(),
        programs,
        handle=handle,
        grace=grace,
        signals=signals,
        cancelled=trio.Cancelled,
        shield=partial(trio.CancelScope, shield=True),
    )


def run(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Run the programs on trio; return the `Exit` of each core."""

    async def main() -> tuple[Exit, ...]:
        try:
            return await serve(programs, handle=handle, grace=grace, signals=signals)
        finally:
            if signals:  # trio closes its descriptor for signals while they are still written to it
                signal.pthread_sigmask(signal.SIG_BLOCK, Signals.SIGNALS)

    try:
        return trio.run(main)
    finally:
        if signals:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, Signals.SIGNALS)


class TrioLoop(ThreadsLoop):
    """A `ThreadsLoop` that runs in a task of trio."""

    async def wait(self) -> None:
        """Implement `NestedLoop.wait` by trio's `wait_readable` and a deadline."""
        ready = self.polling.fileno()
        self.run_once(0.0)
        while not self.finished:
            due = self._wake
            with trio.CancelScope(deadline=trio.current_time() + due - time.monotonic()) as scope:
                while due == self._wake and not self.finished:
                    await trio.lowlevel.wait_readable(ready)
                    self.run_once(0.0)
            if scope.cancelled_caught:
                self.run_once(0.0)
