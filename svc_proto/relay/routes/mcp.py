"""`/mcp`: the phones for any agent that speaks the Model Context Protocol, by Streamable HTTP."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from svc_proto.engine.message import Request, Response, Streamed
from svc_proto.engine.router import Route
from svc_proto.relay.access import Access
from svc_proto.relay.place import MCP

if TYPE_CHECKING:
    from svc_proto.mcp.http import Answered
    from svc_proto.relay.service import Relay

__all__ = ["PATH", "routes"]

PATH = MCP


def routes(relay: Relay) -> list[Route]:
    """The rows of this theme."""

    def post(request: Request) -> Answered:
        return relay.mcp.post(request)

    def get(request: Request) -> Streamed:
        return relay.mcp.get(request)

    def delete(request: Request) -> Response:
        return relay.mcp.delete(request)

    def question(request: Request) -> Response:
        return relay.oauth.question(request)

    def answer(request: Request) -> Response:
        return relay.oauth.answer(request)

    one = f"{PATH}/questions/{{code}}"
    row = partial(Route, pattern=PATH, access=Access.AGENT, hangs_up=True)
    return [
        row(method="POST", handler=post),
        row(method="GET", handler=get, body_limit=0),
        row(method="DELETE", handler=delete, body_limit=0),
        Route(method="GET", pattern=one, access=Access.LOOPBACK, handler=question),
        Route(method="POST", pattern=one, access=Access.LOOPBACK, handler=answer),
    ]
