from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import Request, Response, StreamedResponse, empty_response, json_response
from svc_proto.engine.router import Router
from svc_proto.mcp.streamable_http import McpHttpServer
from svc_proto.service_clients import mcp_http_transport
from svc_proto.service_clients.mcp_client import McpClient, McpError
from svc_proto.service_clients.mcp_http_transport import (
    GONE,
    MAX_NOTES,
    MAX_REDIRECTS,
    HttpParameters,
    McpHttpTransport,
)
from svc_proto.wire.events import Headers
from svc_proto.wire.sse import encode_event
from tests.agent.harness import AgentHarness
from tests.mcp.stdio_harness import ToyMcpServer
from tests.support.servers.scripted_service import ScriptedService, row

PORT = 9300
SHOP = HttpParameters(url=f"http://127.0.0.1:{PORT}/mcp", headers=((b"authorization", b"Bearer t-1"),))
EVENTS = Headers([(b"content-type", b"text/event-stream")])
Talk = Callable[[McpClient, Engine], Flow[Any]]
Handler = Callable[[Request], Any]


class Server(ScriptedService):
    """Server that answers each POST by `post`; `seen` records messages and header fields."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any], Headers]] = []
        self.opened = 0
        verbs = {"POST": self._post, "GET": self._get, "DELETE": self._delete}
        super().__init__(row(verb, "/mcp", does) for verb, does in verbs.items())

    def _post(self, request: Request) -> Any:
        message = json.loads(request.body)
        self.seen.append((str(message.get("method")), message, request.headers))
        return self.post(message, request)

    def _get(self, request: Request) -> Any:
        self.seen.append(("GET", {}, request.headers))
        return self.get(request)

    def _delete(self, request: Request) -> Response:
        self.seen.append(("DELETE", {}, request.headers))
        return empty_response(204)

    @property
    def methods(self) -> list[str]:
        return [method for method, _, _ in self.seen]

    def fields_of(self, method: str) -> Headers:
        return next(headers for name, _, headers in self.seen if name == method)

    # --- replaceable answers ---

    noted: Any = empty_response(202)

    def post(self, message: dict[str, Any], request: Request) -> Any:
        match message.get("method"):
            case "initialize":
                self.opened += 1
                session = ((b"mcp-session-id", b"s-%d" % self.opened),)
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


def said(message: dict[str, Any], **more: Any) -> bytes:
    return encode_event(json.dumps(message), **more)


def run(server: Any, talk: Talk, place: HttpParameters = SHOP) -> tuple[Any, list[str]]:
    """Run a conversation; return its result or failure, and the reasons of connections that ended."""
    world = AgentHarness()
    if server is not None:
        world.serve(server, PORT)
    ended: list[str] = []

    def plan(parts: object, engine: Engine) -> Flow[object]:
        client = McpClient(
            engine, lambda client: McpHttpTransport(engine, place, client), on_over=lambda why: ended.append(str(why))
        )
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


class Ours(Server):
    """Server with the project's own `McpHttpServer`."""

    def bind(self, engine: Engine) -> None:
        super().bind(engine)
        self.shop = ToyMcpServer()
        self.mcp = McpHttpServer(engine, lambda principal: self.shop.offer())

    def post(self, message: dict[str, Any], request: Request) -> Any:
        return self.mcp.post(request)

    def get(self, request: Request) -> Any:
        return self.mcp.get(request)

    def _delete(self, request: Request) -> Response:
        super()._delete(request)
        return self.mcp.delete(request)


def test_own_mcp_server() -> None:
    server = Ours()

    def talk(client: McpClient, engine: Engine) -> Flow[Any]:
        first = yield from call(client, engine)
        try:
            yield from client.request("tools/call", {"name": "wait", "arguments": {}}, within=7.0)
        except McpError as failed:
            why: object = str(failed)
        else:
            why = None
        yield from sleep(engine, 1.0)
        rows = yield from client.list_all("tools/list", "tools", within=5.0)
        client.close()
        yield from sleep(engine, 1.0)
        return first["content"], why, len(rows)

    result, ended = run(server, talk)
    assert result == ([{"type": "text", "text": "hi"}], "there was no answer in 70 s", 10)  # the call reports progress
    assert server.shop.done[-1] == "end of None"  # the server was informed of the cancellation
    assert server.methods[-1] == "DELETE"
    assert len(server.mcp.sessions) == 0
    assert ended == []


