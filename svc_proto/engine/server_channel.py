"""Server end of a connection: requests in, responses out, each phase with its deadline.

Most requests over HTTP/1.1 that arrive whole are served in one step: route, policy, handler, response. All others, and
those in which a step has to wait, stream, refuse or fail, are served by an `Exchange`.

| phase   | what it waits for                      | deadline                      | at the deadline          |
|---------|----------------------------------------|-------------------------------|--------------------------|
| IDLE    | the first byte of a request            | `idle_timeout`                | close without response   |
| HEAD    | a connection's first head, or the rest | `head_timeout`                | close; 408 if it began   |
| BODY    | the rest of a body                     | `body_timeout`, and by size,  | 408, close               |
|         |                                        | and of silence; not while a   |                          |
|         |                                        | handler has to read first     |                          |
| WORKING | our own response, or a WebSocket, or a | none here: the flow's own,    |                          |
|         | policy's flow, or the peer to read     | and `write_timeout`           |                          |
|         | its responses                          |                               |                          |
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Protocol

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.commands import Level
from svc_proto.engine.exchange import Exchange
from svc_proto.engine.http_channel import ConnectionPhase, HttpChannel
from svc_proto.engine.message import ANONYMOUS, Request, Response, refusal_of
from svc_proto.engine.responses import try_send_simple
from svc_proto.engine.router import Route, RouteKind, RouteMatch, Router
from svc_proto.facts import HTTP1, HTTP2, Accepted, ChannelId
from svc_proto.wire.connection import Connection, ServerConnection
from svc_proto.wire.events import Event, RequestData, RequestEnd, RequestHead, StreamId
from svc_proto.wire.http1_fast_path_server import FastPathServerConnection
from svc_proto.wire.limits import Limits

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["HttpApp", "ServerChannel"]

HTTP2_PREFACE_START = b"PRI "  # start of the HTTP/2 preface, which no HTTP/1.1 request has
NO_REQUEST = RequestHead(StreamId(0), "GET", "/")  # placeholder for an unreadable head
NOTHING: dict[str, RouteMatch] = {}
STILL_OPEN = (Exception, GeneratorType)  # possible results of a policy that are no principal


class HttpApp(Protocol):
    """The HTTP side of a service, as the engine uses it."""

    @property
    def router(self) -> Router:
        """The route table of the service."""
        ...

    def authorize(self, access: Enum, request: Request) -> object:
        """Return the principal of a request, or raise `Refused`; called before the handler.

        `ANONYMOUS` is the principal where all callers are admitted: a WebSocket of such a caller accepts small messages
        only, until its handler calls `mark_authenticated`. A policy that has to wait returns a flow with the same
        result; no more of the request is handled meanwhile. If a body took time or is streamed, and the principal is
        neither `ANONYMOUS` nor None, the method is called again when the body is complete; a flow that it returns then
        is not run.
        """
        ...

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        """Return this service's response for a refusal.

        A head that is unreadable or cannot be served is passed as `GET /`, over HTTP/2 also as `HEAD /`.
        """
        ...

    def response_headers(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        """Return the header fields that responses to this request have in common; `secure`: over TLS.

        A response with `only_these_headers` is sent without them.
        """
        ...


LAST_REQUEST = 0.5  # s from a stop to the end of the request that a new connection, or half a head, announces
# aliases, as in `machines.paired_session`
_IDLE, _WORKING, _SOCKET = (
    ConnectionPhase.IDLE,
    ConnectionPhase.WORKING,
    RouteKind.WEBSOCKET,
)


class ServerChannel(HttpChannel):
    """Server end of an HTTP/1.1 connection; base of the streams of an HTTP/2 connection."""

    __slots__ = (
        "_first",
        "_fresh",
        "_http2",
        "admitting",
        "app",
        "exchange",
        "own_connection",
        "own_user",
        "peer",
        "secure",
    )

    waits_for_peer = True

    def __init__(
        self,
        engine: Engine,
        accepted: Accepted,
        app: HttpApp,
        limits: Limits,
        *,
        http2: Callable[[Engine, Accepted, HttpApp, Limits], HttpChannel] | None = None,
        stream_channel: tuple[ChannelId, Connection] | None = None,
    ) -> None:
        """Initialize; `http2` makes the channel that takes over if the peer uses HTTP/2.

        `stream_channel`, for a stream of HTTP/2, is the number and the shared connection of its channel.
        """
        self.own_connection: ServerConnection | None = None  # the connection, unless it is shared
        if stream_channel is None:
            self.own_connection = FastPathServerConnection(limits=limits, entropy=engine.entropy)
            super().__init__(engine, accepted.ch, limits, self.own_connection)
            self.enter(ConnectionPhase.HEAD)  # a fresh connection has to send a request at once
        else:
            super().__init__(engine, stream_channel[0], limits, stream_channel[1])
        self._http2 = http2
        self._fresh = accepted if http2 is not None else None  # until the HTTP version is determined
        self._first = b""  # the first bytes, while they may be an HTTP/2 preface
        self.app = app
        self.peer = accepted.peer
        self.secure = accepted.tls
        self.own_user = accepted.own_user
        self.exchange: Exchange | None = None  # HTTP/1.1 has one at a time
        self.admitting = False  # a policy's flow runs: no more input is handled

    # --- facts ---

    def parse(self, data: bytes) -> None:
        """Parse received bytes, serve a request that arrives whole, or hand the connection over to HTTP/2.

        HTTP/2 is chosen by ALPN or, unless that has chosen HTTP/1.1, by its preface in the first bytes.
        """
        if self._fresh is not None and not self.closing:
            data, alpn = self._first + data, self._fresh.alpn
            if alpn == HTTP2 or (alpn != HTTP1 and data.startswith(HTTP2_PREFACE_START)):
                self._hand_over(self._fresh, data)
                return
            self._first = data if alpn != HTTP1 and HTTP2_PREFACE_START.startswith(data) else b""
            if self._first:
                return
            self._fresh = None
        own_connection = self.own_connection
        if own_connection is not None and not (self._holding or self.closing or self.credit.blocked):
            head_and_body = own_connection.receive_simple_request(data)
            if head_and_body is not None:
                self._handle_request(own_connection, *head_and_body)
                return
        super().parse(data)

    def parse_end(self) -> None:
        """Handle the end of input; an incomplete HTTP/2 preface is parsed as HTTP/1.1."""
        if self.phase is _IDLE and self.conn.idle and not self._pumping:  # the usual case: between two requests
            self.eof = True
            self.conn.receive_eof()
            self.close_gracefully()
            return
        if self._first:
            self.conn.receive_data(self._first)
            self._first = b""
        super().parse_end()
        self.half_close()

    def half_close(self) -> None:
        """Handle that the peer has closed its end, for the request in progress."""
        if self.exchange is not None:
            self.exchange.half_close()

    def closed(self, why: str) -> None:
        """Mark the channel as closed, and cancel the request in progress."""
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.lost()
        super().closed(why)

    def stop(self) -> None:
        """Close the channel, after a request that has begun or is expected.

        A WebSocket is closed with 1001, unless it `stays`.
        """
        if self.socket is not None:
            if not self.socket.stays:
                self.socket.close(1001, "the server is shutting down")
        elif self.exchange is None and self.phase is ConnectionPhase.HEAD and not self.eof:
            # A proxy has just connected, or the head is on its way: closing would lose a request that is not repeated.
            self._timer.set(self.engine.now.mono + LAST_REQUEST)
        elif self.exchange is None:
            self.close_gracefully()

    def writable(self) -> None:
        """Continue a WebSocket or a response, and handle requests that waited until the peer had read its responses."""
        super().writable()
        if self.exchange is not None and self.exchange.outgoing is not None:
            self.exchange.outgoing.read.notify_all()
        self.process_events()

    # --- events ---

    @property
    def is_half_closed(self) -> bool:
        """Report whether the peer has closed its end."""
        return self.eof

    @property
    def accepts_requests(self) -> bool:
        """Report whether events are handled now: not while a policy's flow runs.

        Without a WebSocket, events also wait while too many bytes are unsent.
        """
        return not self.admitting and (not self.credit.blocked or self.socket is not None)

    def handle_event(self, event: Event) -> None:
        """Begin an exchange for a request head; pass another event to the exchange or, without one, to the WebSocket.

        A reset of the stream ends the exchange.
        """
        if isinstance(event, RequestHead):
            route, request, principal = self._identify(event)
            self.exchange = Exchange(self, event, route, request)
            self.exchange.begin(principal)
            return
        exchange = self.exchange
        if exchange is None:
            self.socket_event(event)
            return
        match event:
            case RequestData(data=data):
                exchange.data(data)
            case RequestEnd():
                exchange.end()
            case _:  # StreamReset: the request will never be complete
                exchange.lost()
                self.close_gracefully()

    def protocol_error(self, error: RemoteProtocolError, head: RequestHead = NO_REQUEST) -> None:
        """Answer the request in progress, or the unreadable head, with the status of the error, then close.

        If a response has begun and is not complete, the channel is aborted. Nothing is sent after a complete response,
        or while the policy decides.
        """
        self.engine.log(Level.DEBUG, "bad request", peer=self.peer.host, status=error.status, problem=str(error))
        (self.exchange or Exchange(self, head)).fail(refusal_of(error))

    def finished(self) -> None:
        """Accept the next request after an exchange, or close if none may follow."""
        self.exchange = None
        idle = self.conn.idle
        if self.engine.stopping or (not idle and self.conn.must_close):
            self.close_gracefully()
        counted = self.admission is not None and self.admission.held
        if idle and not (self._holding or self.eof or self._pumping or counted):
            self._request_finished()
            return
        self.enter(_WORKING)  # so that the next phase counts from now, even if it is the one before
        self.process_events()

    # --- requests ---

    def _identify(self, head: RequestHead) -> tuple[Route | None, Request | None, object]:
        """Find the route of a request and call the policy.

        Return the route and the request, or None for what could not be found or made. The third value is the principal,
        a flow that returns one, or the exception of the lookup or the policy.
        """
        route = request = None
        try:
            router, path, query = self.app.router, head.target, ""
            match = router.exact.get(path, NOTHING).get(head.method)  # the usual case
            if match is None:
                path, query = router.split(path)
                match = router.match(head.method, path)
            route, params = match
            # Positional arguments: keywords would cost a dictionary for each request.
            peer, secure, version = self.peer, self.secure, head.http_version
            request = Request(head.method, path, query, head.headers, peer, secure, params, version, self.own_user)
            if self.proxy_admission is not None:
                self.proxy_admission.set_forwarded_address(request)
            return route, request, self.app.authorize(route.access, request)
        except Exception as error:
            return route, request, error

    def _handle_request(self, own_connection: ServerConnection, head: RequestHead, body: bytes) -> None:
        """Serve a request that the connection has parsed whole."""
        route, request, principal = self._identify(head)
        if (
            route is None
            or request is None
            or isinstance(principal, STILL_OPEN)
            or route.streamed
            or route.kind is _SOCKET
            or len(body) > (route.body_limit or self.limits.max_skipped)
            or (body and head.headers.get(b"content-encoding") is not None)
        ):
            own_connection.replay_as_events()
            self.exchange = exchange = Exchange(self, head, route, request)
            exchange.begin(principal)
            self.process_events()
            return
        request.principal = principal
        if self.admission is not None and principal is not ANONYMOUS:
            self.mark_authenticated()
        if route.body_limit:
            request.body = body
        result: Any
        try:
            result = route.handler(request)
        except Exception as error:
            result = error
        whole = isinstance(result, Response) and result.file is None and not self.engine.stopping
        if whole and try_send_simple(self, head, route.label, result):
            if own_connection.must_close:
                self.close_gracefully()
            else:
                self._request_finished()
            return
        self.exchange = exchange = Exchange(self, head, route, request)
        exchange.continue_with(result)
        if self.admission is None and self.exchange is not None:  # a handler waits, and no other work can be under way
            self._timer.cancel()
            self.phase = _WORKING
        else:
            self.process_events()

    # --- answers ---

    def log_request(self, event: str, begun: float, **fields: object) -> None:
        """Log an event of a request at level DEBUG, with the peer's address and the milliseconds since `begun`.

        `fields` must not contain the path or the query, which may hold tokens: log the route instead.
        """
        duration_ms = round((self.engine.now.mono - begun) * 1000)
        self.engine.log(Level.DEBUG, event, **fields, peer=self.peer.host, ms=duration_ms)

    def _request_finished(self) -> None:
        """Start the next phase after a response, when no other work is under way."""
        if self.closing or self.credit.blocked:
            self.enter(_WORKING)
            self.after_events()
        else:
            self.phase = _IDLE
            self._timer.set(self.engine.now.mono + self.limits.idle_timeout)

    # --- between events ---

    @property
    def buffered_bytes(self) -> int:
        """Number of received bytes that are buffered, with those that the request or the WebSocket's handler holds."""
        holder = self.socket if self.exchange is None else self.exchange
        return self.conn.buffered_bytes if holder is None else self.conn.buffered_bytes + holder.buffered_bytes

    def after_events(self) -> None:
        """Set the phase and its deadline, and pause or resume reading.

        After the peer's FIN, close when no request is left.
        """
        must_update = self._holding or self.eof or self.admission is not None or self._has_large_input
        if self.closing or (self.socket is not None and self.phase is _WORKING and not must_update):
            return
        exchange = self.exchange
        waits = self.is_over_budget or self.is_handler_paused
        self.set_read_paused(waits or self.conn.paused or self.admitting or (exchange is not None and exchange.full))
        if self.gone:
            return
        if self.socket is not None:
            self.socket.pause_keepalive(waits)
        if self.eof and exchange is None and self.accepts_requests:
            self.close_gracefully()
            return
        phase = self._current_phase()
        if exchange is not None and phase is ConnectionPhase.BODY:
            rate = exchange.begun + exchange.received / self.limits.min_body_rate
            self._timer.set(min(rate, exchange.last_data_at) + self.limits.body_timeout)
            self.phase = phase
        elif phase is not self.phase:
            self.enter(phase)

    def timed_out(self) -> None:
        """Pass status 408 to `protocol_error` for an incomplete head or body; close if there is none.

        A channel that is closing already is cut.
        """
        if self.closing:
            self.abort()
        elif self.phase is ConnectionPhase.BODY or self.conn.has_partial_head:
            part = "body" if self.phase is ConnectionPhase.BODY else "head"
            self.protocol_error(RemoteProtocolError(f"the request {part} took too long", status=408))
        else:
            self.close_gracefully()

    def update_handler_pause(self) -> None:
        """Pause or resume reading after a request of the WebSocket's handler; other reasons for a pause count, too."""
        self.after_events()

    @property
    def _has_large_input(self) -> bool:
        """Report whether the channel holds or needs a permit for large input, or its handler has paused reading."""
        is_large = self.buffered_bytes > self.limits.large_input
        return is_large or self.is_handler_paused or self in self.engine.large_inputs.holders

    # --- HTTP/2 ---

    def _hand_over(self, accepted: Accepted, data: bytes) -> None:
        """Hand the connection over to HTTP/2, chosen by prior knowledge (RFC 9113 section 3.3) or by ALPN."""
        assert self._http2 is not None  # the only case in which the preface is checked
        channel = self._http2(self.engine, accepted, self.app, self.limits)
        admission = self.admission
        if admission is not None:
            self.set_admission(None)
            channel.set_admission(admission)
            admission.channel = channel
        self.set_read_paused(False)  # the new channel decides about pauses
        self.closed("")
        self.engine.attach(channel)
        channel.parse(data)
        if self.engine.stopping:
            channel.stop()

    def _current_phase(self) -> ConnectionPhase:
        if self.exchange is not None:
            return ConnectionPhase.BODY if self.exchange.waits_for_body else _WORKING
        if self.socket is not None or self.credit.blocked:
            return _WORKING
        return ConnectionPhase.HEAD if self.conn.has_partial_head else _IDLE
