"""Route of the JSON-RPC gateway, as a WebSocket (SPEC.md, wire terminal 2.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.api.access import ApiAccess
from svc_proto.engine.message import Request
from svc_proto.engine.router import Route, RouteKind

if TYPE_CHECKING:
    from svc_proto.api.gateway.service import ApiGateway
    from svc_proto.engine.websocket import WebSocketHandler

__all__ = ["PATH", "routes"]

PATH = "/api/ws"


class ConnectionPort(Protocol):
    """Members of the API server that the route of the gateway uses."""

    @property
    def gateway(self) -> ApiGateway:
        """JSON-RPC gateway at `/api/ws`, created at the first use."""


def routes(api: ConnectionPort) -> list[Route]:
    """Return the route of the gateway's WebSocket."""

    def new_connection(request: Request) -> WebSocketHandler:
        return api.gateway.new_connection(request)  # the gateway is made at the first use

    return [
        Route(
            method="GET",
            pattern=PATH,
            access=ApiAccess.OWNER,
            handler=new_connection,
            kind=RouteKind.WEBSOCKET,
        )
    ]
