from typing import Any

import pytest

from svc_proto.agent.interface import ReasoningDelta, TextDelta, TextRetracted
from svc_proto.api.gateway.compression import KEPT, SHOWN
from svc_proto.schema.gateway_rpc import UPSTREAM
from tests.api.gateway.test_settings import configured
from tests.api.gateway_client import GatewayClient
from tests.api.scripted_agent import TurnHarness, call_of


def talk(book: TurnHarness, phone: GatewayClient, session: str, turns: int = 2) -> None:
    """Run turns in a session, each with one question and one answer; their events are consumed."""
    for number in range(turns):
        phone.call("prompt.submit", session_id=session, text=f"Question {number}")
        book.hand.respond(f"Answer {number}")
    phone.take()


def contents(book: TurnHarness, session: str) -> list[tuple[str, str]]:
    return [(row["role"], row["content"]) for row in book.messages(session)]


@pytest.mark.parametrize("topic", ["", "tea"])
def test_a_summary_replaces_the_messages(topic: str) -> None:
    book, phone, session = configured()
    talk(book, phone, session)
    call = phone.begin("session.compress", session_id=session, **({"focus_topic": topic} if topic else {}))
    assert phone.kinds() == ["status.update"]
    assert phone.call("session.activate", session_id=session)["running"] is True
    turn, host = book.hand.turn, book.hand.host
    assert (turn.tools, len(turn.history), turn.model is not None) == ((), 4, True)
    assert ("room to: tea" in str(turn.prompt)) == bool(topic)
    assert not host.can_request_approval
    book.hand.store_calls(call_of())
    book.hand.store_result(call_of(), "x")
    book.hand.do(host.wait_drained)
    assert book.hand.request_approval() == ["deny"]
    book.hand.emit(ReasoningDelta("Hm"), TextDelta("They had tea.???"), TextRetracted(3))
    book.hand.finish()
    result: dict[str, Any] = phone.answers[call]["result"]
    assert (result["status"], result["before_messages"], result["after_messages"]) == ("compressed", 4, KEPT)
    assert [row["row_id"] for row in result["messages"]] == [1, 2]
    kept = [("user", SHOWN), ("assistant", "They had tea.")]
    assert contents(book, session) == kept
    assert phone.kinds() == ["session.info"]
    assert phone.last("session.info")["running"] is False
    phone.call("prompt.submit", session_id=session, text="And then?")
    assert [(row["role"], row["content"]) for row in book.hand.turn.history] == kept


def test_a_prompt_waits_for_the_summary() -> None:
    book, phone, session = configured()
    talk(book, phone, session)
    phone.begin("session.compress", session_id=session)
    summary = book.hand
    assert phone.call("prompt.submit", session_id=session, text="Next")["status"] == "queued"
    assert phone.refusal("session.compress", session_id=session)[0] == 4090
    summary.emit(TextDelta("Short."))
    summary.finish()
    assert book.hand.turn.prompt == "Next"
    assert len(book.hand.turn.history) == KEPT
    assert phone.refusal("session.compress", session_id=session)[0] == 4090


@pytest.mark.parametrize(
    ("text", "outcome", "why"),
    [("", {"finish": "stop"}, "no summary"), ("Half", {"finish": "error", "error": "the model is away"}, "is away")],
)
def test_a_summary_that_fails_changes_nothing(text: str, outcome: dict[str, str], why: str) -> None:
    book, phone, session = configured()
    talk(book, phone, session)
    before = contents(book, session)
    call = phone.begin("session.compress", session_id=session)
    book.hand.emit(*([TextDelta(text)] if text else []))
    book.hand.finish(**outcome)
    error = phone.answers[call]["error"]
    assert error["code"] == UPSTREAM
    assert why in error["message"]
    assert contents(book, session) == before
    assert phone.call("session.activate", session_id=session)["running"] is False


def test_a_turn_that_began_meanwhile_wins() -> None:
    book, phone, session = configured()
    talk(book, phone, session)
    call = phone.begin("session.compress", session_id=session)
    summary = book.hand
    phone.call("prompt.submit", session_id=session, text="Next")
    book.chat(session)
    book.hand.respond("Other.")
    assert phone.call("session.activate", session_id=session)["queued"] == {"user": "Next"}
    summary.emit(TextDelta("Short."))
    summary.finish()
    assert phone.answers[call]["error"]["code"] == 4090
    assert book.hand.turn.prompt == "Next"
    assert len(contents(book, session)) == 7


def test_a_chat_without_a_model_or_with_one_turn_is_not_compressed() -> None:
    book, phone, session = configured()
    assert phone.call("session.compress", session_id=session)["compressed"] is False
    talk(book, phone, session, 1)
    assert phone.call("session.compress", session_id=session)["status"] == "unchanged"
    book, phone, session = configured("{}")
    talk(book, phone, session)
    assert "built-in" in phone.call("session.compress", session_id=session)["message"]
