"""Tests of the checker of session streams: good streams, and faults."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.loops.session_events import check_turn

Event = tuple[str, dict[str, Any]]
CALL = {"tool_name": "memory", "call_id": "c1", "tool_call_id": "c1"}
USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
FLAGS = {"message_id": "m", "completed": True, "partial": False, "interrupted": False, "usage": USAGE}


def good() -> list[Event]:
    return [
        ("session.created", {"title": None, "model": "m"}),
        ("run.started", {"user_message": {"id": "u", "role": "user", "content": "Hi"}}),
        ("message.started", {"message": {"id": "m", "role": "assistant"}}),
        ("tool.progress", {"message_id": "m", "delta": "Hm", "tool_name": "_thinking"}),
        ("tool.pending", {**CALL, "preview": None, "args": {}}),
        ("tool.started", {**CALL, "preview": None, "args": {}}),
        ("tool.completed", {**CALL, "args": {}, "result_preview": None, "success": True, "duration": 0.1}),
        ("assistant.delta", {"message_id": "m", "delta": "Hel"}),
        ("assistant.delta", {"message_id": "m", "delta": "lo"}),
        ("assistant.completed", {**FLAGS, "content": "Hello"}),
        ("run.completed", {**FLAGS, "api_calls": 2, "reason": None, "unfinished": []}),
        ("done", {"state": "final"}),
    ]


def written(events: list[Event]) -> bytes:
    frames = []
    for place, (name, data) in enumerate(events, 1):
        whole = {"session_id": "s", "run_id": "r", "seq": place, "ts": 1.5, **data}
        frames.append(f"event: {name}\ndata: {json.dumps(whole, ensure_ascii=False)}\n\n")
    return "".join(frames).encode()


def test_good_streams() -> None:
    turn = check_turn(written(good()) + b": keepalive\n\n")
    assert turn.text == "Hello"
    check_turn(written([*good()[:3], ("error", {"message": "no", "error": "e"}), ("done", {"state": "final"})]))
    failed = [
        *good()[:5],
        ("tool.failed", {**CALL, "args": {}, "error": "denied", "success": False, "duration": None}),
        *good()[7:],
    ]
    check_turn(written(failed))


@pytest.mark.parametrize(
    "change",
    [
        lambda events: events[0][1].update(ts="2031-02-03T04:05:06Z"),
        lambda events: events[0][1].update(seq=2),
        lambda events: events[0][1].update(surprise=1),
        lambda events: events[0][1].update(session_id="other"),
        lambda events: events[2][1].update(message={"id": "other", "role": "assistant"}),
        lambda events: events[5][1].update(args="{}"),
        lambda events: events[7][1].update(delta="other"),
        lambda events: events[9][1].update(usage={**USAGE, "input_tokens": 1.0}),
        lambda events: events[9][1].update(completed=False),
        lambda events: events[5][1].pop("call_id"),
        lambda events: events.insert(1, events.pop(7)),
        lambda events: events.insert(4, events.pop(6)),
        *(lambda events, place=place: events.pop(place) for place in (0, 1, 2, 5, 6, 9, 10, 11)),
    ],
)
def test_faults_of_events(change: Callable[[list[Event]], object]) -> None:
    events = good()
    change(events)
    with pytest.raises(AssertionError):
        check_turn(written(events))
