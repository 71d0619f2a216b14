"""Checks of the events of a session stream (wire api 4), and the names of its first and last three."""

from typing import Any

from tests.api.harness import ApiCall
from tests.loops.raw_event_stream import parse_frames
from tests.loops.session_events import check_events

OPENING = ["session.created", "run.started", "message.started"]
CLOSING = ["assistant.completed", "run.completed", "done"]


def check(call: ApiCall) -> list[str]:
    """Parse the received events of a stream, check them by `check_events`, and return their names."""
    events = parse_frames(call.text.encode())
    check_events(events)
    return [told.name for told in events]


def data_of(call: ApiCall, name: str) -> dict[str, Any]:
    return next(data for told, data in call.named_events() if told == name)
