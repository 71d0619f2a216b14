from __future__ import annotations

import pytest

from svc_proto.api.projections.turn_events import TurnEnded
from svc_proto.api.runs.streaming import branded, failure, read_flag, session_fields, system_of
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.basics.errors import Refused


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        (True, True),
        (False, False),
        (None, False),
        (1, True),
        (0, False),
        ("true", True),
        ("Yes", True),
        (" False ", False),
        ("", False),
    ],
)
def test_flags_come_in_many_spellings(value: object, flag: bool) -> None:
    assert read_flag({"stream": value}, "stream") is flag


@pytest.mark.parametrize("value", ["maybe", 2, 1.5, [], {}])
def test_what_is_no_flag(value: object) -> None:
    with pytest.raises(Refused) as refused:
        read_flag({"stream": value}, "stream")
    assert refused.value.status == 400


def test_fields_bear_the_brand() -> None:
    assert session_fields(SVC, session_id="s", run_id="r") == ((b"X-Svc-Session-Id", b"s"), (b"X-Svc-Run-Id", b"r"))
    assert branded(HERMES, "Run-Id", "r") == ((b"X-Hermes-Run-Id", b"r"),)
    assert [branded(SVC, "Session-Id", value) for value in ("ä", "a\n", "")] == [(), (), ()]


def test_one_system_prompt_of_several() -> None:
    assert system_of("a", None, "", "b") == "a\n\nb"
    assert system_of() == ""


def test_how_a_turn_failed() -> None:
    assert failure(TurnEnded(content="")) is None
    assert failure(TurnEnded(content="x", error="it is gone", code="upstream_error")) is None
    found = [
        failure(TurnEnded(content="", error="it is gone", code="upstream_error")),
        failure(TurnEnded(content="", finish="interrupted", interrupted=True)),
        failure(TurnEnded(content="x", error="not so", code="session_db_unavailable")),
        failure(TurnEnded(content="x", error="not so", code="session_not_found")),
    ]
    assert [(each.status, each.code) for each in found if each is not None] == [
        (502, "agent_incomplete"),
        (502, "agent_incomplete"),
        (503, "session_db_unavailable"),
        (404, "session_not_found"),
    ]
