"""What every scripted server of the tests is: a service of an engine that lets everybody in and serves its router."""

from __future__ import annotations

from enum import Enum

from svc_proto.basics.errors import Refused
from svc_proto.commands import Ready
from svc_proto.engine.http2_channel import Http2Channel
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.router import Router
from svc_proto.engine.server import ServerChannel
from svc_proto.facts import Accepted
from svc_proto.wire.events import RequestHead
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.playbook import Idle

__all__ = ["Access", "ScriptedService"]


class Access(Enum):
    ANYBODY = "anybody"


class ScriptedService(Idle):
    """Service and HttpApp. `channels` are the connections so far, the newest last."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self.channels: list[ServerChannel] = []

    def on_started(self) -> None:
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> ServerChannel:
        channel = ServerChannel(self.engine, fact, self, DEFAULT_LIMITS, http2=Http2Channel)
        self.channels.append(channel)
        return channel

    def authorize(self, access: Enum, request: Request) -> object:
        return None

    def refusal(self, refused: Refused, head: RequestHead) -> Response:
        return json_response(refused.status, {"error": {"message": refused.message}})

    def fields(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        return ()
