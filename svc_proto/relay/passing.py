"""A request that another node can answer: passed on to it once, and its answer passed back as it comes.

| what is asked for       | by                                   | what comes back, besides a success           |
|-------------------------|--------------------------------------|----------------------------------------------|
| a file (`media`)        | its token                            | 304, 412, 416                                |
| a session at `/mcp`     | its number                           | 202, 204, 400, 406, 409, 413, 415, 429, 503  |
| a voice session's socket| its id                               | 403, 410                                     |

All nodes are asked who has it; the address of one that does is where the request goes. We are a gateway then (RFC 9110
section 3.7): the caller was let in here, its token is good there as well, and what it asks for goes with it. `Via` says
that it was passed on, so that nobody does it again, and that nobody takes it for one of this host. Any other answer is
none for who was let in here. Who does not read makes us stop reading, and with us the other node; who goes away ends it
there, too. A socket is one of ours and one of theirs: what one hears the other says, and it ends with what let its
caller in, here as well as there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from attrs import define

from svc_proto.basics.errors import Refused
from svc_proto.engine.client import Fetched, fetch, websocket
from svc_proto.engine.client_channel import Into
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, Streamed
from svc_proto.engine.readers import BodyReader, pieces
from svc_proto.engine.router import Answer
from svc_proto.engine.socket import Socket
from svc_proto.engine.stream import ResponseWriter
from svc_proto.engine.waits import gather
from svc_proto.facts import Failure
from svc_proto.wire.events import Headers

if TYPE_CHECKING:
    from svc_proto.cluster.node import Node
    from svc_proto.relay.service import Relay

__all__ = ["Gateway", "pass_on", "was_passed_on"]

NODE = b"1.1 svc-node"  # our member of `Via`, RFC 9110 section 7.6.3
CONNECT_WITHIN = 2.0  # s: it is near
WITHIN = 10.0  # s for the head of its answer
SILENCE = 60.0  # s without a byte, after which it counts as gone
MAX_LOOKING = 256  # requests at a time for what nobody here knows, until their answer begins; another: 503
MAX_SOCKETS = 1_024  # WebSockets at a time that are passed on; another: 503
POLICY = 1008  # RFC 6455 section 7.4.1
GOING_AWAY = 1001
UNSAYABLE = {1005: 1000, 1006: GOING_AWAY, 1015: GOING_AWAY}  # codes that stand for a frame that was not there
ASKED = (
    b"authorization",
    b"range",
    b"if-range",
    b"if-match",
    b"if-none-match",
    b"if-modified-since",
    b"if-unmodified-since",
    b"accept",
    b"content-type",
    b"last-event-id",
)
ASKED_PREFIX = b"mcp-"
OURS = (  # what we say ourselves, and what is for one connection alone: RFC 9110 section 7.6.1
    b"date",
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
)
TOLD = {
    "media": (304, 412, 416),
    "mcp": (202, 204, 400, 406, 409, 413, 415, 429, 503),
    "voice": (403, 410),
}
SOCKETS = ("voice",)
T = TypeVar("T")


class Gateway:
    """Asks the others, and passes on."""

    def __init__(self, relay: Relay, node: Node) -> None:
        self._relay = relay
        self._node = node
        self._looking = 0
        self.sockets = 0  # that are passed on

    def answer(self, what: str, name: str, request: Request) -> Flow[Answer | None]:
        """The answer of the node that has it; None: nobody does, or it is here by now. `Refused` 503 at the limits."""
        if self._looking >= MAX_LOOKING or (what in SOCKETS and self.sockets >= MAX_SOCKETS):
            raise Refused(503, "busy", "too much is being looked for at other nodes")
        self._looking += 1
        try:
            nodes = list(self._node.members)
            asked = [self._node.ask(node, "has", {"what": what, "name": name}) for node in nodes]
            answers = yield from gather(self._relay.engine, asked)
            for node, answer in zip(nodes, answers, strict=True):
                if isinstance(answer, Failure):
                    continue
                self._relay.media.adopt(node, answer.inner("upload"))
                if self._relay.has(what, name):
                    return None  # it is here, too: the news of it was still on its way
                if url := answer.text("url"):
                    return (yield from self._pass(what, request, url))
            return None
        finally:
            self._looking -= 1

    def _pass(self, what: str, request: Request, url: str) -> Flow[Answer | None]:
        engine, told = self._relay.engine, TOLD[what]
        query = f"?{request.raw_query}" if request.raw_query else ""
        where = url + self._relay.router.inner(request.path) + query
        if what not in SOCKETS:
            return (yield from pass_on(engine, request, where, told))
        far = _Far()
        answer = yield from _send(engine, request, f"ws{where.removeprefix('http')}", into=websocket(far))
        if isinstance(answer, Socket):
            return _Near(self, engine, request.holder, far)
        return _whole(answer, told)


def was_passed_on(request: Request) -> bool:
    """Whether a node has passed it on to us."""
    return NODE in request.headers.tokens(b"via")


def pass_on(
    engine: Engine, request: Request, url: str, told: tuple[int, ...] = TOLD["media"]
) -> Flow[Response | Streamed | None]:
    """The answer of another node; None: it has none for us, or is gone."""
    answer: BodyReader | Fetched | Failure = yield from _send(engine, request, url, into=pieces())
    if isinstance(answer, BodyReader):
        if request.method == "HEAD":
            answer.drop()  # nothing more comes, and nobody asks for it
        return Streamed(answer.head.status, _passed(answer.head.headers), _passing(answer))
    return _whole(answer, told)


def _passing(reader: BodyReader) -> Callable[[ResponseWriter], Flow[bool]]:
    def produce(writer: ResponseWriter) -> Flow[bool]:
        try:
            while isinstance(data := (yield from reader.read(within=SILENCE)), bytes):
                writer.write(data)
                yield from writer.drained()
        finally:
            reader.drop()
        return data is None

    return produce


def _whole(answer: Fetched | Failure, told: tuple[int, ...]) -> Response | None:
    if isinstance(answer, Failure) or answer.status not in told:
        return None
    return Response(answer.status, _passed(answer.headers, b"content-length"), answer.body)


def _passed(headers: Headers, *but: bytes) -> Headers:
    kept_back = {*OURS, *but, *headers.tokens(b"connection")}
    return Headers(field for field in headers if field[0] not in kept_back)


def _send(engine: Engine, request: Request, url: str, *, into: Into[T]) -> Flow[T | Fetched | Failure]:
    asked = (field for field in request.headers if field[0] in ASKED or field[0].startswith(ASKED_PREFIX))
    return (
        yield from fetch(
            engine,
            "GET" if into.handler is not None else request.method,
            url,
            into=into,
            headers=(*asked, (b"via", NODE)),
            body=request.body,
            within=WITHIN,
            connect_within=CONNECT_WITHIN,
        )
    )


class _Far:
    """The socket that we have opened to the other node; a `SocketHandler`."""

    socket: Socket  # from `on_open` on

    def __init__(self) -> None:
        self.near: Socket | None = None  # while the caller's is there
        self.early: list[str | bytes] = []  # what came before that, with the answer to our handshake
        self.over: tuple[int, str] | None = None

    def on_open(self, socket: Socket) -> None:
        """See `SocketHandler`; so are the others."""
        self.socket = socket

    def on_text(self, text: str) -> None:
        self.pass_on(text)

    def on_binary(self, data: bytes) -> None:
        self.pass_on(data)

    def on_writable(self) -> None:
        pass  # a server reads on: what its client says and the other node does not take is bounded by our channel

    def on_closed(self, code: int, reason: str) -> None:
        self.over = UNSAYABLE.get(code, code), reason
        if self.near is not None:
            self.near.close(*self.over)

    def pass_on(self, said: str | bytes) -> None:
        """To the caller. One who does not read keeps us from reading, too."""
        if self.near is None:
            self.early.append(said)
            return
        _say(self.near, said)
        if not self.near.writable:
            self.socket.hold(True)


@define(eq=False)
class _Near:
    """The caller's socket; a `SocketHandler`, and held by what let its caller in."""

    gateway: Gateway
    engine: Engine
    holder: str
    far: _Far

    def on_open(self, socket: Socket) -> None:
        """See `SocketHandler`; so are the others."""
        self.far.near = socket
        self.gateway.sockets += 1
        self.engine.holders.enter(self.holder, self)
        for said in self.far.early:
            self.far.pass_on(said)
        if self.far.over is not None:
            socket.close(*self.far.over)

    def on_text(self, text: str) -> None:
        self.far.socket.send_text(text)

    def on_binary(self, data: bytes) -> None:
        self.far.socket.send_binary(data)

    def on_writable(self) -> None:
        self.far.socket.hold(False)

    def on_closed(self, code: int, reason: str) -> None:
        self.gateway.sockets -= 1
        self.engine.holders.leave(self.holder, self)
        self.far.near = None
        self.far.socket.close(UNSAYABLE.get(code, code), reason)

    def withdraw(self, refused: Refused) -> None:
        """What let the caller in is over: see `Held`. What is said from here on goes nowhere."""
        near = self.far.near
        if near is not None:
            near.close(POLICY, refused.message)
            self.far.socket.close(POLICY, refused.message)


def _say(socket: Socket, said: str | bytes) -> None:
    if isinstance(said, str):
        socket.send_text(said)
    else:
        socket.send_binary(said)
