from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.machines.confirmations import Confirmation
from svc_proto.schema import chat_events as events
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.service_client import ServiceCallError, ServiceFault
from svc_proto.voice.agent.api_run import ApiRun, fetch_history, map_run_event, spoken_error, stop_run
from svc_proto.voice.provider_interface import ProviderError
from svc_proto.voice.realtime import run_events
from svc_proto.voice.realtime.actions import StartRun
from svc_proto.voice.realtime.run_events import VoiceRunEvent
from tests.support.servers.api_server import ScriptedApi, hello
from tests.support.servers.canned_server import CannedServer, http
from tests.voice.harness import VoiceHarness

ORDER = StartRun(call_id="k1", text="hi")


class Bench(VoiceHarness):
    """Voice harness with a scripted API server."""

    def __init__(self) -> None:
        super().__init__()
        self.api = ScriptedApi(key="k")
        self.serve(9001, self.api)
        self.told: list[VoiceRunEvent] = []

    def target(self, port: int = 9001) -> ApiClient:
        return ApiClient("the API server", f"http://127.0.0.1:{port}", "k")

    def flow(self, flow: Flow[Any]) -> Any:
        """Start a flow and let a minute pass; return its result, or its `ServiceCallError` or `ProviderError`."""
        ends: list[Any] = []
        self.within(lambda: self.engine.spawn(flow, on_done=ends.append, on_error=ends.append))
        self.after(60.0)
        (end,) = ends
        assert not isinstance(end, Exception) or isinstance(end, ServiceCallError | ProviderError), end
        return end

    def run(self, *, port: int = 9001, system: str = "", **order: Any) -> Any:
        wanted = StartRun(call_id="k1", text="hi", **order)
        run = ApiRun(self.engine, wanted, self.told.append, word="svc", system=system)
        return self.flow(run.perform(self.target(port)))

    def types(self) -> list[str]:
        return [type(event).__name__ for event in self.told]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_run_in_a_new_session(bench: Bench) -> None:
    bench.api.turns.append(hello("Hi"))
    assert bench.run(profile="work", system="by voice") is None
    told = "ChatSessionBound ApiRunStarted MessageStarted AssistantDelta AssistantDelta AssistantCompleted"
    assert bench.types() == [*told.split(), *["RunCompleted"] * 2]
    (create, stream) = bench.api.seen
    assert create == ("POST", "/api/sessions", {"profile": "work"})
    assert stream[2] == {"message": "hi", "approvals": True, "system_message": "by voice", "profile": "work"}


def test_a_run_in_a_known_session(bench: Bench) -> None:
    bench.api.sessions["c1"] = []
    assert bench.run(session_id="c1", profile="default") is None
    assert bench.types()[0] == "ApiRunStarted"
    assert bench.api.seen[0][2] == {"message": "hi", "approvals": True}


def test_lost_session_is_replaced(bench: Bench) -> None:
    assert bench.run(session_id="lost") is None
    assert bench.types()[:2] == ["ChatSessionBound", "ApiRunStarted"]
    assert bench.told[0].reason == "session_not_found"  # type: ignore[union-attr]  # its type is in the line above


@pytest.mark.parametrize(
    ("end", "status", "value", "problem"),
    [
        ("/api/sessions", 401, {}, "does not accept the credential"),
        ("/api/sessions", 500, {"error": "short"}, "status 500: short"),
        ("/api/sessions", 201, {"session": {"id": True}}, "no session id"),
        ("/api/sessions", 200, [], "no session id"),
        ("/stream", 403, {}, "does not accept the credential"),
        ("/stream", 429, {"error": {"message": "too many"}}, "status 429: too many"),
        ("/stream", 503, {"error": {"message": "bad\x00text"}}, "status 503"),
        ("/stream", 404, {"error": {"code": "route"}}, "status 404"),
    ],
)
def test_refusals_of_the_api_server(bench: Bench, end: str, status: int, value: object, problem: str) -> None:
    bench.api.fixed[end] = (status, value)
    trouble = bench.run()
    assert problem in spoken_error(trouble)
    assert (trouble.fault in (ServiceFault.UNAUTHORIZED, ServiceFault.FORBIDDEN)) is (status in (401, 403))


def test_non_json_answer(bench: Bench) -> None:
    bench.api.problem = (502, b"<html>")
    assert spoken_error(bench.run()) == "The API server answers with status 502"


