"""Reader of the response to a completions request: an event stream, or another text in one piece.

The first bytes of the body decide; where they could be either, `Content-Type` does. Responses compressed
with gzip or deflate are decoded.
"""

from __future__ import annotations

import zlib

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.engine.client_channel import MAX_ANSWER, ClientChannel, ResponseMode
from svc_proto.engine.response_readers import OVERHEAD, PacedReader
from svc_proto.wire.events import Headers, ResponseHead
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent

__all__ = ["CompletionReader", "completion_response", "decompress"]

MAX_LINE = MAX_ANSWER  # characters of one event's data: a picture, or an answer in one piece
EVENT_STREAM = b"text/event-stream"
_FIELDS = (b"data", b"event", b"id", b"retry", b":")  # starts of a line of an event stream
_LONGEST_FIELD = len(b"event")
_BLANK = b"\xef\xbb\xbf \t\r\n"  # a byte order mark, and blanks


def completion_response() -> ResponseMode[CompletionReader]:
    """Return the response mode that reads a 200 response with a `CompletionReader`; others become an `HttpResult`."""
    accept = ((b"accept", b"text/event-stream, application/json"), (b"accept-encoding", b"identity"))

    def reader(channel: ClientChannel, head: ResponseHead) -> CompletionReader | None:
        return CompletionReader(channel, head) if head.status == 200 else None

    return ResponseMode(accept=accept, reader=reader)


class CompletionReader(PacedReader[ServerSentEvent, tuple[ServerSentEvent, ...]]):
    """Reader of events. A response that is no event stream has none: `whole` is its text, once `read` returns None."""

    join = tuple
    __slots__ = ("_begun", "_body", "_decoder", "_inflater", "_is_labelled", "_is_stream")

    def __init__(self, channel: ClientChannel, head: ResponseHead) -> None:
        super().__init__(channel, head)
        self._decoder = EventStreamDecoder(max_line=MAX_LINE)
        self._inflater = _inflater(head.headers)
        self._is_labelled = (head.headers.get(b"content-type") or b"").lower().startswith(EVENT_STREAM)
        self._is_stream: bool | None = None  # None: not known yet
        self._body = bytearray()  # received bytes that are no events

    def collect(self, data: bytes) -> tuple[list[ServerSentEvent], int]:
        """Return the events that `data` completes, and their size: the characters of the data, and `OVERHEAD` for each.

        Raise `RemoteProtocolError` for broken compression, more than `MAX_ANSWER` bytes without an event stream or in
        one compressed piece, or a line or an event that is too long.
        """
        if self._inflater is not None:
            data = _inflate(self._inflater, data, MAX_ANSWER)
        if not self._is_stream:
            self._body += data
            if len(self._body) > MAX_ANSWER:
                raise RemoteProtocolError(f"the answer has more than {MAX_ANSWER} bytes")
            if self._is_stream is None:
                self._is_stream = self._decide()
            if not self._is_stream:
                return [], 0
            data, self._body = bytes(self._body), bytearray()
        complete = self._decoder.receive_data(data)
        return complete, sum([len(event.data) for event in complete]) + OVERHEAD * len(complete)

    @property
    def whole(self) -> str:
        """Return the text of a response that is no event stream."""
        return self._body.decode("utf-8", "replace")

    @property
    def is_stream(self) -> bool:
        """Report whether the response is an event stream; until its first bytes decide, its `Content-Type` does."""
        return self._is_labelled if self._is_stream is None else self._is_stream

    def _decide(self) -> bool | None:
        """Return whether the body is an event stream; None until enough of it is known."""
        start = bytes(self._body.lstrip(_BLANK)[:_LONGEST_FIELD])
        if start.startswith(_FIELDS):
            return True
        if any(field.startswith(start) for field in _FIELDS):
            return None
        return self._is_labelled and not start.startswith((b"{", b"["))


def decompress(headers: Headers, body: bytes) -> bytes:
    """Return a body without its compression.

    A body whose compression is broken or unknown, or whose content is longer than `MAX_ANSWER`, is returned unchanged.
    Of a body that was cut off, the beginning is returned.
    """
    inflater = _inflater(headers)
    try:
        return body if inflater is None else _inflate(inflater, body, MAX_ANSWER)
    except RemoteProtocolError:
        return body


def _inflater(headers: Headers) -> zlib._Decompress | None:
    coding = (headers.get(b"content-encoding") or b"").strip().lower()
    if coding in (b"gzip", b"x-gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    return zlib.decompressobj() if coding == b"deflate" else None


def _inflate(inflater: zlib._Decompress, data: bytes, limit: int) -> bytes:
    try:
        found = inflater.decompress(data, limit)
    except zlib.error as error:
        raise RemoteProtocolError(f"the compressed answer is broken: {error}") from None
    if inflater.unconsumed_tail:
        raise RemoteProtocolError(f"the answer has more than {limit} bytes")
    return found
