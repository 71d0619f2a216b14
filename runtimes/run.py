"""Entry points: `run` runs cores on a chosen loop and loads only that one, `serve` runs them in a running loop.

A loop is one of `RUNTIMES` by its name, or any function given as `package.module:function`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from runtimes.host.host import Program
    from runtimes.loops.waker import HostHandle
    from svc_proto.commands import Exit

__all__ = [
    "RUNTIMES",
    "LoopAdapter",
    "Runtime",
    "RuntimeMissingError",
    "find_runtime",
    "require_package",
    "run",
    "serve",
]


class LoopAdapter(NamedTuple):
    """Location of a loop's function, and the package that it needs."""

    package: str
    function: str


RUNTIMES = {
    "anyio": LoopAdapter("anyio", "runtimes.loops.asyncio_loop:run_asyncio"),
    "asyncio": LoopAdapter("anyio", "runtimes.loops.asyncio_loop:run_asyncio"),
    "uvloop": LoopAdapter("uvloop", "runtimes.loops.asyncio_loop:run_uvloop"),
    "trio": LoopAdapter("trio", "runtimes.loops.trio_loop:run"),
    "curio": LoopAdapter("curio", "runtimes.loops.curio_loop:run"),
    "threads": LoopAdapter("selectors", "runtimes.loops.threads_loop:run"),  # in Python itself
}
_CHOICES = f"choose one of {', '.join(RUNTIMES)}, or name a function as package.module:function"


class RuntimeMissingError(Exception):
    """The requested loop is unknown, not installed or cannot be loaded; the text is one line with the remedy."""


class Runtime(Protocol):
    """A function that runs cores in the calling thread until all have exited.

    It makes a `runtimes.host.host.Host` of exactly these arguments and a `runtimes.loops.loop.Loop` of its own. It
    calls the host's `start`, waits for the loop's `finish`, always calls the host's `close`, and returns its
    `exit_codes`. An exception that escapes from a callback is a bug and is raised to the caller.

    `programs` may be empty. Other threads and signals reach the host through `handle`; the loop only watches the
    sources given to it. `grace` (s) is for a stop without a grace of its own. `signals` is true when `run` has set
    handlers of SIGINT and SIGTERM. The host then makes them wake the loop; the function sets none itself.

    The creator of a resource closes it: the host its threads, channels and acceptors, the function its loop, `run` the
    handle, and the caller its listeners and stores.
    """

    def __call__(
        self, programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool
    ) -> tuple[Exit, ...]:
        """Run the programs; return the `Exit` of each core, in the order of the programs."""


class AwaitedRuntime(Protocol):
    """A `Runtime` that is awaited in a running loop."""

    async def __call__(
        self, programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool
    ) -> tuple[Exit, ...]:
        """Run the programs; return the `Exit` of each core.

        A cancellation gives the programs `grace` s to stop, or their longer `patience`, and is then raised.
        """


def run(
    programs: Program | Sequence[Program],
    runtime: str = "anyio",
    *,
    handle: HostHandle | None = None,
    grace: float = 10.0,
    signals: bool | None = None,
) -> int:
    """Run until every core has exited; return the first exit code that is not zero, else zero.

    `runtime` is an argument of `find_runtime` (anyio means asyncio). `grace` (s) is for stops without a grace of their
    own, as by SIGTERM and SIGINT. Signals are handled when `signals` is true, or None on the main thread. The handle
    cannot be used again. Raises `RuntimeMissingError`.
    """
    listed = list(programs) if isinstance(programs, Sequence) else [programs]
    from runtimes.loops.waker import HostHandle  # noqa: PLC0415, RUF100 - only when there is a loop to run

    handle = HostHandle() if handle is None else handle
    try:  # an interrupt may come while the runtime is imported
        runner = find_runtime(runtime)
        from runtimes.host.signals import Signals  # noqa: PLC0415, RUF100
        from runtimes.tls.contexts import ServerContext  # noqa: PLC0415, RUF100

        signals = threading.current_thread() is threading.main_thread() if signals is None else signals
        tls = [listener.tls for program in listed for listener in program.all_listeners]
        reloads = any(isinstance(each, ServerContext) for each in tls)
        with Signals(handle, reloads=reloads) if signals else nullcontext():
            outcomes = runner(listed, handle=handle, grace=grace, signals=signals)
    finally:
        handle.waker.dispose()
    return next((outcome.code for outcome in outcomes if outcome.code), 0)


async def serve(
    programs: Program | Sequence[Program], *, handle: HostHandle | None = None, grace: float = 10.0
) -> tuple[Exit, ...]:
    """Run in a task of asyncio, uvloop or trio until every core has exited; return the `Exit` of each core.

    A cancellation stops the cores, gives them `grace` s (or their program's longer `patience`) to finish, and is then
    raised. Signals are the caller's. The handle cannot be used again. anyio must be installed for asyncio and uvloop.
    """
    listed = list(programs) if isinstance(programs, Sequence) else [programs]
    trio = sys.modules.get("trio")
    library = "trio_loop" if trio is not None and trio.lowlevel.in_trio_task() else "asyncio_loop"
    from runtimes.loops.waker import HostHandle  # noqa: PLC0415, RUF100 - only when there is a loop to run

    server = cast("AwaitedRuntime", import_module(f"runtimes.loops.{library}").serve)
    handle = HostHandle() if handle is None else handle
    try:
        return await server(listed, handle=handle, grace=grace, signals=False)
    finally:
        handle.waker.dispose()


def find_runtime(name: str) -> Runtime:
    """Load one of `RUNTIMES`, or the function `package.module:function`. Raises `RuntimeMissingError`."""
    require_package(name)
    ours = RUNTIMES.get(name)
    module, colon, function = (name if ours is None else ours.function).partition(":")
    if not colon:
        raise RuntimeMissingError(f"no runtime {name!r}: {_CHOICES}")
    try:
        found = getattr(import_module(module), function)
    except Exception as error:  # The module may be foreign code: anything may be raised.
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise RuntimeMissingError(f"cannot load the runtime {name!r} ({why}): {_CHOICES}") from error
    if not callable(found):
        raise RuntimeMissingError(f"the runtime {name!r} is no function: {_CHOICES}")
    return cast("Runtime", found)


def require_package(name: str) -> None:
    """Raise `RuntimeMissingError` if `name` is one of `RUNTIMES` and its package is not installed. Loads nothing."""
    ours = RUNTIMES.get(name)
    if ours is not None and find_spec(ours.package) is None:
        raise RuntimeMissingError(f"the runtime {name!r} is not installed: pip install 'svc-relay[{ours.package}]'")
