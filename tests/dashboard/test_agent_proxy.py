import json
from base64 import b64encode
from typing import Any

import pytest

from svc_proto.dashboard.agent_proxy import PREFIX
from svc_proto.engine.message import Request
from svc_proto.relay_config import RelayConfig
from svc_proto.wire.sse import EventStreamDecoder, ServerSentEvent, encode_event
from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.http_codec import Response
from tests.support.servers.api_server import ScriptedApi, hello
from tests.support.servers.canned_server import CannedServer, http

KEY = "sk-board-4e1"


def board_before(world: SimulatedEnvironment, peer: Any, **config: Any) -> DashboardServer:
    return DashboardServer(world, **{"api_url": world.peer(peer), "api_key": KEY, **config})


def events_of(answer: Response) -> list[ServerSentEvent]:
    assert answer.status == 200, answer
    assert answer.headers.get(b"content-type") == b"text/event-stream"
    return EventStreamDecoder().receive_data(answer.body)


def test_the_calls_of_a_chat(virtual: SimulatedEnvironment) -> None:
    api = ScriptedApi(KEY)
    api.turns.append(hello("Hi"))
    board = board_before(virtual, api)
    made = board.request("POST", f"{PREFIX}/sessions", {"title": "One"})
    assert (made.status, made.json["id"]) == (201, "s-1")
    assert [row["id"] for row in board.request("GET", f"{PREFIX}/sessions").json["sessions"]] == ["s-1"]
    told = events_of(board.request("POST", f"{PREFIX}/sessions/s-1/chat/stream", {"message": "Hello"}))
    assert [event.event for event in told][-2:] == ["run.completed", "done"]
    assert "".join(json.loads(event.data)["delta"] for event in told if event.event == "assistant.delta") == "Hi"
    assert board.request("GET", f"{PREFIX}/sessions/s-1/messages").status == 200
    assert board.request("POST", f"{PREFIX}/runs/run_1/stop").status == 200
    assert board.request("POST", f"{PREFIX}/runs/run_1/approval", {"choice": "once"}).status == 200
    chat = ["/api/sessions", "/api/sessions", "/api/sessions/s-1/chat/stream"]
    assert [path for _, path, _ in api.seen] == [*chat, "/v1/runs/run_1/stop", "/v1/runs/run_1/approval"]
    assert api.seen[0][2] == {"title": "One"}
    assert KEY not in repr(board.server.logs)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", path) for path in ("/config", "/sessions/s-1", "/runs", "/memory")),
        *(("DELETE", "/runs/r-1"), ("POST", "/chat/completions")),
    ],
)
def test_other_api_routes_are_not_proxied(virtual: SimulatedEnvironment, method: str, path: str) -> None:
    peer = CannedServer(http(200, b"{}"))
    assert board_before(virtual, peer).request(method, PREFIX + path).status in (404, 405)
    assert peer.heard == []


@pytest.mark.parametrize(
    ("method", "path", "target"),
    [
        ("GET", "/sessions?archived=only&limit=1", "/api/sessions?archived=only"),
        ("GET", "/sessions?archived=x", "/api/sessions"),
        ("GET", "/sessions/search?q=a%26b%20c&limit=9", "/api/sessions/search?q=a%26b%20c"),
        ("PATCH", "/sessions/s-1", "/api/sessions/s-1"),
        ("DELETE", "/sessions/a%20b", "/api/sessions/a%20b"),
        ("DELETE", "/sessions/a%2Fb/messages?from_row=7", "/api/sessions/a%2Fb/messages?from_row=7"),
        ("DELETE", "/sessions/s/messages", "/api/sessions/s/messages?from_row="),
        ("GET", "/approvals", "/api/approvals"),
        ("GET", "/host", "/api/host"),
        ("PATCH", "/host", "/api/host"),
        ("POST", "/key/rotate", "/api/key/rotate"),
        ("DELETE", "/approvals", "/api/approvals"),
        ("PATCH", "/model", "/api/config"),
        ("POST", "/model/probe", "/api/model/probe"),
        ("GET", "/changes?principal=1c2d%20Desk%26x", "/api/changes?principal=1c2d%20Desk%26x"),
        ("GET", "/changes", "/api/changes?principal="),
        ("POST", "/changes/undo", "/api/changes/undo"),
        *((method, "/memory", "/api/memory") for method in ("POST", "PATCH", "DELETE")),
    ],
)
def test_forwarded_requests(virtual: SimulatedEnvironment, method: str, path: str, target: str) -> None:
    peer = CannedServer(http(200, b'{"ok": true}'))
    body = None if method == "GET" else {"principal": "1c2d Desk"}
    answer = board_before(virtual, peer).request(method, PREFIX + path, body)
    assert (answer.status, answer.json) == (200, {"ok": True})
    heard = b"".join(peer.heard)
    assert heard.startswith(f"{method} {target} HTTP/1.1".encode())
    if method in ("POST", "PATCH"):
        assert heard.endswith(b'{"principal": "1c2d Desk"}')


