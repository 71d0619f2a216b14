"""Events of HTTP/1.1, HTTP/2 and WebSocket over either, for both roles.

A connection object turns bytes into these events and events into bytes. Every event has the number of its stream: 1, 2,
3, … per request on HTTP/1.1 (0 in the response to an unreadable head), the frame's stream number on HTTP/2. The two
directions have separate types, so that a handler cannot mistake one for the other:

client to server    RequestHead (RequestData)* RequestEnd
                    (HTTP/2: BadRequest in place of a RequestHead that cannot be served)
server to client    (Informational)* ResponseHead (ResponseData)* ResponseEnd
                    (a server may send ResponseBodyDelegated in place of ResponseData)
either, after a WebSocket was accepted on the stream
                    (TextMessage | TextFragment* | BinaryMessage | Ping | Pong)*
                    and at the end: sent CloseWebSocket, received WebSocketClosed
either              StreamReset (the stream failed; on HTTP/1.1 the connection with it)

A `RequestHead` with `websocket=True` requests a WebSocket (HTTP/1.1 Upgrade, or RFC 8441). The server answers with
`AcceptWebSocket` or with an ordinary response; the client receives `WebSocketAccepted` or an ordinary response.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import NewType, TypeAlias

from attrs import field

from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.fast_frozen import fast_frozen

__all__ = [
    "AcceptWebSocket",
    "BadRequest",
    "BinaryMessage",
    "CloseWebSocket",
    "Event",
    "Headers",
    "Informational",
    "Ping",
    "Pong",
    "RequestData",
    "RequestEnd",
    "RequestHead",
    "ResponseData",
    "ResponseBodyDelegated",
    "ResponseEnd",
    "ResponseHead",
    "WebSocketAccepted",
    "WebSocketClosed",
    "StreamId",
    "StreamReset",
    "TextFragment",
    "TextMessage",
]

StreamId = NewType("StreamId", int)


class Headers(tuple[tuple[bytes, bytes], ...]):
    """Header fields in their order: pairs of (lower-case name, value)."""

    @cached_property
    def bearer(self) -> str:
        """Token in the `authorization` field (RFC 6750 section 2.1); empty without one."""
        scheme, _, token = (self.get(b"authorization") or b"").partition(b" ")
        return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""

    @cached_property
    def bearer_hash(self) -> str:
        """SHA-256 of `bearer`, computed at the first use."""
        return sha256_hex(self.bearer)

    _by_name: Mapping[bytes, bytes] | None = None

    @property
    def by_name(self) -> Mapping[bytes, bytes]:
        """Header fields by name, of a repeated one the first; made at the first use."""
        if self._by_name is None:
            self._by_name = dict(reversed(self))
        return self._by_name

    def get(self, name: bytes, default: bytes | None = None) -> bytes | None:
        """Return the first value of a field, or `default` without one; `name` is in lower case."""
        return (self._by_name or self.by_name).get(name, default)

    def all(self, name: bytes) -> list[bytes]:
        """Return every value of a field, one for each of its lines; `name` is in lower case."""
        return [value for key, value in self if key == name]

    @property
    def size(self) -> int:
        """Sum of the bytes of all names and values."""
        return sum(len(key) + len(value) for key, value in self)

    def tokens(self, name: bytes) -> list[bytes]:
        """Return the non-empty comma-separated members of a field over all its lines, trimmed and in lower case."""
        if name not in self.by_name:
            return []
        return [token for value in self.all(name) for part in value.split(b",") if (token := part.strip().lower())]


NO_HEADERS = Headers()


@fast_frozen
class RequestHead:
    """Start of a request. `target` is the request target as sent: path and query, `*`, or an absolute URL."""

    stream: StreamId
    method: str
    target: str
    headers: Headers = NO_HEADERS
    websocket: bool = False
    expects_continue: bool = False
    http_version: str = "1.1"


@fast_frozen
class BadRequest:
    """Server, received over HTTP/2: a head that cannot be served, and is to be answered with `status`.

    A malformed message (400) is reset after the response, RFC 9113 section 8.1.1. `code` and `why` are those of a
    `RemoteProtocolError`; `method` is GET or HEAD and decides whether the response may have a body.
    """

    stream: StreamId
    status: int
    code: str | None
    why: str
    method: str


@fast_frozen
class RequestData:
    """A piece of the request body; a received one is never empty."""

    stream: StreamId
    data: bytes


@fast_frozen
class RequestEnd:
    """End of a request. `trailers` are fields sent after the body."""

    stream: StreamId
    trailers: Headers = NO_HEADERS


@fast_frozen
class Informational:
    """An interim 1xx response, such as 100 (Continue)."""

    stream: StreamId
    status: int
    headers: Headers = NO_HEADERS


@fast_frozen
class ResponseHead:
    """Start of a final response: its status and header fields."""

    stream: StreamId
    status: int
    headers: Headers = NO_HEADERS
    http_version: str = "1.1"


@fast_frozen
class ResponseData:
    """A piece of the response body."""

    stream: StreamId
    data: bytes


@fast_frozen
class ResponseBodyDelegated:
    """Server, sent over HTTP/1.1: `length` bytes of the body that are written outside of the connection.

    They follow all earlier events. Only for a response with a `content-length`. Until those bytes are written, only
    `ResponseEnd` may be sent.
    """

    stream: StreamId
    length: int


@fast_frozen
class ResponseEnd:
    """End of a response."""

    stream: StreamId
    trailers: Headers = NO_HEADERS


@fast_frozen
class AcceptWebSocket:
    """Server, sent: accept the WebSocket requested on this stream.

    `max_message` (bytes), if smaller than that of `Limits`, replaces it until `Connection.lift_limits`.
    """

    stream: StreamId
    headers: Headers = NO_HEADERS
    subprotocol: str | None = None
    max_message: int | None = None


@fast_frozen
class WebSocketAccepted:
    """Client, received: the WebSocket is open. `deflate` is True if permessage-deflate was agreed."""

    stream: StreamId
    headers: Headers = NO_HEADERS
    subprotocol: str | None = None
    deflate: bool = False


@fast_frozen
class TextMessage:
    """A whole text message."""

    stream: StreamId
    text: str


@fast_frozen
class TextFragment:
    """A part of a text message, for a peer that reads or writes long messages in parts; the last one ends it."""

    stream: StreamId
    text: str
    is_last: bool


@fast_frozen
class BinaryMessage:
    """A whole binary message."""

    stream: StreamId
    data: bytes


@fast_frozen
class Ping:
    """A ping frame. The connection answers received pings itself before it returns the event."""

    stream: StreamId
    payload: bytes = b""


@fast_frozen
class Pong:
    """A pong frame."""

    stream: StreamId
    payload: bytes = b""


@fast_frozen
class CloseWebSocket:
    """Sent: begin the closing handshake, RFC 6455 section 7; ignored once either end has begun it."""

    stream: StreamId
    code: int = 1000
    reason: str = ""


@fast_frozen
class WebSocketClosed:
    """Received, last of the stream: the peer's close frame, or the reason of an end without one.

    `code` is 1005 for a close frame without a code and 1006 for an end without a valid close frame. `clean` is True
    when a valid close frame was received. `closed_by_us` is the code that this side sent, if any, for a violation that
    it detected.
    """

    stream: StreamId
    code: int
    reason: str = ""
    clean: bool = True
    closed_by_us: int | None = field(default=None)


@fast_frozen
class StreamReset:
    """Received: the stream failed before its end, and no more events of it follow; `why` is for the log.

    Sent, over HTTP/2 only: reset the stream, after our message if that is complete, else at once.
    """

    stream: StreamId
    why: str = ""


Event: TypeAlias = (
    RequestHead
    | BadRequest
    | RequestData
    | RequestEnd
    | Informational
    | ResponseHead
    | ResponseData
    | ResponseBodyDelegated
    | ResponseEnd
    | AcceptWebSocket
    | WebSocketAccepted
    | TextMessage
    | TextFragment
    | BinaryMessage
    | Ping
    | Pong
    | CloseWebSocket
    | WebSocketClosed
    | StreamReset
)
