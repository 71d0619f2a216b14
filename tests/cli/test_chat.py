import json
from typing import Any

import pytest

from svc_proto.cli.chat import ChatRequest, ChatResult, ChatService, find_api_client
from svc_proto.cli.one_shot_service import INTERRUPTED
from svc_proto.commands import Exit, Notify
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.facts import Stopping
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.wire.events import Headers
from tests.cli.harness import SILENT, OneShotHarness, Reply, UpstreamRequest, as_json
from tests.support.core_harness import HOME
from tests.support.http_codec import Response
from tests.support.http_harness import HarnessResponse

API = ApiClient("the API server", "http://127.0.0.1:8642", token="k3y", remedy="start it")
SECRET = "5e" * 32
HELLO = ChatRequest(message="hello")


def stream(*events: tuple[str, Any]) -> tuple[int, bytes]:
    return 200, b"".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode() for kind, data in events)


def begun(*events: tuple[str, Any]) -> Response:
    """Return a response that streams `events` and does not end."""
    return HarnessResponse(200, Headers(), stream(*events)[1], open=True)


CREATED = as_json({"id": "s1"}, 201)
TURN = stream(
    ("run.started", {}),
    ("tool.started", {"tool_name": "screen", "args": {"a": 1}}),
    ("tool.completed", {"tool_name": "screen", "result_preview": "two\x1b[2J nodes"}),
    ("tool.failed", {"error": "no"}),
    ("assistant.delta", {"delta": "Hel"}),
    ("assistant.delta", {"delta": "lo"}),
    ("assistant.delta", {"delta": None}),
    ("assistant.completed", {"content": "Hello"}),
    ("run.completed", {"completed": True, "usage": {"input_tokens": 3, "output_tokens": 4}}),
    ("done", {"state": "final"}),
)


def world(
    answer: Reply = TURN, order: ChatRequest = HELLO, created: Reply = CREATED, client: ApiClient = API
) -> OneShotHarness[ChatResult]:
    def http(asked: UpstreamRequest) -> Reply:
        return created if asked.path == "/api/sessions" else answer

    return OneShotHarness(ChatService(lambda engine: found(engine, client), order), http=http)


def found(engine: Engine, client: ApiClient = API) -> Flow[Any]:
    yield from sleep(engine, 0.0)
    return client


def test_a_turn() -> None:
    there = world()
    assert there.run() == ChatResult("s1", True, 7)
    assert [asked.path for asked in there.asked] == ["/api/sessions", "/api/sessions/s1/chat/stream"]
    assert there.asked[1].json == {"message": "hello"}
    assert there.asked[1].headers.get(b"authorization") == b"Bearer k3y"
    assert there.told[1:] == [
        Notify("tool", {"line": '→ screen: {"a":1}'}),
        Notify("tool", {"line": "← screen: two [2J nodes"}),
        Notify("tool", {"line": "✗ tool: no"}),
        Notify("text", {"text": "Hel"}),
        Notify("text", {"text": "lo"}),
    ]


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", (b"1", SECRET.encode())), ("localhost", (b"1", SECRET.encode())), ("192.0.2.7", (None, None))],
)
def test_local_chat_has_operator_headers(host: str, shown: object) -> None:
    chat = world(client=ApiClient("the API server", f"http://{host}:8642", token="k3y", remedy="start it"))
    chat.disk.put(f"{HOME}/local-secret", SECRET.encode())
    chat.run()
    made, turn = chat.asked
    fields = (turn.headers.get(b"x-svc-operator"), turn.headers.get(b"x-svc-local-secret"))
    assert (fields, made.headers.get(b"x-svc-operator")) == (shown, None)


@pytest.mark.parametrize(
    ("name", "args", "doing"),
    [
        ("phone_call", {"number": "1"}, ["waiting for a yes on the phone"]),
        ("phone_send_sms", {"device": "Pixel 8"}, ["waiting for a yes on Pixel 8"]),
        ("phone_share_media", None, ["waiting for a yes on the phone"]),
        ("phone_screen", {}, []),
    ],
)
def test_the_user_reads_that_the_phone_asks(name: str, args: object, doing: list[str]) -> None:
    started = ("tool.started", {"tool_name": name, "args": args})
    there = world(stream(started, ("run.completed", {"completed": True}))).finished()
    told = [str(news.fields["text"]) for news in there.told if news.event == "doing"]
    assert [text for text in told if text.startswith("waiting")] == doing


def test_raw() -> None:
    there = world(order=ChatRequest(message="x", session="s 9", raw=True))
    assert there.run().session == "s 9"
    assert there.asked[0].path == "/api/sessions/s%209/chat/stream"
    assert [tell.fields["event"] for tell in there.told[1:]][:2] == ["run.started", "tool.started"]
    assert {tell.event for tell in there.told[1:]} == {"event"}


