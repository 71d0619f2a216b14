"""Voice sessions: one is made by a POST, and spoken with over the WebSocket that the answer names (wire 4.6, 4.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.router import Answer, Kind, Route
from svc_proto.engine.socket import SocketHandler
from svc_proto.relay.access import Access
from svc_proto.relay.commons import here_or_elsewhere
from svc_proto.relay.routes.voice_settings import json_body
from svc_proto.voice.principal import Principal
from svc_proto.voice.profiles import profile_of

if TYPE_CHECKING:
    from svc_proto.relay.service import Relay
    from svc_proto.voice.family import Family

__all__ = ["routes"]


def routes(relay: Relay) -> list[Route]:
    """The rows of this theme."""
    realtime = (Access.VOICE_REALTIME, Access.VOICE_REALTIME_SOCKET)
    return [
        *_Sessions(relay, "output").rows("/voice/output", Access.VOICE_TTS, Access.VOICE_OUTPUT_SOCKET),
        *_Sessions(relay, "lab").rows("/voice/realtime", *realtime),
        *_Sessions(relay, "agent").rows("/voice/realtime-agent", *realtime),
    ]


class _Sessions:
    def __init__(self, relay: Relay, family: str) -> None:
        self._relay = relay
        self._family = family

    def rows(self, base: str, access: Access, socket: Access) -> list[Route]:
        one = f"{base}/{{session_id}}"
        return [
            Route(method="POST", pattern=f"{base}/session", access=access, handler=self.create),
            Route(method="GET", pattern=one, access=socket, handler=self.open, kind=Kind.WEBSOCKET),
        ]

    def create(self, request: Request) -> Flow[Response]:
        body = json_body(request)
        profile = profile_of(request.query, body)
        if profile is not None:
            body["profile"] = profile
        answer = yield from self._sessions.create(body, cast("Principal", request.principal))
        return json_response(200, answer)

    def open(self, request: Request) -> SocketHandler | Flow[Answer]:
        principal, name = cast("Principal", request.principal), request.params["session_id"]
        return here_or_elsewhere(
            self._relay, request, "voice", name, lambda: self._sessions.open(request, principal, name)
        )

    @property
    def _sessions(self) -> Family:
        return self._relay.voice_side.sessions[self._family]
