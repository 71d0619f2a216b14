"""Scripted MCP server over HTTP, and conversations of the client with it."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from runtimes.sim.process import SimProcess
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import Request, Response, StreamedResponse, empty_response, json_response
from svc_proto.service_clients.mcp_client import McpClient, McpError, McpTransport
from svc_proto.service_clients.mcp_http_transport import HttpParameters, McpHttpTransport
from svc_proto.wire.events import Headers
from svc_proto.wire.sse import encode_event
from tests.agent.harness import AgentHarness
from tests.support.servers.scripted_service import ScriptedService, row

PORT = 9300
SHOP = HttpParameters(url=f"http://127.0.0.1:{PORT}/mcp", headers=((b"authorization", b"Bearer t-1"),))
EVENTS = Headers([(b"content-type", b"text/event-stream")])
Talk = Callable[[McpClient, Engine], Flow[Any]]
Handler = Callable[[Request], Any]


class Server(ScriptedService):
    """Server that answers each POST by `post`; `seen` records messages and header fields.

    `answers` replaces the methods `post`, `call` and `get`.
    """

    def __init__(self, **answers: Callable[..., Any]) -> None:
        vars(self).update(answers)
        self.seen: list[tuple[str, dict[str, Any], Headers]] = []
        verbs = {"POST": self._post, "GET": self._get, "DELETE": self._delete}
        super().__init__(row(verb, "/mcp", does) for verb, does in verbs.items())

    def _post(self, request: Request) -> Any:
        message = json.loads(request.body)
        self.seen.append((str(message.get("method")), message, request.headers))
        return self.post(message, request)

    def _get(self, request: Request) -> Any:
        assert not request.body
        self.seen.append(("GET", {}, request.headers))
        return self.get(request)

    def _delete(self, request: Request) -> Response:
        self.seen.append(("DELETE", {}, request.headers))
        return empty_response(204)

    @property
    def methods(self) -> list[str]:
        return [method for method, _, _ in self.seen]

    @property
    def called(self) -> dict[str, Any]:
        """Return the latest tool call."""
        return next(message for method, message, _ in reversed(self.seen) if method == "tools/call")

    def fields_of(self, method: str) -> Headers:
        return next(headers for name, _, headers in self.seen if name == method)

    process: SimProcess
    noted: Any = empty_response(202)
    session = b"s-1"  # the id that it gives to a session; empty: none

    def post(self, message: dict[str, Any], request: Request) -> Any:
        match message.get("method"):
            case "initialize":
                session = ((b"mcp-session-id", self.session),) if self.session else ()
                about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
                return json_response(200, {"jsonrpc": "2.0", "id": message["id"], "result": about}, session)
            case "tools/call":
                return self.call(message)
            case _:
                return self.noted

    def call(self, message: dict[str, Any]) -> Any:
        return json_response(200, answer(message))

    def get(self, request: Request) -> Any:
        return empty_response(405)


def answer(message: dict[str, Any], **result: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [], **result}}


def moved(location: bytes, status: int = 302) -> Response:
    return Response(status, Headers([(b"location", location)]))


def stream(*events: bytes, wait: float = 0.0, then: float = 0.0) -> StreamedResponse:
    """Return a response that sends these events, each followed by `wait` seconds, and stays open for `then` seconds."""

    def tell(writer: ResponseWriter, engine: Engine) -> Flow[None]:
        for event in events:
            writer.write(event)
            yield from writer.drained()
            yield from sleep(engine, wait)
        yield from sleep(engine, then)

    return StreamedResponse(200, EVENTS, lambda writer: tell(writer, writer._channel.engine))


def late(server: Server, response: Response) -> Flow[Response]:
    """Answer after 100 seconds."""
    yield from sleep(server.engine, 100.0)
    return response


def said(message: dict[str, Any], **more: Any) -> bytes:
    return encode_event(json.dumps(message), **more)


def run(server: Any, talk: Talk) -> tuple[Any, list[str]]:
    """Run a conversation with a server, which may be None, as `converse` does; set `server.process`."""
    world = AgentHarness()
    if server is not None:
        server.process = world.serve(server, PORT)
    return converse(world, lambda engine, client: McpHttpTransport(engine, SHOP, client), talk)


def converse(
    world: AgentHarness, transport: Callable[[Engine, McpClient], McpTransport], talk: Talk
) -> tuple[Any, list[str]]:
    """Run a conversation; return its result or failure, and the reasons of connections that ended."""
    ended: list[str] = []

    def plan(parts: object, engine: Engine) -> Flow[object]:
        client = McpClient(engine, partial(transport, engine), on_over=lambda why: ended.append(str(why)))
        try:
            result = yield from talk(client, engine)
        except McpError as failed:
            result = str(failed)
        client.close()
        yield from sleep(engine, 3.0)
        return result

    return world.run(plan), ended


def call(client: McpClient, engine: Engine) -> Flow[Any]:
    yield from client.open(10.0)
    return (yield from client.request("tools/call", {"name": "echo", "arguments": {"word": "hi"}}, within=10.0))
