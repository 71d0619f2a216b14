"""The client's end: one request, or one WebSocket, over a fresh connection, asked for by a flow.

    response = yield from fetch(engine, "GET", "http://127.0.0.1:8642/v1/models", within=5.0)
    socket = yield from open_socket(engine, "ws://127.0.0.1:8767/ws", handler, within=10.0)

Both answer with what they are for, or with a `Failure`; neither raises. A WebSocket that the server declined is
answered with its `Fetched` response, so that the caller can read the status (429, say).

Over TLS the server chooses between HTTP/2 and HTTP/1.1 (ALPN); without it HTTP/1.1 is spoken, unless `prior_knowledge`
says that the server speaks HTTP/2, too. A server whose HTTP/2 opens no WebSockets (RFC 8441) is asked once more, over a
connection of HTTP/1.1, and remembered. Each call has a connection of its own, so what is said here holds for all.
"""

from __future__ import annotations

import re
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
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.urls import Url, parse_url

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["ClientChannel", "Fetched", "bearer", "dial", "fetch", "open_socket"]

_TOKEN = re.compile("[!-~]+")
HTTP1, HTTP2 = "http/1.1", "h2"  # RFC 7301 section 6
MAX_REMEMBERED = 64  # servers whose HTTP/2 opens no WebSockets: the one longest known is forgotten
MAX_ANSWER = 8 * 1024 * 1024  # bytes of a response body that is kept whole
ClientT = TypeVar("ClientT", bound="ClientChannel")
STREAM = StreamId(1)  # the first and only request of its connection


@frozen
class Fetched:
    """A whole response."""

    status: int
    headers: Headers
    body: bytes


def bearer(token: str) -> tuple[tuple[bytes, bytes], ...]:
    """The header field that shows a token; none for what can be no token, such as an empty one."""
    return ((b"authorization", b"Bearer " + token.encode("ascii")),) if _TOKEN.fullmatch(token) else ()


def fetch(
    engine: Engine,
    method: str,
    url: str,
    *,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    body: bytes = b"",
    within: float = 30.0,
    limits: Limits = DEFAULT_LIMITS,
    prior_knowledge: bool = False,
) -> Flow[Fetched | Failure]:
    """Make one request and wait at most `within` seconds, connection included, for the whole response."""
    until = engine.now.mono + within
    channel = yield from dial(ClientChannel, engine, url, within=within, limits=limits, prior_knowledge=prior_knowledge)
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
    prior_knowledge: bool = False,
) -> Flow[Socket | Fetched | Failure]:
    """Open a WebSocket. After a `Socket` was returned, its handler has the word (`on_open` came already)."""
    until = engine.now.mono + within
    while True:
        channel = yield from dial(
            ClientChannel,
            engine,
            url,
            within=until - engine.now.mono,
            limits=limits,
            prior_knowledge=prior_knowledge,
            websocket=True,
        )
        if isinstance(channel, Failure):
            return channel
        channel.handler = handler
        fields = channel.fields(headers)
        try:
            channel.request(RequestHead(STREAM, "GET", channel.url.target, fields, websocket=True), b"")
            answer = cast("Socket | Fetched | Failure", (yield from wait(channel.ticket, until)))
        finally:
            if not channel.opened:
                channel.drop()
        if not channel.opens_no_sockets or engine.now.mono >= until:
            return answer
        _remember(engine, channel.url)  # from now on `dial` takes HTTP/1.1


def dial(
    kind: type[ClientT],
    engine: Engine,
    url: str,
    *,
    within: float,
    limits: Limits,
    prior_knowledge: bool = False,
    websocket: bool = False,
) -> Flow[ClientT | Failure]:
    """Open a connection for one request; whoever gets the channel has to drop it."""
    try:
        where = parse_url(url)
    except RemoteProtocolError as error:
        return Failure(FailureKind.INVALID, str(error))
    may = not (websocket and _place(where) in engine.without_sockets)
    offers = (HTTP2, HTTP1) if where.tls and may else (HTTP1,)
    order = Connect(engine.new_op(), engine.new_channel(), where.host, where.port, where.tls, offers)
    answer = yield from ask(engine, order, within=within)
    if isinstance(answer, Failure):
        return answer
    http2 = answer.alpn == HTTP2 if where.tls else prior_knowledge and may
    channel = kind(engine, order, where, limits, http2=http2)
    engine.attach(channel)
    return channel