def test_headers_of_each_request() -> None:
    server = Server()
    run(server, call)
    assert sorted(server.methods) == ["DELETE", "GET", "initialize", "notifications/initialized", "tools/call"]
    assert (server.methods[:2], server.methods[-1]) == (["initialize", "notifications/initialized"], "DELETE")
    first, later = server.fields_of("initialize"), server.fields_of("tools/call")
    assert first.get(b"accept") == b"application/json, text/event-stream"
    assert (first.get(b"mcp-session-id"), first.get(b"mcp-protocol-version")) == (None, None)
    assert (later.get(b"mcp-session-id"), later.get(b"mcp-protocol-version")) == (b"s-1", b"2025-11-25")
    assert {headers.get(b"authorization") for _, _, headers in server.seen} == {b"Bearer t-1"}
    assert "t-1" not in repr(SHOP)


def test_unreachable_server() -> None:
    assert run(None, call)[0].startswith("it cannot be reached: ")


def test_odd_answers_to_notifications() -> None:
    server = Server()
    server.noted = stream(b": hm\n\n", then=1e6)
    assert run(server, call)[0] == {"content": []}
    server = Server()
    server.noted = Flow  # broken: there is no answer
    assert run(server, call)[0] == {"content": []}

    def silence() -> Flow[Any]:
        yield from sleep(server.engine, 1e6)

    class Silent(Server):
        def post(self, message: dict[str, Any], request: Request) -> Any:
            return silence() if message["method"].startswith("notifications/") else super().post(message, request)

    server = Silent()
    assert run(server, call)[0].startswith("it cannot be reached: ")


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (empty_response(401), "it does not let us in (status 401)"),
        (json_response(403, {"error": "no\nscope"}), "it does not let us in (status 403, no scope)"),
        (empty_response(404), "there is nothing at this address (status 404)"),
        (
            moved(b"http://evil/a?b"),
            "it redirects to http://evil/a, and only redirects within the configured origin are",
        ),
        (moved(b"https://127.0.0.1:9300/mcp"), "it redirects to https://127.0.0.1:9300/mcp, and only"),
        (moved(b"\xff"), "it redirects to \xff, and only"),
        (empty_response(302), "it refuses the request (status 302)"),
        (empty_response(303), "it refuses the request (status 303)"),
        (empty_response(299), "its answer cannot be read: Expecting value"),
        (empty_response(300), "it refuses the request (status 300)"),
        (empty_response(202), "the connection ended before the answer"),
        (json_response(200, []), "the connection ended before the answer"),
        (stream(b": nothing\n\n"), "the connection ended before the answer"),
    ],
)
def test_refusing_server(refusal: Any, why: str) -> None:
    class Refusing(Server):
        def post(self, message: dict[str, Any], request: Request) -> Any:
            return refusal

    server = Refusing()
    assert run(server, call)[0].startswith(why)
    assert server.methods == ["initialize"]


def test_redirects_within_the_origin_are_followed() -> None:
    class Moved(Server):
        def __init__(self) -> None:
            super().__init__()
            self.paths: list[str] = []
            verbs = {"POST": self._post, "GET": self._get, "DELETE": self._delete}
            self.router = Router([row(verb, path, does) for verb, does in verbs.items() for path in ("/mcp", "/mcp/")])

        def post(self, message: dict[str, Any], request: Request) -> Any:
            self.paths.append(request.path)
            return super().post(message, request) if request.path == "/mcp/" else moved(b"/mcp/", 307)

    server = Moved()
    assert run(server, call)[0] == {"content": []}
    assert server.paths == ["/mcp", "/mcp/", "/mcp/", "/mcp/"]
    assert server.fields_of("tools/call").get(b"authorization") == b"Bearer t-1"
    assert "DELETE" in server.methods


def test_endless_redirects_end() -> None:
    class Moved(Server):
        def post(self, message: dict[str, Any], request: Request) -> Any:
            return moved(b"mcp?%d" % len(self.methods))

    server = Moved()
    assert run(server, call)[0].startswith("it redirects to mcp, and only")
    assert len(server.methods) == MAX_REDIRECTS + 1


