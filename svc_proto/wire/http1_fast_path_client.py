"""Fast path of a client's HTTP/1.1 connection: one usual request and response; the rest goes to the reference.

As in `http1_fast_path_server`, the reference implementation is `Http1Connection`, which uses h11. It is made when it is
first needed. It receives what was sent (a placeholder body of the same length), the response so far, and the reader of
a chunked body that is in progress. So it is in the state that it would have had from the beginning. It stays until the
end, since a connection has only one request.

A call uses the fast path if all of this holds (section numbers of RFC 9112):
3, 5 the request has the form that `http1_fast_path_server` reads, `Host` as its first field, `Connection: close`
6    its body is as long as `Content-Length` states, and is sent without trailers
4    the whole head of the response comes in one piece, after the complete request, which is no HEAD: HTTP/1.1, a
     status from 200 on that may have a body, each field `name: value`, with one blank and visible ASCII, none comes
     twice, and none is `Expect`, `TE`, `Trailer` or `Upgrade`; it is within the limits of a head
6    the body is chunked, which `http1_chunks` reads, or in the same piece as the head, with its length
"""

import re

from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.connection import Connection, Role
from svc_proto.wire.events import (
    Event,
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
)
from svc_proto.wire.http1 import BODILESS, Http1Connection
from svc_proto.wire.http1_chunks import ChunkedBodyReader
from svc_proto.wire.http1_fast_path_server import FIELDS, MAX_DIGITS, SIMPLE_REQUEST, SLOW_PATH_FIELDS
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits

__all__ = ["FastPathClientConnection"]

_RESPONSE = re.compile(
    rb"HTTP/1\.1 ([2-9][0-9][0-9]) [ -~]*+\r\n((?:[-!#$%&'*+.^_`|~0-9A-Za-z]++: [!-~][ -~]*+(?<! )\r\n)+)\r\n"
)
_NO_MORE = SLOW_PATH_FIELDS - {b"transfer-encoding"}
LAST_CHUNK = b"0\r\n\r\n"  # without trailers
ONLY = StreamId(1)


