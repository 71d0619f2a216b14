"""A gateway turn: the desktop events for each event of the API server's stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clients.gateway.turn import GatewayTurn
from svc_proto.wire.sse import ServerSentEvent


class Told:
    """A gateway turn, and the desktop events that it has sent."""

    def __init__(self) -> None:
        self.said: list[tuple[str, Any]] = []
        self.turn = GatewayTurn(lambda kind, payload: self.said.append((kind, payload)))

    def take(self, kind: str, data: object) -> list[tuple[str, Any]]:
        """Give an event of the API server to the turn; return the desktop events that follow."""
        before = len(self.said)
        self.turn.add_event(ServerSentEvent(json.dumps(data), kind))
        return self.said[before:]


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("tool.pending", {"tool_name": "df"}, [("tool.generating", {"name": "df"})]),
        (
            "tool.started",
            {"tool_name": "df", "call_id": "c1", "preview": "df -h"},
            [("tool.start", {"tool_id": "c1", "name": "df", "context": "df -h"})],
        ),
        ("tool.started", {"tool_name": "df"}, [("tool.start", {"tool_id": "df", "name": "df", "context": ""})]),
        (
            "tool.completed",
            {"tool_name": "df", "tool_call_id": "c1", "args": {"a": 1}, "result_preview": "62%\nmore", "duration": 0.5},
            [
                (
                    "tool.complete",
                    {
                        "tool_id": "c1",
                        "name": "df",
                        "args": {"a": 1},
                        "result": "62%\nmore",
                        "summary": "62%",
                        "duration_s": 0.5,
                    },
                )
            ],
        ),
        (
            "tool.completed",
            {"tool_name": "df", "args": None, "duration": True, "success": False},
            [("tool.complete", {"tool_id": "df", "name": "df", "error": "the tool failed"})],
        ),
        (
            "tool.failed",
            {"tool_name": "df"},
            [("tool.complete", {"tool_id": "df", "name": "df", "error": "the tool failed"})],
        ),
        ("tool.progress", {"delta": "hm", "tool_name": "_thinking"}, [("reasoning.delta", {"text": "hm"})]),
        ("tool.progress", {"delta": "hm"}, [("reasoning.delta", {"text": "hm"})]),
        ("tool.progress", {"delta": "5%", "tool_name": "df"}, [("tool.progress", {"name": "df", "preview": "5%"})]),
        ("skill.loaded", {"name": "git"}, [("status.update", {"kind": "skill.loaded", "text": "skill loaded git"})]),
        (
            "approval.request",
            {"call_id": "c", "command": "rm x", "description": "Removes.", "choices": ["once", "deny"], "args": {}},
            [
                (
                    "approval.request",
                    {"command": "rm x", "description": "Removes.", "choices": ["once", "deny"], "call_id": "c"},
                )
            ],
        ),
        ("approval.responded", {"call_id": "c", "choice": "once"}, []),
        (
            "memory.updated",
            {"target": "user", "added": "Likes tea"},
            [("status.update", {"kind": "memory.updated", "text": "memory updated Likes tea"})],
        ),
        ("memory.updated", {}, [("status.update", {"kind": "memory.updated", "text": "memory updated"})]),
        ("message.started", {}, [("message.start", None)]),
        ("assistant.delta", {"delta": ""}, []),
        ("assistant.delta", {"delta": "a"}, [("message.start", None), ("message.delta", {"text": "a"})]),
        ("session.created", {}, []),
        ("later.kind", {}, []),
        ("assistant.delta", [], []),
    ],
)
def test_gateway_events_of_stream_events(kind: str, data: object, said: list[tuple[str, Any]]) -> None:
    assert Told().take(kind, data) == said


def test_invalid_json_is_skipped() -> None:
    told = Told()
    told.turn.add_event(ServerSentEvent("[DONE]", "message"))
    assert told.said == []


@pytest.mark.parametrize("end", ["run.completed", "done"])
def test_the_end_is_sent_once(end: str) -> None:
    told = Told()
    told.take("run.started", {"run_id": "run_1"})
    told.take("assistant.delta", {"delta": "par"})
    told.take("assistant.completed", {"content": "part", "interrupted": True})
    assert told.take(end, {"usage": {"input_tokens": 1}}) == [
        ("message.complete", {"text": "part", "usage": {"input_tokens": 1}, "status": "interrupted"})
    ]
    assert told.take("done", {}) == []
    told.turn.complete("complete")
    told.turn.fail("late")
    assert len(told.said) == 3
    assert told.turn.run_id == "run_1"


def test_run_completed_with_interrupted() -> None:
    (_, (_, payload)) = Told().take("run.completed", {"interrupted": True})
    assert payload == {"text": "", "usage": {}, "status": "interrupted"}


@pytest.mark.parametrize(
    ("data", "text"), [({"message": "a", "error": "b"}, "a"), ({"error": "b"}, "b"), ({}, "the run failed")]
)
def test_an_error_ends_the_turn(data: object, text: str) -> None:
    told = Told()
    assert told.take("error", data) == [
        ("error", {"message": text}),
        ("message.start", None),
        ("message.complete", {"text": "", "usage": {}, "status": "error"}),
    ]
    assert told.take("done", {}) == []
