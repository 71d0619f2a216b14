"""Echo service on the engine, for conformance suites and external clients.

WebSocket, any path   echoes text and binary, messages to 32 MiB; `/version` sends `1.1` or `2` first
any other request     200, and its body; without one `hello` for GET and HEAD, else nothing
GET /echo             the header lines of the request
GET /cookie           its cookies, one a line
GET /big?n=N          N times `x`
GET /sse              five events in pieces of at most seven bytes; `?slow`, `?endless`; see `events`
GET /sse-open         the number of open endless streams
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from svc_proto.basics.errors import Refused
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.http2_channel import Http2Channel, Http2StreamChannel
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.engine.router import RouteKind, RouteMatch, Router
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.facts import Accepted, ChannelId
from svc_proto.wire.events import BinaryMessage, Event, Headers, RequestHead, StreamId
from svc_proto.wire.limits import Limits
from svc_proto.wire.urls import split_target
from svc_proto.wire.websocket_handshake import handshake_problem
from tests.support.servers.scripted_service import ScriptedService, row

MIB = 1024 * 1024
LIMITS = Limits(max_message=32 * MIB, max_unsent=128 * MIB)
MAX_BODY = 64 * MIB  # bytes of a request body, and of /big
BLOCK = b"x" * 65_536  # of /big, written at once
PIECE = 7  # bytes of an event stream that are written at once: every event and line is divided
GAP = 0.001  # s between two pieces, so that each is sent separately, over HTTP/2 in a frame of its own
SLOW = 0.2  # s before each event of /sse?slow
TICK = 0.1  # s before each event of /sse?endless
SOCKET = "/websocket"  # the route of all handshakes, whatever their path
GREETING = "/version"
TEXT = (b"content-type", b"text/plain; charset=utf-8")
STREAM = Headers([(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")])
EVENTS = (
    *(b": a comment\n\nid: 1\nevent: greet\ndata: hello\n\n", b"id: 2\r\ndata: line one\r\ndata: line two\r\n\r\n"),
    *("data: café\n\n".encode(), b"retry: 250\ndata:\n\n", b"id: 3\ndata: last\n\n"),
)


class EchoService(ScriptedService):
    """Engine service with the routes of the echo, for every client."""

    def __init__(self) -> None:
        super().__init__(())
        self.router = EchoRouter(self)
        self.streams = 0  # open endless ones
        self.greetings: dict[tuple[ChannelId, StreamId], str] = {}  # first message of a socket

    def on_accepted(self, fact: Accepted) -> ServerChannel:
        return EchoChannel(self.engine, fact, self, LIMITS, http2=EchoHttp2Channel)

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        """Return the message of a refusal as a line of text, with its status."""
        return _text(f"{refused.message}\n", refused.status, refused.headers)

    # --- handlers ---

    def echo(self, request: Request) -> Response:
        """Echo the request's body with its media type; without one, `hello` for GET and HEAD, else an empty text."""
        if request.body:
            kind = request.headers.get(b"content-type", b"application/octet-stream")
            return Response(200, Headers([(b"content-type", kind or b"application/octet-stream")]), request.body)
        return _text("hello\n" if request.method in ("GET", "HEAD") else "")

    def lines(self, request: Request) -> Response:
        """Return the header lines of the request as text."""
        lines = b"".join(name + b": " + value + b"\n" for name, value in request.headers)
        return Response(200, Headers([TEXT]), lines)

    def cookies(self, request: Request) -> Response:
        """Return the cookies of the request, one a line.

        HTTP/2 may send each cookie in a field of its own (RFC 9113 section 8.2.3).
        """
        cookie_fields = b";".join(request.headers.all(b"cookie")).split(b";")
        return Response(
            200,
            Headers([TEXT]),
            b"".join(cookie_field.strip() + b"\n" for cookie_field in cookie_fields if cookie_field.strip()),
        )

    def big(self, request: Request) -> StreamedResponse:
        """Return `n` times `x`, written at the client's pace.

        Raise Refused if `n` is no number up to `MAX_BODY`.
        """
        text = request.query.get("n", "")
        if not (text.isascii() and text.isdigit()) or len(text) > len(str(MAX_BODY)) or int(text) > MAX_BODY:
            raise Refused(400, "invalid_n", f"n must be a number up to {MAX_BODY}")
        n = int(text)
        return StreamedResponse(
            200, Headers([TEXT, (b"content-length", b"%d" % n)]), lambda writer: self._fill(writer, n)
        )

    def count(self, request: Request) -> Response:
        """Return the number of open endless event streams as text."""
        return _text(f"{self.streams}\n")

    def events(self, request: Request) -> StreamedResponse:
        """Return a stream of all `EVENTS`, or of one event that repeats `Last-Event-ID`.

        `?slow` pauses before each event; `?endless` sends ticks until the client disconnects.
        """
        last = request.headers.get(b"last-event-id")
        if "endless" in request.query:
            return StreamedResponse(200, STREAM, self._tick)
        pause = SLOW if "slow" in request.query else 0.0
        events = EVENTS if last is None else (resumed(last),)
        return StreamedResponse(200, STREAM, lambda writer: self._send_events(writer, events, pause))

    def _fill(self, writer: ResponseWriter, left: int) -> Flow[None]:
        while left and writer.write(BLOCK[:left]):
            left -= min(left, len(BLOCK))
            yield from writer.drained()

    def _send_events(self, writer: ResponseWriter, events: tuple[bytes, ...], pause: float) -> Flow[None]:
        for event in events:
            if pause:
                yield from sleep(self.engine, pause)
            for at in range(0, len(event), PIECE):
                writer.write(event[at : at + PIECE])
                yield from writer.drained()
                yield from sleep(self.engine, GAP)

    def _tick(self, writer: ResponseWriter) -> Flow[None]:
        self.streams += 1
        try:
            while writer.write(b"event: tick\ndata: tick\n\n"):
                yield from writer.drained()
                yield from sleep(self.engine, TICK)
        finally:
            self.streams -= 1

    def open_socket(self, request: Request) -> SocketEcho:
        return SocketEcho(self.greetings)


