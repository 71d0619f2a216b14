"""One event vocabulary for HTTP/1.1, HTTP/2 and WebSocket over either, for both roles.

A connection object (`Http1Connection` today) turns bytes into these events and events into bytes. Every event names
its stream: always 1, 2, 3, … per request on HTTP/1.1, the frame's stream number on HTTP/2. The two directions
have separate types, so a handler cannot mistake one for the other:

    client to server    RequestHead (RequestData)* RequestEnd
                        (HTTP/2: BadRequest in place of a RequestHead that cannot be served)
    server to client    (Informational)* ResponseHead (ResponseData)* ResponseEnd
                        (a server may say ResponseElsewhere in place of ResponseData)
    either, after a WebSocket was accepted on the stream
                        (TextMessage | BinaryMessage | Ping | Pong)* SocketClosed
    either              StreamReset (the stream failed; on HTTP/1.1 the connection with it)

A `RequestHead` with `websocket=True` asks for a WebSocket (HTTP/1.1 Upgrade, or RFC 8441); the server answers with
`AcceptWebSocket` or with an ordinary response. The client receives `WebSocketAccepted` or an ordinary response.
"""

from __future__ import annotations

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
    "TextMessage",
]

StreamId = NewType("StreamId", int)


class Headers(tuple[tuple[bytes, bytes], ...]):
    """Header fields in the order of the wire: pairs of (lower-case name, value)."""

    @cached_property
    def bearer(self) -> str:
        """The token that `authorization` shows (RFC 6750 section 2.1); empty without one."""
        scheme, _, token = (self.get(b"authorization") or b"").partition(b" ")
        return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""

    @cached_property
    def bearer_hash(self) -> str:
        """Its SHA-256. Whoever says the same again, says the same fields (`http1_plain`), and it is known."""
        return sha256_hex(self.bearer)

    def get(self, name: bytes, default: bytes | None = None) -> bytes | None:
        """The first value of a field; `name` in lower case."""
        for key, value in self:
            if key == name:
                return value
        return default

    def all(self, name: bytes) -> list[bytes]:
        """Every value of a field; `name` in lower case."""
        return [value for key, value in self if key == name]

    @property
    def size(self) -> int:
        """Bytes of all names and values."""
        return sum(len(key) + len(value) for key, value in self)

    def tokens(self, name: bytes) -> list[bytes]:
        """The comma-separated members of a field over all its lines, trimmed and in lower case."""
        return [token for value in self.all(name) for part in value.split(b",") if (token := part.strip().lower())]


NO_HEADERS = Headers()


@fast_frozen
class RequestHead:
    """A request begins. `target` is the request target as sent (origin form: path and query)."""

    stream: StreamId
    method: str
    target: str
    headers: Headers = NO_HEADERS
    websocket: bool = False
    expects_continue: bool = False
    http_version: str = "1.1"


@fast_frozen
class BadRequest:
    """Server, received over HTTP/2: a head that cannot be served, to be answered with `status` all the same.

    What is malformed (400) is reset behind the answer, RFC 9113 section 8.1.1. `code` and `why` are those of a
    `RemoteProtocolError`; `method` is GET or HEAD, and says whether the answer may have a body.
    """

    stream: StreamId
    status: int
    code: str | None
    why: str
    method: str


@fast_frozen
class RequestData:
    """A piece of the request body, never empty."""

    stream: StreamId
    data: bytes


@fast_frozen
class RequestEnd:
    """The request is complete. `trailers` are fields sent after the body."""

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
    """A response begins. Without a `content-length`, HTTP/1.1 frames the body in chunks."""

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
    """Server, sent: `length` bytes of the body that somebody else writes, after everything said before.

    Only for a response with a `content-length`. Nothing may be said until they are written but the `ResponseEnd`.
    """

    stream: StreamId
    length: int


@fast_frozen
class ResponseEnd:
    """The response is complete."""

    stream: StreamId
    trailers: Headers = NO_HEADERS


@fast_frozen
class AcceptWebSocket:
    """Server, sent: accept the WebSocket asked for on this stream.

    `max_message` is in bytes, in place of that of `Limits`, until `Connection.lift_limits`.
    """

    stream: StreamId
    headers: Headers = NO_HEADERS
    subprotocol: str | None = None
    max_message: int | None = None


@fast_frozen
class WebSocketAccepted:
    """Client, received: the WebSocket is open. `deflate` tells whether permessage-deflate was agreed."""

    stream: StreamId
    headers: Headers = NO_HEADERS
    subprotocol: str | None = None
    deflate: bool = False


@fast_frozen
class TextMessage:
    """One whole text message."""

    stream: StreamId
    text: str


@fast_frozen
class BinaryMessage:
    """One whole binary message."""

    stream: StreamId
    data: bytes


@fast_frozen
class Ping:
    """A ping frame. Received pings are answered by the connection itself before the event is seen."""

    stream: StreamId
    payload: bytes = b""


@fast_frozen
class Pong:
    """A pong frame."""

    stream: StreamId
    payload: bytes = b""


@fast_frozen
class CloseWebSocket:
    """Sent: begin (or answer) the closing handshake, RFC 6455 section 7."""

    stream: StreamId
    code: int = 1000
    reason: str = ""


@fast_frozen
class WebSocketClosed:
    """Received, last of the stream: the peer's close frame, or how the socket ended without one.

    `code` is 1005 for a close frame without a code and 1006 for no close frame at all. `clean` is True when a close
    frame was received. `closed_by_us` is the code this side sent, if any, for a violation that it found by itself.
    """

    stream: StreamId
    code: int
    reason: str = ""
    clean: bool = True
    closed_by_us: int | None = field(default=None)


@fast_frozen
class StreamReset:
    """The stream failed before its end; nothing more comes on it. `why` is for a log line."""

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
    | BinaryMessage
    | Ping
    | Pong
    | CloseWebSocket
    | WebSocketClosed
    | StreamReset
)
