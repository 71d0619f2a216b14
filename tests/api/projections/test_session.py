import json
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.agent import interface
from svc_proto.api.chat.records import Usage
from svc_proto.api.projections.session import SessionProjection
from svc_proto.api.projections.turn_events import TurnEnded, TurnStarted, TurnStreamEvent
from svc_proto.basics.moment import Moment
from svc_proto.wire.sse import EventStreamDecoder, encode_event

NOW = Moment(1.0, 1_927_857_907.02)
HEAD = {"session_id": 's"1', "run_id": "run_a1"}
CALL = interface.ToolCall(id="call_7", name="terminal", args={"a": "ö"}, preview="ls")
IDS = {"tool_name": "terminal", "call_id": "call_7", "tool_call_id": "call_7", "args": {"a": "ö"}}


def projection() -> SessionProjection:
    return SessionProjection(session_id='s"1', run_id="run_a1", message_id="m1")


def told(event: TurnStreamEvent) -> list[tuple[str, dict[str, Any]]]:
    events = EventStreamDecoder().receive_data(projection().encode(event, NOW).encode())
    found = [(each.event, json.loads(each.data)) for each in events]
    for number, (_, data) in enumerate(found, 1):
        assert {name: data.pop(name) for name in HEAD} == HEAD
        assert (data.pop("seq"), data.pop("ts")) == (number, NOW.wall)
    return found


def test_the_beginning() -> None:
    assert told(TurnStarted(title=None, user_id="u1", user_text="Hi", model="m")) == [
        ("session.created", {"title": None, "model": "m"}),
        ("run.started", {"user_message": {"id": "u1", "role": "user", "content": "Hi"}}),
        ("message.started", {"message": {"id": "m1", "role": "assistant"}}),
    ]


def test_text_and_reasoning() -> None:
    assert told(interface.TextDelta("Hel")) == [("assistant.delta", {"message_id": "m1", "delta": "Hel"})]
    thought = {"message_id": "m1", "tool_name": "_thinking", "delta": "hm"}
    assert told(interface.ReasoningDelta("hm")) == [("tool.progress", thought)]


def test_tools() -> None:
    assert told(interface.ToolCallPending(CALL)) == [("tool.pending", {**IDS, "preview": "ls"})]
    assert told(interface.ToolCallStarted(CALL)) == [("tool.started", {**IDS, "preview": "ls"})]
    finished = interface.ToolCallFinished(call=CALL, output="all of it", preview="all", seconds=0.5)
    assert told(finished) == [("tool.completed", {**IDS, "duration": 0.5, "result_preview": "all", "success": True})]
    failed = interface.ToolCallFinished(call=CALL, output="x", error="no such file")
    assert told(failed) == [("tool.failed", {**IDS, "duration": 0.0, "error": "no such file", "success": False})]


ASKED = interface.ApprovalRequested(call=CALL, command="ls", description="lists", pattern="p", choices=("once", "deny"))


def test_questions() -> None:
    pending, (name, asked) = told(ASKED)
    assert pending[0] == "tool.pending"
    assert (name, asked["command"], asked["choices"]) == ("approval.request", "ls", ["once", "deny"])
    ((name, given),) = told(interface.ApprovalResolved(call=CALL, choice="deny"))
    assert (name, given["choice"]) == ("approval.responded", "deny")
    one = projection()
    assert one.encode(interface.ToolCallPending(CALL), NOW)
    assert "tool.pending" not in one.encode(ASKED, NOW)  # it is reported once


@pytest.mark.parametrize(
    ("added", "removed", "method", "body"),
    [
        ("new", None, "DELETE", {"old_text": "new"}),
        (None, "old", "POST", {"content": "old"}),
        ("new", "old", "PATCH", {"old_text": "new", "content": "old"}),
    ],
)
def test_notes(added: str | None, removed: str | None, method: str, body: dict[str, str]) -> None:
    change = interface.MemoryChange(target="user", count=3, added=added, removed=removed)
    members = {"target": "user", "entry_count": 3, "added": added, "removed": removed}
    undo = {"method": method, "body": {"target": "user", **body}}
    assert told(interface.MemoryChanged(CALL, change)) == [("memory.updated", {**IDS, **members, "undo": undo})]


def test_the_end() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    flags = {"message_id": "m1", "completed": True, "partial": False, "interrupted": False, "usage": usage}
    ended = TurnEnded(content="Hello", usage=Usage(input_tokens=1, output_tokens=2), api_calls=2)
    ended = evolve(ended, unfinished=("phone_tap: denied",))
    assert told(ended) == [
        ("assistant.completed", {**flags, "content": "Hello"}),
        ("run.completed", {**flags, "api_calls": 2, "reason": None, "unfinished": ["phone_tap: denied"]}),
        ("done", {"state": "final"}),
    ]
    failed = told(TurnEnded(content="Hel", error="gone", code="upstream_error"))
    assert failed == [("error", {"message": "gone", "error": "upstream_error"}), ("done", {"state": "final"})]


@given(text=st.text())
@settings(max_examples=50)
def test_any_text_is_encoded_in_one_line(text: str) -> None:
    frame = projection().encode(interface.TextDelta(text), NOW)
    (event,) = EventStreamDecoder().receive_data(frame.encode("utf-8"))
    assert json.loads(event.data)["delta"] == text
    assert frame.encode() == encode_event(event.data, event="assistant.delta")


def test_a_lone_surrogate_is_escaped() -> None:
    frame = projection().encode(interface.TextDelta("\ud83d"), NOW)
    assert '"delta":"\\ud83d"}' in frame
    frame.encode("utf-8")
