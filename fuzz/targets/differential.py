"""A lane and its law, and whatever is done to both: nobody can tell which of the two is in charge.

Both are fed the same pieces, asked for events equally often and told to say the same. What comes of it is compared
after each step: events, errors with their texts, properties, and the bytes that are to be sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.connection import Connection
from svc_proto.wire.events import Event, StreamId

Law = TypeVar("Law", bound=Connection)
Lane = TypeVar("Lane", bound=Connection)


class LocalMisuseError(Exception):
    """We have said what h11 does not allow: no program goes on after that."""


class DifferentialPair(Generic[Law, Lane]):
    """The law and the lane."""

    properties: ClassVar[tuple[str, ...]] = ("must_close", "paused", "idle", "buffered_bytes", "has_partial_head")

    def __init__(self, law: Law, lane: Lane, stream: int = 1) -> None:
        self.law = law
        self.lane = lane
        self.stream = stream  # of what is under way

    def feed(self, data: bytes) -> None:
        """Bytes come."""
        self.compare(lambda end: end.receive_data(data))

    def end(self) -> None:
        """The peer says no more."""
        self.compare(lambda end: end.receive_eof())

    def next_events(self, n: int = 1) -> Event | None:
        """Ask for some events; the last one."""
        event = None
        for _ in range(n):
            event = self.compare(lambda end: end.next_event())
            if isinstance(event, Event):
                self.on_event(event)
        return event if isinstance(event, Event) else None

    def on_event(self, event: Event) -> None:
        """Both have told it."""

    def send_events(self, *events: Event) -> None:
        """Say events, one by one, up to the first that may not be said."""
        problem = self.compare(lambda end: send_events(end, events))
        if isinstance(problem, str) and problem.startswith("HTTP/1.1 does not allow"):
            raise LocalMisuseError

    def flush(self) -> bytes:
        """What is to be sent."""
        said = self.compare(lambda end: end.data_to_send())
        assert isinstance(said, bytes)
        return said

    def lift_limits(self) -> None:
        """The peer is known."""
        self.compare(lambda end: end.lift_limits(StreamId(self.stream)))

    def compare(self, what: Callable[[Connection], object]) -> object:
        """What comes of it."""
        law, lane = _outcome(what, self.law), _outcome(what, self.lane)
        assert lane == law, f"the lane: {lane!r}, the law: {law!r}"
        self.check()
        return law

    def check(self) -> None:
        """Their properties are the same."""
        for name in self.properties:
            law, lane = getattr(self.law, name), getattr(self.lane, name)
            assert lane == law, f"{name}: the lane: {lane!r}, the law: {law!r}"


def send_events(end: Connection, events: Sequence[Event]) -> str | None:
    """Say events up to the first that may not be said; why not."""
    try:
        for event in events:
            end.send(event)
    except LocalProtocolError as error:
        return str(error)
    return None


def _outcome(what: Callable[[Connection], object], end: Connection) -> object:
    try:
        return what(end)
    except RemoteProtocolError as error:
        return (error.status, error.close_code, error.code, str(error))
