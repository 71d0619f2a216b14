"""Service that runs one flow for a command and exits, with the flow's result or a one-line error."""

from collections.abc import Callable
from typing import Generic, TypeVar

from svc_proto.cli.error_text import cli_error_of
from svc_proto.cli.errors import CliError
from svc_proto.commands import Notify, Ready
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Accepted
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["INTERRUPTED", "OneShotService", "announce_progress"]

INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it
PROGRESS_INTERVAL = 1.0  # s after which a slow step is reported at a terminal, and then each second
T = TypeVar("T")


def announce_progress(engine: Engine, text: str) -> None:
    """Announce the current step, which the program can show while the user waits."""
    engine.emit(Notify("doing", {"text": text}))


class OneShotService(Generic[T]):
    """Service that runs `plan(engine)` once. When the flow returns, its value becomes `result`; the exit code is 0.
    With `watched` it emits `Notify("waiting", {"seconds": n})` each second.
    """

    result: T
    error: CliError | None = None  # the expected error, if there is no result

    def __init__(self, plan: Callable[[Engine], Flow[T]], *, watched: bool = False) -> None:
        self._plan = plan
        self._watched = watched
        self._seconds = 0

    def bind(self, engine: Engine) -> None:
        """Store the engine, and make the timer."""
        self._engine = engine
        self._timer = engine.timers.timer(self._tick)

    def on_started(self) -> None:
        """Emit `Ready`, and start the flow."""
        engine = self._engine
        engine.emit(Ready())
        if self._watched:
            self._timer.set(engine.now.mono + PROGRESS_INTERVAL)
        engine.spawn(self._plan(engine), on_done=self._done, on_error=self._failed)

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Return None: the service accepts no connection."""
        return None

    def on_stopping(self) -> None:
        """Exit on Ctrl-C, without a message."""
        self._engine.exit(INTERRUPTED)

    def _tick(self) -> None:
        self._seconds += 1
        self._engine.emit(Notify("waiting", {"seconds": self._seconds}))
        self._timer.set(self._engine.now.mono + PROGRESS_INTERVAL)

    def _done(self, result: T) -> None:
        self.result = result
        self._engine.exit(0)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, ServiceCallError):
            error = cli_error_of(error)
        if isinstance(error, CliError):
            self.error = error
            self._engine.exit(error.code, str(error))
        else:
            self._engine.exit(70, f"internal error, reference {self._engine.log_bug(error)}")
