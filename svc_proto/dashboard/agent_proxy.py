"""Proxy for the page: a fixed set of calls to the API server, made with the dashboard's API key if it has one.

Events of a turn are forwarded as they arrive.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.basics import strict_json
from svc_proto.dashboard.access import DashboardAccess
from svc_proto.dashboard.ports import ApiServerPort, DashboardPort
from svc_proto.dashboard.upstream import PRIVATE, Upstream
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult
from svc_proto.engine.message import JsonResponse, Request, Response, StreamedResponse, json_response
from svc_proto.engine.response_readers import EventReader, event_stream
from svc_proto.engine.router import Handler, Route
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.local_api import local_api_key
from svc_proto.service_clients.local_secret import operator_headers
from svc_proto.service_clients.service_client import JSON
from svc_proto.wire.events import Headers
from svc_proto.wire.sse import ServerSentEvent, encode_event
from svc_proto.wire.urls import encode_segment

if TYPE_CHECKING:
    from svc_proto.dashboard.openapi_types import ChatModelJson

__all__ = ["FORWARDED", "PREFIX", "find_api_server", "routes"]

PREFIX = "/api/agent"
STREAM = Headers(((b"content-type", b"text/event-stream"), PRIVATE, (b"x-accel-buffering", b"no")))
PROBE_TIMEOUT = 75.0  # s, above the sum of the limits of `model_probe`
LARGEST_TURN = 10_000_000  # bytes of a message with its pictures, wire api 2.5
ID = re.compile(r"{\w+}")  # the one parameter of the API's path
FORWARDED = (  # method, our path behind the prefix, the API's path
    ("POST", "/sessions", "/api/sessions"),
    ("PATCH", "/sessions/{id}", "/api/sessions/{id}"),
    ("DELETE", "/sessions/{id}", "/api/sessions/{id}"),
    ("GET", "/sessions/{id}/messages", "/api/sessions/{id}/messages"),
    ("GET", "/runs/{id}", "/v1/runs/{run_id}"),
    ("POST", "/runs/{id}/stop", "/v1/runs/{run_id}/stop"),
    ("POST", "/runs/{id}/approval", "/v1/runs/{run_id}/approval"),
    ("GET", "/mcp-servers", "/api/mcp-servers"),
    ("POST", "/mcp-servers/reload", "/api/mcp-servers/reload"),
    ("PATCH", "/model", "/api/config"),
    ("GET", "/host", "/api/host"),
    ("PATCH", "/host", "/api/host"),
    ("POST", "/key/rotate", "/api/key/rotate"),
    ("GET", "/approvals", "/api/approvals"),
    ("DELETE", "/approvals", "/api/approvals"),
    ("POST", "/changes/undo", "/api/changes/undo"),
    *((method, "/memory", "/api/memory") for method in ("POST", "PATCH", "DELETE")),  # to undo a note
)


def routes(dashboard: ApiServerPort) -> list[Route]:
    """Return the routes below `PREFIX`, by which the page calls routes of the API server."""
    calls = _AgentProxy(dashboard)
    rows: list[tuple[str, str, Handler]] = [
        ("GET", "/sessions/search", calls.search),
        ("DELETE", "/sessions/{id}/messages", calls.truncate),
        ("GET", "/sessions/{id}/pictures/{token}", calls.picture),
        ("GET", "/sessions", calls.chats),
        ("GET", "/changes", calls.changes),
        ("POST", "/model/probe", calls.probe),
        ("GET", "/model", calls.model),
        *((method, ours, calls.passing(method, theirs)) for method, ours, theirs in FORWARDED),
    ]
    access, turn = DashboardAccess.OWNER, f"{PREFIX}/sessions/{{id}}/chat/stream"
    return [
        Route(method="POST", pattern=turn, access=access, handler=calls.turn, body_limit=LARGEST_TURN),
        *(
            Route(method=method, pattern=PREFIX + path, access=access, handler=handler)
            for method, path, handler in rows
        ),
    ]


def find_api_server(dashboard: DashboardPort) -> Upstream | None:
    """Return the API server of the chat; None if no API server is configured."""
    config = dashboard.config

    def find(known: str) -> Flow[str]:
        return local_api_key(dashboard.engine, config.relay.config_path, config.relay.home, known)

    if config.api_url is None:
        return None
    find_key = find if config.api_key else None  # without a configured key, a key found on this host is not sent
    return Upstream(ApiClient("API server", config.api_url, config.api_key, config.patience, find_token=find_key))


class _AgentProxy:
    def __init__(self, dashboard: ApiServerPort) -> None:
        self._dashboard = dashboard
        self._server = dashboard.api_server

    def passing(self, method: str, path: str) -> Handler:
        """Return the handler that forwards a request with its body to this method and path of the API server."""

        def handler(request: Request) -> Flow[Response]:
            target = ID.sub(encode_segment(request.params.get("id", "")), path)
            return self._api().call(self._dashboard.engine, method, target, request.body)

        return handler

    def chats(self, request: Request) -> Flow[Response]:
        """List the chats that are not archived or, with `archived=only`, those that are."""
        archived = "?archived=only" if request.query.get("archived") == "only" else ""
        return self._api().call(self._dashboard.engine, "GET", f"/api/sessions{archived}")

    def truncate(self, request: Request) -> Flow[Response]:
        """Remove from a chat the message of the row `from_row` and all after it."""
        row_id = encode_segment(request.query.get("from_row", ""))
        path = f"/api/sessions/{encode_segment(request.params['id'])}/messages?from_row={row_id}"
        return self._api().call(self._dashboard.engine, "DELETE", path)

    def picture(self, request: Request) -> Flow[Response]:
        """Return a picture that is stored with a chat."""
        chat, token = encode_segment(request.params["id"]), encode_segment(request.params["token"])
        return self._api().picture(self._dashboard.engine, f"/api/sessions/{chat}/pictures/{token}")

    def search(self, request: Request) -> Flow[Response]:
        """Search the messages of the chats for the words in `q`."""
        words = encode_segment(request.query.get("q", ""))
        return self._api().call(self._dashboard.engine, "GET", f"/api/sessions/search?q={words}")

    def probe(self, request: Request) -> Flow[Response]:
        """Forward a probe of a model's server, and wait at most `PROBE_TIMEOUT` for the answer."""
        engine = self._dashboard.engine
        until = engine.now.mono + PROBE_TIMEOUT
        return self._api().call(engine, "POST", "/api/model/probe", request.body, until=until)

    def changes(self, request: Request) -> Flow[Response]:
        """List what the principal in `principal` has changed at the agent; without it, the changes of all."""
        name = encode_segment(request.query.get("principal", ""))
        return self._api().call(self._dashboard.engine, "GET", f"/api/changes?principal={name}")

    def model(self, request: Request) -> Flow[JsonResponse[ChatModelJson]]:
        """Return whether there is an API server (`chat`), and its configured model (`model`), or null without one."""
        if self._server is None:
            return json_response(200, {"chat": False, "model": None}, (PRIVATE,))
        answer = yield from self._server.call(self._dashboard.engine, "GET", "/api/config")
        model = JsonObject.parse_or_empty(answer.body).text("model") or None
        return json_response(200, {"chat": True, "model": model}, (PRIVATE,))

    def turn(self, request: Request) -> Flow[Response | StreamedResponse]:
        """Forward a message, and stream the events of its turn; without an event stream, convert the answer."""
        api = self._api()
        engine = self._dashboard.engine
        # The relay's secret is sent only if a password has authenticated the owner, see `relay_proxy`.
        operator = yield from operator_headers(engine, api.peer.url, secret=self._dashboard.config.identifies_owner)
        path = f"/api/sessions/{encode_segment(request.params['id'])}/chat/stream"
        fields = (JSON, *operator)
        answer = yield from api.result_of(
            api.peer.request(engine, "POST", path, request.body, into=event_stream(), fields=fields)
        )
        if isinstance(answer, HttpResult):
            return api.check_response(answer)
        return StreamedResponse(200, STREAM, _build_producer(answer, api))

    def _api(self) -> Upstream:
        return self._dashboard.require_api()


def _build_producer(reader: EventReader, api: Upstream) -> Callable[[ResponseWriter], Flow[None]]:
    def produce(writer: ResponseWriter) -> Flow[None]:
        try:
            while isinstance(batch := (yield from reader.read()), tuple):
                writer.write(b"".join(map(_encoded, batch)))
                yield from writer.drained()
            if isinstance(batch, Failure):
                problem = api.unreachable(api.reason(batch)).message
                writer.write(encode_event(strict_json.dumps({"message": problem, "error": problem}), event="error"))
        finally:
            reader.abandon()

    return produce


def _encoded(event: ServerSentEvent) -> bytes:
    return encode_event(event.data, event=event.event.replace("\x00", ""))
