"""Comparison of a fast path with its reference implementation under equal calls.

Both get the same pieces, the same number of calls for events, and the same events to send. After each step the results
are compared: events, errors with texts, properties, and bytes to send.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.connection import Connection
from svc_proto.wire.events import Event, StreamId

Reference = TypeVar("Reference", bound=Connection)
FastPath = TypeVar("FastPath", bound=Connection)


class LocalMisuseError(Exception):
    """Error: our side has sent an event that h11 does not allow."""


class DifferentialPair(Generic[Reference, FastPath]):
    """A reference implementation and its fast path, which get the same calls and must have the same results."""

    properties: ClassVar[tuple[str, ...]] = ("must_close", "paused", "idle", "buffered_bytes", "has_partial_head")

    def __init__(self, reference: Reference, fast_path: FastPath, stream: int = 1) -> None:
        self.reference = reference
        self.fast_path = fast_path
        self.stream = stream  # the current stream

    def feed(self, data: bytes) -> None:
        """Pass received bytes to both implementations."""
        self.compare(lambda end: end.receive_data(data))

    def end(self) -> None:
        """Signal the end of the peer's data to both implementations."""
        self.compare(lambda end: end.receive_eof())

    def next_events(self, n: int = 1) -> Event | None:
        """Take the next event `n` times; return the last result if it is an event, else None."""
        event = None
        for _ in range(n):
            event = self.compare(lambda end: end.next_event())
            if isinstance(event, Event):
                self.on_event(event)
        return event if isinstance(event, Event) else None

    def on_event(self, event: Event) -> None:
        """Receive an event that both implementations have returned. Does nothing here."""

    def send_events(self, *events: Event) -> None:
        """Send events, one by one, up to the first that is not allowed; `LocalMisuseError` if HTTP/1.1 forbids it."""
        problem = self.compare(lambda end: send_events(end, events))
        if isinstance(problem, str) and problem.startswith("HTTP/1.1 does not allow"):
            raise LocalMisuseError

    def flush(self) -> bytes:
        """Return the bytes that both implementations want to send."""
        said = self.compare(lambda end: end.data_to_send())
        assert isinstance(said, bytes)
        return said

    def lift_limits(self) -> None:
        """Lift the limits of an unauthenticated peer in both implementations."""
        self.compare(lambda end: end.lift_limits(StreamId(self.stream)))

    def compare(self, what: Callable[[Connection], object]) -> object:
        """Call a function with both ends, check that outcomes and properties are equal, and return the outcome."""
        reference, fast_path = _outcome(what, self.reference), _outcome(what, self.fast_path)
        assert fast_path == reference, f"the fast path: {fast_path!r}, the reference: {reference!r}"
        self.check()
        return reference

    def check(self) -> None:
        """Check that reference implementation and fast path have equal properties."""
        for name in self.properties:
            reference, fast_path = getattr(self.reference, name), getattr(self.fast_path, name)
            assert fast_path == reference, f"{name}: the fast path: {fast_path!r}, the reference: {reference!r}"


def send_events(end: Connection, events: Sequence[Event]) -> str | None:
    """Send events up to the first that is not allowed; return the reason, or None if all are."""
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
