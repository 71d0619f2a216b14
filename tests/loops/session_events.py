"""Strict checker of a session's event stream (wire api 4.2 to 4.4)."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from tests.loops.raw_event_stream import StreamEvent, parse_frames

Kind = Callable[[Any], bool]


def text(value: Any) -> bool:
    return isinstance(value, str)


def some_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def text_or_null(value: Any) -> bool:
    return value is None or isinstance(value, str)


def boolean(value: Any) -> bool:
    return isinstance(value, bool)


def whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def mapping(value: Any) -> bool:
    return isinstance(value, dict)


def sequence(value: Any) -> bool:
    return isinstance(value, list)


def usage(value: Any) -> bool:
    """Report whether the value has exactly the three token counts, the last one being the sum (wire api 4.3)."""
    names = ("input_tokens", "output_tokens", "total_tokens")
    return (
        isinstance(value, dict)
        and tuple(value) == names
        and all(whole(value[name]) for name in names)
        and value["total_tokens"] == value["input_tokens"] + value["output_tokens"]
    )


def texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def exactly(expected: object) -> Kind:
    return lambda value: value == expected and type(value) is type(expected)


def members(**kinds: Kind) -> Kind:
    return lambda value: (
        isinstance(value, dict) and set(value) == set(kinds) and all(kinds[name](value[name]) for name in kinds)
    )


@frozen
class Shape:
    """Members of an event's data, besides those that all events have."""

    required: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(factory=dict)


ENVELOPE: dict[str, Kind] = {"session_id": some_text, "run_id": some_text, "seq": whole, "ts": number}
CALL: dict[str, Kind] = {"tool_name": some_text, "call_id": some_text, "tool_call_id": some_text}
FLAGS: dict[str, Kind] = {
    "message_id": some_text,
    "completed": boolean,
    "partial": boolean,
    "interrupted": boolean,
    "usage": usage,
}
KINDS: dict[str, Shape] = {
    "session.created": Shape({"title": text_or_null}, {"model": text, "cwd": text_or_null}),
    "run.started": Shape({"user_message": members(id=some_text, role=exactly("user"), content=text)}),
    "message.started": Shape({"message": members(id=some_text, role=exactly("assistant"))}),
    "assistant.delta": Shape({"message_id": some_text, "delta": some_text}),
    "tool.progress": Shape({"message_id": some_text, "delta": some_text, "tool_name": exactly("_thinking")}),
    "tool.pending": Shape(CALL, {"preview": text_or_null, "args": mapping}),
    "tool.started": Shape({**CALL, "preview": text_or_null, "args": mapping}),
    "tool.completed": Shape(
        {**CALL, "args": mapping, "result_preview": text_or_null}, {"success": exactly(True), "duration": number}
    ),
    "tool.failed": Shape(
        {**CALL, "error": some_text}, {"success": exactly(False), "duration": number, "args": mapping}
    ),
    "assistant.completed": Shape({**FLAGS, "content": text}),
    "run.completed": Shape({**FLAGS, "api_calls": whole, "reason": text_or_null, "unfinished": texts}),
    "error": Shape({"message": some_text, "error": some_text}),
    "done": Shape({"state": exactly("final")}),
    "approval.request": Shape(
        {
            **CALL,
            "tool": some_text,
            "args": mapping,
            "command": some_text,
            "description": text,
            "pattern_key": some_text,
            "pattern_keys": sequence,
            "allow_permanent": boolean,
            "choices": sequence,
            "expires_at": number,
        }
    ),
    "memory.updated": Shape(
        {
            **CALL,
            "args": mapping,
            "target": some_text,
            "entry_count": whole,
            "added": text_or_null,
            "removed": text_or_null,
            "undo": members(method=some_text, body=mapping),
        }
    ),
    "approval.responded": Shape(
        {"call_id": some_text, "tool_call_id": some_text, "choice": some_text, "resolved": whole}
    ),
}
"""The thirteen events of the specification, and ours: notes, and questions."""

