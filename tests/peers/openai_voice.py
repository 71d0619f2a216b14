"""OpenAI's speech: `/v1/audio/speech`, `/v1/audio/transcriptions`, `/v1/realtime`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from svc_proto.basics.errors import Refused
from svc_proto.engine.message import Request
from svc_proto.engine.router import Kind, Route
from tests.peers.realtime import RealtimeScript, RealtimeSession
from tests.peers.service import Access
from tests.peers.vendor import Asked, Reply, VendorPeer

__all__ = ["OpenAiPeer"]


class OpenAiPeer(VendorPeer):
    """`script` is what its realtime sockets play; `declines`: the status that they get in its place."""

    paths: ClassVar[tuple[str, ...]] = ("POST /v1/audio/speech", "POST /v1/audio/transcriptions")

    def __init__(self, replies: Iterable[Reply] = (), script: RealtimeScript | None = None) -> None:
        routes = [self.http(*path.split()) for path in self.paths]
        access, kind = Access.ANYBODY, Kind.WEBSOCKET
        socket = Route(method="GET", pattern="/v1/realtime", access=access, handler=self._opened, kind=kind)
        super().__init__(replies, [*routes, socket])
        self.script = script or RealtimeScript()
        self.declines = 0

    def _opened(self, request: Request) -> RealtimeSession:
        if self.declines:
            raise Refused(self.declines, "declined", "the test wants it so")
        target = f"{request.path}?{request.raw_query}"
        asked = Asked(method=request.method, target=target, headers=request.headers, body=b"")
        return RealtimeSession(self.engine, self.script, asked)
