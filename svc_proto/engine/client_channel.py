"""Client end of a connection that is opened for one request, as made by `svc_proto.engine.http_client`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.basics.fast_frozen import fast_frozen
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
MAX_ANSWER = 8 * 1024 * 1024  # bytes of a response body that is buffered whole


@fast_frozen
class HttpResult:
    """A complete HTTP response: status, header fields and body."""

    status: int
    headers: Headers
    body: bytes

    @property
    def members(self) -> JsonObject:
        """Members of the JSON object in the body; empty for any other body."""
        return JsonObject.parse_or_empty(self.body)


class ResponseReader(Protocol):
    """Reader that receives a response body in pieces."""

    def feed(self, data: bytes) -> None:
        """Handle received bytes of the body."""
        ...

    def finish(self, end: Failure | None) -> None:
        """Handle the end of the response: `end` is None if it is complete. Only the first call counts."""
        ...


@fast_frozen
class ResponseMode(Generic[T_co]):
    """Description of how a response is consumed: by default buffered, and a `Failure` over `limit` bytes.

    Otherwise `reader` is called with the head of a response and returns the reader of its body, or None to buffer it.
    With `handler` a WebSocket is requested, whose events the handler receives.
    """

    limit: int = MAX_ANSWER
    accept: tuple[tuple[bytes, bytes], ...] = ()  # header fields that request this kind of response
    handler: WebSocketHandler | None = None  # of the WebSocket, if one is requested
    # Makes a reader that receives the body in pieces, if any.
    reader: Callable[[ClientChannel, ResponseHead], ResponseReader | None] | None = None


class ClientChannel(HttpChannel):
    """A connection that we opened, for one request.

    Over HTTP/2, bytes that wait for the server's windows count as unsent, like those in the socket. `set_read_paused`
    of a plain response keeps only our own receive window closed then; the rest of the connection is read.
    """

    def __init__(self, engine: Engine, order: Connect, into: ResponseMode[Any], *, http2: bool) -> None:
        role, entropy, limits = Role.CLIENT, engine.entropy, DEFAULT_LIMITS
        self._http2: Http2Connection | None = None
        conn: Connection
        if http2:
            # imported late, as in `engine.admission`
            from svc_proto.wire.http2 import Http2Connection  # noqa: PLC0415, RUF100

            conn = self._http2 = Http2Connection(role, limits=limits, entropy=entropy, secure=order.tls)
        elif into.handler is None:
            conn = FastPathClientConnection(limits=limits, entropy=entropy)
        else:
            conn = Http1Connection(role, limits=limits, entropy=entropy)
        super().__init__(engine, order.ch, limits, conn)
        self._waiting = 0  # bytes of ours that the server's windows hold back
        self._window_due = 0.0  # monotonic seconds by which the windows have to open further
        self._closing_behind = False  # close when those bytes have left
        self._into = into
        self._reader: ResponseReader | None = None  # receives the body in pieces
        # a fast-path handler that may accept a piece of the body first
        self.fast_reader: Callable[[bytes], bool] | None = None
        # of the flow that waits for the response, or for room for more of a body
        self.ticket: OperationId = engine.new_op()
        self.outcome: object = None  # result of the request, once there is one
        self._answer = ResponseHead(STREAM, 0)  # until the response head arrives
        self._body = bytearray()

    # --- for the flows above ---

    @property
    def opens_no_sockets(self) -> bool:
        """Report whether this connection uses HTTP/2 and its server refuses WebSockets over it."""
        return self._http2 is not None and self._http2.opens_sockets is False

    def extend_write_timeout(self) -> None:
        """Restart `write_timeout`, also for bytes that wait for a flow-control window of the server."""
        self._window_due = self.engine.now.mono + self.limits.write_timeout
        super().extend_write_timeout()

    def writable(self) -> None:
        """Notify the WebSocket, if there is one; resume the flow that waits for `ticket`, so that it sends more."""
        super().writable()
        self.engine.resume(self.ticket, None)

    def close_gracefully(self) -> None:
        """Close in an orderly way.

        Bytes that wait for the server's windows are sent first, unless the server has sent its FIN.
        """
        if self._waiting and not self.eof:
            self._closing_behind = True
        else:
            super().close_gracefully()

    def disconnect(self, *, whole: bool) -> None:
        """Close now, without waiting for the server.

        `whole`: the response is complete, so the connection ends with a FIN, if all of the request has left. Else a
        reset ends it, so that the server stops.
        """
        if whole and not (self.gone or self.closing or self.credit.unsent):
            self.send_end()
        self.abort()

    # --- facts and events ---

    def received(self, data: bytes) -> None:
        """Parse received bytes.

        Over HTTP/1.1 a whole chunk of the body is first offered to `fast_reader`, if it is set and reading continues.
        """
        if self._http2 is not None:
            self._http2.set_time(self.engine.now.mono)
        elif self.fast_reader is not None and not (self._holding or self.closing):
            body = cast("FastPathClientConnection", self.conn).try_whole_body(data)
            if body is not None and self.fast_reader(body):
                return
        super().received(data)

    def sent(self, n: int) -> None:
        """Record sent bytes; if others wait for the server's windows, schedule a `flush`.

        While all unsent bytes wait for the server's windows, sent bytes such as pongs do not extend the write timeout.
        """
        super().sent(n)
        if self._waiting:
            self.mark_dirty()
            if self.credit.unsent == self._waiting:
                self._stall.set(self._window_due)

    def all_sent(self) -> None:
        """Close the channel, if a close was deferred until all bytes were sent."""
        super().all_sent()
        if self._closing_behind:
            self.close_gracefully()

    def write_pending(self) -> None:
        """Write pending output, over HTTP/2 of bodies and messages only up to the high-water mark of the socket.

        Over HTTP/2 this also enlarges our receive window, unless reading of a plain response is paused.
        """
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
        """End a WebSocket with 1006; fail an incomplete response, or its reader, with UNREACHABLE."""
        super().closed(why)
        self._fail(FailureKind.UNREACHABLE, why or "the connection was closed")

    def stop(self) -> None:
        """Close an open WebSocket with 1001; a plain request continues, and its flow decides when to end it."""
        if self.socket is not None:
            self.socket.close(1001, "going away")

    def handle_event(self, event: Event) -> None:
        """Handle an event: collect or finish the response, fail after a reset, or pass on a WebSocket's event."""
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
                pass  # the final response follows
            case _:
                self.socket_event(event)

    def protocol_error(self, error: RemoteProtocolError) -> None:
        """Fail the request: the server broke HTTP. An open WebSocket closes with its connection."""
        self._fail(FailureKind.INVALID, str(error))
        if self.socket is not None:
            self.close_gracefully()

    def after_events(self) -> None:
        """If the server has sent its FIN, fail the request, unless its response is complete, and close."""
        if self.eof:
            self._fail(FailureKind.UNREACHABLE, "the server closed the connection")
            self.close_gracefully()

    # --- helpers ---

    def _resolve(self, outcome: object) -> None:
        if self.outcome is None:
            self.outcome = outcome
        self.engine.resume(self.ticket, outcome)

    def _update_reading(self) -> None:
        """Pause or resume reading from the socket; for a plain response over HTTP/2, schedule a `flush` instead.

        The flush enlarges the receive window unless reading is paused. The socket is always read: a window update may
        have to be read before more can be sent.
        """
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
        handler = cast("WebSocketHandler", self._into.handler)  # the wire layer rejects a 101 that was not requested
        frames = None if self._http2 is not None else cast("Http1Connection", self.conn).detach_websocket()
        socket = self.switch_to_websocket(stream, handler, frames)
        socket.deliver_open()
        self._resolve(socket)

    def _fail(self, kind: FailureKind, why: str) -> None:
        if self._reader is not None:
            self._reader.finish(Failure(kind, why))
        else:
            self._resolve(Failure(kind, why))
