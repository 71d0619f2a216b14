"""Fast path of a server's HTTP/1.1: whole requests of the strictest form, and whole or chunked responses.

The reference implementation is `Http1Connection`, which uses h11. Nearly all requests need none of its checks: they
arrive in one piece and are unambiguous. Such a request is parsed here by a few expressions, and answered with a head
that was checked once.

Rules
- The reference is made when it is needed, at the start of a message or within it, and handles the rest of that message.
  It receives the number of the last request and the bytes of the message in progress, and is called as often as the
  fast path was. So its state is what it would have been from the beginning. It is dropped when the message is over and
  no more input is pending.
- The fast path refuses nothing. All other input is left to the reference, and so are an end of input within a message
  and every byte after a message that was not answered.
- The two differ only in time: `tests/wire/test_http1_fast_path_server.py` and the fuzz target `fast_path` compare their
  events, bytes and properties.

A request is plain if all of this holds (section numbers of RFC 9112):
     it is one received piece, from its first byte to its last, and no other of this connection is in progress
3    one of seven methods, a target in origin form, HTTP/1.1 or 1.0
5    each field is `name: value`, with one blank, visible ASCII, and no blank at either end of the value
3.2  one `Host` that is a name, or a name and a port; no address in brackets
6    at most one `Content-Length`, of digits, and a body of that many bytes; else none
     no field comes twice; none is `Expect`, `TE`, `Trailer`, `Transfer-Encoding` or `Upgrade`, and `Connection` is
     absent, `keep-alive` or `close`
     it is within the limits of a head

A response is plain if h11 would change nothing in its head, and it is whole, or begins with `date`, has no length and
ends without trailers. The latter is sent in chunks (section 7.1), each event as it comes, to clients of HTTP/1.1.
Meanwhile the request is kept for the reference, so it has to be small.

After a request with `Connection: close`, or of HTTP/1.0, the response has `Connection: close` and the connection is
over (section 9.6).
"""

import re
from functools import lru_cache
from typing import TypeAlias

import attrs

from svc_proto.basics.entropy import Entropy
from svc_proto.wire.authority import AUTHORITY
from svc_proto.wire.connection import Role, ServerConnection
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
from svc_proto.wire.http1_responses import REASONS
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.websocket import WebSocket

__all__ = ["FIELDS", "SLOW_PATH_FIELDS", "MAX_DIGITS", "MAX_SHARED", "SIMPLE_REQUEST", "FastPathServerConnection"]

_LINE = rb"(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/[!-~]*+) HTTP/1\.([01])\r\n"
_BLOCK = rb"((?:[-!#$%&'*+.^_`|~0-9A-Za-z]++: [!-~][ -~]*+(?<! )\r\n)+)\r\n"
SIMPLE_REQUEST = re.compile(_LINE + _BLOCK)
_line = re.compile(_LINE).match
_block = re.compile(_BLOCK)
FIELDS = re.compile(rb"([^:]++): ([^\r]*+)\r\n").findall  # of a block that `SIMPLE_REQUEST` has matched
_HOST = re.compile(AUTHORITY)
_VALUE = re.compile(rb"[!-~](?:[ -~]*[!-~])?")
SLOW_PATH_FIELDS = frozenset({b"expect", b"te", b"trailer", b"transfer-encoding", b"upgrade"})
FRAMING = frozenset({b"connection", b"content-length", b"host", b"transfer-encoding"})  # set by h11 itself
CLOSES = {b"keep-alive": False, b"close": True}  # values of `Connection`, in lower case
CLOSE = b"Connection: close\r\n"
LAST_REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
MAX_DIGITS = 18  # of a Content-Length
MAX_BLOCK = 2048  # bytes of fields in a cached head
MAX_BLOCKS = 256  # cached heads of a process
MAX_CACHED_BLOCK = 16_384  # bytes of a request that are kept while its response is sent in chunks
MAX_AGAIN, MAX_FIELDS_AGAIN = 1024, 16  # bytes and fields of a request's head that are kept for the next one
# fields without a credential: the fields of a request that has no others are kept for other connections, too
SHARED_FIELDS = frozenset({b"accept", b"accept-encoding", b"connection", b"host", b"user-agent"})
MAX_SHARED = 64  # requests of a process whose fields are kept
PENDING, HEAD_RETURNED, BODY_RETURNED, RETURNED = range(4)  # how many events of a message were returned