class FastPathClientConnection(Connection):
    """A client's connection for one request; `wire.connection.Connection` describes its use."""

    __slots__ = (
        "_body_left",
        "_body_sent",
        "_chunks",
        "_entropy",
        "_events_returned",
        "_found",
        "_limits",
        "_out",
        "_over",
        "_raw",
        "_reference",
        "_request",
        "_request_complete",
    )

    _request: RequestHead  # once it was sent
    _found: tuple[ResponseHead, int, bool]  # of `_raw`: the head, its end, whether the body is chunked

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, entropy: Entropy) -> None:
        self._limits = limits
        self._entropy = entropy
        self._reference: Http1Connection | None = None  # the reference implementation, in charge once it exists
        self._body_sent = -1  # bytes of the request's body; negative before a request
        self._body_left = -1  # bytes of it that are to follow
        self._request_complete = False  # the request is complete
        self._raw = b""  # the piece with the head; once that was returned and chunks follow, the head alone
        self._events_returned = 0  # number of its events returned
        self._chunks: ChunkedBodyReader | None = None  # the body in progress, if it is chunked
        self._over = False
        self._out: list[bytes] = []

    # --- properties ---

    @property
    def must_close(self) -> bool:
        """Implement `Connection.must_close`: report whether no more events can be sent."""
        return self._over if self._reference is None else self._reference.must_close

    @property
    def paused(self) -> bool:
        """Implement `Connection.paused`: report whether bytes wait behind an unanswered request."""
        return self._reference is not None and self._reference.paused

    @property
    def idle(self) -> bool:
        """Implement `Connection.idle`: report whether the next request may begin, and none of its bytes has arrived."""
        return self._body_sent < 0 if self._reference is None else self._reference.idle

    @property
    def buffered_bytes(self) -> int:
        """Implement `Connection.buffered_bytes`: memory for unreturned input, and for a WebSocket's inflater."""
        if self._reference is not None:
            return self._reference.buffered_bytes
        if self._chunks is not None:
            return len(self._chunks.trailing_data)
        if not self._events_returned:
            return len(self._raw)
        return len(self._raw) - self._found[1] if self._events_returned == 1 and self._raw else 0

    @property
    def has_partial_head(self) -> bool:
        """Implement `Connection.has_partial_head`: report whether a head has begun to arrive and is not complete."""
        return (
            bool(self._raw) and not self._events_returned
            if self._reference is None
            else self._reference.has_partial_head
        )

    # --- bytes ---

    def receive_data(self, data: bytes) -> None:
        """Implement `Connection.receive_data`; bytes after the end are dropped."""
        if self._reference is None:
            if self._over or not data:
                return
            if self._chunks is not None:
                self._chunks.receive_data(data)
                return
            if self._request_complete and not self._raw:
                found = self._read(data)
                if found is not None:
                    self._raw, self._found = data, found
                    return
        self._obey().receive_data(data)

    def try_whole_body(self, data: bytes) -> bytes | None:
        """Return the content of `data` if it is one plain chunk of a chunked body and no input is pending; else None.

        The state does not change. Pass `data` to `receive_data` only if the content is not used.
        """
        if self._reference is not None:
            return self._reference.try_whole_body(data)
        return None if self._chunks is None else self._chunks.whole(data)

    def receive_eof(self) -> None:
        """Implement `Connection.receive_eof`: mark the end of the peer's bytes."""
        if not self._over or self._reference is not None:
            self._obey().receive_eof()

    def lift_limits(self, stream: StreamId) -> None:
        """Implement `Connection.lift_limits`: end the special message limit of a WebSocket."""
        if self._reference is not None:
            self._reference.lift_limits(stream)

    def release(self) -> None:
        """Implement `Connection.release`: release what the cycle collector would otherwise have to find."""
        if self._reference is not None:
            self._reference.release()

    def data_to_send(self) -> bytes:
        """Implement `Connection.data_to_send`: return the queued bytes, and drop them."""
        out, self._out = self._out, []
        if self._reference is not None:
            out.append(self._reference.data_to_send())
        return b"".join(out)

    # --- events ---

    def next_event(self) -> Event | None:
        """Implement `Connection.next_event`: return the peer's next event, or None."""
        if self._reference is not None:
            return self._reference.next_event()
        if self._chunks is not None:
            return self._next_chunks(self._chunks)
        raw = self._raw
        if not raw:
            return None
        head, end, chunked = self._found
        self._events_returned += 1
        if self._events_returned == 1:
            if chunked:
                self._chunks = ChunkedBodyReader(self._limits)
                self._chunks.receive_data(raw[end:])
                self._raw = raw[:end]
            return head
        if self._events_returned == 2 and len(raw) > end:
            return ResponseData(ONLY, raw[end:])
        self._end()
        return ResponseEnd(ONLY)

    def send(self, event: Event) -> None:
        """Implement `Connection.send`: queue an event of this end."""
        if self._reference is None:
            if self._over:
                raise LocalProtocolError(f"{type(event).__name__}: the connection is over")
            if event.stream == ONLY and self._send_fast(event):
                return
        self._obey().send(event)

    def _send_fast(self, event: Event) -> bool:
        """Send a part of the request; return False, with nothing sent, if it needs the reference implementation."""
        if type(event) is RequestData:
            if len(event.data) > self._body_left:
                return False
            self._body_left -= len(event.data)
            self._out.append(event.data)
        elif type(event) is RequestEnd:
            if self._body_left or self._request_complete or event.trailers:
                return False
            self._request_complete = True
        elif type(event) is RequestHead and self._body_sent < 0:
            found = _request_head(event)
            if found is None:
                return False
            block, self._body_sent = found
            self._body_left = self._body_sent
            self._request = event
            self._out.append(block)
        else:
            return False
        return True

    def _read(self, data: bytes) -> tuple[ResponseHead, int, bool] | None:
        """Parse the head of a plain response; return it, its end, and whether the body is chunked.

        Return None if the response is not plain.
        """
        found = _RESPONSE.match(data, 0, self._limits.max_head)
        if found is None:
            return None
        status, fields = int(found[1]), [(name.lower(), value) for name, value in FIELDS(found[2])]
        by_name = dict(fields)
        if (
            len(by_name) != len(fields)
            or len(fields) > self._limits.max_fields
            or not _NO_MORE.isdisjoint(by_name)
            or status in BODILESS
            or self._request.method == "HEAD"
        ):
            return None
        coding, length = by_name.get(b"transfer-encoding"), by_name.get(b"content-length", b"")
        if coding is None:
            if not length.isdigit() or len(length) > MAX_DIGITS or int(length) != len(data) - found.end():
                return None
        elif coding != b"chunked" or length:
            return None
        return ResponseHead(ONLY, status, Headers(fields), "1.1"), found.end(), coding is not None

    def _next_chunks(self, chunks: ChunkedBodyReader) -> Event | None:
        try:
            data = chunks.read()
        except RemoteProtocolError:
            self._end()
            raise
        if data:
            return ResponseData(ONLY, data)
        if not chunks.finished:
            return None
        if chunks.last_chunk != LAST_CHUNK:
            return self._obey().next_event()
        self._end()
        return ResponseEnd(ONLY)

    # --- the reference implementation ---

    def _obey(self) -> Http1Connection:
        """Return the reference implementation, in the state that it would have now."""
        reference = self._reference
        if reference is None:
            reference = self._reference = Http1Connection(Role.CLIENT, limits=self._limits, entropy=self._entropy)
            if self._body_sent >= 0:
                reference.send(self._request)
                if self._body_sent > self._body_left:
                    reference.send(RequestData(ONLY, bytes(self._body_sent - self._body_left)))
                if self._request_complete:
                    reference.send(RequestEnd(ONLY))
                reference.data_to_send()  # it was sent already
            reference.receive_data(self._raw)
            for _ in range(self._events_returned):
                reference.next_event()
            if self._chunks is not None:
                reference.resume_body(self._chunks)
            self._end()
        return reference

    def _end(self) -> None:
        self._over = True
        self._raw = b""
        self._chunks = None


def _request_head(head: RequestHead) -> tuple[bytes, int] | None:
    """Return the encoded head of a request and the length of its body; None if it is not plain."""
    fields = head.headers
    by_name = {name.lower(): value for name, value in fields}
    if head.websocket or not fields or fields[0][0].lower() != b"host" or len(by_name) != len(fields):
        return None
    first = f"{head.method} {head.target} HTTP/1.1\r\n".encode("utf-8", "surrogatepass")
    block = b"%b%b\r\n" % (first, b"".join(b"%b: %b\r\n" % field for field in fields))
    found, length = SIMPLE_REQUEST.fullmatch(block), by_name.get(b"content-length", b"0")
    if (
        found is None
        or FIELDS(found[4]) != list(fields)  # no value contains another line
        or not SLOW_PATH_FIELDS.isdisjoint(by_name)
        or by_name.get(b"connection") != b"close"
        or not length.isdigit()
        or len(length) > MAX_DIGITS
    ):
        return None
    return block, int(length)
