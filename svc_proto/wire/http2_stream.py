"""State of an HTTP/2 stream, and its output that waits for the peer's window."""

from collections import deque

from attrs import define, field

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.events import NO_HEADERS, Headers, RequestHead, StreamId
from svc_proto.wire.websocket import WebSocket

__all__ = ["Http2Stream"]


@define(eq=False)
class Http2Stream:
    """A request and its response, or a WebSocket."""

    id: StreamId
    head: RequestHead
    received_head: bool = False  # the head of the peer's message has come
    received_end: bool = False  # the peer has sent END_STREAM
    sent_head: bool = False  # our head was sent
    sent_end: bool = False  # all of our message was sent
    wrote_end: bool = False  # our END_STREAM is out
    no_body: bool = False  # our response has no body, whatever the handler sends
    reset_after: bool = False  # reset the stream once our END_STREAM is out
    malformed: bool = False  # the request was malformed: the response ends with a reset in place of END_STREAM
    trailers: Headers = NO_HEADERS  # ours
    received_trailers: Headers = NO_HEADERS
    length: int | None = None  # announced bytes of our body that are still to come
    due: int | None = None  # the same of the peer's
    window_debt: int = 0  # received bytes that were not acknowledged yet
    queued: int = 0  # bytes that wait
    buffered_bytes: int = 0  # bytes of memory for its incomplete message
    socket: WebSocket | None = None
    _queue: deque[bytes] = field(factory=deque)

    def queue_data(self, data: bytes) -> None:
        """Queue bytes of the body until the peer's window is open."""
        self._queue.append(data)
        self.queued += len(data)

    def fill(self) -> None:
        """Queue the output of the stream's WebSocket, if it has one."""
        data = b"" if self.socket is None else self.socket.data_to_send()
        if data:
            self.queue_data(data)

    def count(self, data: bytes) -> None:
        """Count a sent piece of our body. Raises `LocalProtocolError` if it exceeds the Content-Length."""
        if self.length is not None:
            self.length -= len(data)
            if self.length < 0:
                raise LocalProtocolError("the body is longer than its Content-Length")

    def ended(self) -> None:
        """Mark our message as complete. Raises `LocalProtocolError` if a body is shorter than its Content-Length."""
        if self.length and not self.no_body:
            raise LocalProtocolError("the body is shorter than its Content-Length")
        self.sent_end = True

    def cut(self, most: int) -> bytes:
        """Remove and return up to `most` queued bytes."""
        pieces: list[bytes] = []
        left = most
        while left and self._queue:
            piece = self._queue.popleft()
            if len(piece) > left:
                self._queue.appendleft(piece[left:])
                piece = piece[:left]
            pieces.append(piece)
            left -= len(piece)
        self.queued -= most - left
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def drop_queue(self) -> None:
        """Drop the queue: the peer will not read it."""
        self._queue.clear()
        self.queued = 0
