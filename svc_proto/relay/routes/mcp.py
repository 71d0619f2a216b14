"""`/mcp`: the phones for agents over the Model Context Protocol, by Streamable HTTP; and the owner's consent routes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, StreamedResponse
from svc_proto.engine.router import HandlerResult, Route
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.cluster.local_coordinator import local_or_forwarded
from svc_proto.relay.oauth.issuer import MCP_PATH
from svc_proto.relay.ports import RelayPort

if TYPE_CHECKING:
    from svc_proto.mcp.streamable_http import Answered, McpHttpServer
    from svc_proto.relay.oauth.authorization_server import AuthorizationServer
    from svc_proto.schema.oauth_types import ConsentAnsweredJson, ConsentQuestionJson

__all__ = ["PATH", "routes"]

PATH = MCP_PATH
T = TypeVar("T")


class PhoneMcpPort(RelayPort, Protocol):
    """Members of the relay that the routes of MCP use."""

    @property
    def mcp(self) -> McpHttpServer:
        """MCP server of `/mcp`, loaded with its first use."""

    @property
    def oauth(self) -> AuthorizationServer:
        """Authorization server of MCP clients, loaded with its first use."""


def routes(relay: PhoneMcpPort) -> list[Route]:
    """Return the routes of `/mcp`, and those for the owner's consent."""

    def found(request: Request, here: Callable[[Request], T]) -> T | Flow[HandlerResult]:
        name = request.headers.get(b"mcp-session-id") or b""
        return local_or_forwarded(relay.coordinator, request, "mcp", name.decode("latin-1"), lambda: here(request))

    def post(request: Request) -> Answered | Flow[HandlerResult]:
        return found(request, relay.mcp.post)

    def get(request: Request) -> StreamedResponse | Flow[HandlerResult]:
        return found(request, relay.mcp.get)

    def delete(request: Request) -> Response | Flow[HandlerResult]:
        return found(request, relay.mcp.delete)

    def question(
        request: Request,
    ) -> JsonResponse[ConsentQuestionJson] | Flow[JsonResponse[ConsentQuestionJson]]:
        return relay.oauth.show_consent(request)

    def answer(
        request: Request,
    ) -> JsonResponse[ConsentAnsweredJson] | Flow[JsonResponse[ConsentAnsweredJson]]:
        return relay.oauth.answer_consent(request)

    one = f"{PATH}/questions/{{code}}"
    row = partial(Route, pattern=PATH, access=RelayAccess.AGENT, stops_with_client=True)
    return [
        row(method="POST", handler=post),
        row(method="GET", handler=get, body_limit=0),
        row(method="DELETE", handler=delete, body_limit=0),
        Route(method="GET", pattern=one, access=RelayAccess.LOOPBACK, handler=question),
        Route(method="POST", pattern=one, access=RelayAccess.LOOPBACK, handler=answer),
    ]