@pytest.mark.parametrize(
    ("config", "model"),
    [
        (b'{"model": "llama3.2", "base_url": "http://10.0.0.9", "config": {"x": 1}}', "llama3.2"),
        (b'{"model": null}', None),
        (b"[]", None),
        (b"", None),
    ],
)
def test_only_the_model_of_settings_is_shown(virtual: SimulatedEnvironment, config: bytes, model: str | None) -> None:
    peer = CannedServer(http(200, config))
    board = board_before(virtual, peer)
    assert board.request("GET", f"{PREFIX}/model").json == {"chat": True, "model": model}
    assert b"".join(peer.heard).startswith(b"GET /api/config HTTP/1.1")


def test_a_message_with_pictures_may_be_large(virtual: SimulatedEnvironment) -> None:
    peer = CannedServer(http(200, b"{}"))
    board = board_before(virtual, peer)
    path = f"{PREFIX}/sessions/s-1/chat/stream"
    assert board.request("POST", path, b"x" * 3_000_000).status == 200
    assert board.request("POST", path, b"x" * 10_000_001).status == 413


def test_a_picture_of_a_chat(virtual: SimulatedEnvironment) -> None:
    peer = CannedServer(http(200, b"\x89PNG", kind="image/png"))
    answer = board_before(virtual, peer).request("GET", f"{PREFIX}/sessions/a%2Fb/pictures/t%2F")
    assert (answer.status, answer.body, answer.headers.get(b"content-type")) == (200, b"\x89PNG", b"image/png")
    assert b"".join(peer.heard).startswith(b"GET /api/sessions/a%2Fb/pictures/t%2F HTTP/1.1")


def test_without_an_api_server(virtual: SimulatedEnvironment) -> None:
    board = DashboardServer(virtual)
    for method, path in (("GET", "/sessions"), ("POST", "/sessions/s-1/chat/stream")):
        answer = board.request(method, PREFIX + path)
        assert answer.status == 404
        assert "without an API server" in board.detail(answer)
    assert board.request("GET", f"{PREFIX}/model").json == {"chat": False, "model": None}


def test_refused_key_gives_502(virtual: SimulatedEnvironment) -> None:
    """Answer 502 if the API server refuses the key: for a 401, a browser would request a password."""
    board = board_before(virtual, ScriptedApi("another"))
    for method, path in (("GET", "/sessions"), ("POST", "/sessions/s-1/chat/stream")):
        answer = board.request(method, PREFIX + path, {} if method == "POST" else None)
        assert answer.status == 502
        assert "does not know the key" in board.detail(answer)
        assert KEY not in answer.body.decode()


def test_missing_key_gives_502(virtual: SimulatedEnvironment) -> None:
    board = board_before(virtual, ScriptedApi("another"), api_key="")
    answer = board.request("GET", f"{PREFIX}/sessions")
    assert answer.status == 502
    assert board.detail(answer).endswith("it asks for a key, and the dashboard was given none: set API_SERVER_KEY")


