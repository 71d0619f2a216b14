"""HTTP client: a request, or a WebSocket, over a fresh connection, made by a flow.

 answer = yield from fetch(engine, "GET", "http://127.0.0.1:8642/v1/models", within=5.0)
 reader = yield from fetch(engine, "POST", url, into=event_stream(), body=body)   # `streamed()` for its bytes
 answer = yield from fetch(engine, "PUT", url, body=UploadBody(size, read))   # a piece at a time
 socket = yield from fetch(engine, "GET", "ws://127.0.0.1:8767/ws", into=websocket_upgrade(handler), within=10.0)

Each call returns the requested kind of result, or a `Failure`. A response of another kind, such as a refusal, is
returned whole (`HttpResult`), so that the caller can read its status (such as 429).

Over TLS the server chooses between HTTP/2 and HTTP/1.1 (ALPN). Without TLS, HTTP/1.1 is used, unless `prior_knowledge`
states that the server supports HTTP/2. If an HTTP/2 server refuses WebSockets (RFC 8441), the request is repeated over
HTTP/1.1, and the engine stores that fact.
"""

import re
from collections.abc import Callable
from typing import TypeVar, cast

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Connect
from svc_proto.engine.client_channel import MAX_ANSWER, STREAM, ClientChannel, HttpResult, ResponseMode
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation, wait
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import HTTP1, HTTP2, Failure, FailureKind
from svc_proto.wire.events import Headers, RequestData, RequestEnd, RequestHead
from svc_proto.wire.urls import Url, parse_url

__all__ = ["MAX_ANSWER", "HttpResult", "UploadBody", "bearer_header", "fetch", "websocket_upgrade", "buffered"]

_TOKEN = re.compile("[!-~]+")
T = TypeVar("T")


@frozen
class UploadBody:
    """A body that is sent as it is read, so that memory holds no more of it than the connection accepts at once.

    `read(offset)` returns the bytes that follow an offset: at least one, as long as there are some.
    """

    length: int
    read: Callable[[int], Flow[bytes | Failure]]


def buffered(limit: int) -> ResponseMode[HttpResult]:
    """Return the response mode for a whole response, with a body of at most `limit` bytes."""
    return ResponseMode(limit)


def websocket_upgrade(handler: WebSocketHandler) -> ResponseMode[WebSocketConnection]:
    """Return the response mode for a WebSocket, whose events go to `handler`.

    `on_open` is called before `fetch` returns.
    """
    return ResponseMode(handler=handler)


def bearer_header(token: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the Authorization header field for a token; an empty tuple for an invalid or empty token."""
    return ((b"authorization", b"Bearer " + token.encode("ascii")),) if _TOKEN.fullmatch(token) else ()


def fetch(
    engine: Engine,
    method: str,
    url: str,
    *,
    into: ResponseMode[T] | None = None,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    body: bytes | UploadBody = b"",
    within: float = 30.0,
    connect_within: float | None = None,
    prior_knowledge: bool = False,
) -> Flow[T | HttpResult | Failure]:
    """Send one request; return the response, which is buffered unless `into` requests another kind, or a `Failure`.

    `within` seconds apply to a whole response, or to the head of any other, including the connection. `connect_within`,
    if given, limits the connection attempt in its place, but the time of the attempt still counts. A caller that
    receives a reader has to `abandon` it, one that receives a WebSocket has to close it.
    """
    wanted = ResponseMode[T]() if into is None else into
    upgrade = wanted.handler is not None
    until = engine.now.mono + within
    try:
        where = parse_url(url)
    except RemoteProtocolError as error:
        return Failure(FailureKind.INVALID, str(error))
    fields = [*headers] if upgrade else [(b"connection", b"close"), *wanted.accept, *headers]
    size = body.length if isinstance(body, UploadBody) else len(body)
    if size or method in ("POST", "PUT", "PATCH"):
        fields.append((b"content-length", b"%d" % size))
    if not any(name == b"host" for name, _ in headers):  # a caller that signed the Host field has set it
        host = f"[{where.host}]" if ":" in where.host else where.host
        fields.insert(0, (b"host", f"{host}:{where.port}".encode("ascii")))
    head = RequestHead(STREAM, method, where.target, Headers(fields), websocket=upgrade)
    while True:
        left = until - engine.now.mono
        time = left if connect_within is None else connect_within
        channel = yield from _dial(engine, where, wanted, within=time, http2=prior_knowledge)
        if isinstance(channel, Failure):
            return channel
        answer: object = None
        try:
            channel.send_event(head)
            if isinstance(body, UploadBody):
                answer = yield from _upload(channel, body, until)
            elif body:
                channel.send_event(RequestData(STREAM, body))
            if answer is None and not upgrade:
                channel.send_event(RequestEnd(STREAM))
            while answer is None:
                answer = yield from wait(channel.ticket, until)
        finally:
            # On these results the caller has no connection to close.
            if answer is None or isinstance(answer, HttpResult | Failure):
                channel.disconnect(whole=isinstance(answer, HttpResult))
        if not (upgrade and channel.opens_no_sockets) or engine.now.mono >= until:
            return cast("T | HttpResult | Failure", answer)
        engine.without_sockets.append((where.host, where.port))  # from now on `_dial` uses HTTP/1.1


def _upload(channel: ClientChannel, body: UploadBody, until: float) -> Flow[object]:
    """Send a body in pieces. Return None when all of it was sent.

    Otherwise return the result of the request, if that came earlier, or a `Failure`.
    """
    sent, answer = 0, channel.outcome
    while answer is None and sent < body.length:
        piece = yield from body.read(sent)
        if isinstance(piece, Failure):
            return piece
        sent += len(piece)
        if not piece or sent > body.length:
            return Failure(FailureKind.INVALID, "the body is not as long as it was")
        answer = channel.outcome
        if answer is None:
            channel.send_event(RequestData(STREAM, piece))
            channel.write_pending()
        while answer is None and channel.credit.blocked:
            answer = yield from wait(channel.ticket, until)
    return answer


def _dial(
    engine: Engine, where: Url, into: ResponseMode[T], *, within: float, http2: bool
) -> Flow[ClientChannel | Failure]:
    may = into.handler is None or (where.host, where.port) not in engine.without_sockets
    offers = (HTTP2, HTTP1) if where.tls and may else (HTTP1,)
    order = Connect(engine.new_op(), engine.new_channel(), where.host, where.port, where.tls, offers)
    answer = yield from run_operation(engine, order, within=within)
    if isinstance(answer, Failure):
        return answer
    channel = ClientChannel(engine, order, into, http2=answer.alpn == HTTP2 if where.tls else http2 and may)
    engine.attach(channel)
    return channel
