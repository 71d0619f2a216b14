"""Voice sessions: one is made by a POST, and spoken with over the WebSocket that the answer names (wire 4.6, 4.7)."""

from __future__ import annotations

from functools import partial
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

__all__ = ["routes"]


FAMILIES = (  # as `voice_side` names them
    ("output", "/voice/output", Access.VOICE_TTS, Access.VOICE_OUTPUT_SOCKET),
    ("lab", "/voice/realtime", Access.VOICE_REALTIME, Access.VOICE_REALTIME_SOCKET),
    ("agent", "/voice/realtime-agent", Access.VOICE_REALTIME, Access.VOICE_REALTIME_SOCKET),
)


def routes(relay: Relay) -> list[Route]:
    """The rows of this theme."""
    rows: list[Route] = []
    for family, base, access, socket in FAMILIES:
        create, meet, one = partial(_create, relay, family), partial(_open, relay, family), f"{base}/{{session_id}}"
        rows.append(Route(method="POST", pattern=f"{base}/session", access=access, handler=create))
        rows.append(Route(method="GET", pattern=one, access=socket, handler=meet, kind=Kind.WEBSOCKET))
    return rows


def _create(relay: Relay, family: str, request: Request) -> Flow[Response]:
    body = json_body(request)
    profile = profile_of(request.query, body)
    if profile is not None:
        body["profile"] = profile
    principal = cast("Principal", request.principal)
    return json_response(200, (yield from relay.voice_side.sessions[family].create(body, principal)))


def _open(relay: Relay, family: str, request: Request) -> SocketHandler | Flow[Answer]:
    principal, name = cast("Principal", request.principal), request.params["session_id"]
    sessions = relay.voice_side.sessions[family]
    return here_or_elsewhere(relay, request, "voice", name, lambda: sessions.open(principal, name))
