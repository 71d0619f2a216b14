import pytest

from svc_proto.api.projections.turn_events import TurnEnded
from svc_proto.api.runs import streaming
from svc_proto.basics.brand import HERMES, SVC
from svc_proto.basics.errors import Refused


@pytest.mark.parametrize(
    ("value", "flag"),
    [(True, True), (1, True), ("true", True), ("Yes", True), *((no, False) for no in (False, None, 0, " False ", ""))],
)
def test_flags_come_in_many_spellings(value: object, flag: bool) -> None:
    assert streaming.parse_flag({"stream": value}, "stream") is flag


@pytest.mark.parametrize("value", ["maybe", 2, 1.5, [], {}])
def test_invalid_flags_are_refused(value: object) -> None:
    with pytest.raises(Refused) as refused:
        streaming.parse_flag({"stream": value}, "stream")
    assert refused.value.status == 400


def test_fields_bear_the_brand() -> None:
    assert streaming.session_headers(SVC, session_id="s", run_id="r") == (
        (b"X-Svc-Session-Id", b"s"),
        (b"X-Svc-Run-Id", b"r"),
    )
    assert streaming.branded_header(HERMES, "Run-Id", "r") == ((b"X-Hermes-Run-Id", b"r"),)
    assert [streaming.branded_header(SVC, "Session-Id", value) for value in ("ä", "a\n", "")] == [(), (), ()]


def test_system_prompts_are_joined() -> None:
    assert streaming.join_system_prompt("a", None, "", "b") == "a\n\nb"
    assert streaming.join_system_prompt() == ""


def test_how_a_turn_failed() -> None:
    assert streaming.incomplete_error(TurnEnded(content="")) is None
    assert streaming.incomplete_error(TurnEnded(content="x", error="it is gone", code="upstream_error")) is None
    for ended, status, code in (
        (TurnEnded(content="", error="it is gone", code="upstream_error"), 502, "agent_incomplete"),
        (TurnEnded(content="", finish="interrupted", interrupted=True), 502, "agent_incomplete"),
        (TurnEnded(content="x", error="not so", code="session_db_unavailable"), 503, "session_db_unavailable"),
        (TurnEnded(content="x", error="not so", code="session_not_found"), 404, "session_not_found"),
    ):
        found = streaming.incomplete_error(ended)
        assert found is not None
        assert (found.status, found.code) == (status, code)
