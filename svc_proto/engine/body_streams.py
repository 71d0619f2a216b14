"""Streamed bodies: of requests as they arrive, of responses as they are produced, and of files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.commands import ReadFile, SendFile
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import Condition
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import ResponseBodyDelegated, ResponseData, StreamId

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.engine.http_channel import HttpChannel

__all__ = ["BodyStream", "FilePart", "ResponseWriter", "copy_file_part", "send_file_part"]

CHUNK_SIZE = 64 * 1024  # bytes read at once from a file that passes through the core
FILE_STEP = 1024 * 1024  # bytes of a file sent by one operation
MAX_STEP_DURATION = 86_400.0  # s for each step; a peer that reads nothing is dropped long before.
WAIT_TIMEOUT = 60.0  # s after which a wait checks its condition again; the connection's own deadlines end it


@fast_frozen
class FilePart:
    """`length` bytes of an open file from `offset` on."""

    handle: int
    offset: int
    length: int


class BodyStream:
    """The body of a request whose route is `streamed`."""

    __slots__ = ("_bell", "_ended", "_engine", "_high", "_on_taken", "_pieces", "_size", "full_since")

    def __init__(self, engine: Engine, high: int, on_taken: Callable[[float], None]) -> None:
        self._engine = engine
        self._high = high
        self._on_taken = on_taken
        self._pieces: list[bytes] = []
        self._size = 0
        self.full_since: float | None = None  # monotonic seconds since which more than `high` bytes are unread
        self._ended = False
        self._bell = Condition(engine)

    # --- for the handler ---

    def read(self) -> Flow[bytes]:
        """Return the bytes received since the last call, after waiting for at least one; empty at the end of the body.

        A body over the route's limit, or one that arrives too slowly, ends the request: the flow is cancelled here.
        """
        while not (self._pieces or self._ended):
            yield from self._bell.wait(self._engine.now.mono + WAIT_TIMEOUT)
        pieces, self._pieces = self._pieces, []
        since, self.full_since, self._size = self.full_since, None, 0
        if since is not None:
            self._on_taken(since)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # --- for the exchange ---

    def feed(self, data: bytes) -> None:
        """Append a received piece and wake the handler; if more than `high` bytes are unread now, set `full_since`."""
        self._pieces.append(data)
        self._size += len(data)
        self._bell.notify_all()
        if self._size > self._high and self.full_since is None:
            self.full_since = self._engine.now.mono

    def end(self) -> None:
        """Mark the body as complete."""
        self._ended = True
        self._bell.notify_all()


class ResponseWriter:
    """Writer for the producer of a `StreamedResponse`.

    `read` is the condition that the channel notifies when it is writable again.
    """

    __slots__ = ("_channel", "_stream", "half_closed", "on_half_close", "read")

    def __init__(self, channel: HttpChannel, stream: StreamId) -> None:
        self._channel = channel
        self._stream = stream
        self.read = Condition(channel.engine)
        self.half_closed = False  # the peer has closed its end, and may have gone
        # set by a producer that writes probes from then on, so that a peer that is gone is noticed
        self.on_half_close: Callable[[], object] | None = None

    def write(self, data: bytes) -> bool:
        """Send a piece; return False, with nothing sent, if the channel is gone.

        If more than `max_unsent` bytes are unsent already, the channel is dropped, and False returned.
        """
        channel = self._channel
        if channel.gone or channel.drop_if_overrun():
            return False
        channel.send_event(ResponseData(self._stream, data))
        return True

    def half_close(self) -> None:
        """Record that the peer has closed its end, and call `on_half_close`, if the producer has set it."""
        self.half_closed = True
        if self.on_half_close is not None:
            self.on_half_close()

    def drained(self) -> Flow[None]:
        """Wait until the channel is writable: unsent bytes are not over the high-water mark, or have fallen again."""
        channel = self._channel
        channel.write_pending()
        while channel.credit.blocked:
            yield from self.read.wait(channel.engine.now.mono + WAIT_TIMEOUT)


def send_file_part(channel: HttpChannel, stream: StreamId, file: FilePart) -> Flow[Failure | None]:
    """Send part of a file, past the core, as the body of the response whose head was just sent.

    Return None when all of it was sent, otherwise a `Failure`.
    """
    engine, offset, left = channel.engine, file.offset, file.length
    channel.conn.send(ResponseBodyDelegated(stream, left))
    channel.write_pending()
    while left:
        n = min(left, FILE_STEP)
        order = SendFile(engine.new_op(), channel.ch, file.handle, offset, n)
        channel.set_file_transfer(True)
        sent = yield from run_operation(engine, order, within=MAX_STEP_DURATION)
        channel.set_file_transfer(False)
        if isinstance(sent, Failure):
            return sent
        offset, left = offset + n, left - n
    return None


def copy_file_part(channel: HttpChannel, writer: ResponseWriter, file: FilePart) -> Flow[Failure | None]:
    """Send part of a file through the core in pieces, for connections that several streams share.

    Return a `Failure` if a read fails or the file is too short, otherwise None.
    """
    engine, offset, left = channel.engine, file.offset, file.length
    while left:
        order = ReadFile(engine.new_op(), file.handle, offset, min(left, CHUNK_SIZE))
        data = yield from run_operation(engine, order, within=channel.limits.write_timeout)
        if isinstance(data, Failure):
            return data
        if not data:
            return Failure(FailureKind.INVALID, "the file is shorter than it was")
        writer.write(data)
        yield from writer.drained()
        offset, left = offset + len(data), left - len(data)
    return None