def test_expired_session() -> None:
    class Forgetful(Server):
        def call(self, message: dict[str, Any]) -> Any:
            return empty_response(404)

    server = Forgetful()
    result, ended = run(server, call)
    assert (result, ended) == (GONE, [GONE])
    assert "DELETE" not in server.methods


def refused(status: int, text: str = "", code: int = -32000) -> Response:
    return json_response(status, {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}})


class Restarted(Server):
    """Server that answers tool calls with `lost`, and pings with `ping`, as one that has lost its sessions."""

    def __init__(self, lost: Any, ping: Any = None) -> None:
        super().__init__()
        self.lost, self.ping = lost, lost if ping is None else ping

    def post(self, message: dict[str, Any], request: Request) -> Any:
        match message.get("method"):
            case "tools/call":
                return self.lost
            case "ping":
                return self.ping
            case _:
                return super().post(message, request)


PONG = json_response(200, {"jsonrpc": "2.0", "id": "svc-probe", "result": {}})
LOST = refused(200, "Session not found", -32001)
NO_PING = refused(400, "unknown method", -32601)


@pytest.mark.parametrize(
    ("lost", "ping", "unheard"),
    [
        (refused(400, "Bad Request: No valid session ID provided"), None, True),
        (refused(400, "Sitzung unbekannt"), None, True),
        (empty_response(400), None, True),
        (empty_response(404), None, True),
        (empty_response(410), None, True),
        (refused(422, "?"), refused(400, "?"), True),
        (refused(500, "session?"), None, False),
        (LOST, None, True),
        (stream(said({"id": 2, "error": {"code": -32000}})), stream(b": x\n\n", said({"error": {"code": 1}})), True),
        (Flow, LOST, False),
    ],
)
def test_lost_session_is_recognized_in_any_wording(lost: Any, ping: Any, unheard: bool) -> None:
    failures: list[McpError] = []

    def keep(client: McpClient, engine: Engine) -> Flow[Any]:
        try:
            return (yield from call(client, engine))
        except McpError as failed:
            failures.append(failed)
            raise

    result, ended = run(Restarted(lost, ping), keep)
    assert (result, ended, [failed.unheard for failed in failures]) == (GONE, [GONE], [unheard])


@pytest.mark.parametrize(
    ("refusal", "ping", "why"),
    [
        (refused(400, "bad arguments"), PONG, "it refuses the request (status 400"),
        (refused(400, "bad arguments"), NO_PING, "it refuses the request (status 400"),
        (refused(400, "bad arguments"), empty_response(202), "it refuses the request (status 400"),
        (refused(400, "bad arguments"), empty_response(429), "it refuses the request (status 400"),
        (refused(400, "bad arguments"), stream(b"id: 1\ndata:\n\n"), "it refuses the request (status 400"),
        (empty_response(429), refused(400), "it refuses the request (status 429)"),
        (
            json_response(200, {"id": 2, "error": {"message": "Unknown session of the browser"}}),
            PONG,
            "it refuses: Unkn",
        ),
        (stream(said({"id": 2, "error": {"message": "no"}})), PONG, "it refuses: no"),
        (stream(b"data: {\n\n"), refused(400), "its answer cannot be read: Expecting property name"),
        (Flow, PONG, "it refuses the request (status 500, internal error"),
    ],
)
def test_refusal_in_a_session_that_lives_is_reported(refusal: Any, ping: Any, why: str) -> None:
    result, ended = run(Restarted(refusal, ping), call)
    assert (result[: len(why)], ended) == (why, [])


def test_refused_credential_and_vanished_server_end_the_connection() -> None:
    why = "it does not let us in (status 401)"
    assert run(Restarted(empty_response(401)), call) == (why, [why])

    class Silent(Restarted):
        def post(self, message: dict[str, Any], request: Request) -> Any:
            if message["method"] == "ping":
                return self._late()
            return super().post(message, request)

        def _late(self) -> Flow[Response]:
            yield from sleep(self.engine, 100.0)
            return PONG

    assert run(Silent(empty_response(400)), call) == ("it refuses the request (status 400)", [])

    world, ended = AgentHarness(), list[str]()
    process = world.serve(Server(), PORT)

    def plan(parts: object, engine: Engine) -> Flow[str]:
        client = McpClient(
            engine, lambda client: McpHttpTransport(engine, SHOP, client), on_over=lambda why: ended.append(str(why))
        )
        yield from client.open(10.0)
        process.stop(0.0)
        yield from sleep(engine, 1.0)
        try:
            yield from client.request("tools/call", {"name": "echo"}, within=10.0)
        except McpError as failed:
            return str(failed)
        return ""

    told = world.run(plan)
    assert told.startswith("it cannot be reached: ")
    assert ended == [told]


