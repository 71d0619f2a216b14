"""What is heard in an audit: the events of a stream, and what the model is asked."""

from __future__ import annotations

import json
from typing import Any

from fuzz.audit import Audit
from svc_proto.wire.events import RequestHead
from svc_proto.wire.sse import EventStreamDecoder

__all__ = ["Events", "Listener"]

Members = dict[str, Any]


class Events:
    """A stream of events as it comes."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Members]] = []
        self.raw: list[str] = []
        self._decoder = EventStreamDecoder()

    def __call__(self, data: bytes) -> None:
        """More of it."""
        for event in self._decoder.receive_data(data):
            self.raw.append(event.data)
            if event.data.startswith("{"):
                self.told.append((event.event, json.loads(event.data)))

    @property
    def names(self) -> list[str]:
        """The events by their names."""
        return [name or str(data.get("event", "")) for name, data in self.told]


class Listener:
    """All that the model is asked until it stops; `question`: when that was said last."""

    def __init__(self, audit: Audit, question: str | None = None) -> None:
        self.asked: list[Members] = []
        self._question = question
        self._there = audit.world.upstream.on_request
        self._there.append(self._hear)

    def _hear(self, head: RequestHead, asked: Members) -> None:
        if self._question in (None, _question_of(asked)):
            self.asked.append(asked)

    def stop(self) -> None:
        """Listen no more."""
        self._there.remove(self._hear)

    def rows(self, place: int = -1) -> list[Members]:
        """What it was given in one of them, its orders apart."""
        return [row for row in self.asked[place]["messages"] if not _orders(row)]


def _orders(row: Members) -> bool:
    return bool(row["role"] == "system")


def _question_of(asked: Members) -> object:
    return next(row["content"] for row in reversed(asked["messages"]) if row["role"] == "user")
