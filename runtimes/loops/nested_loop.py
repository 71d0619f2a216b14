"""Cores inside a loop of another library, which waits for one descriptor and one time (decision 172).

All sockets are in the poller of a `ThreadsLoop`, whose descriptor is readable whenever one of them is ready.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from runtimes.host.host import Host, Program
from runtimes.loops.loop import Loop
from runtimes.loops.waker import HostHandle
from svc_proto.commands import Exit

__all__ = ["NestedLoop", "serve_on"]


class NestedLoop(Loop, Protocol):
    """A `Loop` that is awaited in a task of another library's loop."""

    host: Host

    async def wait(self) -> None:
        """Run until `finish`. Raises an exception that escaped from a callback, which is a bug."""

    def end(self) -> None:
        """Close the poller."""


async def serve_on(
    loop: NestedLoop,
    programs: Sequence[Program],
    *,
    handle: HostHandle,
    grace: float,
    signals: bool,
    cancelled: type[BaseException],
    shield: Callable[[], AbstractContextManager[object]],
) -> tuple[Exit, ...]:
    """Run the programs; return the `Exit` of each core.

    A cancellation gives the programs `grace` s to stop, or their longer `patience`, and is then raised. `cancelled` is
    the exception of a cancellation, `shield` makes a scope without further ones.
    """
    loop.host = host = Host(programs, loop, handle=handle, grace=grace, signals=signals)
    try:
        host.start()
        try:
            await loop.wait()
        except cancelled:
            host.stop()
            with shield():
                await loop.wait()
            raise
    finally:
        host.close()
        loop.end()
    return host.exit_codes