LETTERS = dict(zip(KINDS, "CRMatPSTFXYEZqmr", strict=True))  # one letter for each name, for the grammar of a turn
GRAMMAR = re.compile("CRM[atPSTFqmr]*(?:XYZ|EZ)|EZ")  # wire api 4.4; a turn that could not start has no start event


@frozen
class CheckedTurn:
    """The events of a stream that has passed the check, with their texts."""

    events: list[StreamEvent]

    @property
    def names(self) -> list[str]:
        return [told.name for told in self.events]

    @property
    def text(self) -> str:
        """Return the text of all `assistant.delta` events, joined."""
        return "".join(told.data["delta"] for told in self.all("assistant.delta"))

    def all(self, name: str) -> list[StreamEvent]:
        return [told for told in self.events if told.name == name]

    def one(self, name: str) -> dict[str, Any]:
        """Return the data of the only event of this name."""
        (told,) = self.all(name)
        return told.data


def check_turn(body: bytes) -> CheckedTurn:
    """Check the bytes of a whole stream; return its events.

    Raise AssertionError for a fault, KeyError for an unknown event, or ValueError for a frame that cannot be split or
    parsed.
    """
    turn = CheckedTurn(parse_frames(body))
    check_events(turn.events)
    names = "".join(LETTERS[name] for name in turn.names)
    assert GRAMMAR.fullmatch(names), turn.names
    _check_text(turn)
    return turn


def check_events(events: list[StreamEvent]) -> None:
    """Check events: each by itself, their numbers, times and ids, and the states of each tool call."""
    calls: dict[str, str] = {}  # state of each, by id
    for place, told in enumerate(events, 1):
        _check_event(told)
        assert told.data["seq"] == place, "numbered from 1, without a gap"
        if told.name.startswith("tool.") and told.name != "tool.progress":
            _check_call(calls, told)
    for name in ("session_id", "run_id"):
        assert len({told.data[name] for told in events}) <= 1, name
    stamps = [told.data["ts"] for told in events]
    assert stamps == sorted(stamps)
    ids = {told.data["message_id"] for told in events if "message_id" in told.data}
    ids |= {told.data["message"]["id"] for told in events if told.name == "message.started"}
    assert len(ids) <= 1, "one message_id for the whole turn"
    if events and events[-1].name == "done" and not any(told.data.get("interrupted") for told in events):
        cut_off = any(told.name == "error" for told in events)
        assert cut_off or not {"pending", "started"} & set(calls.values()), calls


def _check_event(told: StreamEvent) -> None:
    shape = KINDS[told.name]
    required = {**ENVELOPE, **shape.required}
    missing = [name for name in required if name not in told.data]
    assert not missing, f"{told.name} lacks {missing}: {told.data}"
    for name, value in told.data.items():
        kind = required.get(name) or shape.optional.get(name)
        assert kind is not None, f"{told.name}.{name} is in no table"
        assert kind(value), f"{told.name}.{name} is {value!r}"


def _check_call(calls: dict[str, str], told: StreamEvent) -> None:
    identity, kind = told.data["call_id"], told.name.removeprefix("tool.")
    assert identity == told.data["tool_call_id"]
    allowed: dict[str, list[str | None]] = {
        "pending": [None],
        "started": [None, "pending"],
        "completed": ["started"],
        "failed": ["started", "pending"],
    }
    assert calls.get(identity) in allowed[kind], f"{kind} after {calls.get(identity)}"
    calls[identity] = kind


def _check_text(turn: CheckedTurn) -> None:
    if "assistant.completed" not in turn.names:
        return
    answer, run = turn.one("assistant.completed"), turn.one("run.completed")
    assert answer["content"] == turn.text
    for name in FLAGS:
        assert answer[name] == run[name], name
    assert answer["completed"] is not answer["partial"]
    assert answer["partial"] or not answer["interrupted"]
