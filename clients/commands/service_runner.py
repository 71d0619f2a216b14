"""Runner of a command's service on an event loop, with this host's functions and a progress line on a terminal."""

import os
import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from clients.commands.host_settings import trust_for
from runtimes.host.compute import COMPUTE_FUNCTIONS
from runtimes.host.host import Program, Services
from runtimes.host.logs import setup_logging
from runtimes.loops.waker import HostHandle
from runtimes.run import run
from runtimes.tls.contexts import PinnedTrust
from svc_proto.cli.errors import CliError
from svc_proto.cli.one_shot_service import INTERRUPTED, OneShotService
from svc_proto.cli.operator_requests import local_relay
from svc_proto.commands import Exit, Level, Notify
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.relay_client import RelayClient

__all__ = ["ProgressLine", "run_flow", "run_on_local_relay", "run_service"]

GRACE = 2.0  # s that a command has to end after Ctrl-C
T = TypeVar("T")


def run_flow(
    plan: Callable[[Engine], Flow[T]],
    runtime: str,
    *,
    home: Path | None = None,
    compute: Mapping[str, Callable[..., object]] | None = None,
    client_tls: ssl.SSLContext | PinnedTrust | None = None,
    on_tell: Callable[[Notify], None] | None = None,
) -> T:
    """Run a flow on an event loop and return its result.

    Raises `CliError`, an exception of `on_tell`, and `KeyboardInterrupt` after Ctrl-C.
    """
    service = OneShotService(plan, watched=sys.stderr.isatty())
    return run_service(service, runtime, home=home, compute=compute, client_tls=client_tls, on_tell=on_tell)


def run_on_local_relay(call: Callable[[Engine, RelayClient], Flow[T]], config: RelayConfig, runtime: str) -> T:
    """Run a flow with the HTTP client of the relay of this host. Return its result; raise what `run_flow` raises."""
    relay, home = local_relay(config), Path(config.home).expanduser().absolute()
    return run_flow(lambda engine: call(engine, relay), runtime, home=home, client_tls=trust_for(config))


def run_service(
    service: OneShotService[T],
    runtime: str,
    *,
    home: Path | None = None,
    compute: Mapping[str, Callable[..., object]] | None = None,
    client_tls: ssl.SSLContext | PinnedTrust | None = None,
    on_tell: Callable[[Notify], None] | None = None,
    stdio: bool = False,
    last_words: Callable[[], None] | None = None,
) -> T:
    """Run a one-shot service and return its result; with `stdio` it gets standard input and output.

    `last_words` is called before a second signal ends the process at once. Raises as `run_flow`.
    """
    handle = HostHandle()
    progress = ProgressLine(on_tell, on_broken=handle.stop)
    outcomes: list[Exit] = []
    try:
        if last_words is not None:
            handle.waker.last_words.append(last_words)
        services = Services(
            state=home,
            compute={**COMPUTE_FUNCTIONS, **(compute or {})},
            client_tls=client_tls,
            logger=setup_logging(int(Level.ERROR), name="svc.command"),
        )
        program = Program(
            core=Engine(service, entropy=os.urandom, log_level=Level.ERROR),
            services=services,
            stdio=stdio,
            on_notify=progress.on_notify,
            on_exit=outcomes.append,
        )
        run(program, runtime, handle=handle, grace=GRACE)
    finally:
        progress.clear()
        handle.waker.dispose()  # an interrupt may come before `run`, which does so too
    if progress.broken is not None:
        raise progress.broken
    outcome = outcomes[0]
    if outcome.code == 0:
        return service.result
    if service.error is not None:
        raise service.error
    if outcome.code == INTERRUPTED:
        raise KeyboardInterrupt
    raise CliError(outcome.reason, code=outcome.code)


class ProgressLine:
    """Progress line on standard error, shown from the first second of a `OneShotService(watched=True)` on.

    Any notification but `doing` and `waiting` removes the line until the next `doing`. If `on_tell` raises, mostly
    because the output is closed, `broken` is the exception, and `on_broken` is called.
    """

    def __init__(self, on_tell: Callable[[Notify], None] | None, on_broken: Callable[[], None] | None = None) -> None:
        self.broken: Exception | None = None
        self._on_tell = on_tell
        self._on_broken = on_broken
        self._doing = "working"
        self._since = 0
        self._second = 0
        self._quiet = False
        self._shown = False

    def on_notify(self, news: Notify) -> None:
        """Show the progress of `doing` and `waiting`; for other notifications, remove the line and call `on_tell`."""
        if news.event == "doing":
            self._doing, self._since, self._quiet = str(news.fields["text"]), self._second, False
        elif news.event == "waiting":
            self._second += 1
            if not self._quiet:
                self._shown = True
                took = self._second - self._since
                print(f"\r\x1b[K{self._doing} … {took} s", end="", file=sys.stderr, flush=True)
        else:
            self.clear()
            self._quiet = True
            self._pass_on(news)

    def clear(self) -> None:
        """Remove the progress line, if it is shown."""
        if self._shown:
            self._shown = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _pass_on(self, news: Notify) -> None:
        if self._on_tell is None or self.broken is not None:
            return
        try:
            self._on_tell(news)
        except Exception as error:
            self.broken = error
            if self._on_broken is not None:
                self._on_broken()
