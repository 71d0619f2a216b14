"""Events of the API server's stream, as the broker takes them (wire terminal-voice 6.7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.machines.confirmations import Question
from svc_proto.schema.members import Members
from svc_proto.voice.agent.run_mapping import Over, Trouble, map_event
from svc_proto.voice.realtime import story

TOOL = {"tool_name": "terminal", "call_id": "t1", "tool_call_id": "t1"}


@pytest.mark.parametrize(
    ("kind", "data", "mapped"),
    [
        ("session.created", {"title": None}, ()),
        ("run.started", {"run_id": "n1"}, (story.RunBegan("n1"),)),
        ("run.started", {}, (story.RunBegan(""),)),
        ("message.started", {"message": {"id": "m1", "role": "assistant"}}, (story.MessageBegan("m1"),)),
        ("message.started", {"message": "m1", "message_id": "m2"}, (story.MessageBegan("m2"),)),
        ("assistant.delta", {"delta": "Hel"}, (story.AnswerDelta("Hel"),)),
        ("svc.assistant.delta", {"delta": "Hel"}, (story.AnswerDelta("Hel"),)),  # under a brand
        ("assistant.delta", {"delta": ""}, ()),
        ("assistant.delta", {"delta": 7}, ()),
        ("tool.progress", {"tool_name": "_thinking", "delta": "Hm"}, (story.ThoughtDelta("Hm"),)),
        ("tool.progress", {"delta": "x"}, (story.ToolSaid(call_id="svc", name="svc", delta="x"),)),
        ("tool.progress", {"tool_name": "web"}, ()),
        (
            "tool.pending",
            {**TOOL, "args": {"a": 1}, "preview": "a"},
            (story.ToolWaits(call_id="t1", name="terminal", arguments={"a": 1}, preview="a"),),
        ),
        ("tool.started", {**TOOL, "args": "no object"}, (story.ToolBegan(call_id="t1", name="terminal"),)),
        ("tool.started", {"tool": "x", "id": "9"}, (story.ToolBegan(call_id="9", name="x"),)),
        ("tool.started", {"name": "x", "arguments": {}}, (story.ToolBegan(call_id="x", name="x", arguments={}),)),
        (
            "tool.completed",
            {**TOOL, "result_preview": "ok", "success": False},
            (story.ToolSucceeded(call_id="t1", name="terminal", preview="ok", success=False),),
        ),
        ("tool.failed", {**TOOL, "error": "no"}, (story.ToolFailed(call_id="t1", name="terminal", error="no"),)),
        ("tool.failed", TOOL, (story.ToolFailed(call_id="t1", name="terminal", error="no reason given"),)),
        ("memory.updated", {"target": "user", "call_id": "c"}, ()),  # that call ends by itself
        ("memory.updated", {"target": "user"}, (story.ToolSucceeded(call_id="memory", name="memory", preview="user"),)),
        ("skill.loaded", {"id": "s"}, (story.ToolSucceeded(call_id="s", name="skill"),)),
        ("artifact.created", {"path": "/x"}, (story.ToolSucceeded(call_id="artifact", name="artifact", preview="/x"),)),
        (
            "hermes.confirmation.requested",
            {"confirmation_id": "q", "message": "May I?"},
            (story.ApprovalAsked(Question("q", "May I?")),),
        ),
        ("svc.approval.request", {"command": "rm"}, (story.ApprovalAsked(Question("approval.request", "rm")),)),
        (
            "approval.request",
            {"call_id": "q", "description": "Why.", "command": "what"},
            (story.ApprovalAsked(Question("q", "Why. what")),),
        ),
        ("approval.requested", {"id": "q"}, (story.ApprovalAsked(Question("q", "May I go on?")),)),
        ("assistant.completed", {"content": "Hello"}, (story.AnswerComplete("Hello"),)),
        (
            "assistant.completed",
            {"content": "He", "interrupted": True},
            (story.AnswerComplete("He", interrupted=True),),
        ),
        ("run.completed", {"completed": True}, (Over(),)),
        ("run.completed", {"interrupted": True}, (story.AnswerComplete("", interrupted=True), Over())),
        ("done", {"state": "final"}, (Over(),)),
        ("error", {"message": "quota"}, (Trouble("quota"),)),
        ("error", {"error": "agent_error"}, (Trouble("agent_error"),)),
        ("error", {}, (Trouble("the agent failed"),)),
        ("whatever", {}, ()),
    ],
)
def test_the_table(kind: str, data: dict[str, Any], mapped: tuple[object, ...]) -> None:
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
    map_event(kind, Members(data), "svc")