class EchoRouter(Router):
    """Router with few paths for GET and HEAD, and `SOCKET` for the WebSocket; all other requests are echoed."""

    def __init__(self, service: EchoService) -> None:
        handlers: dict[str, Callable[[Request], Response | StreamedResponse]] = {
            "/echo": service.lines,
            "/cookie": service.cookies,
            "/big": service.big,
            "/sse": service.events,
            "/sse-open": service.count,
        }
        super().__init__([row("GET", path, handler, body_limit=MAX_BODY) for path, handler in handlers.items()])
        self._known = frozenset(handlers)
        self._echo = service.echo
        self._socket = row("GET", SOCKET, service.open_socket, kind=RouteKind.WEBSOCKET)

    def match(self, method: str, path: str) -> RouteMatch:
        """Return the WebSocket's route at `SOCKET`, for GET and HEAD that of a known path, else one that echoes."""
        if path == SOCKET:
            return RouteMatch(self._socket, {})
        if path in self._known and method in ("GET", "HEAD"):
            return super().match(method, path)
        return RouteMatch(row(method, path, self._echo, body_limit=MAX_BODY), {})


class EchoChannel(ServerChannel):
    """Connection of the echo: each WebSocket handshake, valid or not, goes to one route, and messages are echoed."""

    __slots__ = ()

    app: EchoService

    def handle_event(self, event: Event) -> None:
        """Change the target of WebSocket handshakes to the common route, and pass all events on."""
        if isinstance(event, RequestHead) and (event.websocket or handshake_problem(event)):
            if event.websocket and split_target(event.target)[0] == GREETING:
                self.app.greetings[self.ch, event.stream] = event.http_version
            event = attrs.evolve(event, target=SOCKET)
        super().handle_event(event)

    def socket_event(self, event: Event) -> None:
        """Send a binary message back, and pass other events to the WebSocket's handler."""
        if isinstance(event, BinaryMessage):
            self.send_event(event)
        else:
            super().socket_event(event)


class EchoStreamChannel(EchoChannel, Http2StreamChannel):
    __slots__ = ()


class EchoHttp2Channel(Http2Channel):
    __slots__ = ()

    def handle_event(self, event: Event) -> None:
        """Open an echo channel for the head of a request, and pass other events on."""
        if isinstance(event, RequestHead):
            stream_channel = self.stream_channels[event.stream] = EchoStreamChannel(self, event.stream)
            stream_channel.receive_event(event)
        else:
            super().handle_event(event)


class SocketEcho:
    """WebSocket handler that echoes texts; its channel echoes binary messages itself."""

    def __init__(self, greetings: dict[tuple[ChannelId, StreamId], str]) -> None:
        self._greetings = greetings

    def on_open(self, socket: WebSocketConnection) -> None:
        """Send the HTTP version if the path was `/version`."""
        self._socket = socket
        greeting = self._greetings.pop((socket.ch, socket.stream), None)
        if greeting is not None:
            socket.send_text(greeting)

    def on_text(self, text: str) -> None:
        self._socket.send_text(text)

    def on_binary(self, data: bytes) -> None:
        pass

    def on_writable(self) -> None:
        pass

    def on_closed(self, code: int, reason: str) -> None:
        pass


def resumed(last: bytes) -> bytes:
    """Return the event for a client that reconnects after `last`."""
    return b"event: resumed\ndata: " + last + b"\n\n"


def _text(text: str, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    return Response(status, Headers([TEXT, *headers]), text.encode())
