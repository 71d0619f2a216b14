"""Program of a simulation whose `Notify` commands the actors receive."""

from collections.abc import Callable

from svc_proto.basics.moment import Moment
from svc_proto.boundary import Core
from svc_proto.commands import Command, Notify
from svc_proto.facts import Fact


class EventTap:
    """Core whose `Notify` commands, which may contain secrets, go to listeners instead of the runtime."""

    def __init__(self, core: Core, listeners: list[Callable[[Notify], None]]) -> None:
        self._core = core
        self._listeners = listeners

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        """Handle a fact; remove the `Notify` commands, and call the listeners."""
        kept: list[Command] = []
        for command in self._core.handle(fact, now):
            if not isinstance(command, Notify):
                kept.append(command)
                continue
            for listener in self._listeners:
                listener(command)
        return kept

    def next_deadline(self) -> float | None:
        """Return the core's deadline."""
        return self._core.next_deadline()
