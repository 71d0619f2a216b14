"""Heads of HTTP/2 messages: header lists to events and back (RFC 9113 section 8, RFC 8441).

h2's own checks are switched off: they end the whole connection, where a malformed message should end its stream.

Refused, all of RFC 9113 unless noted
section 8.2.1  names that are no lower-case token, values with control characters or edged with white space
section 8.2.2  Connection, Keep-Alive, Proxy-Connection, Transfer-Encoding, Upgrade; TE but for "trailers"
section 8.3    pseudo-header fields that are unknown, twice, missing, empty, or after others
section 8.3.1  Host twice, or other than `:authority`; neither of them; `*` but for OPTIONS; a fragment
section 8.1.1  Content-Length twice, or no number
section 8.5    CONNECT, but for a WebSocket (RFC 8441): 501
RFC 6455 4.4   a WebSocket of another version: 426
RFC 6585       more bytes or fields than `Limits` has: 431
RFC 9110 6.5.1 trailers that frame or route a message

Cookie crumbs of a request are joined (section 8.2.3). Its parsed head has the form of HTTP/1.1, with `host` first.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus

from hpack import HeaderTuple, NeverIndexedHeaderTuple

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.authority import AUTHORITY, is_ipv6_literal
from svc_proto.wire.events import AcceptWebSocket, Headers, RequestHead, ResponseHead, StreamId
from svc_proto.wire.h2_optimized import HIDDEN_LENGTH, LENGTH
from svc_proto.wire.limits import Limits
from svc_proto.wire.websocket_deflate import OFFER, DeflateParameters, accept_extension_offer
from svc_proto.wire.websocket_handshake import EXTENSIONS, WEBSOCKET_VERSION, build_subprotocol_field

__all__ = [
    "Fields",
    "accept_fields",
    "declared_length",
    "parse_length",
    "parse_request",
    "parse_response",
    "parse_trailers",
    "request_fields",
    "response_fields",
    "trailer_fields",
]

Pairs = Iterable[tuple[bytes, bytes]]
Fields = list[tuple[bytes, bytes]]

VERSION = "2"
REQUEST = (b":method", b":scheme", b":path", b":authority", b":protocol")
RESPONSE = (b":status",)
HOP_BY_HOP = (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
NOT_IN_TRAILERS = (LENGTH, b"host", b"te", b"expect")  # RFC 9110 section 6.5.1: framing and routing
SECRETS = (b"authorization", b"cookie", b"set-cookie")  # RFC 7541 section 7.1.3: never in a compression table
OVERHEAD = 32  # bytes that a field counts for besides its name and value, RFC 9113 section 6.5.2
MAX_LENGTH = 18  # digits of a Content-Length
MAX_FIELDS = 256  # sent fields that are cached in a process
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
_METHOD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TARGET = re.compile(rb"/[\x21\x22\x24-\x7e]*|\*")  # RFC 3986 section 3.5: a fragment is not sent
_STATUS = re.compile(rb"[1-9][0-9]{2}")
_AUTHORITY = re.compile(AUTHORITY)


def parse_request(stream: StreamId, pairs: Pairs, limits: Limits, *, ended: bool) -> RequestHead:
    """Parse the head of a request. Raises `RemoteProtocolError` with the status of the response."""
    pseudo, fields = _split(pairs, REQUEST, limits)
    method, scheme, target = (pseudo.get(name, b"") for name in REQUEST[:3])
    websocket = method == b"CONNECT"
    if websocket and pseudo.get(b":protocol") != b"websocket":
        raise RemoteProtocolError("CONNECT is not implemented", status=501)
    if b":protocol" in pseudo and not websocket:
        raise RemoteProtocolError(":protocol without CONNECT")
    if not _METHOD.fullmatch(method):
        raise RemoteProtocolError(":method is malformed")
    if scheme not in (b"http", b"https"):
        raise RemoteProtocolError(":scheme must be http or https")
    if not _TARGET.fullmatch(target):
        raise RemoteProtocolError(":path is malformed")
    if target == b"*" and method != b"OPTIONS":
        raise RemoteProtocolError(":path * is for OPTIONS alone")
    headers = Headers(((b"host", _authority(pseudo.get(b":authority"), fields)), *_joined(fields)))
    length = parse_length(headers)
    if websocket:
        if ended or length:
            raise RemoteProtocolError("a WebSocket handshake has no body")
        if headers.all(WEBSOCKET_VERSION[0]) != [WEBSOCKET_VERSION[1]]:
            raise RemoteProtocolError(
                "Sec-WebSocket-Version: only 13 is spoken here", status=426, code="upgrade_required"
            )
    elif ended and length:
        raise RemoteProtocolError("the body is shorter than Content-Length")
    waiting = not ended and headers.tokens(b"expect") == [b"100-continue"]
    name = "GET" if websocket else method.decode("ascii")  # as over HTTP/1.1, so that the routes are the same
    return RequestHead(stream, name, target.decode("ascii"), headers, websocket, waiting, VERSION)


def parse_response(pairs: Pairs, limits: Limits) -> tuple[int, Headers]:
    """Parse a response into status and headers. Raises `RemoteProtocolError`."""
    pseudo, fields = _split(pairs, RESPONSE, limits)
    status = pseudo.get(b":status", b"")
    if not _STATUS.fullmatch(status):
        raise RemoteProtocolError(":status is malformed")
    if status == b"101":
        raise RemoteProtocolError("a 101 over HTTP/2")  # RFC 9113 section 8.6
    headers = Headers(fields)
    parse_length(headers)
    return int(status), headers


def parse_trailers(pairs: Pairs, limits: Limits) -> Headers:
    """Parse the fields after a body. Raises `RemoteProtocolError`."""
    _, fields = _split(pairs, (), limits)
    for name, _ in fields:
        if name in NOT_IN_TRAILERS:
            raise RemoteProtocolError(f"{name.decode('ascii')} among the trailers")
    return Headers(fields)


def parse_length(headers: Headers) -> int | None:
    """Return the Content-Length, or None without one. Raises `RemoteProtocolError` for several or a malformed one."""
    values = headers.all(LENGTH)
    if not values:
        return None
    if len(values) != 1 or not values[0].isdigit() or len(values[0]) > MAX_LENGTH:
        raise RemoteProtocolError("Content-Length is malformed", code="invalid_content_length")
    return int(values[0])


def request_fields(head: RequestHead, *, secure: bool, deflate: bool) -> Fields:
    """Client: return the header list of a request. Raises `LocalProtocolError`."""
    host = head.headers.get(b"host")
    if host is None:
        raise LocalProtocolError("RequestHead: host is missing")
    try:
        target, method = head.target.encode("ascii"), head.method.encode("ascii")
    except UnicodeEncodeError:
        raise LocalProtocolError("RequestHead: the method or the target is malformed") from None
    if not (_TARGET.fullmatch(target) and _METHOD.fullmatch(method)):
        raise LocalProtocolError("RequestHead: the method or the target is malformed")
    fields = [
        (b":method", b"CONNECT" if head.websocket else method),
        (b":scheme", b"https" if secure else b"http"),
        (b":path", target),
        (b":authority", host),
    ]
    if head.websocket:
        fields += [(b":protocol", b"websocket"), WEBSOCKET_VERSION]
        if deflate:
            fields.append((EXTENSIONS, OFFER))
    return fields + trailer_fields(pair for pair in head.headers if pair[0] != b"host")


def response_fields(head: ResponseHead) -> Fields:
    """Server: return the header list of a response, without fields of HTTP/1.1. Raises `LocalProtocolError`."""
    if not 200 <= head.status <= 999:
        raise LocalProtocolError("ResponseHead: the status is malformed")
    fields = trailer_fields(head.headers)
    if head.status == HTTPStatus.NO_CONTENT:
        fields = [field for field in fields if field[0] != LENGTH]  # RFC 9110 section 8.6
    return [(b":status", b"%d" % head.status), *fields]


def accept_fields(
    head: RequestHead, event: AcceptWebSocket, *, deflate: bool
) -> tuple[Fields, DeflateParameters | None]:
    """Server: return the header list that opens a WebSocket, and the compression, None if there is none.

    Raise `LocalProtocolError` for a malformed field or a subprotocol that was not offered.
    """
    fields: Fields = [(b":status", b"200"), *build_subprotocol_field(head, event)]
    agreement = accept_extension_offer(head.headers.all(EXTENSIONS)) if deflate else None
    if agreement is not None:
        fields.append((EXTENSIONS, agreement[1]))
    return fields + trailer_fields(event.headers), agreement and agreement[0]


def trailer_fields(pairs: Pairs) -> Fields:
    """Return fields as HTTP/2 sends them: names in lower case, without the fields that only HTTP/1.1 has.

    Raise `LocalProtocolError` for a malformed one.
    """
    return [field for key, value in pairs if (field := _outgoing(key, value)) is not None]


@lru_cache(maxsize=MAX_FIELDS)
def _outgoing(key: bytes, value: bytes) -> tuple[bytes, bytes] | None:
    name = key.lower()
    if name in HOP_BY_HOP:
        return None
    if not (_NAME.fullmatch(name) and _VALUE.fullmatch(value)):
        raise LocalProtocolError("a header is malformed")
    return (NeverIndexedHeaderTuple if name in SECRETS else HeaderTuple)(name, value)


def declared_length(fields: Fields) -> int | None:
    """Return the Content-Length that we send, or None. Raises `LocalProtocolError` if it is no number."""
    for name, value in fields:
        if name == LENGTH:
            if not value.isdigit():
                raise LocalProtocolError("Content-Length is no number")
            return int(value)
    return None


def _split(pairs: Pairs, known: tuple[bytes, ...], limits: Limits) -> tuple[dict[bytes, bytes], Fields]:
    pseudo: dict[bytes, bytes] = {}
    fields: Fields = []
    size = 0
    for name, value in pairs:
        size += len(name) + len(value) + OVERHEAD
        if name[:1] == b":":
            if fields or name in pseudo or name not in known:
                raise RemoteProtocolError("a pseudo-header field is unknown, misplaced or given twice")
            pseudo[name] = value
            continue
        hidden = name == HIDDEN_LENGTH
        if not (hidden or _NAME.fullmatch(name)):
            raise RemoteProtocolError("the name of a header is malformed")
        if not _VALUE.fullmatch(value):
            raise RemoteProtocolError("the value of a header is malformed")
        if name in HOP_BY_HOP or (name == b"te" and value.lower() != b"trailers"):
            raise RemoteProtocolError("a header that belongs to HTTP/1.1 alone")
        fields.append((LENGTH if hidden else bytes(name), bytes(value)))
        if len(fields) > limits.max_fields:
            raise RemoteProtocolError(f"the head has more than {limits.max_fields} fields", status=431)
    if size > limits.max_head:
        raise RemoteProtocolError(f"the head has more than {limits.max_head} bytes", status=431)
    return pseudo, fields


def _authority(authority: bytes | None, fields: Fields) -> bytes:
    hosts = [value for name, value in fields if name == b"host"]
    if len(hosts) > 1:
        raise RemoteProtocolError("Host is given twice")
    if authority is None and not hosts:
        raise RemoteProtocolError("Host is missing")
    chosen = hosts[0] if authority is None else authority
    if hosts and hosts[0].lower() != chosen.lower():
        raise RemoteProtocolError("Host is not what :authority says")
    found = _AUTHORITY.fullmatch(chosen)
    if found is None or (found[1] and not is_ipv6_literal(found[1])):
        raise RemoteProtocolError("Host is malformed")
    return chosen


def _joined(fields: Fields) -> Fields:
    """Return the fields without `host`, and with the crumbs of a cookie joined."""
    cookie_fields = [value for name, value in fields if name == b"cookie"]
    if len(cookie_fields) < 2:
        return [field for field in fields if field[0] != b"host"]
    rest = [field for field in fields if field[0] not in (b"host", b"cookie")]
    return [*rest, (b"cookie", b"; ".join(cookie_fields))]
