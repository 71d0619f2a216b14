"""The front door: run one core or several on the loop of your choice. Loads only the loop that is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING

from svc_proto.commands import Exit

if TYPE_CHECKING:
    from runtimes.host import Program
    from runtimes.waker import Handle

__all__ = ["RUNTIMES", "RuntimeMissingError", "run"]

_NEEDS = {"anyio": "anyio", "asyncio": "anyio", "uvloop": "uvloop", "trio": "trio", "curio": "curio"}
RUNTIMES = tuple(_NEEDS)


class RuntimeMissingError(Exception):
    """A loop was asked for that is not known or not installed; the text says what to do."""


def run(
    programs: Program | Sequence[Program],
    runtime: str = "anyio",
    *,
    handle: Handle | None = None,
    grace: float = 10.0,
    signals: bool | None = None,
) -> int:
    """Run until every core has exited; the first exit code that is not zero, else zero.

    `runtime` is one of `RUNTIMES` (anyio means asyncio); `grace` is in seconds, for SIGTERM and SIGINT, which are
    served when `signals` is true, or None on the main thread. Raises `RuntimeMissingError`.
    """
    listed = list(programs) if isinstance(programs, Sequence) else [programs]
    runner = _runner(runtime)
    from runtimes.signals import Signals  # noqa: PLC0415, RUF100 - only when there is a loop to run
    from runtimes.tls import ServerContext  # noqa: PLC0415, RUF100
    from runtimes.waker import Handle  # noqa: PLC0415, RUF100

    handle = Handle() if handle is None else handle
    signals = threading.current_thread() is threading.main_thread() if signals is None else signals
    reloads = any(isinstance(listener.tls, ServerContext) for program in listed for listener in program.listeners)
    with Signals(handle, reloads=reloads) if signals else nullcontext():
        outcomes = runner(listed, handle, grace, signals)
    return next((outcome.code for outcome in outcomes if outcome.code), 0)


def _runner(runtime: str) -> Callable[[Sequence[Program], Handle, float, bool], tuple[Exit, ...]]:
    needs = _NEEDS.get(runtime)
    if needs is None:
        raise RuntimeMissingError(f"no runtime {runtime!r}: choose one of {', '.join(RUNTIMES)}")
    if find_spec(needs) is None:
        raise RuntimeMissingError(f"the runtime {runtime!r} is not installed: pip install 'svc-relay[{runtime}]'")
    if runtime == "curio":
        from runtimes import curio_loop  # noqa: PLC0415, RUF100 - only the loop that is asked for

        return lambda programs, handle, grace, signals: curio_loop.run(
            programs, handle=handle, grace=grace, signals=signals
        )
    from runtimes import anyio_loop  # noqa: PLC0415, RUF100 - only the loop that is asked for

    backend = "asyncio" if runtime == "anyio" else runtime
    return lambda programs, handle, grace, signals: anyio_loop.run(
        programs, backend=backend, handle=handle, grace=grace, signals=signals
    )
