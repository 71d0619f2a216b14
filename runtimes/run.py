"""The front door: run one core or several on the loop of your choice. Loads only the loop that is asked for.

A loop is one of `RUNTIMES` by its name, or a function of anybody's as `package.module:function`.
"""

from __future__ import annotations

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

__all__ = ["RUNTIMES", "LoopAdapter", "Runtime", "RuntimeMissingError", "find_runtime", "require_package", "run"]


class LoopAdapter(NamedTuple):
    """Where a loop of ours is, and the package that it needs."""

    package: str
    function: str


RUNTIMES = {
    "anyio": LoopAdapter("anyio", "runtimes.loops.anyio_loop:run_asyncio"),
    "asyncio": LoopAdapter("anyio", "runtimes.loops.anyio_loop:run_asyncio"),
    "uvloop": LoopAdapter("uvloop", "runtimes.loops.anyio_loop:run_uvloop"),
    "trio": LoopAdapter("trio", "runtimes.loops.trio_loop:run"),
    "curio": LoopAdapter("curio", "runtimes.loops.curio_loop:run"),
    "threads": LoopAdapter("selectors", "runtimes.loops.threads_loop:run"),  # of Python itself
}
_CHOICES = f"choose one of {', '.join(RUNTIMES)}, or name a function as package.module:function"


class RuntimeMissingError(Exception):
    """A loop was asked for that is not known, not installed or cannot be loaded; the text is one line on what to do."""


class Runtime(Protocol):
    """What the name of a loop leads to: a function that runs cores in the calling thread until all have exited.

    It makes a `runtimes.host.host.Host` of exactly these arguments and a `runtimes.loops.loop.Loop` of its own, calls
    the host's
    `start`, waits until the loop is told to `finish`, calls the host's `close` whatever happened, and returns its
    `outcomes`. What escapes from a callback is a bug and goes on to the caller.

    `programs` may be empty. `handle` is the door for other threads and for signals, of which the host knows: the loop
    only has to watch what it is told to. `grace` (s) is for a stop that names none. `signals` is true when SIGINT and
    SIGTERM have handlers of `run`, and the host sees that they wake the loop; the function installs none itself.

    Who made something disposes of it: the host closes its threads, channels and doors, the function what its loop is
    made of, `run` the handle afterwards, and whoever opened listeners and stores those.
    """

    def __call__(
        self, programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool
    ) -> tuple[Exit, ...]:
        """What each core ended with, in the order of the programs."""


def run(
    programs: Program | Sequence[Program],
    runtime: str = "anyio",
    *,
    handle: HostHandle | None = None,
    grace: float = 10.0,
    signals: bool | None = None,
) -> int:
    """Run until every core has exited; the first exit code that is not zero, else zero.

    `runtime` is what `find_runtime` takes (anyio means asyncio); `grace` is in seconds, for SIGTERM and SIGINT, which
    are served when `signals` is true, or None on the main thread. The handle is of no use afterwards. Raises
    `RuntimeMissingError`.
    """
    listed = list(programs) if isinstance(programs, Sequence) else [programs]
    runner = find_runtime(runtime)
    from runtimes.host.signals import Signals  # noqa: PLC0415, RUF100 - only when there is a loop to run
    from runtimes.loops.waker import HostHandle  # noqa: PLC0415, RUF100
    from runtimes.tls.contexts import ServerContext  # noqa: PLC0415, RUF100

    handle = HostHandle() if handle is None else handle
    signals = threading.current_thread() is threading.main_thread() if signals is None else signals
    reloads = any(isinstance(listener.tls, ServerContext) for program in listed for listener in program.all_listeners)
    with Signals(handle, reloads=reloads) if signals else nullcontext():
        try:
            outcomes = runner(listed, handle=handle, grace=grace, signals=signals)
        finally:
            handle.waker.dispose()
    return next((outcome.code for outcome in outcomes if outcome.code), 0)


def find_runtime(name: str) -> Runtime:
    """Load one of `RUNTIMES`, or what `package.module:function` names. Raises `RuntimeMissingError`."""
    require_package(name)
    ours = RUNTIMES.get(name)
    module, colon, function = (name if ours is None else ours.function).partition(":")
    if not colon:
        raise RuntimeMissingError(f"no runtime {name!r}: {_CHOICES}")
    try:
        found = getattr(import_module(module), function)
    except Exception as error:  # the module is not ours: anything may happen
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise RuntimeMissingError(f"cannot load the runtime {name!r} ({why}): {_CHOICES}") from error
    if not callable(found):
        raise RuntimeMissingError(f"the runtime {name!r} is no function: {_CHOICES}")
    return cast("Runtime", found)


def require_package(name: str) -> None:
    """Raises `RuntimeMissingError` if it is one of `RUNTIMES` and what it needs is not installed. Loads nothing."""
    ours = RUNTIMES.get(name)
    if ours is not None and find_spec(ours.package) is None:
        raise RuntimeMissingError(f"the runtime {name!r} is not installed: pip install 'svc-relay[{ours.package}]'")
