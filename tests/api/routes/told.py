"""What a turn told, checked: the order and the types of the events of a session stream (SPEC.md, wire api 4)."""

from __future__ import annotations

import json
from typing import Any

from tests.api.world import ApiCall

__all__ = ["CLOSING", "OPENING", "check", "data_of"]

OPENING = ["session.created", "run.started", "message.started"]
CLOSING = ["assistant.completed", "run.completed", "done"]
ENVELOPE = {"session_id": str, "run_id": str, "seq": int, "ts": float}
FIELDS: dict[str, dict[str, tuple[type, ...]]] = {  # SPEC.md "Chat stream", wire api 4.2 and 4.3
    "session.created": {"title": (str, type(None))},
    "run.started": {"user_message": (dict,)},
    "message.started": {"message": (dict,)},
    "assistant.delta": {"message_id": (str,), "delta": (str,)},
    "tool.progress": {"message_id": (str,), "delta": (str,)},
    "tool.pending": {"tool_name": (str,), "call_id": (str,), "tool_call_id": (str,)},
    "approval.request": {
        "tool_name": (str,),
        "call_id": (str,),
        "tool_call_id": (str,),
        "args": (dict,),
        "command": (str,),
        "description": (str,),
        "choices": (list,),
    },
    "approval.responded": {"call_id": (str,), "choice": (str,), "resolved": (int,)},
    "tool.started": {
        "tool_name": (str,),
        "call_id": (str,),
        "tool_call_id": (str,),
        "preview": (str, type(None)),
        "args": (dict,),
    },
    "tool.completed": {
        "tool_name": (str,),
        "call_id": (str,),
        "tool_call_id": (str,),
        "args": (dict,),
        "result_preview": (str, type(None)),
    },
    "tool.failed": {"tool_name": (str,), "call_id": (str,), "tool_call_id": (str,), "error": (str,)},
    "assistant.completed": {
        "message_id": (str,),
        "content": (str,),
        "completed": (bool,),
        "partial": (bool,),
        "interrupted": (bool,),
        "usage": (dict,),
    },
    "run.completed": {
        "message_id": (str,),
        "completed": (bool,),
        "partial": (bool,),
        "interrupted": (bool,),
        "api_calls": (int,),
        "usage": (dict,),
    },
    "error": {"message": (str,), "error": (str,)},
    "done": {"state": (str,)},
}


def check(call: ApiCall) -> list[str]:
    """The shape of every event of a stream that is over; their names."""
    told = call.told()
    for number, (name, data) in enumerate(told, 1):
        for field, kind in ENVELOPE.items():
            assert type(data[field]) is kind, (name, field)
        assert data["seq"] == number
        assert "type" not in data
        for field, kinds in FIELDS[name].items():
            assert type(data[field]) in kinds, (name, field)
        assert data.get("call_id") == data.get("tool_call_id")
    for block in call.text.split("\n\n")[:-1]:
        first, second = block.split("\n")  # exactly two lines each, and no `id:` or `retry:`
        assert first.startswith("event: ")
        assert json.loads(second.removeprefix("data: "))
    return [name for name, _ in told]


def data_of(call: ApiCall, name: str) -> dict[str, Any]:
    return next(data for told, data in call.told() if told == name)