def test_answer_without_deltas() -> None:
    ended = ("run.completed", {"completed": False, "usage": {}})
    there = world(stream(("assistant.completed", {"content": "All"}), ended))
    assert there.run() == ChatResult("s1", False)
    assert there.told[-1] == Notify("text", {"text": "All"})


def test_unknown_events_are_skipped() -> None:
    body = b"data: [DONE]\n\nevent: run.completed\ndata: {}\n\nevent: tool.started\ndata: {}\n\n"
    there = world((200, body))
    assert there.run() == ChatResult("s1", True)
    assert there.told[-1] == Notify("tool", {"line": "→ tool"})


@pytest.mark.parametrize(
    ("created", "session"), [(as_json({"session": {"id": 7}}), "7"), (as_json({"id": "s", "session": []}), "s")]
)
def test_ids(created: Reply, session: str) -> None:
    assert world(created=created).run().session == session


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (as_json({"id": True}), "the API server gave no session id: is it really one?"),
        (as_json({"error": {"message": "wrong key"}}, 401), "the API server refuses: wrong key (status 401)"),
    ],
)
def test_no_session(answer: Reply, says: str) -> None:
    assert world(created=answer).fails() == Exit(1, says)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((401, b"{}"), "the API server does not accept the key: set API_SERVER_KEY, or --api-key"),
        ((404, b"{}"), "the API server has no session 's1': leave --session out for a new one"),
        ((503, b'{"error": "busy"}'), "the API server refuses: busy (status 503)"),
        (stream(("error", {"message": "no\nmodel"})), "the agent failed: no model"),
        (stream(("error", {"error": "why"})), "the agent failed: why"),
        (stream(("error", {})), "the agent failed: no reason given"),
    ],
)
def test_failed_turn(answer: Reply, says: str) -> None:
    assert world(answer).fails() == Exit(1, says)


def test_broken_answer() -> None:
    there = world(HarnessResponse(200, Headers([(b"content-length", b"9999")]), TURN[1], open=True))
    there.script.append((0.5, lambda w: w.break_connections()))
    assert there.fails() == Exit(1, "the answer broke off: reset")


@pytest.mark.parametrize(
    ("config", "url", "key", "target"),
    [
        (RelayConfig(api_host="0.0.0.0", api_key="k"), None, None, ("http://127.0.0.1:8642", "k")),
        (RelayConfig(api_host="h", api_port=1), "http://x", "", ("http://x", "")),
    ],
)
def test_api_address_and_key(config: RelayConfig, url: str | None, key: str | None, target: tuple[str, str]) -> None:
    found = OneShotHarness(lambda engine: find_api_client(engine, config, url, key)).run()
    assert (found.url, found.token) == target


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------

STARTED = ("run.started", {"run_id": "run 1"})


def interrupted(
    begin: Reply, stop: Reply, *, then: float = 9.0, created: Reply = CREATED
) -> OneShotHarness[ChatResult]:
    """Return a chat whose user presses Ctrl-C after 1 s and again after 1.1 s.

    `begin` and `stop` answer the requests to start and to stop the turn; more text arrives after `then` seconds.
    """

    def http(asked: UpstreamRequest) -> Reply:
        if asked.path == "/api/sessions":
            return created
        return stop if asked.path.startswith("/v1/runs/") else begin

    def more(there: OneShotHarness[ChatResult]) -> None:
        there.unfinished(stream(STARTED, ("assistant.delta", {"delta": "late"}))[1])

    script: Any = [(1, lambda w: w.feed(Stopping(2.0))), (1.1, lambda w: w.feed(Stopping(2.0))), (then, more)]
    return OneShotHarness(ChatService(found, HELLO), http=http, script=script)


def stopped(there: OneShotHarness[ChatResult]) -> bool | None:
    assert isinstance(there.service, ChatService)
    return there.service.stopped


@pytest.mark.parametrize(
    ("answer", "done"), [(as_json({"status": "stopping"}), True), (as_json({}, 404), True), (as_json({}, 500), False)]
)
def test_ctrl_c_stops_the_run(answer: Reply, done: bool) -> None:
    there = interrupted(begun(STARTED), answer)
    assert there.fails() == Exit(INTERRUPTED)
    assert there.asked[-1].path == "/v1/runs/run%201/stop"
    assert stopped(there) is done


def test_ctrl_c_before_the_run_id() -> None:
    there = interrupted(begun(("session.created", {})), as_json({}), then=1.5)
    assert there.fails() == Exit(INTERRUPTED)
    assert there.asked[-1].path == "/v1/runs/run%201/stop"
    assert [tell.event for tell in there.told] == ["doing"]  # later events are not shown
    assert stopped(there) is True


UNANSWERED = {
    "no run id": (interrupted(SILENT, as_json({})), False),
    "no answer to the stop": (interrupted(begun(STARTED), SILENT), False),
    "no session yet": (interrupted(SILENT, SILENT, created=SILENT), None),
}