def test_server_without_sessions_refuses_without_an_end() -> None:
    class Stateless(Restarted):
        def post(self, message: dict[str, Any], request: Request) -> Any:
            answered = super().post(message, request)
            return json_response(200, json.loads(answered.body)) if message["method"] == "initialize" else answered

    for lost in (empty_response(404), refused(400, "no"), LOST):
        assert run(Stateless(lost), call)[1] == []


@pytest.mark.parametrize(
    ("session", "kept"), [(b"", False), (b"has space", False), (b"x" * 1_025, False), (b"x" * 1_024, True)]
)
def test_accepted_session_ids(session: bytes, kept: bool) -> None:
    class Odd(Server):
        def post(self, message: dict[str, Any], request: Request) -> Any:
            answered = super().post(message, request)
            if message["method"] == "initialize":
                fields = ((b"mcp-session-id", session),) if session else ()
                return json_response(200, json.loads(answered.body), fields)
            return answered

    server = Odd()
    run(server, call)
    assert server.fields_of("tools/call").get(b"mcp-session-id") == (session if kept else None)
    assert ("DELETE" in server.methods) is kept


def test_endless_stream_ends_with_the_answer() -> None:
    """Drop the connection after the answer, although the server's stream does not end."""

    class Endless(Server):
        def call(self, message: dict[str, Any]) -> Any:
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": message["id"]}}
            return stream(said(note), said(answer(message, a=1)), said(answer(message, a=2)), then=1e6)

    server = Endless()
    result, _ = run(server, call)
    assert result == {"content": [], "a": 1}
    assert all(channel.gone for channel in server.channels)


def test_broken_stream_is_resumed() -> None:
    class Broken(Server):
        message: dict[str, Any]

        def call(self, message: dict[str, Any]) -> Any:
            self.message = message
            return stream(b"id: e-1\nretry: 700\ndata:\n\n")

        def get(self, request: Request) -> Any:
            if request.headers.get(b"last-event-id") == b"e-1":
                return stream(b"id: e-2\ndata:\n\n")
            if request.headers.get(b"last-event-id") == b"e-2":
                return stream(said(answer(self.message, late=True)))
            return empty_response(405)

    server = Broken()
    assert run(server, call)[0] == {"content": [], "late": True}
    assert server.methods.count("GET") == 3


@pytest.mark.parametrize("last", [b"e 1", b"x" * 2_000, b""])
def test_broken_stream_without_resumption(last: bytes) -> None:
    class Broken(Server):
        def call(self, message: dict[str, Any]) -> Any:
            return stream(b"id: %s\ndata: x\n\n" % last)

    server = Broken()
    assert run(server, call)[0] == "its answer cannot be read: Expecting value at line 1, column 1"
    assert server.methods.count("GET") == 1


def test_resumptions_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_http_transport, "MAX_RESUMED", 3)

    class Broken(Server):
        lost = False

        def call(self, message: dict[str, Any]) -> Any:
            return stream(b"id: e-1\nretry: 1\ndata:\n\n")

        def get(self, request: Request) -> Any:
            if request.headers.get(b"last-event-id") is None or self.lost:
                return empty_response(405)
            return stream(b"id: e-1\nretry: 1\ndata:\n\n")

    class Late(Broken):
        message: dict[str, Any]

        def call(self, message: dict[str, Any]) -> Any:
            self.message = message
            return super().call(message)

        def get(self, request: Request) -> Any:
            is_last = self.methods.count("GET") == 4  # the first one listens for notifications
            return stream(said(answer(self.message))) if is_last else super().get(request)

    server = Broken()
    assert run(server, call)[0] == "the connection ended before the answer"
    assert server.methods.count("GET") == 4
    assert run(Late(), call)[0] == {"content": []}
    lost = Broken()
    lost.lost = True
    assert run(lost, call)[0] == "the connection ended before the answer"
    assert lost.methods.count("GET") == 2


