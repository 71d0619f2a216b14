"""A core that runs one flow for a command and ends: with what the flow returned, or with one line that says why not."""

from __future__ import annotations

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
PROGRESS_INTERVAL = 1.0  # s after which somebody at a terminal is told what takes so long, and then each second
T = TypeVar("T")


def announce_progress(engine: Engine, text: str) -> None:
    """Say what is waited for from now on; shown only when it takes long."""
    engine.emit(Notify("doing", {"text": text}))


class OneShotService(Generic[T]):
    """A service whose whole life is `plan(engine)`. What it returns is `result` when the exit code is 0.

    With `watched` it emits `Notify("waiting", {"seconds": n})` each second.
    """

    result: T
    error: CliError | None = None  # why there is no result, if it is known

    def __init__(self, plan: Callable[[Engine], Flow[T]], *, watched: bool = False) -> None:
        self._plan = plan
        self._watched = watched
        self._seconds = 0

    def bind(self, engine: Engine) -> None:
        """Keep the engine; make the timer."""
        self._engine = engine
        self._timer = engine.timers.timer(self._tick)

    def on_started(self) -> None:
        """Set out."""
        engine = self._engine
        engine.emit(Ready())
        if self._watched:
            self._timer.set(engine.now.mono + PROGRESS_INTERVAL)
        engine.spawn(self._plan(engine), on_done=self._done, on_error=self._failed)

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """A chore listens nowhere."""
        return None

    def on_stopping(self) -> None:
        """Ctrl-C: drop it. Nothing needs to be said."""
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
