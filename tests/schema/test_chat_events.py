import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.schema import chat_events as events
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.sse import EventStreamDecoder

CALL: dict[str, Any] = {"tool_name": "df", "call_id": "c1", "tool_call_id": "c1", "args": JsonObject(a=1)}
ENDED: dict[str, Any] = {"message_id": "m", "completed": False, "partial": True, "interrupted": True}
KNOWN = {
    "session.created": events.SessionCreated(title=None, model="m"),
    "run.started": events.RunStarted(user_message=JsonObject(id="u")),
    "message.started": events.MessageStarted(message=JsonObject(id="m")),
    "assistant.delta": events.AssistantDelta(message_id="m", delta="Hé\n"),
    "tool.progress": events.ToolProgress(message_id="m", tool_name=events.THINKING, delta="hm"),
    "tool.pending": events.ToolPending(**CALL, preview="df -h"),
    "tool.started": events.ToolStarted(**CALL, preview=None),
    "tool.completed": events.ToolCompleted(**CALL, duration=0.5, result_preview="62%"),
    "tool.failed": events.ToolFailed(**CALL, duration=1, error="no"),
    "approval.request": events.ApprovalRequest(tool="df", **CALL, command="rm", pattern_keys=["p"], choices=["deny"]),
    "approval.responded": events.ApprovalResponded(call_id="c1", tool_call_id="c1", choice="deny", resolved=1),
    "memory.updated": events.MemoryUpdated(
        **CALL, target="user", entry_count=2, added="x", undo=JsonObject(method="PUT")
    ),
    "assistant.completed": events.AssistantCompleted(**ENDED, usage=JsonObject(input_tokens=1), content="Hé"),
    "run.completed": events.RunCompleted(**ENDED, api_calls=3, reason="Cut.", unfinished=["phone_tap: denied"]),
    "error": events.Error(message="gone", error="upstream_error"),
    "done": events.Done(),
}


def test_all_event_types() -> None:
    assert set(events.__all__) == {
        "THINKING",
        "ChatEvent",
        "EVENTS",
        "parse_event",
        "parse_delta_text",
        "delta_text",
        *(type(event).__name__ for event in KNOWN.values()),
    }
    assert {name: type(event) for name, event in KNOWN.items()} == events.EVENTS


@pytest.mark.parametrize("brand", ["", "svc.", "hermes."])
@pytest.mark.parametrize("kind", KNOWN)
def test_events_round_trip(kind: str, brand: str) -> None:
    text = KNOWN[kind].write('{"session_id":"s","run_id":"r","seq":', 7, "12.500")
    (told,) = EventStreamDecoder().receive_data(text.encode())
    data = JsonObject.parse_or_empty(told.data)
    assert (told.event, events.parse_event(brand + told.event, data)) == (kind, KNOWN[kind])
    assert list(data) == ["session_id", "run_id", "seq", "ts", *KNOWN[kind].members()]
    assert (data["seq"], data["ts"]) == (7, 12.5)


@pytest.mark.parametrize(
    ("empty", "delta"),
    [
        (events.AssistantDelta(message_id="m"), events.AssistantDelta(message_id="m", delta="x")),
        (
            events.ToolProgress(message_id="m", tool_name="t"),
            events.ToolProgress(message_id="m", tool_name="t", delta="x"),
        ),
    ],
)
def test_around_a_delta(empty: events.ChatEvent, delta: events.ChatEvent) -> None:
    before, after = empty.around('{"seq":')
    assert f'{before}7,"ts":5{after}"x"}}\n\n' == delta.write('{"seq":', 7, "5")


@pytest.mark.parametrize(
    ("kind", "data", "event"),
    [
        ("tool.started", {"tool": "x", "id": "9", "args": "none"}, events.ToolStarted(tool_name="x", call_id="9")),
        (
            "tool.completed",
            {"name": "x", "result": "ok", "success": 0},
            events.ToolCompleted(tool_name="x", result_preview="ok"),
        ),
        ("tool.failed", {"message": "no"}, events.ToolFailed(error="no")),
        ("error", {"error": "code"}, events.Error(message="code", error="code")),
        ("approval.request", {"choices": "odd", "pattern_keys": ["a", 5]}, events.ApprovalRequest(pattern_keys=["a"])),
        ("run.completed", {"usage": 5, "api_calls": True, "completed": None}, events.RunCompleted()),
    ],
)
def test_foreign_servers(kind: str, data: dict[str, object], event: events.ChatEvent) -> None:
    assert events.parse_event(kind, JsonObject(data)) == event


def test_the_text_of_a_delta() -> None:
    for data in ({}, {"delta": None}, {"delta": 5}, {"delta": ""}, {"delta": ["Hi"]}):
        assert (events.delta_text(data), events.parse_delta_text(json.dumps(data))) == ("", "")
    assert events.delta_text({"delta": "Hi"}) == events.parse_delta_text('{"delta":"Hi","message_id":5}') == "Hi"
    assert [events.parse_delta_text(text) for text in ("", "[]", '"Hi"', "{")] == [""] * 4


@pytest.mark.parametrize("kind", ["", "chat.event", "_.call", "skill.loaded"])
def test_unknown_events(kind: str) -> None:
    assert events.parse_event(kind, JsonObject()) is None


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), st.lists, max_leaves=3)
NAMES = sorted({name for event in KNOWN.values() for name in event.members()})


@given(st.sampled_from(sorted(KNOWN)), st.dictionaries(st.sampled_from(NAMES), JSON, max_size=8))
def test_parsed_events_can_be_written(kind: str, data: dict[str, object]) -> None:
    event = events.parse_event(kind, JsonObject(data))
    assert event is not None
    (told,) = EventStreamDecoder().receive_data(event.write('{"seq":', 1, "1").encode("utf-8", "replace"))
    assert json.loads(told.data).keys() >= event.members().keys()
