"""Forwarding of requests for objects that another node has, see `svc_proto.cluster.forwarding`.

| object                   | found by  | statuses that come back                               |
|--------------------------|-----------|-------------------------------------------------------|
| a file (`media`)         | its token | 200, 206, 304, 412, 416                               |
| a session at `/mcp`      | its id    | 200, 202, 204, 206, 400, 406, 409, 413, 415, 429, 503 |
| a voice session's socket | its id    | 403, 410; the socket itself, if it is opened          |

All other nodes are queried; the request goes to the address of the first one that reports to have the object. A
WebSocket is forwarded over a second one to the other node: each message of one is sent on the other.
"""

from __future__ import annotations

from typing import Protocol

from attrs import define

from svc_proto.basics.errors import Refused
from svc_proto.cluster.forwarding import FILE_FORWARD_RULE, ForwardRule, forward, response_to_relay, send_to_node
from svc_proto.cluster.node import Node
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import websocket_upgrade
from svc_proto.engine.message import Request
from svc_proto.engine.router import HandlerResult, Router
from svc_proto.engine.sync import gather
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Failure
from svc_proto.relay.media.media_service import MediaService

__all__ = ["RequestForwarder"]

MAX_LOOKUPS = 256  # concurrent lookups, until the response begins; a further one: 503
MAX_SOCKETS = 1_024  # concurrent forwarded WebSockets; a further one: 503
POLICY = 1008  # RFC 6455 section 7.4.1
GOING_AWAY = 1001
UNSENDABLE_CODES = {1005: 1000, 1006: GOING_AWAY, 1015: GOING_AWAY}  # codes that are never sent in a frame
MORE = (*FILE_FORWARD_RULE.asked, b"accept", b"content-type", b"last-event-id")
FORWARD_RULES = {
    "media": FILE_FORWARD_RULE,
    "mcp": ForwardRule(
        asked=MORE, asked_prefixes=(b"mcp-",), answers=(202, 204, 400, 406, 409, 413, 415, 429, 503).__contains__
    ),
    "voice": ForwardRule(asked=MORE, answers=(403, 410).__contains__),
}
SOCKETS = ("voice",)


class ForwardingPort(Protocol):
    """Members of the relay that the forwarding of requests to other nodes uses."""

    engine: Engine
    media: MediaService
    router: Router

    def owns_locally(self, what: str, name: str) -> bool:
        """Report whether this node has the file or session `name`; an ended voice or tmux session may still count."""


class RequestForwarder:
    """Gateway (RFC 9110 section 3.7) that finds the node of an object and forwards the request to it."""

    def __init__(self, relay: ForwardingPort, node: Node) -> None:
        self._relay = relay
        self._node = node
        self._lookups = 0
        self.sockets = 0  # number of forwarded WebSockets

    def answer(self, what: str, name: str, request: Request) -> Flow[HandlerResult | None]:
        """Return the response of the node that has the object, or a handler for the client's WebSocket to that node.

        Return None if no other node answers that it has the object, if that node gives no response that `FORWARD_RULES`
        passes on, or if the object is on this node by now. Raise `Refused` 503 at the limits.
        """
        if self._lookups >= MAX_LOOKUPS or (what in SOCKETS and self.sockets >= MAX_SOCKETS):
            raise Refused(503, "busy", "too much is being looked for at other nodes")
        self._lookups += 1
        try:
            nodes = list(self._node.members)
            asked = [self._node.request(node, "has", {"what": what, "name": name}) for node in nodes]
            answers = yield from gather(self._relay.engine, asked)
            for node, answer in zip(nodes, answers, strict=True):
                if isinstance(answer, Failure):
                    continue
                self._relay.media.adopt(node, answer.get_object("upload"))
                if self._relay.owns_locally(what, name):
                    return None  # the object is here by now: its announcement was in transit
                if url := answer.text("url"):
                    return (yield from self._pass(what, request, url))
            return None
        finally:
            self._lookups -= 1

    def _pass(self, what: str, request: Request, url: str) -> Flow[HandlerResult | None]:
        engine, hop = self._relay.engine, FORWARD_RULES[what]
        query = f"?{request.raw_query}" if request.raw_query else ""
        where = url + self._relay.router.inner(request.path) + query
        if what not in SOCKETS:
            return (yield from forward(engine, request, where, hop))
        upstream = _UpstreamSocket()
        answer = yield from send_to_node(
            engine, request, f"ws{where.removeprefix('http')}", hop, into=websocket_upgrade(upstream)
        )
        if isinstance(answer, WebSocketConnection):
            return _DownstreamSocket(self, engine, request.credential_id, upstream)
        return response_to_relay(answer, hop)


class _UpstreamSocket(WebSocketHandler):
    """Handler of the WebSocket to the node that has the object."""

    socket: WebSocketConnection  # set by `on_open`

    def __init__(self) -> None:
        self.downstream: WebSocketConnection | None = None  # while the client's socket is open
        self.early: list[str | bytes] = []  # messages before that, in the segment of the handshake's answer
        self.close_frame: tuple[int, str] | None = None

    def on_open(self, socket: WebSocketConnection) -> None:
        self.socket = socket

    def on_text(self, text: str) -> None:
        self.send_to_client(text)

    def on_binary(self, data: bytes) -> None:
        self.send_to_client(data)

    def on_closed(self, code: int, reason: str) -> None:
        self.close_frame = UNSENDABLE_CODES.get(code, code), reason
        if self.downstream is not None:
            self.downstream.close(*self.close_frame)

    def send_to_client(self, message: str | bytes) -> None:
        """Send a message to the client; store it if the client's socket is not open yet, or not any more.

        While the client does not read, reading from the other node is paused.
        """
        if self.downstream is None:
            self.early.append(message)
            return
        _send_message(self.downstream, message)
        if not self.downstream.writable:
            self.socket.set_read_paused(True)


@define(eq=False)
class _DownstreamSocket:
    """Handler of the client's WebSocket, which is closed when the client's credential is revoked.

    Implements `WebSocketHandler` and `Revocable`.
    """

    intermediary: RequestForwarder
    engine: Engine
    holder: str
    upstream: _UpstreamSocket

    def on_open(self, socket: WebSocketConnection) -> None:
        self.upstream.downstream = socket
        self.intermediary.sockets += 1
        self.engine.revocables[self] = self.holder
        for message in self.upstream.early:
            self.upstream.send_to_client(message)
        if self.upstream.close_frame is not None:
            socket.close(*self.upstream.close_frame)

    def on_text(self, text: str) -> None:
        self.upstream.socket.send_text(text)

    def on_binary(self, data: bytes) -> None:
        self.upstream.socket.send_binary(data)

    def on_writable(self) -> None:
        self.upstream.socket.set_read_paused(False)

    def on_closed(self, code: int, reason: str) -> None:
        self.intermediary.sockets -= 1
        self.engine.revocables.pop(self, None)
        self.upstream.downstream = None
        self.upstream.socket.close(UNSENDABLE_CODES.get(code, code), reason)

    def revoke(self, refused: Refused) -> None:
        """Close both sockets with code 1008, since the client's credential was revoked.

        Do nothing while the client's socket is not open.
        """
        downstream = self.upstream.downstream
        if downstream is not None:
            downstream.close(POLICY, refused.message)
            self.upstream.socket.close(POLICY, refused.message)


def _send_message(socket: WebSocketConnection, message: str | bytes) -> None:
    if isinstance(message, str):
        socket.send_text(message)
    else:
        socket.send_binary(message)