def test_ids_of_sessions_in_use(bench: Bench) -> None:
    bench.api.fixed["/api/sessions"] = (201, {"session_id": 7})
    bench.api.sessions["7"] = []
    assert bench.run() is None


def test_unreachable_server(bench: Bench) -> None:
    for session in (None, "c1"):
        trouble = bench.run(port=9, session_id=session)
        assert spoken_error(trouble).startswith("The API server cannot be reached")
    assert bench.flow(fetch_history(bench.engine, bench.target(9), "c1")) == []
    assert bench.flow(stop_run(bench.engine, bench.target(9), "n1")) is None


@pytest.mark.parametrize(
    ("last", "end"),
    [(("error", {"message": "quota"}), "quota"), (("assistant.delta", {"delta": "He"}), "None")],
    ids=["an error", "the end of the stream"],
)
def test_unfinished_run(bench: Bench, last: tuple[str, dict[str, object]], end: str) -> None:
    bench.api.turns.append([("run.started", {"run_id": "n1"}), last])
    assert str(bench.run()) == end


def test_broken_stream(bench: Bench) -> None:
    begun = b'event: run.started\ndata: {"run_id":"n1"}\n\n'
    bench.serve(9002, CannedServer(http(200, begun, length=999, kind="text/event-stream"), closes=True))
    trouble = bench.run(port=9002, session_id="c1")
    assert spoken_error(trouble) == "The API server's answer broke off."
    assert bench.types() == ["ApiRunStarted"]


@pytest.mark.parametrize("named", [True, False])
def test_run_is_stopped(bench: Bench, named: bool) -> None:
    stopped: list[bool] = []

    def tell(event: VoiceRunEvent) -> None:
        bench.told.append(event)
        if type(event).__name__ == ("ApiRunStarted" if named else "ChatSessionBound"):
            stopped.append(run.stop())

    run = ApiRun(bench.engine, ORDER, tell, word="svc")
    events = hello("Hi", run="n1")
    bench.api.turns.append([(kind, {**data, "run_id": "n1"}) for kind, data in events])
    assert bench.flow(run.perform(bench.target())) is None
    assert stopped == [named]
    assert bench.api.seen[-1][:2] == ("POST", "/v1/runs/n1/stop")
    assert bench.types() == (["ChatSessionBound", "ApiRunStarted"] if named else ["ChatSessionBound"])


def test_stop_and_history_calls(bench: Bench) -> None:
    target = bench.target()
    bench.api.fixed["/stop"] = (500, {})
    assert bench.flow(stop_run(bench.engine, target, "n1")) is None
    bench.api.fixed.clear()
    bench.api.sessions["c1"] = [{"role": "user", "content": "x"}]
    assert bench.flow(fetch_history(bench.engine, target, "c1")) == [{"role": "user", "content": "x"}]
    assert bench.flow(fetch_history(bench.engine, target, "unknown")) == []


@pytest.mark.parametrize(
    ("kind", "text", "kept"),
    [
        ("assistant.delta", '{"run_id":"n1","delta":"He"}', ["He"]),
        *(("assistant.delta", text, []) for text in ('{"delta":""}', '{"delta":5}', '["delta"]', "{")),
        ("tool.progress", '{"delta":"He"}', []),
    ],
)
def test_delta_stored_as_draft(kind: str, text: str, kept: list[str]) -> None:
    pieces: list[str] = []

    def drafts(delta: str) -> bool:
        pieces.append(delta)
        return True

    run = ApiRun(cast("Engine", None), ORDER, lambda event: None, word="svc", drafts=drafts)
    assert not run._store_draft(kind, text)  # the run has no id yet
    run.run_id = "n1"
    assert run._store_draft(kind, text) is bool(kept)
    run.stop()
    assert not run._store_draft(kind, text)
    assert pieces == kept


THINKS: dict[str, Any] = {"tool_name": "_thinking", "delta": "Hm"}
STOPPED: dict[str, Any] = {"content": "He", "interrupted": True}
CALL: dict[str, Any] = {"tool_name": "terminal", "call_id": "t1", "tool_call_id": "t1"}


