import json
from typing import Any

from attrs import evolve

from svc_proto.agent import interface
from svc_proto.api.chat.records import Usage
from svc_proto.api.projections.runs import RunProjection
from svc_proto.api.projections.turn_events import TurnEnded, TurnStarted, TurnStreamEvent
from svc_proto.basics.moment import Moment
from svc_proto.wire.sse import EventStreamDecoder

NOW = Moment(1.0, 1_927_857_907.02)
CALL = interface.ToolCall(id="call_7", name="terminal", args={"a": 1}, preview="ls")
IDS = {"tool": "terminal", "call_id": "call_7", "tool_call_id": "call_7", "args": {"a": 1}}


def told(event: TurnStreamEvent) -> tuple[str, dict[str, Any]]:
    text = RunProjection(session_id="s1", run_id="run_a1").encode(event, NOW)
    (found,) = EventStreamDecoder().receive_data(text.encode())
    data = json.loads(found.data)
    assert data.pop("event") == found.event
    assert (data.pop("run_id"), data.pop("session_id"), data.pop("timestamp")) == ("run_a1", "s1", NOW.wall)
    assert text.endswith(": stream closed\n\n") == isinstance(event, TurnEnded)
    return found.event, data


def test_the_events_of_the_wire() -> None:
    assert told(TurnStarted(title=None, user_id="u", user_text="Hi")) == ("run.started", {})
    assert told(interface.TextDelta("Hé")) == ("message.delta", {"delta": "Hé"})
    assert told(interface.ReasoningDelta("hm")) == ("reasoning.available", {"text": "hm"})
    assert told(interface.ToolCallStarted(CALL)) == ("tool.started", {**IDS, "preview": "ls"})
    completed = {**IDS, "duration": 1.235, "error": False, "result_preview": "4"}
    finished = interface.ToolCallFinished(call=CALL, output="42", preview="4", seconds=1.23456)
    assert told(finished) == ("tool.completed", completed)
    failed = {**IDS, "duration": 0.0, "error": True, "result_preview": "no"}
    assert told(interface.ToolCallFinished(call=CALL, output="x", error="no")) == ("tool.completed", failed)
    name, data = told(interface.MemoryChanged(CALL, interface.MemoryChange(target="memory", count=1, added="x")))
    assert (name, data["tool"], data["added"]) == ("memory.updated", CALL.name, "x")
    assert RunProjection(session_id="s1", run_id="run_a1").encode(interface.ToolCallPending(CALL), NOW) == ""


def test_approvals() -> None:
    shown: dict[str, Any] = {"command": "rm x", "description": "removes"}
    asked = interface.ApprovalRequested(call=CALL, **shown, pattern="rm", choices=("once", "deny"))
    text = {"tool_name": CALL.name, **shown}
    patterns = {"pattern_key": "rm", "pattern_keys": ["rm"], "allow_permanent": False}
    choices = {"choices": ["once", "deny"], "expires_at": None}
    assert told(asked) == ("approval.request", {**IDS, **text, **patterns, **choices})
    given = {"call_id": CALL.id, "tool_call_id": CALL.id, "choice": "once", "resolved": 1}
    assert told(interface.ApprovalResolved(call=CALL, choice="once")) == ("approval.responded", given)


def test_the_three_ends() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    completed = TurnEnded(content="Hello", usage=Usage(input_tokens=1, output_tokens=2))
    members: dict[str, object] = {"output": "Hello", "usage": usage, "reason": None, "unfinished": []}
    assert told(completed) == ("run.completed", members)
    cut = evolve(completed, reason="Cut.", unfinished=("phone_tap: denied",))
    assert told(cut)[1] == {**members, "reason": "Cut.", "unfinished": ["phone_tap: denied"]}
    assert told(TurnEnded(content="", error="gone")) == ("run.failed", {"error": "gone"})
    assert told(TurnEnded(content="", error="stopped", interrupted=True)) == ("run.cancelled", {})
