"""The client's end: one request, or one WebSocket, over a fresh connection, asked for by a flow.

    response = yield from fetch(engine, "GET", "http://127.0.0.1:8642/v1/models", within=5.0)
    socket = yield from open_socket(engine, "ws://127.0.0.1:8767/ws", handler, within=10.0)

Both answer with what they are for, or with a `Failure`; neither raises. A WebSocket that the server declined is
answered with its `Fetched` response, so that the caller can read the status (429, say).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Connect
from svc_proto.engine.flow import Flow, ask, wait
from svc_proto.engine.http_channel import HttpChannel
from svc_proto.engine.socket import Socket, SocketHandler
from svc_proto.facts import Failure, FailureKind, OperationId
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    Event,
    Headers,
    Informational,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    SocketAccepted,
    StreamId,
    StreamReset,
)
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.urls import Url, parse_url

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["ClientChannel", "Fetched", "dial", "fetch", "open_socket"]

MAX_ANSWER = 8 * 1024 * 1024  # bytes of a response body that is kept whole
ClientT = TypeVar("ClientT", bound="ClientChannel")
STREAM = StreamId(1)  # the first and only request of its connection


@frozen
class Fetched:
    """A whole response."""

    status: int
    headers: Headers
    body: bytes


def fetch(
    engine: Engine,
    method: str,
    url: str,
    *,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    body: bytes = b"",
    within: float = 30.0,
    limits: Limits = DEFAULT_LIMITS,
) -> Flow[Fetched | Failure]:
    """Make one request and wait at most `within` seconds, connection included, for the whole response."""
    until = engine.now.mono + within
    channel = yield from dial(ClientChannel, engine, url, within=within, limits=limits)
    if isinstance(channel, Failure):
        return channel
    fields = [(b"connection", b"close"), *headers]
    if body or method in ("POST", "PUT", "PATCH"):
        fields.append((b"content-length", b"%d" % len(body)))
    try:
        channel.request(RequestHead(STREAM, method, channel.url.target, channel.fields(fields)), body)
        return cast("Fetched | Failure", (yield from wait(channel.ticket, until)))
    finally:
        channel.drop()


def open_socket(
    engine: Engine,
    url: str,
    handler: SocketHandler,
    *,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    within: float = 15.0,
    limits: Limits = DEFAULT_LIMITS,
) -> Flow[Socket | Fetched | Failure]:
    """Open a WebSocket. After a `Socket` was returned, its handler has the word (`on_open` came already)."""
    until = engine.now.mono + within
    channel = yield from dial(ClientChannel, engine, url, within=within, limits=limits)
    if isinstance(channel, Failure):
        return channel
    channel.handler = handler
    try:
        channel.request(RequestHead(STREAM, "GET", channel.url.target, channel.fields(headers), websocket=True), b"")
        return cast("Socket | Fetched | Failure", (yield from wait(channel.ticket, until)))
    finally:
        if not channel.opened:
            channel.drop()


def dial(kind: type[ClientT], engine: Engine, url: str, *, within: float, limits: Limits) -> Flow[ClientT | Failure]:
    """Open a connection for one request; whoever gets the channel has to drop it."""
    try:
        where = parse_url(url)
    except RemoteProtocolError as error:
        return Failure(FailureKind.INVALID, str(error))
    ch = engine.new_channel()
    order = Connect(engine.new_op(), ch, where.host, where.port, where.tls)
    answer = yield from ask(engine, order, within=within)
    if isinstance(answer, Failure):
        return answer
    channel = kind(engine, order, where, limits)
    engine.attach(channel)
    return channel


class ClientChannel(HttpChannel):
    """A connection that we opened."""

    __slots__ = ("_answer", "_body", "_size", "handler", "opened", "ticket", "url")

    def __init__(self, engine: Engine, order: Connect, url: Url, limits: Limits) -> None:
        conn = Http1Connection(Role.CLIENT, limits=limits, entropy=engine.entropy)
        super().__init__(engine, order.ch, limits, conn)
        self.url = url
        self.handler: SocketHandler | None = None
        self.ticket: OperationId = engine.new_op()
        self.opened = False  # it became a WebSocket
        self._answer = ResponseHead(STREAM, 0)  # until there is one
        self._body: list[bytes] = []
        self._size = 0

    # --- for the flows above ---

    def fields(self, more: tuple[tuple[bytes, bytes], ...] | list[tuple[bytes, bytes]]) -> Headers:
        """`Host` and what the caller wants besides."""
        host = f"[{self.url.host}]" if ":" in self.url.host else self.url.host
        return Headers(((b"host", f"{host}:{self.url.port}".encode("ascii")), *more))

    def request(self, head: RequestHead, body: bytes) -> None:
        """Say the whole request; one for a WebSocket is complete with its head."""
        self.put(head)
        if body:
            self.put(RequestData(head.stream, body))
        if not head.websocket:
            self.put(RequestEnd(head.stream))

    # --- facts and events ---

    def closed(self, why: str) -> None:
        """Whoever still waits gets a failure."""
        super().closed(why)
        self._fail(FailureKind.UNREACHABLE, why or "the connection was closed")

    def stop(self) -> None:
        """Sockets are told that we go away; a fetch is left to its flow."""
        for socket in list(self.sockets.values()):
            socket.close(1001, "going away")

    def take(self, event: Event) -> None:
        """Collect the answer, or pass a socket's events on."""
        match event:
            case ResponseHead():
                self._answer = event
            case ResponseData(data=data):
                self._collect(data)
            case ResponseEnd():
                answer = self._answer
                self.engine.resume(self.ticket, Fetched(answer.status, answer.headers, b"".join(self._body)))
            case SocketAccepted(stream=stream):
                self._open(stream)
            case StreamReset(why=why):
                self._fail(FailureKind.UNREACHABLE, why)
            case Informational():
                pass  # the answer proper follows
            case _:
                self.socket_event(event)

    def protocol_error(self, error: RemoteProtocolError) -> None:
        """The server does not speak HTTP as it should."""
        self._fail(FailureKind.INVALID, str(error))

    def settle(self) -> None:
        """After the server's FIN nothing more can come."""
        if self.eof:
            self._fail(FailureKind.UNREACHABLE, "the server closed the connection")
            self.shut()

    # --- helpers ---

    def _collect(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > MAX_ANSWER:
            self._fail(FailureKind.TOO_LARGE, f"the answer has more than {MAX_ANSWER} bytes")
            return
        self._body.append(data)

    def _open(self, stream: StreamId) -> None:
        handler = cast("SocketHandler", self.handler)  # a 101 that nobody asked for does not get past the wire
        self.opened = True
        socket = self.sockets[stream] = Socket(self, stream, handler)
        socket.opened()
        self.engine.resume(self.ticket, socket)

    def _fail(self, kind: FailureKind, why: str) -> None:
        self.engine.resume(self.ticket, Failure(kind, why))
