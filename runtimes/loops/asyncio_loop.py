"""Loop adapter for asyncio and uvloop, which call it when the poller is ready or its time has come (decision 172)."""

import asyncio
import math
import time
from collections.abc import Sequence
from functools import partial

import anyio

from runtimes.host.host import Program
from runtimes.loops.nested_loop import serve_on
from runtimes.loops.threads_loop import ThreadsLoop
from runtimes.loops.waker import HostHandle
from svc_proto.commands import Exit

__all__ = ["AsyncioLoop", "run_asyncio", "run_uvloop", "serve"]


async def serve(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Run the programs in a task of asyncio or uvloop; return the `Exit` of each core.

    A cancellation gives the programs `grace` s to stop, or their longer `patience`, and is then raised.
    """
    return await serve_on(
        AsyncioLoop(),
        programs,
        handle=handle,
        grace=grace,
        signals=signals,
        cancelled=asyncio.CancelledError,
        shield=partial(anyio.CancelScope, shield=True),  # anyio cancels again and again
    )


def run_asyncio(
    programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool, uvloop: bool = False
) -> tuple[Exit, ...]:
    """Run the programs on asyncio, or on the loop of uvloop if `uvloop` is set; return the `Exit` of each core."""
    main = partial(serve, programs, handle=handle, grace=grace, signals=signals)
    return anyio.run(main, backend="asyncio", backend_options={"use_uvloop": uvloop})


def run_uvloop(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Run the programs on uvloop; return the `Exit` of each core."""
    return run_asyncio(programs, handle=handle, grace=grace, signals=signals, uvloop=True)


class AsyncioLoop(ThreadsLoop):
    """A `ThreadsLoop` that the running loop of asyncio calls when its poller is ready or its time has come."""

    def __init__(self) -> None:
        super().__init__()
        self._outer = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._bug: Exception | None = None

    async def wait(self) -> None:
        """Implement `NestedLoop.wait`. Raises the bug that ended the loop."""
        self._outer.add_reader(self.polling.fileno(), self._run)
        self._run()
        await self._over.wait()
        if self._bug is not None:
            raise self._bug

    def end(self) -> None:
        """Implement `NestedLoop.end`: remove reader and timer from the outer loop."""
        self._outer.remove_reader(self.polling.fileno())
        if self._timer is not None:
            self._timer.cancel()
        super().end()

    def set_wake_time(self, when: float) -> None:
        """Implement `Loop.set_wake_time` by a timer of the outer loop."""
        super().set_wake_time(when)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._outer.call_later(max(0.0, when - time.monotonic()), self._on_time)

    def finish(self) -> None:
        """Implement `Loop.finish`: also let `wait` return."""
        super().finish()
        self._over.set()

    def _run(self) -> None:
        try:
            self.run_once(0.0)
        except Exception as error:  # noqa: BLE001, RUF100 - raised by `wait`
            self._bug = error
            self._over.set()

    def _on_time(self) -> None:
        self._timer = None
        self._run()
        if self._wake < math.inf:  # not due yet by our clock, or set anew
            self.set_wake_time(self._wake)
