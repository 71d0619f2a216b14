"""The client's end of a connection that was opened for one request; `svc_proto.engine.http_client` makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Connect
from svc_proto.engine.http_channel import HttpChannel
from svc_proto.engine.websocket import WebSocketHandler
from svc_proto.facts import Failure, FailureKind, OperationId
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.connection import Connection, Role
from svc_proto.wire.events import (
    Event,
    Headers,
    Informational,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    StreamReset,
    WebSocketAccepted,
)
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.http1_fast_path_client import FastPathClientConnection
from svc_proto.wire.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.wire.http2 import Http2Connection

__all__ = ["MAX_ANSWER", "STREAM", "ClientChannel", "HttpResult", "ResponseMode", "ResponseReader"]

T_co = TypeVar("T_co", covariant=True)
STREAM = StreamId(1)  # the first and only request of its connection
MAX_ANSWER = 8 * 1024 * 1024  # bytes of a response body that is kept whole


@frozen
class HttpResult:
    """A whole response."""

    status: int
    headers: Headers
    body: bytes

    @property
    def members(self) -> JsonObject:
        """Those of the JSON object that the body is; none of any other body."""
        return JsonObject.parse_or_empty(self.body)


class ResponseReader(Protocol):
    """Who takes an answer bit by bit."""

    def feed(self, data: bytes) -> None:
        """Some bytes of the body came."""
        ...

    def finish(self, end: Failure | None) -> None:
        """The answer is over; only the first reason counts."""
        ...


@frozen
class ResponseMode(Generic[T_co]):
    """What becomes of an answer: as it stands, it is kept whole, up to `limit` bytes; more is a `Failure`."""

    limit: int = MAX_ANSWER
    accept: tuple[tuple[bytes, bytes], ...] = ()  # header fields that ask for it
    handler: WebSocketHandler | None = None  # of the WebSocket that is wanted
    reader: Callable[[ClientChannel, ResponseHead], ResponseReader | None] | None = (
        None  # who reads it bit by bit, if anybody
    )


class ClientChannel(HttpChannel):
    """A connection that we opened, for one request.

    Over HTTP/2 what waits for the server's windows counts as unsent, like what waits in the socket; a `set_read_paused`
    of an answer keeps our own windows shut and leaves the connection open for everything else.
    """

    __slots__ = (
        "_answer",
        "_body",
        "_closing_behind",
        "_http2",
        "_into",
        "_reader",
        "_waiting",
        "_window_due",
        "lane",
        "outcome",
        "ticket",
    )

    def __init__(self, engine: Engine, order: Connect, into: ResponseMode[Any], *, http2: bool) -> None:
        role, entropy, limits = Role.CLIENT, engine.entropy, DEFAULT_LIMITS
        self._http2: Http2Connection | None = None
        conn: Connection
        if http2:
            from svc_proto.wire.http2 import Http2Connection  # noqa: PLC0415, RUF100 - see `engine.door`

            conn = self._http2 = Http2Connection(role, limits=limits, entropy=entropy, secure=order.tls)
        elif into.handler is None:
            conn = FastPathClientConnection(limits=limits, entropy=entropy)
        else:
            conn = Http1Connection(role, limits=limits, entropy=entropy)
        super().__init__(engine, order.ch, limits, conn)
        self._waiting = 0  # bytes of ours that the server's windows hold back
        self._window_due = 0.0  # monotonic seconds by which they have to open further
        self._closing_behind = False  # to be shut once those have left
        self._into = into
        self._reader: ResponseReader | None = None  # who takes the answer bit by bit
        self.lane: Callable[[bytes], bool] | None = None  # who may take a piece of the body before all others
        self.ticket: OperationId = engine.new_op()  # of whoever waits for an answer, or for room for more of a body
        self.outcome: object = None  # what whoever asked was told, or will be
        self._answer = ResponseHead(STREAM, 0)  # until there is one
        self._body = bytearray()

    # --- for the flows above ---

    @property
    def opens_no_sockets(self) -> bool:
        """The server speaks HTTP/2 and has said that it opens no WebSockets over it."""
        return self._http2 is not None and self._http2.opens_sockets is False

    def extend_write_timeout(self) -> None:
        """As of any channel; what waits for a window has as much time."""
        self._window_due = self.engine.now.mono + self.limits.write_timeout
        super().extend_write_timeout()

    def writable(self) -> None:
        """Whoever sends a body may go on."""
        super().writable()
        self.engine.resume(self.ticket, None)

    def close_gracefully(self) -> None:
        """As of any channel; behind what the server has to make room for first."""
        if self._waiting and not self.eof:
            self._closing_behind = True
        else:
            super().close_gracefully()

    # --- facts and events ---

    def received(self, data: bytes) -> None:
        """Feed the connection and take what it understood."""
        if self._http2 is not None:
            self._http2.set_time(self.engine.now.mono)
        elif self.lane is not None and not (self._holding or self.closing):
            body = cast("FastPathClientConnection", self.conn).try_whole_body(data)
            if body is not None and self.lane(body):
                return
        super().received(data)

    def sent(self, n: int) -> None:
        """Bytes left; there may be room for more. An answered ping is no progress of what waits for a window."""
        super().sent(n)
        if self._waiting:
            self.mark_dirty()
            if self.credit.unsent == self._waiting:
                self._stall.set(self._window_due)

    def all_sent(self) -> None:
        """All of the request has left: nothing of it waits to be sent."""
        super().all_sent()
        if self._closing_behind:
            self.close_gracefully()

    def reads_while_unsent(self) -> bool:
        """Of HTTP/2 always: what is unsent may be waiting for what is to be read."""
        return self._http2 is not None or super().reads_while_unsent()

    def write_pending(self) -> None:
        """Write what may be written now; of bodies and messages no more than the socket has room for."""
        http2 = self._http2
        if http2 is None:
            super().write_pending()
            return
        if self.socket is not None or not self._holding:
            http2.acknowledge_data(STREAM, MAX_ANSWER)
        in_socket = self.credit.unsent - self._waiting
        data = http2.data_to_send(max(0, self.limits.high_water + 1 - in_socket))
        if data:
            self.write(data)
        before, self._waiting = self._waiting, http2.unsent(STREAM)
        if self._waiting < before or not before:
            self._window_due = self.engine.now.mono + self.limits.write_timeout
        if self._waiting != before:
            self.change_stream_unsent(self._waiting - before)

    def closed(self, why: str) -> None:
        """Whoever still waits gets a failure."""
        super().closed(why)
        self._fail(FailureKind.UNREACHABLE, why or "the connection was closed")

    def stop(self) -> None:
        """Sockets are told that we go away; a fetch is left to its flow."""
        if self.socket is not None:
            self.socket.close(1001, "going away")

    def handle_event(self, event: Event) -> None:
        """Collect the answer, or pass a socket's events on."""
        match event:
            case ResponseHead():
                self._begin(event)
            case ResponseData(data=data) if self._reader is not None:
                self._reader.feed(data)
            case ResponseData(data=data):
                self._body += data
                if len(self._body) > self._into.limit:
                    self._too_large()
            case ResponseEnd() if self._reader is not None:
                self._reader.finish(None)
            case ResponseEnd():
                answer = self._answer
                self._resolve(HttpResult(answer.status, answer.headers, bytes(self._body)))
            case WebSocketAccepted(stream=stream):
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
        if self.socket is not None:
            self.close_gracefully()

    def after_events(self) -> None:
        """After the server's FIN nothing more can come."""
        if self.eof:
            self._fail(FailureKind.UNREACHABLE, "the server closed the connection")
            self.close_gracefully()

    # --- helpers ---

    def _resolve(self, outcome: object) -> None:
        if self.outcome is None:
            self.outcome = outcome
        self.engine.resume(self.ticket, outcome)

    def _update_reading(self) -> None:
        """The server of an answer is held back by its window: all else of its connection is read."""
        if self._http2 is None or self.socket is not None:
            super()._update_reading()
        else:
            self.mark_dirty()

    def _begin(self, head: ResponseHead) -> None:
        self._answer = head
        self._reader = self._into.reader and self._into.reader(self, head)
        announced = head.headers.get(b"content-length") or b""
        if self._reader is not None:
            self._resolve(self._reader)
        elif announced.isdigit() and int(announced) > self._into.limit:
            self._too_large()

    def _too_large(self) -> None:
        self._fail(FailureKind.TOO_LARGE, f"the answer has more than {self._into.limit} bytes")

    def _open(self, stream: StreamId) -> None:
        handler = cast("WebSocketHandler", self._into.handler)  # a 101 that nobody asked for does not get past the wire
        frames = None if self._http2 is not None else cast("Http1Connection", self.conn).detach_websocket()
        socket = self.switch_to_websocket(stream, handler, frames)
        socket.deliver_open()
        self._resolve(socket)

    def _fail(self, kind: FailureKind, why: str) -> None:
        if self._reader is not None:
            self._reader.finish(Failure(kind, why))
        else:
            self._resolve(Failure(kind, why))