@pytest.mark.parametrize(("there", "done"), UNANSWERED.values(), ids=UNANSWERED)
def test_ctrl_c_and_the_server_does_not_answer(there: OneShotHarness[ChatResult], done: bool | None) -> None:
    assert there.fails() == Exit(INTERRUPTED)
    assert stopped(there) is done


@pytest.mark.parametrize("ending", [stream(("run.completed", {}))[1], None])
def test_the_turn_ends_after_ctrl_c(ending: bytes | None) -> None:
    there = interrupted(begun(STARTED), SILENT)
    there.script[-1] = (1.2, lambda w: w.unfinished(ending, end=True) if ending else w.break_connections())
    assert there.fails() == Exit(INTERRUPTED)
    assert stopped(there) is (ending is not None)


# --- approvals ------------------------------------------------------------------------------------------------------

CHOICES = ["once", "deny"]
QUESTION = ("approval.request", {"call_id": "c1", "command": "do it", "description": "Costs.", "choices": CHOICES})
GIVEN = ("approval.responded", {"call_id": "c1", "choice": "once"})


def asking(answer: Reply) -> OneShotHarness[ChatResult]:
    """Return a chat whose turn requests approval; the user types y after a second, and the turn ends a second later."""

    def http(asked: UpstreamRequest) -> Reply:
        if asked.path == "/api/sessions":
            return CREATED
        return answer if asked.path.startswith("/v1/runs/") else begun(STARTED, QUESTION)

    over = stream(GIVEN, ("memory.updated", {"tool_name": "memory", "added": "Tea"}), *[("run.completed", {})])[1]
    typing: list[Any] = [(1, lambda w: w.keys(b"y\n")), (3, lambda w: w.keys(None))]
    typing.insert(1, (2, lambda w: w.unfinished(over, end=True)))
    order = ChatRequest(message="hello", asks=True)
    return OneShotHarness(ChatService(found, order), http=http, script=typing, stdio=True)


def test_approval_is_shown_and_answered() -> None:
    there = asking(as_json({"resolved": 1}))
    assert there.run().completed
    assert there.asked[1].json == {"message": "hello", "approvals": True}
    assert there.asked[2].path == "/v1/runs/run%201/approval"
    assert there.asked[2].json == {"choice": "once", "call_id": "c1"}
    question = Notify("question", {"text": "Costs.\ndo it", "choices": CHOICES})
    assert there.told[1:] == [question, Notify("tool", {"line": "✎ memory: Tea"})]


def test_approval_that_another_client_answers_is_not_asked_for_any_longer() -> None:
    def http(asked: UpstreamRequest) -> Reply:
        return CREATED if asked.path == "/api/sessions" else begun(STARTED, QUESTION, (QUESTION[0], second))

    second = {**QUESTION[1], "call_id": "c2", "command": "do more"}
    there = OneShotHarness(ChatService(found, ChatRequest(message="x", asks=True)), http=http, stdio=True)
    there.script = [(1, lambda w: w.unfinished(stream(GIVEN, ("run.completed", {}))[1], end=True))]
    assert there.run().completed
    assert [told.fields["text"] for told in there.told if told.event == "question"] == [
        "Costs.\ndo it",
        "Costs.\ndo more",
    ]


def test_apps_of_the_task_and_what_was_not_done() -> None:
    end = {"completed": False, "unfinished": ["phone_call: denied"], "reason": "The agent was stopped."}
    there = world(stream(("run.completed", end)), order=ChatRequest(message="x", apps=("org.x",)))
    assert not there.run().completed
    assert there.asked[-1].json == {"message": "x", "apps": ["org.x"]}
    assert [told.fields["line"] for told in there.told if told.event == "tool"] == [
        "✗ not done or left open: phone_call: denied",
        "✗ ended early: The agent was stopped.",
    ]


def test_late_approval_answer() -> None:
    there = asking(as_json({"error": {"message": "no approval is pending"}}, 409))
    assert there.run().completed
    refusal = "the API server refuses: no approval is pending (status 409)"
    assert there.told[2].fields["line"] == f"✗ the answer was not taken: {refusal}"


def test_a_bug_in_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = "svc_proto.service_clients.api_client.encode_segment"
    monkeypatch.setattr(encode, lambda text: text if "s1" in text else 1 / 0)
    there = asking(as_json({}))
    assert there.run().completed
    assert there.told[2].fields["line"] == "✗ the answer was not taken: internal error, reference bug-1"


def test_keys_before_the_turn() -> None:
    there = OneShotHarness(
        ChatService(found, ChatRequest(message="x", asks=True)),
        http=SILENT,
        script=[(1, lambda w: w.keys(b"y\n")), (2, lambda w: w.feed(Stopping(2.0)))],
        stdio=True,
    )
    assert there.fails() == Exit(INTERRUPTED)
