"""Route `/mcp`: the agent for clients of the Model Context Protocol, over Streamable HTTP."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from svc_proto.api.access import ApiAccess
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.engine.router import Route

if TYPE_CHECKING:
    from svc_proto.mcp.streamable_http import Answered, McpHttpServer

__all__ = ["routes"]


class McpPort(Protocol):
    """Members of the API server that the routes of MCP use."""

    @property
    def mcp(self) -> McpHttpServer:
        """MCP server at `/mcp`, created at the first use."""


def routes(api: McpPort) -> list[Route]:
    """Return the routes of the MCP server."""

    def post(request: Request) -> Answered:
        return api.mcp.post(request)

    def get(request: Request) -> StreamedResponse:
        return api.mcp.get(request)

    def delete(request: Request) -> Response:
        return api.mcp.delete(request)

    row = partial(Route, pattern="/mcp", access=ApiAccess.KEY, stops_with_client=True)
    return [
        row(method="POST", handler=post),
        row(method="GET", handler=get),
        row(method="DELETE", handler=delete),
    ]
