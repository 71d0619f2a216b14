"""Base class of scripted servers: a service whose routes are open to every client, unless `authorize` is overridden."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Self

from attrs import evolve, frozen

from svc_proto.basics.errors import Refused
from svc_proto.commands import Ready
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.http2_channel import Http2Channel
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.router import Route, Router
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.facts import Accepted
from svc_proto.wire.events import RequestHead
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.support.playbook import IdleService

FOR_EVER = 86_400.0  # s


class ScriptedAccess(Enum):
    PUBLIC = "public"


@frozen(kw_only=True)
class PacedAnswer:
    """Settings of an answer in pieces: its pauses, and its kind of end."""

    pause: float = 0.0  # s before each piece but the first
    before: float = 0.0  # s before the head
    breaks: bool = False  # the connection drops after the last piece
    hangs: bool = False  # no end follows the last piece

    def slow(self, pause: float) -> Self:
        return evolve(self, pause=pause)


def row(method: str, pattern: str, handler: Any, **more: Any) -> Route:
    """Return a route with the only access of scripted servers, `PUBLIC`."""
    return Route(method=method, pattern=pattern, access=ScriptedAccess.PUBLIC, handler=handler, **more)


class ScriptedService(IdleService):
    """HTTP service that allows every request to its routes. `channels` are the connections so far, the newest last."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.router = Router(routes)
        self.channels: list[ServerChannel] = []
        self.written = 0  # pieces, of all paced answers

    def on_started(self) -> None:
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> ServerChannel:
        channel = ServerChannel(self.engine, fact, self, DEFAULT_LIMITS, http2=Http2Channel)
        self.channels.append(channel)
        return channel

    def authorize(self, access: Enum, request: Request) -> object:
        return None

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        return json_response(refused.status, {"error": {"message": refused.message}})

    def response_headers(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        return ()

    def write(
        self, writer: ResponseWriter, channel: ServerChannel, pieces: Iterable[bytes], how: PacedAnswer
    ) -> Flow[None]:
        """Write the pieces of a body with the pauses of `how`; then return, drop the connection, or never end."""
        for place, piece in enumerate(pieces):
            if place and how.pause:
                yield from sleep(self.engine, how.pause)
            writer.write(piece)
            self.written += 1
            yield from writer.drained()
        if how.breaks:
            yield from sleep(self.engine, 0.5)
            channel.abort()
        if how.breaks or how.hangs:
            yield from sleep(self.engine, FOR_EVER)
