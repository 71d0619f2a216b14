"""Routes of the profile inspector for paired phones; requests are forwarded to the API server."""

from collections.abc import Callable

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import invalid
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response
from svc_proto.engine.router import Route
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.ports import PairedSessionsPort
from svc_proto.service_clients.local_api import local_api_key
from svc_proto.service_clients.service_client import ServiceCallError, ServiceClient, error_message_in
from svc_proto.wire.events import Headers
from svc_proto.wire.urls import encode_segment

__all__ = ["routes"]

ONE = "/api/profiles/{profile}"
PARTS = (
    ("GET", f"{ONE}/config"),
    ("GET", f"{ONE}/skills"),
    ("GET", f"{ONE}/soul"),
    ("PUT", f"{ONE}/soul"),
    ("GET", f"{ONE}/memory"),
    ("PUT", f"{ONE}/memory/{{filename}}"),
    ("GET", f"{ONE}/avatar"),
    ("GET", "/context/injected"),
)
CONTEXT = "/api/profiles/default/context"
SHOWN = (b"content-type",)  # header fields that are forwarded


def routes(relay: PairedSessionsPort) -> list[Route]:
    """Return the routes of the profile inspector, whose requests are forwarded to the API server."""
    view = _ProfileInspector(relay)
    routes = [
        Route(method=method, pattern=pattern, access=RelayAccess.MANAGE, handler=view.forwarder(method, pattern))
        for method, pattern in PARTS
    ]
    activity = "/chat/image-activity"
    return [*routes, Route(method="GET", pattern=activity, access=RelayAccess.MANAGE, handler=view.image_activity)]


class _ProfileInspector:
    def __init__(self, relay: PairedSessionsPort) -> None:
        self._relay = relay
        config = relay.config

        def find_key(shown: str) -> Flow[str]:
            key, named = config.api_key, config.key_in_environment
            return local_api_key(relay.engine, config.config_path, config.home, key, named=named)

        self._api = ServiceClient("API server", config.api_url, config.api_key, find_token=find_key)

    def forwarder(self, method: str, pattern: str) -> Callable[[Request], Flow[Response]]:
        """Return the handler of a route, which forwards requests to the API server.

        The handler raises `Refused` 400 or 404 as the API server answered, and 502 for any other failure.
        """

        def forward(request: Request) -> Flow[Response]:
            path = CONTEXT if ONE not in pattern else pattern
            for name, value in request.params.items():
                path = path.replace(f"{{{name}}}", encode_segment(value))
            response = yield from self._forward(method, path, request.body)
            if method == "PUT":
                self._relay.audit.record("profile changed", request, path=path)
            return response

        return forward

    def image_activity(self, request: Request) -> Flow[Response]:
        """Return the image activity of a chat, from the API server. The query names the chat by `session_id`.

        Raises `Refused` 400 without it, and otherwise as a handler of `forwarder` does.
        """
        query = request.query
        session_id = query.get("session_id", "")
        if not session_id:
            raise invalid("session_id", "the id of a chat")
        values = "&".join(f"{name}={encode_segment(query[name])}" for name in ("profile", "since") if query.get(name))
        path = f"/api/sessions/{encode_segment(session_id)}/image-activity"
        return self._forward("GET", f"{path}?{values}" if values else path)

    def _forward(self, method: str, path: str, body: bytes = b"") -> Flow[Response]:
        try:
            answer = yield from self._api.request(self._relay.engine, method, path, body)
        except ServiceCallError as error:
            raise Refused(502, "unreachable", f"the API server is {error.brief}") from None
        if answer.status >= 400:
            known = answer.status in (400, 404)
            words = error_message_in(answer.body) or f"the API server answered {answer.status}"
            raise Refused(answer.status if known else 502, "refused" if known else "unreachable", words)
        fields = [(name, value) for name, value in answer.headers if name in SHOWN]
        return Response(answer.status, Headers(fields), answer.body)
