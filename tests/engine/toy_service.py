"""A small service for the tests of the engine; its handlers answer, wait, stream, fail or close."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from http import HTTPStatus
from typing import TypeAlias

from attrs import evolve

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.commands import Level, OpenFile, ReadConfig, ReadFile, Send
from svc_proto.engine.admission import AdmissionControl
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Deferred, Flow, run_operation, wait
from svc_proto.engine.message import ANONYMOUS, Request, Response, StreamedResponse, empty_response, json_response
from svc_proto.engine.responses import http_date
from svc_proto.engine.router import BODY_LIMIT, Handler, Route, RouteKind, Router
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.facts import Accepted, ChannelId, Failure, OperationId, Received, Sent, Started
from svc_proto.wire.events import Headers, RequestHead
from svc_proto.wire.limits import Limits
from tests.support.playbook import CH, PATIENT, Playbook, accepted, counting_entropy, wire_bytes

Answer: TypeAlias = Response | StreamedResponse | Deferred | Flow[Response | StreamedResponse]

BIG = 600_000  # bytes of the answer of /big
STREAM_LIMIT = 2_000_000  # bytes of a body of /stream
HANDSHAKE = (
    b"GET %s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class ToyAccess(Enum):
    ANY = "any"
    OPEN = "open"  # no authentication
    CLOSED = "closed"
    BUG = "bug"
    SLOW = "slow"  # the client that the configuration names


class RecordingWebSocketHandler:
    """A `WebSocketHandler` that records its calls and raises the errors of `raises`."""

    def __init__(self, raises: dict[str, Exception] | None = None) -> None:
        self.told: list[tuple[object, ...]] = []
        self.raises = raises or {}
        self.socket: WebSocketConnection | None = None

    @property
    def open_socket(self) -> WebSocketConnection:
        assert self.socket is not None
        return self.socket

    def on_open(self, socket: WebSocketConnection) -> None:
        self.socket = socket
        self._note("open")

    def on_text(self, text: str) -> None:
        self._note("text", text)

    def on_binary(self, data: bytes) -> None:
        self._note("binary", data)

    def on_writable(self) -> None:
        self._note("writable")

    def on_closed(self, code: int, reason: str) -> None:
        self._note("closed", code, reason)

    def _note(self, *what: object) -> None:
        self.told.append(what)
        if what[0] in self.raises:
            raise self.raises[str(what[0])]


def plain(body: bytes, status: int = 200) -> Response:
    return Response(status, Headers([(b"content-type", b"text/plain")]), body)


class ToyService:
    """A small service for tests. `on` has functions that its start, its stop and an accepted connection call."""

    engine: Engine
    admission: AdmissionControl

    def __init__(self, limits: Limits = PATIENT, behind: Callable[[Request], str] | None = None) -> None:
        self.limits = limits
        self.behind = behind
        self.seen: list[Request] = []
        self.handler = RecordingWebSocketHandler()
        self.ticket = OperationId(0)
        self.cleaned: list[str] = []
        self.on: dict[str, Callable[[], None]] = {}
        self.refusal_fails = False
        self.known = False  # SLOW needs no request to others
        self.holder = ""  # credential id of every request
        self.barred = False  # access is refused
        self.asked = 0
        self.extra_fields: tuple[tuple[bytes, bytes], ...] = ()
        self.answer: Callable[[Request], Answer] = lambda request: plain(b"")
        self.router = Router(
            [
                _route("GET /hello", lambda request: plain(b"hello")),
                _route("POST /echo", self._echo),
                _route("POST /small", self._echo, body_limit=10),
                evolve(_route("POST /stream", self._answer, body_limit=STREAM_LIMIT), streamed=True),
                _route("GET /answer", self._answer),
                _route("GET /file", self._file),
                _route("GET /park", self._park),
                evolve(_route("GET /hangs-up", self._park), stops_with_client=True),
                _route("GET /leaves", self._leaves),
                _route("GET /leaves-late", self._leaves_late),
                _route("GET /quit", self._quit),
                _route("GET /boom", self._boom),
                _route("GET /boom-later", self._parked(self._boom)),
                _route("GET /teapot", self._teapot),
                _route("GET /teapot-later", self._parked(self._teapot)),
                _route("GET /blame", self._blame),
                _route("GET /header", self._header),
                _route("GET /header-later", self._parked(self._header)),
                _route("GET /empty", lambda request: empty_response()),
                _route("GET /big", lambda request: plain(b"b" * BIG)),
                _route("GET /item/{name}", lambda request: json_response(200, request.params)),
                _route("GET /private", lambda request: plain(b"never"), ToyAccess.CLOSED),
                _route("POST /slow", self._echo, ToyAccess.SLOW, body_limit=10),
                evolve(_route("POST /slow-stream", self._answer, ToyAccess.SLOW), streamed=True),
                evolve(_route("GET /slow-ws", self._socket, ToyAccess.SLOW), kind=RouteKind.WEBSOCKET),
                _route("GET /open", self._echo, ToyAccess.OPEN, body_limit=0),
                _route("POST /keyless", self._echo, ToyAccess.OPEN),
                evolve(_route("GET /open-ws", self._socket, ToyAccess.OPEN, body_limit=0), kind=RouteKind.WEBSOCKET),
                _route("GET /access-bug", lambda request: plain(b"never"), ToyAccess.BUG),
                evolve(_route("GET /ws", self._socket), kind=RouteKind.WEBSOCKET),
            ]
        )

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        self.engine = engine
        self.admission = AdmissionControl(engine, self, self.limits, behind=self.behind)

    def on_started(self) -> None:
        self.on.get("started", _nothing)()

    def on_accepted(self, fact: Accepted) -> ServerChannel | None:
        self.on.get("accepted", _nothing)()
        self.channel = None if fact.alpn == "unwanted" else self.admission.admit(fact)
        return self.channel

    def on_stopping(self) -> None:
        self.on.get("stopping", _nothing)()

    # --- HttpApp ---

    def authorize(self, access: Enum, request: Request) -> object:
        if access is ToyAccess.CLOSED:
            raise Refused(401, "unauthorized", "no client may", headers=((b"www-authenticate", b"Bearer"),))
        if access is ToyAccess.BUG:
            raise KeyError("a secret")
        if access is ToyAccess.SLOW:
            return self._ask_around()
        self.asked += 1
        if self.barred:
            raise Refused(403, "barred", "no more")
        request.credential_id = self.holder
        return ANONYMOUS if access is ToyAccess.OPEN else "a client"

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        if self.refusal_fails:
            raise ZeroDivisionError
        headers = Headers([(b"content-type", b"text/plain"), *refused.headers])
        return Response(refused.status, headers, f"{refused.code}: {refused.message}".encode())

    def response_headers(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        return self.extra_fields

    # --- handlers ---

    def _answer(self, request: Request) -> Answer:
        return self.answer(request)

    def _socket(self, request: Request) -> RecordingWebSocketHandler:
        return self.handler

    def _ask_around(self) -> Flow[object]:
        if self.known:
            return "known"
        try:
            answer = yield from run_operation(self.engine, ReadConfig(self.engine.new_op(), "callers"), within=5.0)
        finally:
            self.cleaned.append("access")
        match answer:
            case Failure():
                raise Refused(403, "no", "not you")
            case "bug":
                raise KeyError("a secret")
        return answer

    def _echo(self, request: Request) -> Response:
        self.seen.append(request)
        return plain(request.body)

    def _file(self, request: Request) -> Flow[Response]:
        opened = yield from run_operation(self.engine, OpenFile(self.engine.new_op(), "/f"), within=9.0)
        if isinstance(opened, Failure):
            return plain(opened.kind.value.encode(), 502)
        try:
            data = yield from run_operation(
                self.engine, ReadFile(self.engine.new_op(), opened.handle, 0, 5), within=9.0
            )
            return plain(data if isinstance(data, bytes) else data.kind.value.encode())
        finally:
            self.cleaned.append("file")

    def _park(self, request: Request) -> Flow[Response]:
        self.ticket = self.engine.new_op()
        try:
            answer = yield from wait(self.ticket, self.engine.now.mono + 20.0)
        finally:
            self.cleaned.append("park")
        return plain(answer if isinstance(answer, bytes) else b"late")

    def _leaves(self, request: Request) -> Flow[Response]:
        request.stop_with_client()
        return (yield from self._park(request))

    def _leaves_late(self, request: Request) -> Flow[Response]:
        yield from self._park(request)
        return (yield from self._leaves(request))

    def _quit(self, request: Request) -> Flow[Response]:
        try:
            self.engine.exit(3, "as asked")
            yield from run_operation(self.engine, OpenFile(self.engine.new_op(), "/f"))
        finally:
            self.cleaned.append("quit")
        return plain(b"never")

    def _boom(self, request: Request) -> Response:
        raise RuntimeError("a secret")

    def _teapot(self, request: Request) -> Response:
        raise Refused(418, "teapot", "short and stout")

    def _blame(self, request: Request) -> Response:
        raise RemoteProtocolError("the parts do not fit", status=422)

    def _header(self, request: Request) -> Response:
        return Response(200, Headers([(b"x", b"a\r\nb")]))

    def _parked(self, handler: Callable[[Request], Response]) -> Handler:
        """Return a handler that calls `handler` when a test resumes the request, or after 20 s."""

        def answer(request: Request) -> Flow[Response]:
            yield from self._park(request)
            return handler(request)

        return answer


class ToyPlaybook(Playbook):
    """A playbook of a `ToyService` with one accepted connection, on channel 2."""

    __test__ = False
    toy: ToyService
    engine: Engine

    def get(self, target: bytes, *, ch: int = CH) -> ToyPlaybook:
        self >> Received(ChannelId(ch), get(target))
        return self

    def sent(self) -> ToyPlaybook:
        """Report that all bytes of the last step have been sent."""
        self >> Sent(CH, len(wire_bytes(self.drain_commands())))
        return self

    def says(self, status: int, body: bytes, *headers: bytes, ch: int = CH) -> Send:
        """Return the `Send` by which the toy service responds over HTTP/1.1 with this status, body and fields."""
        lines = [
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode(),
            b"date: " + http_date(int(self.now.wall)),
            b"content-type: text/plain",
        ]
        lines += [header for header in headers if not header.startswith(b"connection")]
        lines.append(b"content-length: %d" % len(body))
        lines += [header for header in headers if header.startswith(b"connection")]
        return Send(ChannelId(ch), b"\r\n".join(lines) + b"\r\n\r\n" + body)


def open_book(
    limits: Limits = PATIENT, *, log_level: Level = Level.INFO, behind: Callable[[Request], str] | None = None
) -> ToyPlaybook:
    """Return a playbook of a started toy service, with one accepted connection."""
    toy = ToyService(limits, behind)
    engine = Engine(toy, entropy=counting_entropy(), log_level=log_level)
    book = ToyPlaybook(engine)
    book.toy, book.engine = toy, engine
    book >> Started() << []
    book >> accepted() << []
    return book


def get(target: bytes, *fields: bytes) -> bytes:
    """Return the bytes of a GET."""
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: x", *fields]) + b"\r\n\r\n"


def post(target: bytes, body: bytes, *fields: bytes, length: int | None = None) -> bytes:
    """Return the bytes of a POST; `length` replaces the announced length."""
    size = b"Content-Length: %d" % (len(body) if length is None else length)
    return b"\r\n".join([b"POST " + target + b" HTTP/1.1", b"Host: x", size, *fields]) + b"\r\n\r\n" + body


def _route(line: str, handler: Handler, access: ToyAccess = ToyAccess.ANY, *, body_limit: int = BODY_LIMIT) -> Route:
    method, pattern = line.split()
    return Route(method=method, pattern=pattern, access=access, handler=handler, body_limit=body_limit)


def _nothing() -> None:
    pass
