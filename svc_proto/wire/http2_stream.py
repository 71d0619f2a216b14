"""What is known of one HTTP/2 stream, and what waits there for the peer to open its window."""

from __future__ import annotations

from collections import deque

from attrs import define, field

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.events import NO_HEADERS, Headers, RequestHead, StreamId
from svc_proto.wire.websocket import WebSocket

__all__ = ["Http2Stream"]


@define(eq=False)
class Http2Stream:
    """One request and its response, or one WebSocket."""

    id: StreamId
    head: RequestHead
    received_head: bool = False  # the head of the peer's message has come
    received_end: bool = False  # the peer has sent END_STREAM
    sent_head: bool = False  # that of ours was said
    sent_end: bool = False  # and all of it
    wrote_end: bool = False  # and our END_STREAM is out
    no_body: bool = False  # our response has no body, whatever the handler says
    reset_after: bool = False  # reset the stream once our END_STREAM is out
    malformed: bool = False  # the request was: the answer ends with a reset in place of END_STREAM
    trailers: Headers = NO_HEADERS  # ours
    received_trailers: Headers = NO_HEADERS
    length: int | None = None  # of our body that was announced, and is still to come
    due: int | None = None  # the same of the peer's
    window_debt: int = 0  # bytes that the peer has sent and nobody has taken yet
    queued: int = 0  # bytes that wait
    unauthenticated: bool = False  # nobody has vouched for the peer of our WebSocket
    buffered_bytes: int = 0  # bytes of memory for a message of it that is not complete, while it is strange
    socket: WebSocket | None = None
    _queue: deque[bytes] = field(factory=deque)

    def queue_data(self, data: bytes) -> None:
        """Have bytes wait."""
        self._queue.append(data)
        self.queued += len(data)

    def fill(self) -> None:
        """Have what our WebSocket has to say wait, if there is one."""
        data = b"" if self.socket is None else self.socket.data_to_send()
        if data:
            self.queue_data(data)

    def count(self, data: bytes) -> None:
        """A piece of our body was said. Raises `LocalProtocolError` if it is over its Content-Length."""
        if self.length is not None:
            self.length -= len(data)
            if self.length < 0:
                raise LocalProtocolError("the body is longer than its Content-Length")

    def ended(self) -> None:
        """All of our message was said. Raises `LocalProtocolError` if it is short of its Content-Length."""
        if self.length and not self.no_body:
            raise LocalProtocolError("the body is shorter than its Content-Length")
        self.sent_end = True

    def cut(self, most: int) -> bytes:
        """Up to that many of the bytes that wait, at least one if any does."""
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
        """Nobody will read what waits."""
        self._queue.clear()
        self.queued = 0