# bytes of the fields of a request, the fields, the length of its body, whether the connection closes after it
KnownFields: TypeAlias = tuple[bytes, Headers, int, bool]
_shared: dict[bytes, KnownFields] = {}  # fields that connections share, by their bytes


class FastPathServerConnection(ServerConnection):
    """A server's HTTP/1.1 connection; `wire.connection.ServerConnection` describes its use."""

    __slots__ = (
        "_body",
        "_closes",
        "_deflate",
        "_ended",
        "_entropy",
        "_eof",
        "_events_returned",
        "_head",
        "_known",
        "_limits",
        "_out",
        "_over",
        "_raw",
        "_reference",
        "_sent_head",
        "_stream",
    )

    _head: RequestHead  # both are set while there is a message in `_raw`
    _body: bytes

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, entropy: Entropy, deflate: bool = True) -> None:
        self._limits = limits
        self._entropy = entropy
        self._deflate = deflate
        self._reference: Http1Connection | None = None  # the reference implementation, in charge while it exists
        self._stream = StreamId(0)  # of the last request
        self._raw = b""  # the message in progress, if the fast path handles it
        # the fields of the last request, which clients mostly repeat
        self._known: KnownFields | None = None
        self._closes = False  # the message in progress is the last one of the connection
        self._over = False  # the last one was answered
        self._eof = False  # the peer's bytes ended between two requests
        self._ended = False  # and `next_event` was called since
        self._events_returned = PENDING
        self._sent_head: ResponseHead | None = None  # the response in progress, if the fast path sends it in chunks
        self._out: list[bytes] = []

    # --- a whole turn ---

    def receive_simple_request(self, data: bytes) -> tuple[RequestHead, bytes] | None:
        """Parse a plain request with its body, in place of all its events.

        Return None for anything else, while earlier input is in progress, and after the last request; `receive_data`
        has to be called then.
        """
        if self._reference is not None or self._raw or self._over or self._eof:
            return None
        line = _line(data)
        if line is None:
            return None
        at, known = line.end(), self._known
        if known is None:
            known = self._known = _shared_fields(data[at : at + MAX_AGAIN], self._limits)
        if known is None or not data.startswith(known[0], at):
            known = self._read(data, at)
            if known is None:
                return None
        block, headers, length, closes = known
        end = at + len(block)
        if end > self._limits.max_head or len(data) - end != length:
            return None
        method, target, minor = line.groups()
        self._stream = stream = StreamId(self._stream + 1)
        head = RequestHead(stream, method.decode("ascii"), target.decode("ascii"), headers)
        if minor == b"0":
            head, closes = attrs.evolve(head, http_version="1.0"), True
        self._head = head
        self._closes = closes
        self._body = body = data[end:]
        self._raw = data
        self._events_returned = RETURNED
        return head, body

    def replay_as_events(self) -> None:
        """Make `next_event` return the events after the head of the request from `receive_simple_request`."""
        self._events_returned = HEAD_RETURNED

    def send_simple_response(
        self, stream: StreamId, status: int, date: bytes, fields: tuple[tuple[bytes, bytes], ...], body: bytes
    ) -> bool:
        """Implement `ServerConnection.send_simple_response`; False if it needs the reference implementation."""
        if not self._raw or self._events_returned != RETURNED or stream != self._stream or self._sent_head is not None:
            return False
        head = _response_head(status, fields)
        if head is None:
            return False
        before, after = head
        close = CLOSE if self._closes else b""
        if status in BODILESS:
            self._out.append(b"%b%b%b%b\r\n" % (before, date, after, close))
        else:
            shown = b"" if self._head.method == "HEAD" else body
            self._out.append(b"%b%b%bcontent-length: %d\r\n%b\r\n%b" % (before, date, after, len(body), close, shown))
        self._over = self._closes
        self._raw = self._body = b""
        del self._head
        return True

    # --- properties ---

    @property
    def must_close(self) -> bool:
        """Implement `Connection.must_close`: report whether no more events can be sent."""
        return self._over or self._ended if self._reference is None else self._reference.must_close

    @property
    def paused(self) -> bool:
        """Implement `Connection.paused`: report whether bytes wait behind an unanswered request."""
        return self._reference is not None and self._reference.paused

    @property
    def idle(self) -> bool:
        """Implement `Connection.idle`: report whether the next request may begin, and none of its bytes has arrived."""
        if self._reference is not None:
            return self._reference.idle
        return not (self._raw or self._over or self._eof)

    @property
    def buffered_bytes(self) -> int:
        """Implement `Connection.buffered_bytes`: memory for unreturned input, and for a WebSocket's inflater."""
        if self._reference is not None:
            return self._reference.buffered_bytes
        if self._raw and self._events_returned < BODY_RETURNED:
            return len(self._raw if self._events_returned == PENDING else self._body)
        return 0

    @property
    def has_partial_head(self) -> bool:
        """Implement `Connection.has_partial_head`: report whether a head has begun to arrive and is not complete."""
        return (
            bool(self._raw) and self._events_returned == PENDING
            if self._reference is None
            else self._reference.has_partial_head
        )

    # --- bytes ---

    def receive_data(self, data: bytes) -> None:
        """Implement `Connection.receive_data`; bytes after the end are dropped."""
        if self._reference is not None:
            self._reference.receive_data(data)
        elif self.receive_simple_request(data) is not None:
            self._events_returned = PENDING
        elif data and not (self._over or self._eof):
            self._obey().receive_data(data)

    def receive_eof(self) -> None:
        """Implement `Connection.receive_eof`: mark the end of the peer's bytes."""
        if self._reference is None and not (self._raw or self._over):
            self._eof = True
        else:
            self._obey().receive_eof()

    def lift_limits(self, stream: StreamId) -> None:
        """Implement `Connection.lift_limits`: end the special message limit of a WebSocket."""
        if self._reference is not None:
            self._reference.lift_limits(stream)

    def detach_websocket(self) -> WebSocket | None:
        """Return the WebSocket that this connection has become, or None; pending output stays here."""
        return self._obey().detach_websocket()

    def release(self) -> None:
        """Implement `Connection.release`: release what the cycle collector would otherwise have to find."""
        if self._reference is not None:
            self._reference.release()

    def data_to_send(self) -> bytes:
        """Implement `Connection.data_to_send`: return the queued bytes, and drop them."""
        out = self._out
        if self._reference is not None:
            out.append(self._reference.data_to_send())
        elif not out:
            return b""
        self._out = []
        return out[0] if len(out) == 1 else b"".join(out)

    # --- events ---

    def next_event(self) -> Event | None:
        """Implement `Connection.next_event`: return the peer's next event, or None."""
        reference = self._reference
        if reference is not None:
            event = reference.next_event()
            if type(event) is RequestHead:
                self._stream = event.stream
            elif type(event) is RequestEnd:
                self._dismiss(reference)
            return event
        returned = self._events_returned
        if not self._raw or returned == RETURNED:
            self._ended = self._eof
            return None
        self._events_returned = returned + 1
        if returned == PENDING:
            return self._head
        if returned == HEAD_RETURNED and self._body:
            return RequestData(self._stream, self._body)
        self._events_returned = RETURNED
        return RequestEnd(self._stream)

    def send(self, event: Event) -> None:
        """Implement `Connection.send`: queue an event of this end."""
        if self._raw and self._events_returned == RETURNED and event.stream == self._stream and self._send_fast(event):
            return
        reference = self._obey()
        reference.send(event)
        if type(event) is ResponseEnd:
            self._dismiss(reference)

    def _send_fast(self, event: Event) -> bool:
        """Send a part of a chunked response; return False, with nothing sent, if that is left to the reference.

        The reference is `Http1Connection`.
        """
        if self._sent_head is None:
            if type(event) is not ResponseHead or len(self._raw) > MAX_CACHED_BLOCK:
                return False
            if self._head.method == "HEAD" or self._head.http_version == "1.0":
                return False
            block = _chunked_head(event, CLOSE if self._closes else b"")
            if block is None:
                return False
            self._out.append(block)
            self._sent_head = event
        elif type(event) is ResponseData:
            if event.data:
                self._out += (b"%x\r\n" % len(event.data), event.data, b"\r\n")
        elif type(event) is ResponseEnd and not event.trailers:
            self._out.append(b"0\r\n\r\n")
            self._over = self._closes
            self._forget()
        else:
            return False
        return True

    def _read(self, data: bytes, at: int) -> KnownFields | None:
        """Parse the fields at `at`; return None if they are not plain.

        Small ones are kept for the next request, and without a credential for those of other connections.
        """
        found = _block.match(data, at, self._limits.max_head)
        if found is None:
            return None
        fields = FIELDS(found[1])
        by_name = {name.lower(): value for name, value in fields}  # in their order
        if len(by_name) != len(fields) or len(fields) > self._limits.max_fields:
            return None
        length = _length(by_name)
        closes = CLOSES.get(by_name.get(b"connection", b"keep-alive").lower())
        if length is None or closes is None:
            return None
        known = found[0], Headers(by_name.items()), length, closes
        if len(found[0]) <= MAX_AGAIN and len(fields) <= MAX_FIELDS_AGAIN:
            self._known = known
            if by_name.keys() <= SHARED_FIELDS:
                if len(_shared) >= MAX_SHARED:
                    _shared.clear()
                _shared[found[0]] = known
        return known

    # --- the reference implementation ---

    def _obey(self) -> Http1Connection:
        """Return the reference implementation, in the state that it would have now."""
        reference = self._reference
        if reference is None:
            begun = StreamId(self._stream - 1) if self._raw or self._over else self._stream
            reference = self._reference = Http1Connection(
                Role.SERVER, limits=self._limits, entropy=self._entropy, deflate=self._deflate, after=begun
            )
            if self._raw:
                reference.receive_data(self._raw)
                for _ in range(self._events_returned):
                    reference.next_event()
                if self._sent_head is not None:
                    reference.send(self._sent_head)
                    reference.data_to_send()  # it was sent already
                self._forget()
            elif self._over:
                reference.receive_data(LAST_REQUEST)
                reference.next_event()
                reference.next_event()
                reference.send(ResponseHead(self._stream, 204))
                reference.send(ResponseEnd(self._stream))
                reference.data_to_send()  # another response was sent already
            elif self._eof:
                reference.receive_eof()
                if self._ended:
                    reference.next_event()
        return reference

    def _dismiss(self, reference: Http1Connection) -> None:
        """Drop the reference implementation if it is idle, and keep its output."""
        if reference.idle:
            self._out.append(reference.data_to_send())
            self._reference = None

    def _forget(self) -> None:
        self._raw = self._body = b""
        self._sent_head = None
        del self._head


