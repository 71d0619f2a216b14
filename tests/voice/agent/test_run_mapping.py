"""Events of the API server's stream, as the broker takes them (wire terminal-voice 6.7)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.machines.confirmations import Question
from svc_proto.schema import chat_events as events
from svc_proto.schema.members import Members
from svc_proto.voice.agent.run_mapping import RunTrouble, map_event
from svc_proto.voice.realtime import story

CALL: dict[str, Any] = {"tool_name": "terminal", "call_id": "t1", "tool_call_id": "t1"}


@pytest.mark.parametrize(
    ("kind", "data", "mapped"),
    [
        ("session.created", {"title": None}, None),
        ("run.started", {"run_id": "n1"}, story.RunBegan("n1")),
        ("run.started", {}, story.RunBegan("")),
        ("message.started", {"message": {"id": "m1", "role": "assistant"}}, events.MessageStarted(Members(id="m1"))),
        ("message.started", {"message": "m1", "message_id": "m2"}, events.MessageStarted(Members(id="m2"))),
        ("assistant.delta", {"delta": "Hel"}, events.AssistantDelta(delta="Hel")),
        ("svc.assistant.delta", {"delta": "Hel"}, events.AssistantDelta(delta="Hel")),  # under a brand
        ("assistant.delta", {"delta": ""}, None),
        ("assistant.delta", {"delta": 7}, None),
        (
            "tool.progress",
            {"tool_name": "_thinking", "delta": "Hm"},
            events.ToolProgress(tool_name="_thinking", delta="Hm"),
        ),
        ("tool.progress", {"delta": "x"}, ("svc", "svc", events.ToolProgress(delta="x"))),
        ("tool.progress", {"tool_name": "web"}, None),
        (
            "tool.pending",
            {**CALL, "args": {"a": 1}, "preview": "a"},
            ("t1", "terminal", events.ToolPending(**CALL, args=Members(a=1), preview="a")),
        ),
        ("tool.started", {**CALL, "args": "no object"}, ("t1", "terminal", events.ToolStarted(**CALL))),
        ("tool.started", {"tool": "x", "id": "9"}, ("9", "x", events.ToolStarted("x", "9"))),
        ("tool.started", {"name": "x", "arguments": {}}, ("x", "x", events.ToolStarted("x", args=Members()))),
        (
            "tool.completed",
            {**CALL, "result_preview": "ok", "success": False},
            ("t1", "terminal", events.ToolCompleted(**CALL, result_preview="ok", success=False)),
        ),
        ("tool.failed", {**CALL, "error": "no"}, ("t1", "terminal", events.ToolFailed(**CALL, error="no"))),
        ("tool.failed", CALL, ("t1", "terminal", events.ToolFailed(**CALL, error="no reason given"))),
        ("memory.updated", {"target": "user", "call_id": "c"}, None),  # that call ends by itself
        ("memory.updated", {"target": "user"}, ("memory", "memory", events.ToolCompleted(result_preview="user"))),
        ("skill.loaded", {"id": "s"}, ("s", "skill", events.ToolCompleted())),
        ("artifact.created", {"path": "/x"}, ("artifact", "artifact", events.ToolCompleted(result_preview="/x"))),
        (
            "hermes.confirmation.requested",
            {"confirmation_id": "q", "message": "May I?"},
            Question("q", "May I?"),
        ),
        ("svc.approval.request", {"command": "rm"}, Question("approval.request", "rm")),
        (
            "approval.request",
            {"call_id": "q", "description": "Why.", "command": "what"},
            Question("q", "Why. what"),
        ),
        ("approval.requested", {"id": "q"}, Question("q", "May I go on?")),
        ("assistant.completed", {"content": "Hello"}, events.AssistantCompleted(content="Hello")),
        (
            "assistant.completed",
            {"content": "He", "interrupted": True},
            events.AssistantCompleted(content="He", interrupted=True),
        ),
        ("run.completed", {"completed": True}, events.RunCompleted()),
        ("run.completed", {"interrupted": True}, events.RunCompleted(interrupted=True)),
        ("done", {"state": "final"}, events.RunCompleted()),
        ("error", {"message": "quota"}, "quota"),
        ("error", {"error": "agent_error"}, "agent_error"),
        ("error", {}, "the agent failed"),
        ("whatever", {}, None),
    ],
)
def test_the_table(kind: str, data: dict[str, Any], mapped: object) -> None:
    if isinstance(mapped, tuple):
        mapped = story.ToolTold(*mapped)
    if isinstance(mapped, str):
        with pytest.raises(RunTrouble, match=f"^{mapped}$"):
            map_event(kind, Members(data), "svc")
    else:
        assert map_event(kind, Members(data), "svc") == mapped


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
    with suppress(RunTrouble):
        map_event(kind, Members(data), "svc")