def test_server_message_stream() -> None:
    class Talkative(Server):
        def get(self, request: Request) -> Any:
            if self.methods.count("GET") > 2:
                return empty_response(405)
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            asked = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
            return stream(said(changed, id="9"), said(asked, id="10"))

    server = Talkative()
    changes: list[None] = []

    def wait(client: McpClient, engine: Engine) -> Flow[Any]:
        client._on_changed = lambda: changes.append(None)
        yield from client.open(10.0)
        yield from sleep(engine, 10.0)

    run(server, wait)
    assert len(changes) == 2
    assert [headers.get(b"last-event-id") for name, _, headers in server.seen if name == "GET"] == [None, b"10", b"10"]
    assert [message["result"] for name, message, _ in server.seen if name == "None"] == [{}, {}]


def test_listening_begins_again_after_a_break() -> None:
    times: list[float] = []

    class Silent(Server):
        def get(self, request: Request) -> Any:
            times.append(self.engine.now.mono)
            return stream(b": hi\n\n", then=100.0 if self.methods.count("GET") == 3 else 0.0)

    server = Silent()

    def wait(client: McpClient, engine: Engine) -> Flow[Any]:
        yield from client.open(10.0)
        yield from sleep(engine, 1.5)
        server.router = Router(())  # unavailable for a moment
        yield from sleep(engine, 0.1)

    run(server, wait)
    assert server.methods.count("GET") == 2
    times.clear()
    server = Silent()

    def stay(client: McpClient, engine: Engine) -> Flow[Any]:
        yield from client.open(10.0)
        yield from sleep(engine, 105.0)

    run(server, stay)
    assert [after - before for before, after in pairwise(times)] == pytest.approx([1.0, 2.0, 100.0 + 1.0], abs=0.1)


def test_temporarily_unavailable_server() -> None:
    world = AgentHarness()
    server = Server()
    server.get = lambda request: stream(b": hi\n\n")  # type: ignore[method-assign]  # a stream that ends at once
    process = world.serve(server, PORT)

    def plan(parts: object, engine: Engine) -> Flow[None]:
        client = McpClient(engine, lambda client: McpHttpTransport(engine, SHOP, client))
        yield from client.open(10.0)
        yield from sleep(engine, 0.5)
        process.stop(0.0)
        yield from sleep(engine, 4.0)
        client._carrier.send(b"{}", None)  # a notification without a recipient
        yield from sleep(engine, 4.0)
        client.close()
        yield from sleep(engine, 3.0)

    world.run(plan)
    assert server.methods.count("GET") == 1


def test_server_requests_are_answered_a_few_at_a_time() -> None:
    class Curious(Server):
        def post(self, message: dict[str, Any], request: Request) -> Any:
            if "method" in message:
                return super().post(message, request)
            return self._later()

        def _later(self) -> Flow[Response]:
            yield from sleep(self.engine, 100.0)
            return empty_response(202)

        def call(self, message: dict[str, Any]) -> Any:
            asked = [said({"jsonrpc": "2.0", "id": number, "method": "ping"}) for number in range(200)]
            return stream(*asked, said(answer(message)))

    server = Curious()
    assert run(server, call)[0] == {"content": []}
    assert server.methods.count("None") == MAX_NOTES


def test_a_flood_of_events_is_read_a_second_at_a_time() -> None:
    class Flood(Server):
        def call(self, message: dict[str, Any]) -> Any:
            return stream(*[b'data: {"a": "%s"}\n\n' % (b"x" * 200) * 400] * 40)

    seen: list[int] = []

    def count(client: McpClient, engine: Engine) -> Flow[Any]:
        yield from client.open(10.0)
        try:
            return (yield from client.request("tools/call", {"name": "a"}, within=3.0))
        finally:
            seen.append(client.ignored)

    assert run(Flood(), count)[0] == "there was no answer in 3 s"
    assert seen[0] < 40 * 400 // 2


def test_an_event_may_be_as_long_as_a_message() -> None:
    class Long(Server):
        def call(self, message: dict[str, Any]) -> Any:
            return stream(said(answer(message, long="x" * 2_000_000)))

    assert len(run(Long(), call)[0]["long"]) == 2_000_000
