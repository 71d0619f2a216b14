"""Bodies that are not held in memory as a whole: a request's on its way in, a response's on its way out.

A handler reads a request in pieces. What waits to be read is bounded: over `high_water` bytes the channel is not
read, and the time that this takes is not the peer's. A producer writes a response in pieces and waits for the peer to
have read them; one that does not wait fills memory, so past `max_unsent` bytes the channel is dropped. A file goes
past the core, a part at a time, and `Sent` tells how it gets on: who takes nothing for `write_timeout` is dropped, who
takes a little is not.
"""

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

CHUNK_SIZE = 64 * 1024  # bytes of a file that are read at once where it passes the core
FILE_STEP = 1024 * 1024  # bytes of a file sent by one operation
MAX_STEP_DURATION = (
    86_400.0  # s for each of them, a little at a time; who takes nothing meanwhile is dropped long before
)
WAIT_TIMEOUT = 60.0  # s after which a wait looks again; the connection's own deadlines end it


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
        self.full_since: float | None = None  # from when on more waits to be read than should
        self._ended = False
        self._bell = Condition(engine)

    # --- for the handler ---

    def read(self) -> Flow[bytes]:
        """What has come since the last call, at least one byte; empty at the end of the body, and ever after.

        A body over the route's limit, and one that comes too slowly, ends the request: this does not return then.
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
        """A piece came."""
        self._pieces.append(data)
        self._size += len(data)
        self._bell.notify_all()
        if self._size > self._high and self.full_since is None:
            self.full_since = self._engine.now.mono

    def end(self) -> None:
        """The body has ended."""
        self._ended = True
        self._bell.notify_all()


class ResponseWriter:
    """What the producer of a `StreamedResponse` response writes to; the exchange rings `read` when its channel is
    writable."""

    __slots__ = ("_channel", "_stream", "read")

    def __init__(self, channel: HttpChannel, stream: StreamId) -> None:
        self._channel = channel
        self._stream = stream
        self.read = Condition(channel.engine)

    def write(self, data: bytes) -> bool:
        """Send a piece; False when nobody will read it, and nothing was sent."""
        channel = self._channel
        if channel.gone or channel.drop_if_overrun():
            return False
        channel.send_event(ResponseData(self._stream, data))
        return True

    def drained(self) -> Flow[None]:
        """Wait until the peer has read enough of what was written; at once if it has."""
        channel = self._channel
        channel.write_pending()
        while channel.credit.blocked:
            yield from self.read.wait(channel.engine.now.mono + WAIT_TIMEOUT)


def send_file_part(channel: HttpChannel, stream: StreamId, file: FilePart) -> Flow[Failure | None]:
    """Send a part of a file as the body of the response whose head was just said. A `Failure` if not all of it left."""
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
    """The same through the core, a piece at a time: where others talk on the same connection."""
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
