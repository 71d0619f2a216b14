"""OpenAI's speech: `/v1/audio/speech`, `/v1/audio/transcriptions`, `/v1/realtime`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.message import Request
from svc_proto.engine.router import Kind, Route
from tests.peers.realtime import RealtimeScript, RealtimeSession
from tests.peers.service import Access
from tests.peers.vendor import Asked, Reply, VendorPeer

__all__ = ["OpenAiPeer", "RealtimePeer", "socket_route"]


class OpenAiPeer(VendorPeer):
    """`script` is what its realtime sockets play; `declines`: the status that they get in its place."""

    def __init__(self, replies: Iterable[Reply] = (), script: RealtimeScript | None = None) -> None:
        super().__init__(
            replies,
            (
                self.http("POST", "/v1/audio/speech"),
                self.http("POST", "/v1/audio/transcriptions"),
                socket_route(self, "/v1/realtime"),
            ),
        )
        self.script = script or RealtimeScript()
        self.declines = 0


class RealtimePeer(Protocol):
    """A vendor with realtime sockets."""

    engine: Engine
    script: RealtimeScript
    declines: int


def socket_route(peer: RealtimePeer, pattern: str) -> Route:
    """A realtime socket."""

    def opened(request: Request) -> RealtimeSession:
        if peer.declines:
            raise Refused(peer.declines, "declined", "the test wants it so")
        target = f"{request.path}?{request.raw_query}"
        asked = Asked(method=request.method, target=target, headers=request.headers, body=b"")
        return RealtimeSession(peer.engine, peer.script, asked)

    return Route(method="GET", pattern=pattern, access=Access.ANYBODY, handler=opened, kind=Kind.WEBSOCKET)
