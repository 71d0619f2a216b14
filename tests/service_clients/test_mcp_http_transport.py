from contextlib import suppress
from typing import Any

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import Request, Response, empty_response, json_response
from svc_proto.engine.router import Router
from svc_proto.mcp.streamable_http import McpHttpServer
from svc_proto.service_clients.mcp_client import McpClient, McpError
from svc_proto.service_clients.mcp_http_transport import CLOSE_TIMEOUT, GONE, MAX_ERROR, MAX_NOTES, MAX_REDIRECTS
from tests.mcp.stdio_harness import ToyMcpServer
from tests.service_clients.mcp_http_harness import SHOP, Server, answer, call, late, moved, run, said, stream
from tests.support.servers.scripted_service import row


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


def test_odd_answers_to_notifications() -> None:
    server = Server()
    server.noted = stream(b": hm\n\n", then=1e6)
    assert run(server, call)[0] == {"content": []}
    server.noted = Flow  # broken: there is no answer
    assert run(server, call)[0] == {"content": []}
    server.noted = late(server, empty_response(202))
    assert run(server, call)[0].startswith("it cannot be reached: ")


@pytest.mark.parametrize("answers", [True, False])
def test_each_abandoned_call_is_cancelled_at_the_server(answers: bool) -> None:
    """A notification frees its place when the server has answered it, or has not answered in time."""

    class Slow(Server):
        def post(self, message: dict[str, Any], request: Request) -> Any:
            slow = ("tools/call",) if answers else ("tools/call", "notifications/cancelled")
            return late(self, empty_response(202)) if message["method"] in slow else super().post(message, request)

    def talk(client: McpClient, engine: Engine) -> Flow[None]:
        yield from client.open(10.0)
        for _ in range(MAX_NOTES + 1):
            with suppress(McpError):
                yield from client.request("tools/call", {}, within=0.1)
            yield from sleep(engine, CLOSE_TIMEOUT)

    server = Slow()
    run(server, talk)
    assert server.methods.count("notifications/cancelled") == MAX_NOTES + 1


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (empty_response(401), "it does not let us in (status 401)"),
        (json_response(403, {"error": "no\nscope"}), "it does not let us in (status 403, no scope)"),
        (empty_response(404), "there is nothing at this address (status 404)"),
        (moved(b"http://evil/a?b"), "it redirects to http://evil/a, and only redirects within the configured origin"),
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
    server = Server(post=lambda message, request: refusal)
    assert run(server, call)[0].startswith(why)
    assert server.methods == ["initialize"]


def test_redirects_within_the_origin_are_followed() -> None:
    class Moved(Server):
        def __init__(self) -> None:
            super().__init__()
            self.paths: list[str] = []
            verbs = {"POST": self._post, "GET": self._get, "DELETE": self._delete}
            paths = ("/mcp", "/mcp/", "/mcp/v2")
            self.router = Router([row(verb, path, does) for verb, does in verbs.items() for path in paths])

        def post(self, message: dict[str, Any], request: Request) -> Any:
            self.paths.append(request.path)
            location = {"/mcp": b"/mcp/", "/mcp/": b"v2"}.get(request.path)  # the second is relative to the first
            return super().post(message, request) if location is None else moved(location, 307)

    server = Moved()
    assert run(server, call)[0] == {"content": []}
    assert server.paths == ["/mcp", "/mcp/", "/mcp/v2", "/mcp/v2", "/mcp/v2"]
    assert server.fields_of("tools/call").get(b"authorization") == b"Bearer t-1"
    assert "DELETE" in server.methods


def test_endless_redirects_end() -> None:
    server = Server(post=lambda message, request: moved(b"mcp?%d" % len(server.methods)))
    assert run(server, call)[0].startswith("it redirects to mcp, and only")
    assert len(server.methods) == MAX_REDIRECTS + 1


def test_redirects_share_the_timeout_of_their_request() -> None:
    def post(message: dict[str, Any], request: Request) -> Any:
        return redirect() if "id" not in message else Server.post(server, message, request)

    def redirect() -> Flow[Response]:
        yield from sleep(server.engine, 20.0)
        return moved(b"mcp?%d" % len(server.methods))

    server = Server(post=post)
    assert run(server, call)[0].startswith("it cannot be reached")
    assert server.methods.count("notifications/initialized") == 2


def test_only_the_first_response_names_the_session() -> None:
    def call_twice(client: McpClient, engine: Engine) -> Flow[Any]:
        yield from call(client, engine)
        return (yield from client.request("tools/call", {}, within=10.0))

    other = (b"mcp-session-id", b"s-2")
    server = Server(call=lambda message: json_response(200, answer(message), (other,)))
    assert run(server, call_twice)[0] == {"content": []}
    sessions = [fields.get(b"mcp-session-id") for _, _, fields in server.seen]
    assert (sessions[0], set(sessions[1:])) == (None, {b"s-1"})


def test_expired_session() -> None:
    server = Server(call=lambda message: empty_response(404))
    assert run(server, call) == (GONE, [GONE])
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
        (refused(200, "x" * (MAX_ERROR - len(refused(200, "").body))), None, True),
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
        (json_response(200, {"id": 2, "error": {"message": "Unknown session"}}), PONG, "it refuses: Unknown session"),
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

    silent = Restarted(empty_response(400))
    silent.ping = late(silent, PONG)
    assert run(silent, call) == ("it refuses the request (status 400)", [])

    server = Server()

    def talk(client: McpClient, engine: Engine) -> Flow[Any]:
        yield from client.open(10.0)
        server.process.stop(0.0)
        yield from sleep(engine, 1.0)
        return (yield from client.request("tools/call", {"name": "echo"}, within=10.0))

    told, ended = run(server, talk)
    assert told.startswith("it cannot be reached: ")
    assert ended == [told]
    assert run(None, call)[0].startswith("it cannot be reached: ")


def test_server_without_sessions_refuses_without_an_end() -> None:
    for lost in (empty_response(404), refused(400, "no"), LOST):
        server = Restarted(lost)
        server.session = b""
        assert run(server, call)[1] == []


@pytest.mark.parametrize(
    ("session", "kept"), [(b"", False), (b"has space", False), (b"x" * 1_025, False), (b"x" * 1_024, True)]
)
def test_accepted_session_ids(session: bytes, kept: bool) -> None:
    server = Server()
    server.session = session
    run(server, call)
    assert server.fields_of("tools/call").get(b"mcp-session-id") == (session if kept else None)
    assert ("DELETE" in server.methods) is kept
