"""Responses read at the reader's pace, with backpressure on the server.

 reader = yield from fetch(engine, "POST", url, into=event_stream(), body=body)   # or `streamed()`
 if isinstance(reader, EventReader):
     try:
         while isinstance(batch := (yield from reader.read()), tuple):
             ...
     finally:
         reader.abandon()

While the limit of unread bytes is exceeded, the connection is not read, or over HTTP/2 the receive window of its stream
is not enlarged. So memory is bounded and the server's writes back up.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from svc_proto.engine.client_channel import ClientChannel, ResponseMode
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import ResponseHead
from svc_proto.wire.sse import MAX_LINE, EventStreamDecoder, ServerSentEvent

__all__ = ["MAX_UNREAD", "SILENCE_TIMEOUT", "BodyReader", "EventReader", "PacedReader", "event_stream", "streamed"]

SILENCE_TIMEOUT = 300.0  # s without a byte, comments included, after which an event stream counts as dead
MAX_UNREAD = 64 * 1024  # bytes or characters from which on the connection is not read
OVERHEAD = 64  # characters that an event counts for besides its data, so that empty ones are bounded too
EVENT_STREAM = b"text/event-stream"
MAX_OBSERVED_EVENT = 4096  # bytes of an event that may be offered to an observer before it is queued
_ONE = re.compile(rb"event: ([a-z._]+)\ndata: ([^\r\n]*)\n\n")
PieceT = TypeVar("PieceT")
BatchT = TypeVar("BatchT")


def streamed() -> ResponseMode[BodyReader]:
    """Return the response mode that reads a 200 or 206 response in pieces; others are returned whole."""
    return ResponseMode(reader=lambda channel, head: BodyReader(channel, head) if head.status in (200, 206) else None)


def event_stream(*, accept: bytes = EVENT_STREAM, longest: int = MAX_LINE) -> ResponseMode[EventReader]:
    """Return the response mode that reads a 200 response of type `text/event-stream` as events.

    Other responses are returned whole. `accept` is sent as the Accept field; a line of the stream has at most `longest`
    characters.
    """

    def reader(channel: ClientChannel, head: ResponseHead) -> EventReader | None:
        is_stream = (head.headers.get(b"content-type") or b"").lower().startswith(EVENT_STREAM)
        return EventReader(channel, head, longest=longest) if is_stream and head.status == 200 else None

    return ResponseMode(accept=((b"accept", accept),), reader=reader)


class PacedReader(ABC, Generic[PieceT, BatchT]):
    """Base of readers that receive a response in pieces."""

    most = MAX_UNREAD  # unread bytes or characters up to which the connection is read
    join: Callable[[list[PieceT]], BatchT]  # makes the result of `read` from the pieces since the last call

    __slots__ = ("_channel", "_end", "_last_data_at", "_over", "_pause_requested", "_pieces", "_unread", "head")

    def __init__(self, channel: ClientChannel, head: ResponseHead) -> None:
        self.head = head
        self._channel = channel
        self._pieces: list[PieceT] = []
        self._unread = 0
        self._pause_requested = False  # a pause was requested
        self._last_data_at = channel.engine.now.mono  # monotonic seconds of the last byte
        self._end: Failure | None = None
        self._over = False

    # --- for the flow ---

    @property
    def gone(self) -> bool:
        """Report whether the reader was abandoned, or its connection is gone."""
        return self._channel.gone

    def abandon(self) -> None:
        """Close the connection: with a FIN after a complete response, if no bytes are unsent, else with a reset."""
        self._channel.disconnect(whole=self._over and self._end is None)

    def disconnect(self) -> None:
        """Close the connection now, with a FIN, unless bytes are unsent: nothing more of the response is needed."""
        self._channel.disconnect(whole=True)

    def set_paused(self, holding: bool) -> None:
        """Pause reading from the connection, or resume it unless too much is unread."""
        self._pause_requested = holding
        self._brake()

    def read(self, *, within: float = SILENCE_TIMEOUT) -> Flow[BatchT | Failure | None]:
        """Return what was received since the last call, at least one piece; None at the end.

        Return a `Failure` if the response broke off, or if nothing was received for `within` seconds.
        """
        engine = self._channel.engine
        begun = engine.now.mono
        while not self._pieces:
            if self._over:
                return self._end
            until = max(begun, self._last_data_at) + within
            if engine.now.mono >= until:
                return Failure(FailureKind.TIMED_OUT, "the stream fell silent")
            yield from wait(self._channel.ticket, until)
        came, self._pieces = self._pieces, []
        self._unread = 0
        self._brake()
        return self.join(came)

    # --- for the channel and the kinds ---

    def feed(self, data: bytes) -> None:
        """Handle received bytes of the body."""
        self._last_data_at = self._channel.engine.now.mono
        came, size = self.collect(data)
        if came:
            self._pieces += came
            self._unread += size
            self._brake()
            self._wake()

    @abstractmethod
    def collect(self, data: bytes) -> tuple[list[PieceT], int]:
        """Return the pieces that `data` completes, and their total size, which counts for the limit of unread data."""

    def finish(self, end: Failure | None) -> None:
        """Mark the response as ended; the first reason counts. Earlier pieces can still be read."""
        if not self._over:
            self._over, self._end = True, end
            self._wake()

    def _wake(self) -> None:
        self._channel.engine.resume(self._channel.ticket, None)

    def _brake(self) -> None:
        self._channel.set_read_paused(self._pause_requested or self._unread > self.most)


class BodyReader(PacedReader[bytes, bytes]):
    """Reader of a response as bytes."""

    most = MAX_UNREAD - 1
    join = b"".join

    __slots__ = ("_tap",)

    def observe(self, listener: Callable[[bytes], bool]) -> None:
        """Register `listener`, which may receive a piece of the body before it is queued for `read`.

        That happens over HTTP/1.1, if a chunk of the body arrives alone, no earlier one is unread, and reading is not
        paused. If `listener` returns True, the piece is not queued.
        """
        self._tap, self._channel.fast_reader = listener, self._show

    def _show(self, data: bytes) -> bool:
        self._last_data_at = self._channel.engine.now.mono
        return not self._pieces and self._tap(data)

    def collect(self, data: bytes) -> tuple[list[bytes], int]:
        """Return `data` as one piece, and its number of bytes."""
        return [data], len(data)


class EventReader(PacedReader[ServerSentEvent, tuple[ServerSentEvent, ...]]):
    """Reader of an event stream."""

    join = tuple
    __slots__ = ("_decoder", "_tap")

    def __init__(self, channel: ClientChannel, head: ResponseHead, *, longest: int = MAX_LINE) -> None:
        super().__init__(channel, head)
        self._decoder = EventStreamDecoder(max_line=longest)

    def observe(self, listener: Callable[[str, str], bool]) -> None:
        """Register `listener`, which may receive an event's type and data before the event is queued for `read`.

        That happens over HTTP/1.1, if a chunk with one event (its type, then one line of data) arrives alone, is not
        long, no earlier event is unread, and reading is not paused. If `listener` returns True, the event is not
        queued.
        """
        self._tap, self._channel.fast_reader = listener, self._show

    def _show(self, data: bytes) -> bool:
        self._last_data_at = self._channel.engine.now.mono
        found = _ONE.fullmatch(data)
        if found is None or self._pieces or len(data) > MAX_OBSERVED_EVENT or not self._decoder.is_between_events:
            return False
        try:
            return self._tap(found[1].decode("ascii"), found[2].decode("utf-8"))
        except UnicodeDecodeError:
            return False

    def collect(self, data: bytes) -> tuple[list[ServerSentEvent], int]:
        """Return the events that `data` completes, and their size: of each one its data and `OVERHEAD`."""
        complete = self._decoder.receive_data(data)
        return complete, sum([len(event.data) for event in complete]) + OVERHEAD * len(complete)
