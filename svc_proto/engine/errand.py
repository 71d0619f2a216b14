"""A core that runs one flow and exits: how a program makes a few requests on any loop."""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.commands import Ready
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Accepted

__all__ = ["Errand"]


class Errand:
    """A service whose whole life is `plan(engine)`; the number that the flow returns is the exit code."""

    def __init__(self, plan: Callable[[Engine], Flow[int]]) -> None:
        self._plan = plan

    def bind(self, engine: Engine) -> None:
        """Keep the engine."""
        self._engine = engine

    def on_started(self) -> None:
        """Set out."""
        engine = self._engine
        engine.emit(Ready())
        engine.spawn(self._plan(engine), on_done=engine.exit, on_error=self._failed)

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """An errand listens nowhere."""
        return None

    def on_stopping(self) -> None:
        """Drop it."""
        self._engine.exit(1, "stopped")

    def _failed(self, error: Exception) -> None:
        self._engine.exit(70, f"internal error, reference {self._engine.bug(error)}")
