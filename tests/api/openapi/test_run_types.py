import json
from typing import Any

import pytest
from attrs import evolve

from svc_proto.agent.interface import (
    ApprovalRequested,
    MemoryChange,
    MemoryChanged,
    ReasoningDelta,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from svc_proto.api.openapi.run_types import RESPONSE_EVENTS, RUN_EVENTS
from svc_proto.schema.chat_events import EVENTS
from tests.api.harness import ApiCall
from tests.api.scripted_agent import TurnHarness, call_of
from tests.support.openapi_validation import OpenApiValidator

DOCUMENTED = OpenApiValidator.of(TurnHarness().request("GET", "/openapi.json").body)
HEAD = ("session_id", "run_id", "seq", "ts")  # members of each event of a session's stream
CALL = call_of(city="Bern")
QUESTION = ApprovalRequested(call=CALL, command="c", description="d", pattern="p", choices=("once", "deny"))
UNSEEN = {"session.created", "tool.progress"}  # phones handle these events, but this server does not send them


def play(call: ApiCall, book: TurnHarness, path: str, *, asks: bool = True) -> None:
    """Emit reasoning, text, tool calls and a changed note, and with `asks` approve a call; do not end the turn."""
    hand = book.hand
    hand.emit(ReasoningDelta("hm"), TextDelta("Hel"), TextDelta("lo"), ToolCallStarted(CALL))
    hand.emit(ToolCallFinished(call=CALL, output="ok", preview="ok", seconds=0.5))
    hand.emit(ToolCallStarted(failing := call_of(identity="call_8")))
    hand.emit(ToolCallFinished(call=failing, output="no", preview="no", seconds=0.5, error="no"))
    hand.emit(MemoryChanged(call=CALL, change=MemoryChange(target="memory", count=1, added="tea", removed=None)))
    if asks:
        hand.do(lambda: hand.host.request_approval(QUESTION))
        answer = book.request("POST", path, {"choice": "once", "call_id": CALL.id})
        DOCUMENTED.check("POST /v1/runs/{run_id}/approval", answer)
        DOCUMENTED.check("GET /v1/runs/{run_id}", book.request("GET", f"/v1/runs/{hand.turn.run_id}"))


def told(call: ApiCall, label: str, *, status: str = "200", head: tuple[str, ...] = ()) -> set[str]:
    """Return the names of a stream's events, without `[DONE]`, after a comparison of their data with the document."""
    content = DOCUMENTED.operations[label]["responses"][status]["content"]["text/event-stream"]
    names = set()
    for event in call.stream():
        if event.data == "[DONE]":
            continue
        members: dict[str, Any] = json.loads(event.data)
        assert [members.pop(name, None) for name in head if name not in members] == []
        rest = {name: value for name, value in members.items() if name not in head}
        assert DOCUMENTED.misfits(content["schema"], {"event": event.event, "data": event.data}) == []
        assert DOCUMENTED.misfits(content["x-events"][event.event], rest) == [], event
        names.add(event.event)
    return names


@pytest.mark.parametrize("end", [{}, {"finish": "error", "error": "it broke", "code": "agent_error"}])
def test_a_session_s_stream(end: dict[str, Any]) -> None:
    book = TurnHarness()
    call = book.chat(book.session(), {"message": "Hi", "approvals": True})
    play(call, book, f"/v1/runs/{book.hand.turn.run_id}/approval")
    book.hand.finish(**end)
    names = told(call, "POST /api/sessions/{id}/chat/stream", head=HEAD)
    assert names <= EVENTS.keys()
    assert {"run.started", "tool.failed", "memory.updated", "approval.request", "approval.responded", "done"} <= names


@pytest.mark.parametrize("end", ["finish", "error", "stop"])
def test_the_events_of_a_run(end: str) -> None:
    book = TurnHarness()
    call = book.call("POST", "/v1/runs", {"input": "Hi", "stream": True})
    path = f"/v1/runs/{book.hand.turn.run_id}"
    play(call, book, f"{path}/approval")
    if end == "finish":
        book.hand.finish()
    elif end == "error":
        book.hand.finish("error", error="it broke", code="agent_error")
    else:
        DOCUMENTED.check("POST /v1/runs/{run_id}/stop", book.request("POST", f"{path}/stop"))
    last = {"finish": "run.completed", "error": "run.failed", "stop": "run.cancelled"}
    assert told(call, "POST /v1/runs") == {name for name in RUN_EVENTS if name not in last.values()} | {last[end]}
    DOCUMENTED.check("GET /v1/runs/{run_id}", book.request("GET", path))


@pytest.mark.parametrize("end", [{}, {"finish": "length"}, {"finish": "error", "error": "it broke", "code": "x"}])
def test_the_events_of_a_response(end: dict[str, Any]) -> None:
    book = TurnHarness()
    call = book.call("POST", "/v1/responses", {"input": "Hi", "stream": True})
    play(call, book, "", asks=False)
    book.hand.finish(**end, calls=(evolve(CALL, id="c2"),))
    names = told(call, "POST /v1/responses")
    last = {"response.completed", "response.incomplete", "response.failed"}
    calls = {name for name in RESPONSE_EVENTS if "function_call_" in name and "error" in end}  # not of a failed turn
    assert names - last == RESPONSE_EVENTS.keys() - last - calls
    assert len(names & last) == 1


@pytest.mark.parametrize("end", [{}, {"finish": "error", "error": "it broke"}])
def test_the_chunks_of_a_completion(end: dict[str, Any]) -> None:
    book = TurnHarness()
    asked = {"messages": [{"role": "user", "content": "Hi"}], "stream": True, "stream_options": {"include_usage": True}}
    for fields, more in (((), set()), (((b"x-svc-tool-progress", b"1"),), {"svc.tool.progress"})):
        call = book.call("POST", "/v1/chat/completions", asked, headers=fields)
        play(call, book, "", asks=False)
        book.hand.finish(**end)
        assert told(call, "POST /v1/chat/completions") == {"message"} | more
