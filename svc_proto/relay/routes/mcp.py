"""`/mcp`: the phones for any agent that speaks the Model Context Protocol, by Streamable HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.engine.message import Request, Response, Streamed
from svc_proto.engine.router import Route
from svc_proto.mcp.http import Answered
from svc_proto.relay.access import Access

if TYPE_CHECKING:
    from svc_proto.relay.service import Relay

__all__ = ["PATH", "routes"]

PATH = "/mcp"


def routes(relay: Relay) -> list[Route]:
    """The rows of this theme."""

    def post(request: Request) -> Answered:
        return relay.mcp.post(request)

    def get(request: Request) -> Streamed:
        return relay.mcp.get(request)

    def delete(request: Request) -> Response:
        return relay.mcp.delete(request)

    return [
        Route(method="POST", pattern=PATH, access=Access.AGENT, handler=post),
        Route(method="GET", pattern=PATH, access=Access.AGENT, handler=get, body_limit=0),
        Route(method="DELETE", pattern=PATH, access=Access.AGENT, handler=delete, body_limit=0),
    ]