def _place(url: Url) -> tuple[str, int]:
    return url.host, url.port


def _remember(engine: Engine, url: Url) -> None:
    known = engine.without_sockets
    known[_place(url)] = None
    while len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]


class ClientChannel(HttpChannel):
    """A connection that we opened, for one request.

    Over HTTP/2 what waits for the server's windows counts as unsent, like what waits in the socket; a `hold` of an
    answer keeps our own windows shut and leaves the connection open for everything else.
    """

    __slots__ = (
        "_answer",
        "_body",
        "_closing_behind",
        "_http2",
        "_shut_window",
        "_size",
        "_waiting",
        "_window_due",
        "handler",
        "opened",
        "ticket",
        "url",
    )

    def __init__(self, engine: Engine, order: Connect, url: Url, limits: Limits, *, http2: bool = False) -> None:
        role, entropy = Role.CLIENT, engine.entropy
        self._http2 = Http2Connection(role, limits=limits, entropy=entropy, secure=url.tls) if http2 else None
        conn = self._http2 or Http1Connection(role, limits=limits, entropy=entropy)
        super().__init__(engine, order.ch, limits, conn)
        self._waiting = 0  # bytes of ours that the server's windows hold back
        self._window_due = 0.0  # monotonic seconds by which they have to open further
        self._shut_window = False
        self._closing_behind = False  # to be shut once those have left
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

    @property
    def opens_no_sockets(self) -> bool:
        """The server speaks HTTP/2 and has said that it opens no WebSockets over it."""
        return self._http2 is not None and self._http2.opens_sockets is False

    def bear(self) -> None:
        """As of any channel; what waits for a window has as much time."""
        self._window_due = self.engine.now.mono + self.limits.write_timeout
        super().bear()

    def hold(self, holding: bool) -> None:
        """Stop or go on reading the answer."""
        if self._http2 is None or self.opened:
            super().hold(holding)
            return
        self._shut_window = holding
        self.soil()

    def shut(self) -> None:
        """As of any channel; behind what the server has to make room for first."""
        if self._waiting and not self.eof:
            self._closing_behind = True
        else:
            super().shut()

    # --- facts and events ---

    def received(self, data: bytes) -> None:
        """Feed the connection and take what it understood."""
        if self._http2 is not None:
            self._http2.at(self.engine.now.mono)
        super().received(data)

    def sent(self, n: int) -> None:
        """Bytes left; there may be room for more. An answered ping is no progress of what waits for a window."""
        super().sent(n)
        if self._waiting:
            self.soil()
            if self.credit.unsent == self._waiting:
                self._stall.set(self._window_due)

    def all_sent(self) -> None:
        """Nothing waits any more."""
        super().all_sent()
        if self._closing_behind:
            self.shut()

    def reads_on(self) -> bool:
        """Of HTTP/2 always: what is unsent may be waiting for what is to be read."""
        return self._http2 is not None or super().reads_on()

    def spill(self) -> None:
        """Write what may be written now; of bodies and messages no more than the socket has room for."""
        http2 = self._http2
        if http2 is None:
            super().spill()
            return
        if not self._shut_window:
            http2.taken(STREAM, MAX_ANSWER)
        in_socket = self.credit.unsent - self._waiting
        data = http2.data_to_send(max(0, self.limits.high_water + 1 - in_socket))
        if data and not self.gone:
            self.write(data)
        self._account(http2.unsent(STREAM))

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
        """The server does not speak HTTP as it should. A WebSocket that was open is over with its connection."""
        self._fail(FailureKind.INVALID, str(error))
        if self.sockets:
            self.shut()

    def settle(self) -> None:
        """After the server's FIN nothing more can come."""
        if self.eof:
            self._fail(FailureKind.UNREACHABLE, "the server closed the connection")
            self.shut()

    # --- helpers ---

    def _account(self, waiting: int) -> None:
        """Count anew what waits on the stream."""
        change, self._waiting = waiting - self._waiting, waiting
        if change < 0 or change == waiting:
            self._window_due = self.engine.now.mono + self.limits.write_timeout
        if change > 0:
            if not self.credit.unsent:
                self._stall.set(self._window_due)
            self.credit.queued(change)
        elif change < 0:
            super().sent(-change)

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
