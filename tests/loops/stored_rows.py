"""Checks of stored messages: against a session's event stream, and of the history that a model receives."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.loops.raw_event_stream import StreamEvent

FRAME = re.compile(rb"event: (\S+)\ndata: (.*)\n\n")


def events_in(data: bytes) -> list[StreamEvent]:
    """Return the complete events in the sent data; an event that was cut off is omitted."""
    return [StreamEvent(name.decode(), json.loads(text)) for name, text in FRAME.findall(data)]


def check_rows(rows: Sequence[Mapping[str, Any]], told: list[StreamEvent], *, stray: bool = False) -> None:
    """Check that the messages of the sent events `told` are among the stored rows, and that no row is stored twice.

    Only the answer of an interrupted turn may be missing.

    `stray` allows results whose calls the store refused: a turn goes on without them.
    """
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows), "a row is there twice"
    answers = {row["tool_call_id"]: row for row in rows if row["role"] == "tool"}
    wanted = [call["id"] for row in rows if row["role"] == "assistant" for call in row.get("tool_calls") or ()]
    assert len(set(wanted)) == len(wanted)
    assert stray or set(answers) <= set(wanted)
    for event in told:
        data = event.data
        match event.name:
            case "run.started":
                assert by_id[data["user_message"]["id"]]["content"] == data["user_message"]["content"]
            case "tool.started":
                assert data["call_id"] in wanted
            case "tool.completed" | "tool.failed":
                assert data["call_id"] in answers
            case "assistant.completed":
                row = by_id.get(data["message_id"])
                if row is None:
                    assert data["interrupted"], "there was nothing to keep"
                    continue
                assert (row["role"], row["finish_reason"]) == ("assistant", _finish(data))
                assert data["content"].endswith(row["content"])
            case _:
                pass


def check_history(messages: Sequence[Mapping[str, Any]]) -> None:
    """Check that a history ends with the user, and that each tool call is followed by its result."""
    assert messages[0]["role"] == "system"
    assert messages[-1]["role"] == "user"
    missing: list[str] = []
    for message in messages[1:]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in missing, "a result without its call"
            missing.remove(message["tool_call_id"])
            assert isinstance(message["content"], str)
            continue
        assert not missing, f"calls without results: {missing}"
        assert message["role"] in ("user", "assistant")
        assert message.get("content") or message.get("tool_calls")
        for call in message.get("tool_calls") or ():
            assert call["type"] == "function"
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            missing.append(call["id"])
    assert not missing


def _finish(data: Mapping[str, Any]) -> str:
    if data["interrupted"]:
        return "interrupted"
    return "stop" if data["completed"] else "length"
