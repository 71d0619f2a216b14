"""Proxy for the reference phone: its screen, touches, confirmations, the toggle, and messages to the agent.

The phone is looked up for each call, since it starts and stops on its own (`svc phone`).
"""

from svc_proto.basics.errors import Refused
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.ports import DashboardPort
from svc_proto.dashboard.upstream import Upstream
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response
from svc_proto.engine.router import Handler, Route
from svc_proto.service_clients.phone_screen_endpoint import find_phone_screen
from svc_proto.service_clients.service_client import ServiceClient
from svc_proto.wire.urls import encode_segment

__all__ = ["PREFIX", "routes"]

PREFIX = "/api/phone"
NO_PHONE = "no reference phone runs on this host: start one with svc phone"
MAX_TAG = 64  # characters


def routes(dashboard: DashboardPort) -> list[Route]:
    """Return the routes of the reference phone, below `PREFIX`; without an API server, `/say` answers 404."""
    rows = [("GET", "/screen"), ("POST", "/touch"), ("POST", "/answer"), ("POST", "/toggle"), ("POST", "/say")]
    chats = dashboard.config.api_url is not None
    return [
        Route(
            method=method,
            pattern=PREFIX + path,
            access=DashboardAccess.OWNER,
            handler=_passing(dashboard, method, path) if chats or path != "/say" else _no_chat,
        )
        for method, path in rows
    ]


def _no_chat(request: Request) -> Response:
    raise Refused(404, "no_chat", "this dashboard offers no chat with the agent")


def _passing(dashboard: DashboardPort, method: str, path: str) -> Handler:
    def handler(request: Request) -> Flow[Response]:
        engine, patience = dashboard.engine, dashboard.config.patience
        until = engine.now.mono + patience
        endpoint = yield from find_phone_screen(engine)
        if endpoint is None:
            raise Refused(404, "no_phone", NO_PHONE)
        seen = request.query.get("seen", "")[:MAX_TAG] if method == "GET" else ""
        target = f"{path}?seen={encode_segment(seen)}" if seen else path
        phone = Upstream(ServiceClient("phone", endpoint.url, endpoint.secret, patience))
        return (yield from phone.call(engine, method, target, request.body, until=until))

    return handler