def _shared_fields(block: bytes, limits: Limits) -> KnownFields | None:
    """Return the fields of a block that another connection has parsed, if they are within the limits of this one."""
    known = _shared.get(block)
    return known if known is not None and len(known[1]) <= limits.max_fields else None


def _length(fields: dict[bytes, bytes]) -> int | None:
    """Return the length of the body; None if a field needs the reference implementation."""
    if not SLOW_PATH_FIELDS.isdisjoint(fields):
        return None
    host = _HOST.fullmatch(fields.get(b"host", b""))
    if host is None or host[1] is not None:
        return None
    length = fields.get(b"content-length", b"0")
    return int(length) if length.isdigit() and len(length) <= MAX_DIGITS else None


@lru_cache(maxsize=MAX_BLOCKS)
def _response_head(status: int, fields: tuple[tuple[bytes, bytes], ...]) -> tuple[bytes, bytes] | None:
    """Return a head up to the value of `date`, and the rest up to the body's length or the end of the head.

    None if it is not plain: it is large, has a field of `FRAMING`, or h11 could change or refuse it.
    """
    block = b"".join([b"%b: %b\r\n" % field for field in fields])
    if not 200 <= status <= 999 or len(block) > MAX_BLOCK or (fields and _block.fullmatch(block + b"\r\n") is None):
        return None
    # Each field is read as it is written, so that no value contains another line.
    if FIELDS(block) != list(fields) or not FRAMING.isdisjoint([name.lower() for name, _ in fields]):
        return None
    return b"HTTP/1.1 %d %b\r\ndate: " % (status, REASONS.get(status, b"Unknown")), b"\r\n" + block


def _chunked_head(head: ResponseHead, close: bytes) -> bytes | None:
    """Return the head of a chunked response; None if it is not plain. `close` is `CLOSE` or empty."""
    status, fields = head.status, head.headers
    if status in BODILESS or not fields or fields[0][0] != b"date" or _VALUE.fullmatch(fields[0][1]) is None:
        return None
    block = _response_head(status, fields[1:])
    return block and b"%b%b%bTransfer-Encoding: chunked\r\n%b\r\n" % (block[0], fields[0][1], block[1], close)