@pytest.mark.parametrize(
    ("kind", "data", "mapped"),
    [
        ("session.created", {"title": None}, None),
        ("run.started", {"run_id": "n1"}, run_events.ApiRunStarted("n1")),
        ("run.started", {}, run_events.ApiRunStarted("")),
        ("message.started", {"message": {"id": "m1", "role": "assistant"}}, events.MessageStarted(JsonObject(id="m1"))),
        ("message.started", {"message": "m1", "message_id": "m2"}, events.MessageStarted(JsonObject(id="m2"))),
        ("assistant.delta", {"delta": "Hel"}, events.AssistantDelta(delta="Hel")),
        ("svc.assistant.delta", {"delta": "Hel"}, events.AssistantDelta(delta="Hel")),  # with the prefix of the brand
        ("assistant.delta", {"delta": ""}, None),
        ("assistant.delta", {"delta": 7}, None),
        ("tool.progress", THINKS, events.ToolProgress(**THINKS)),
        ("tool.progress", {"delta": "x"}, ("svc", "svc", events.ToolProgress(delta="x"))),
        ("tool.progress", {"tool_name": "web"}, None),
        (
            "tool.pending",
            {**CALL, "args": {"a": 1}, "preview": "a"},
            ("t1", "terminal", events.ToolPending(**CALL, args=JsonObject(a=1), preview="a")),
        ),
        ("tool.started", {**CALL, "args": "no object"}, ("t1", "terminal", events.ToolStarted(**CALL))),
        ("tool.started", {"tool": "x", "id": "9"}, ("9", "x", events.ToolStarted("x", "9"))),
        ("tool.started", {"name": "x", "arguments": {}}, ("x", "x", events.ToolStarted("x", args=JsonObject()))),
        (
            "tool.completed",
            {**CALL, "result_preview": "ok", "success": False},
            ("t1", "terminal", events.ToolCompleted(**CALL, result_preview="ok", success=False)),
        ),
        ("tool.failed", {**CALL, "error": "no"}, ("t1", "terminal", events.ToolFailed(**CALL, error="no"))),
        ("tool.failed", CALL, ("t1", "terminal", events.ToolFailed(**CALL, error="no reason given"))),
        ("memory.updated", {"target": "user", "call_id": "c"}, None),  # the call ends by an event of its own
        ("memory.updated", {"target": "user"}, ("memory", "memory", events.ToolCompleted(result_preview="user"))),
        ("skill.loaded", {"id": "s"}, ("s", "skill", events.ToolCompleted())),
        ("artifact.created", {"path": "/x"}, ("artifact", "artifact", events.ToolCompleted(result_preview="/x"))),
        ("hermes.confirmation.requested", {"confirmation_id": "q", "message": "May I?"}, Confirmation("q", "May I?")),
        ("svc.approval.request", {"command": "rm"}, Confirmation("approval.request", "rm")),
        (
            "approval.request",
            {"call_id": "q", "description": "Why.", "command": "what"},
            Confirmation("q", "Why. what"),
        ),
        ("approval.requested", {"id": "q"}, Confirmation("q", "May I go on?")),
        ("assistant.completed", {"content": "Hello"}, events.AssistantCompleted(content="Hello")),
        ("assistant.completed", STOPPED, events.AssistantCompleted(**STOPPED)),
        ("run.completed", {"completed": True}, events.RunCompleted()),
        ("run.completed", {"interrupted": True}, events.RunCompleted(interrupted=True)),
        ("done", {"state": "final"}, events.RunCompleted()),
        ("error", {"message": "quota"}, "quota"),
        ("error", {"error": "agent_error"}, "agent_error"),
        ("error", {}, "the agent failed"),
        ("whatever", {}, None),
    ],
)
def test_mapping_of_each_event(kind: str, data: dict[str, Any], mapped: object) -> None:
    if isinstance(mapped, tuple):
        mapped = run_events.ToolEventReceived(*mapped)
    if isinstance(mapped, str):
        with pytest.raises(ProviderError, match=f"^{mapped}$"):
            map_run_event(kind, JsonObject(data), "svc")
    else:
        assert map_run_event(kind, JsonObject(data), "svc") == mapped


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
NAMES = "delta message tool_name call_id args error content interrupted run_id"
KINDS = """
assistant.delta run.started message.started tool.progress tool.pending tool.completed tool.failed skill.loaded
confirmation.requested assistant.completed run.completed error
"""


@given(st.sampled_from(KINDS.split()), st.dictionaries(st.sampled_from(NAMES.split()), JSON))
def test_nothing_raises(kind: str, data: dict[str, Any]) -> None:
    with suppress(ProviderError):
        map_run_event(kind, JsonObject(data), "svc")
