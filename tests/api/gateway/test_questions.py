from __future__ import annotations

from typing import Any

import pytest

from svc_proto.agent.approval_memory import build_owner_question
from svc_proto.schema.json_rpc import INVALID_PARAMS
from tests.api.gateway_client import GatewayClient, open_chat, open_gateway
from tests.api.harness import ApiHarness
from tests.api.scripted_agent import TurnHarness, call_of

ASKING = call_of("ask_user", "call_q")


def begin() -> tuple[TurnHarness, GatewayClient, str, list[str]]:
    """Start a turn whose agent asks a question; return harness, client, session and the list for the answer."""
    book, phone, session = open_chat("Hi")
    question = build_owner_question("Take the 9:12?", ASKING)
    return book, phone, session, book.spawn(book.hand.host.request_approval(question))


def respond(phone: GatewayClient, answer: str) -> dict[str, Any]:
    return phone.call("clarify.respond", request_id=phone.last("clarify.request")["request_id"], answer=answer)


@pytest.mark.parametrize("kind", ["clarify", "sudo", "secret", "terminal.read"])
def test_answers_to_questions_that_were_not_asked_are_too_late(kind: str) -> None:
    phone = open_gateway(ApiHarness())
    assert phone.call(f"{kind}.respond", request_id="r", answer="x")["status"] == "expired"


def test_an_approval_is_answered_by_its_session() -> None:
    book = ApiHarness()
    phone = open_gateway(book)
    session = phone.new_session()
    assert phone.call("approval.respond", session_id=session, choice="once")["status"] == "expired"
    assert phone.refusal("approval.respond", session_id=session, choice="perhaps")[0] == INVALID_PARAMS
    phone.call("prompt.submit", session_id=session, text="/approve")
    book.after(1.0)
    assert phone.last("approval.request")["choices"]
    assert phone.call("approval.respond", session_id=session, choice="deny", all=True) == {"resolved": 1}
    book.after(10.0)
    kinds = phone.kinds()
    assert kinds.index("approval.expire") < kinds.index("tool.complete") < kinds.index("message.complete")
    assert phone.last("approval.expire")["answered"] is True


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("Yes", "once"),
        ("no", "deny"),
        (" ", "deny"),
        (" The 10:12, please ", "The 10:12, please"),
        ("x" * 10_001, "x" * 10_000),
    ],
)
def test_a_question_of_the_agent_takes_a_choice_or_words(typed: str, answer: str) -> None:
    book, phone, _, answers = begin()
    shown = phone.last("clarify.request")
    assert (shown["question"], shown["choices"], shown["timeout_seconds"]) == ("Take the 9:12?", ["Yes", "No"], 60)
    assert respond(phone, typed) == {"status": "ok"}
    assert answers == [answer]
    assert phone.last("clarify.expire") == {"request_id": shown["request_id"], "call_id": "call_q", "answered": True}
    assert respond(phone, typed) == {"status": "expired"}
    book.hand.finish()
    assert phone.kinds()[-3:] == ["clarify.expire", "message.complete", "session.info"]


def test_an_answer_to_an_approval_is_none_to_a_question() -> None:
    book, phone, session, answers = begin()
    approvals = book.hand.request_approval(call_of(identity="c2"))
    for words in ({}, {"call_id": "call_q"}):
        assert phone.call("approval.respond", session_id=session, choice="once", **words)["resolved"] == 0
    assert respond(phone, "Yes")["status"] == "ok"
    assert phone.kinds()[-2:] == ["clarify.expire", "approval.request"]
    assert (answers, approvals) == (["once"], [])
    assert phone.call("clarify.respond", request_id=f"{book.hand.turn.run_id} c2", answer="Yes")["status"] == "expired"


def test_a_question_is_shown_again_and_expires_before_the_end() -> None:
    book, phone, session, answers = begin()
    phone.vanish()
    again = open_gateway(book)
    again.call("session.activate", session_id=session)
    assert again.last("clarify.request")["question"] == "Take the 9:12?"
    again.take()
    again.call("session.interrupt", session_id=session)
    assert again.kinds() == ["clarify.expire", "message.complete", "session.info"]
    assert answers == []


@pytest.mark.parametrize(("choice", "recorded"), [("always", ["rm x"]), ("session", ["rm x"]), ("once", [])])
def test_an_approval_for_more_than_one_call_is_recorded(choice: str, recorded: list[str]) -> None:
    book, phone, session = open_chat("Hi")
    answers = book.hand.request_approval(choices=("once", "session", "always", "deny"))
    assert phone.call("approval.respond", session_id=session, choice=choice) == {"resolved": 1}
    assert answers == [choice]
    book.after(1.0)
    rows = book.request("GET", "/api/changes").json["changes"]
    assert [(row["kind"], row["after"], row["principal"]) for row in rows] == [
        ("approval", pattern, "owner") for pattern in recorded
    ]
