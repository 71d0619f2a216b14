"""A program of a world whose news are heard by people in it."""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.basics.moment import Moment
from svc_proto.boundary import Core
from svc_proto.commands import Command, Notify
from svc_proto.facts import Fact


class EventTap:
    """A core whose news are for the program around it, and for who holds the phone: they may hold what no log may."""

    def __init__(self, core: Core, listeners: list[Callable[[Notify], None]]) -> None:
        self._core = core
        self._listeners = listeners

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        """Pass it on, and tell."""
        kept: list[Command] = []
        for command in self._core.handle(fact, now):
            if not isinstance(command, Notify):
                kept.append(command)
                continue
            for listener in self._listeners:
                listener(command)
        return kept

    def next_deadline(self) -> float | None:
        """Its own."""
        return self._core.next_deadline()
