"""Programs that run in a background thread of the test process, on an event loop of that thread."""

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from runtimes.host.host import Program, Services
from runtimes.loops.waker import HostHandle
from runtimes.net.listener import bind
from runtimes.run import run
from svc_proto.engine.core import Engine, Service

TIMEOUT = 60.0  # s for anything a test waits for; only a busy machine takes long


class BackgroundProgram:
    """Programs that run on a thread of their own; `handle` stops or controls them."""

    def __init__(self, programs: Program | Sequence[Program], runtime: str) -> None:
        self.handle = HostHandle()
        self._outcome: int | BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(programs, runtime), daemon=True)
        self._thread.start()

    def exit_code(self, timeout: float = TIMEOUT) -> int:
        """Wait until the programs end, and return the exit code.

        Raise TimeoutError after `timeout` seconds, or the exception that ended the loop.
        """
        self._thread.join(timeout)
        if self._outcome is None:
            raise TimeoutError("it runs on")
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome

    def _run(self, programs: Program | Sequence[Program], runtime: str) -> None:
        try:
            self._outcome = run(programs, runtime, handle=self.handle, signals=False)
        except BaseException as error:  # raised in `exit_code`
            self._outcome = error


@contextmanager
def running_service(service: Service, runtime: str = "asyncio", *, port: int = 0) -> Iterator[str]:
    """Run a service on 127.0.0.1 and yield its URL once it accepts connections; port 0 selects a free one."""
    listener, ready = bind("127.0.0.1", port), threading.Event()
    core = Engine(service, entropy=os.urandom)
    services = Services(logger=logging.getLogger("tests.support.background_program"))
    beside = BackgroundProgram(Program(core=core, listeners=[listener], services=services, on_ready=ready.set), runtime)
    try:
        assert ready.wait(TIMEOUT)
        yield f"http://127.0.0.1:{listener.address.port}"
    finally:
        beside.handle.stop(1.0)
        beside.exit_code()