def test_replaced_key_is_reloaded(virtual: SimulatedEnvironment) -> None:
    home, api = virtual.relay_host.state, Noting("sk-new")
    api.turns.append(hello("Hi"))
    virtual.start_service("api", lambda port, home: api, port=8642)
    relay = RelayConfig(home=home, config_path=f"{home}/config.yaml")
    board = DashboardServer(virtual, api_url="http://127.0.0.1:8642", api_key=KEY, relay=relay)
    assert board.request("POST", f"{PREFIX}/sessions", {}).status == 502  # and no other server is reachable
    virtual.relay_host.disk.put(f"{home}/.env", b"API_SERVER_KEY=sk-new\n")
    api.said.clear()
    assert board.request("POST", f"{PREFIX}/sessions", {}).status == 201
    assert len(api.said) == 2
    assert board.request("GET", f"{PREFIX}/sessions").status == 200
    assert len(api.said) == 3
    api.key = "sk-newest"
    virtual.relay_host.disk.put(f"{home}/.env", b"API_SERVER_KEY=sk-newest\n")
    assert events_of(board.request("POST", f"{PREFIX}/sessions/s-1/chat/stream", {"message": "Hi"}))
    assert len(api.said) == 5


def test_non_stream_answer_is_passed_on(virtual: SimulatedEnvironment) -> None:
    answer = board_before(virtual, CannedServer(http(404, b'{"error":{"message":"No such session"}}'))).request(
        "POST", f"{PREFIX}/sessions/x/chat/stream", {"message": "Hi"}
    )
    assert answer.status == 404
    assert answer.json == {"detail": {"error": {"message": "No such session"}}, "code": "refused"}


def test_silent_server_gives_502(virtual: SimulatedEnvironment) -> None:
    board = board_before(virtual, CannedServer())
    began = virtual.clock()
    answer = board.request("POST", f"{PREFIX}/sessions/x/chat/stream", {"message": "Hi"})
    assert answer.status == 502
    assert board.detail(answer).endswith("no answer within 5 seconds")
    assert virtual.clock() - began < 5.1


def test_broken_stream_ends_with_an_error_event(virtual: SimulatedEnvironment) -> None:
    """End a broken stream with an error event; control characters are removed from event names."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999\r\n\r\n"
    peer = CannedServer(head + encode_event("1", event="a") + b"event: b\x00c\ndata: 2\n\n", closes=True)
    told = events_of(board_before(virtual, peer).request("POST", f"{PREFIX}/sessions/x/chat/stream", {"message": "Hi"}))
    assert [(event.event, event.data) for event in told[:2]] == [("a", "1"), ("bc", "2")]
    (last,) = told[2:]
    assert last.event == "error"
    assert json.loads(last.data)["message"].startswith("API server unreachable at 10.0.0.3:9000: ")


def test_disconnected_browser_ends_the_call(virtual: SimulatedEnvironment) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 999\r\n\r\n"
    board = board_before(virtual, CannedServer(head + encode_event("1")))
    client = board.client()
    client.begin("POST", f"{PREFIX}/sessions/x/chat/stream", body=b"{}")
    client.wire.read_until(b"data: 1")
    process = virtual.relay_host.processes[-1]
    assert process.channel_count == 2
    client.wire.abort()
    virtual.wait_until(lambda: not process.channel_count)


class Noting(ScriptedApi):
    """Scripted API server that records the method, the operator and the local secret of each request."""

    def __init__(self, key: str = KEY) -> None:
        super().__init__(key)
        self.said: list[tuple[str, bytes | None, bytes | None]] = []

    def authorize(self, access: Any, request: Request) -> object:
        shown = (request.headers.get(b"x-svc-operator"), request.headers.get(b"x-svc-local-secret"))
        self.said.append((request.method, *shown))
        return super().authorize(access, request)


@pytest.mark.parametrize("password", ["", "a password"])
def test_turn_has_operator_headers_with_a_password(virtual: SimulatedEnvironment, password: str) -> None:
    api = Noting()
    api.turns.append(hello("Hi"))
    virtual.start_service("api", lambda port, home: api, port=8642)
    secret = "5e" * 32
    virtual.relay_host.disk.put(f"{virtual.relay_host.state}/local-secret", secret.encode())
    board = DashboardServer(virtual, api_url="http://127.0.0.1:8642", api_key=KEY, password=password)
    basic = {"authorization": f"Basic {b64encode(b':' + password.encode()).decode()}"} if password else {}
    board.request("POST", f"{PREFIX}/sessions", {}, headers=basic)
    events_of(board.request("POST", f"{PREFIX}/sessions/s-1/chat/stream", {"message": "Hi"}, headers=basic))
    made, turn = api.said
    assert made == ("POST", None, None)
    assert turn == ("POST", b"1", secret.encode() if password else None)
