"""Strict checker of a session's event stream (wire api 4.2 to 4.4)."""

import re
from typing import Any

from attrs import frozen
from jsonschema import Draft202012Validator

from svc_proto.schema.chat_events import EVENTS
from svc_proto.schema.json_schema import SchemaComponents, inline_schema_of
from tests.loops.raw_event_stream import StreamEvent, parse_frames

HEAD: dict[str, Any] = {
    "session_id": {"type": "string", "minLength": 1},
    "run_id": {"type": "string", "minLength": 1},
    "seq": {"type": "integer", "minimum": 0},
    "ts": {"type": "number", "minimum": 0},
}
COUNTS = ("input_tokens", "output_tokens", "total_tokens")
FLAGS = ("message_id", "completed", "partial", "interrupted", "usage")
LETTERS = dict(zip(EVENTS, "CRMatPSTFqrmXYEZ", strict=True))  # one letter for each event, for the grammar of a turn
GRAMMAR = re.compile("CRM[atPSTFqmr]*(?:XYZ|EZ)|EZ")  # wire api 4.4; a turn that could not start has no start event


def _validator(kind: type) -> Draft202012Validator:
    schema: dict[str, Any] = {**inline_schema_of(kind, SchemaComponents()), "additionalProperties": False}
    members = {**HEAD, **schema["properties"]}
    return Draft202012Validator({**schema, "properties": members, "required": [*HEAD, *schema["required"]]})


VALIDATORS = {name: _validator(kind) for name, kind in EVENTS.items()}


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
    assert [error.message for error in VALIDATORS[told.name].iter_errors(told.data)] == [], told
    if (usage := told.data.get("usage")) is not None:
        assert tuple(usage) == COUNTS, usage
        assert all(type(count) is int for count in usage.values()), usage
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


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
