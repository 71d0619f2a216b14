"""What is not here but at another node: a request for it is passed on to that node, see `svc_proto.cluster.forwarding`.

| what is asked for       | by                                   | what comes back, besides a success           |
|-------------------------|--------------------------------------|----------------------------------------------|
| a file (`media`)        | its token                            | 304, 412, 416                                |
| a session at `/mcp`     | its number                           | 202, 204, 400, 406, 409, 413, 415, 429, 503  |
| a voice session's socket| its id                               | 403, 410                                     |

All nodes are asked who has it; the address of one that does is where the request goes. `Via` says also that it is none
of that node's own host. A socket is one of ours and one of theirs: what one hears the other says, and it ends with what
let its caller in, here as well as there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define

from svc_proto.basics.errors import Refused
from svc_proto.cluster.forwarding import FILE_FORWARD_RULE, ForwardRule, forward, response_to_relay, send_to_node
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import websocket_upgrade
from svc_proto.engine.message import Request
from svc_proto.engine.router import HandlerResult
from svc_proto.engine.sync import gather
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.facts import Failure

if TYPE_CHECKING:
    from svc_proto.cluster.node import Node
    from svc_proto.relay.service import Relay

__all__ = ["RequestForwarder"]

MAX_LOOKUPS = 256  # requests at a time for what nobody here knows, until their answer begins; another: 503
MAX_SOCKETS = 1_024  # WebSockets at a time that are passed on; another: 503
POLICY = 1008  # RFC 6455 section 7.4.1
GOING_AWAY = 1001
UNSENDABLE_CODES = {1005: 1000, 1006: GOING_AWAY, 1015: GOING_AWAY}  # codes that stand for a frame that was not there
MORE = (*FILE_FORWARD_RULE.asked, b"accept", b"content-type", b"last-event-id")
FORWARD_RULES = {
    "media": FILE_FORWARD_RULE,
    "mcp": ForwardRule(
        asked=MORE, asked_prefixes=(b"mcp-",), answers=(202, 204, 400, 406, 409, 413, 415, 429, 503).__contains__
    ),
    "voice": ForwardRule(asked=MORE, answers=(403, 410).__contains__),
}
SOCKETS = ("voice",)


class RequestForwarder:
    """Asks the others, and passes on: see RFC 9110 section 3.7."""

    def __init__(self, relay: Relay, node: Node) -> None:
        self._relay = relay
        self._node = node
        self._looking = 0
        self.sockets = 0  # that are passed on

    def answer(self, what: str, name: str, request: Request) -> Flow[HandlerResult | None]:
        """The answer of the node that has it; None: nobody does, or it is here by now. `Refused` 503 at the limits."""
        if self._looking >= MAX_LOOKUPS or (what in SOCKETS and self.sockets >= MAX_SOCKETS):
            raise Refused(503, "busy", "too much is being looked for at other nodes")
        self._looking += 1
        try:
            nodes = list(self._node.members)
            asked = [self._node.request(node, "has", {"what": what, "name": name}) for node in nodes]
            answers = yield from gather(self._relay.engine, asked)
            for node, answer in zip(nodes, answers, strict=True):
                if isinstance(answer, Failure):
                    continue
                self._relay.media.adopt(node, answer.get_object("upload"))
                if self._relay.owns_locally(what, name):
                    return None  # it is here, too: the news of it was still on its way
                if url := answer.text("url"):
                    return (yield from self._pass(what, request, url))
            return None
        finally:
            self._looking -= 1

    def _pass(self, what: str, request: Request, url: str) -> Flow[HandlerResult | None]:
        engine, hop = self._relay.engine, FORWARD_RULES[what]
        query = f"?{request.raw_query}" if request.raw_query else ""
        where = url + self._relay.router.inner(request.path) + query
        if what not in SOCKETS:
            return (yield from forward(engine, request, where, hop))
        far = _UpstreamSocket()
        answer = yield from send_to_node(
            engine, request, f"ws{where.removeprefix('http')}", hop, into=websocket_upgrade(far)
        )
        if isinstance(answer, WebSocketConnection):
            return _DownstreamSocket(self, engine, request.credential_id, far)
        return response_to_relay(answer, hop)


class _UpstreamSocket:
    """The socket that we have opened to the other node; a `WebSocketHandler`."""

    socket: WebSocketConnection  # from `on_open` on

    def __init__(self) -> None:
        self.near: WebSocketConnection | None = None  # while the caller's is there
        self.early: list[str | bytes] = []  # what came before that, with the answer to our handshake
        self.over: tuple[int, str] | None = None

    def on_open(self, socket: WebSocketConnection) -> None:
        """See `WebSocketHandler`; so are the others."""
        self.socket = socket

    def on_text(self, text: str) -> None:
        self.pass_on(text)

    def on_binary(self, data: bytes) -> None:
        self.pass_on(data)

    def on_writable(self) -> None:
        pass  # a server reads on: what its client says and the other node does not take is bounded by our channel

    def on_closed(self, code: int, reason: str) -> None:
        self.over = UNSENDABLE_CODES.get(code, code), reason
        if self.near is not None:
            self.near.close(*self.over)

    def pass_on(self, said: str | bytes) -> None:
        """To the caller. One who does not read keeps us from reading, too."""
        if self.near is None:
            self.early.append(said)
            return
        _send_message(self.near, said)
        if not self.near.writable:
            self.socket.set_read_paused(True)


@define(eq=False)
class _DownstreamSocket:
    """The caller's socket; a `WebSocketHandler`, and held by what let its caller in."""

    intermediary: RequestForwarder
    engine: Engine
    holder: str
    far: _UpstreamSocket

    def on_open(self, socket: WebSocketConnection) -> None:
        """See `WebSocketHandler`; so are the others."""
        self.far.near = socket
        self.intermediary.sockets += 1
        self.engine.revocables[self] = self.holder
        for said in self.far.early:
            self.far.pass_on(said)
        if self.far.over is not None:
            socket.close(*self.far.over)

    def on_text(self, text: str) -> None:
        self.far.socket.send_text(text)

    def on_binary(self, data: bytes) -> None:
        self.far.socket.send_binary(data)

    def on_writable(self) -> None:
        self.far.socket.set_read_paused(False)

    def on_closed(self, code: int, reason: str) -> None:
        self.intermediary.sockets -= 1
        self.engine.revocables.pop(self, None)
        self.far.near = None
        self.far.socket.close(UNSENDABLE_CODES.get(code, code), reason)

    def revoke(self, refused: Refused) -> None:
        """What let the caller in is over: see `Held`. What is said from here on goes nowhere."""
        near = self.far.near
        if near is not None:
            near.close(POLICY, refused.message)
            self.far.socket.close(POLICY, refused.message)


def _send_message(socket: WebSocketConnection, said: str | bytes) -> None:
    if isinstance(said, str):
        socket.send_text(said)
    else:
        socket.send_binary(said)
