import json

import pytest

from svc_proto.agent import interface
from svc_proto.api.chat.store_requests import AddMessages
from svc_proto.schema.json_rpc import INVALID_PARAMS
from tests.api.gateway_client import open_chat, open_gateway
from tests.api.scripted_agent import TurnHarness, call_of

CALL = call_of()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (interface.MemoryChange(target="memory", count=1, added="likes tea"), "memory updated: likes tea"),
        (interface.MemoryChange(target="memory", count=0, removed="likes tea"), "memory updated: removed: likes tea"),
    ],
)
def test_a_changed_note_is_a_status_line(change: interface.MemoryChange, text: str) -> None:
    book, phone, _ = open_chat("Hi")
    book.hand.emit(interface.MemoryChanged(CALL, change))
    assert phone.last("status.update") == {"kind": "memory", "text": text}


def test_the_break_between_two_answers_is_not_part_of_the_second() -> None:
    book, phone, _ = open_chat("Hi")
    hand = book.hand
    hand.emit(interface.TextDelta("one"))
    hand.store_calls(CALL, text="one")
    hand.emit(interface.ToolCallStarted(CALL), interface.TextDelta("two"), interface.EphemeralText("!"))
    hand.finish()
    assert phone.last("message.complete")["text"] == "two!"


@pytest.mark.parametrize("kind", [interface.ReasoningDelta, interface.TurnNotice])
def test_notices_about_the_turn_are_shown_as_reasoning(kind: type[interface.ReasoningDelta]) -> None:
    book, phone, _ = open_chat("Hi")
    book.hand.emit(kind("the model is called again"))
    assert phone.last("reasoning.delta") == {"text": "the model is called again"}
    book.hand.finish()
    assert phone.last("message.complete")["status"] == "complete"


def test_a_retracted_text_is_no_part_of_the_answer() -> None:
    book, phone, _ = open_chat("Hi")
    book.hand.emit(interface.TextDelta("It is late. "), interface.TextDelta("late. late."), interface.TextRetracted(11))
    book.hand.finish()
    assert phone.last("message.complete")["text"] == "It is late. "


def test_a_turn_that_is_stopped_before_it_begins_has_a_start_and_an_end() -> None:
    book, phone, session = open_chat()
    book.chat(session)
    waiting = book.chat(session)  # waits for its slot, and is seen by the gateway
    phone.call("session.resume", session_id=session)
    phone.take()
    run = book.api.runs.session_runs(session)[-1]
    book.within(lambda: book.api.runs.stop(run.record.id))
    assert phone.kinds()[:2] == ["message.start", "message.complete"]
    assert phone.last("message.complete")["status"] == "interrupted"
    assert waiting.named_events()[-1][0] == "done"


@pytest.mark.parametrize("method", ["session.activate", "session.resume"])
def test_a_question_is_shown_to_a_client_that_comes_later(method: str) -> None:
    book = TurnHarness()
    session = book.session()
    book.call("POST", f"/api/sessions/{session}/chat/stream", {"message": "Hi", "approvals": True})
    book.hand.request_approval(choices=("once", "deny"))
    phone = open_gateway(book)
    phone.call(method, session_id=session)
    shown = phone.last("approval.request")
    assert (shown["choices"], shown["allow_session"], shown["allow_permanent"]) == (["once", "deny"], False, False)
    assert phone.refusal("approval.respond", session_id=session, choice="always")[0] == INVALID_PARAMS
    assert phone.call("approval.respond", session_id=session, choice="once")["resolved"] == 1


def test_an_answer_to_another_question_than_the_shown_one() -> None:
    book, phone, session = open_chat("Hi")
    book.hand.request_approval()
    book.hand.request_approval(call_of(identity="second"))
    phone.take()
    assert phone.call("approval.respond", session_id=session, choice="once", call_id="second")["resolved"] == 1
    assert phone.kinds() == []  # the first question is shown still
    assert phone.call("approval.respond", session_id=session, choice="once", call_id="second")["resolved"] == 0


def test_an_answer_to_a_turn_that_is_being_stopped_is_too_late() -> None:
    book, phone, session = open_chat("Hi")
    book.hand.emit(interface.TextDelta("text"))
    book.hand.request_approval()
    book.hold = (AddMessages,)
    phone.call("session.interrupt", session_id=session)
    again = phone.begin("session.interrupt", session_id=session)
    assert phone.answers[again]["result"] == {"status": "interrupted"}
    assert phone.call("approval.respond", session_id=session, choice="once")["resolved"] == 0
    book.release()
    assert phone.last("message.complete")["status"] == "interrupted"


def test_one_question_takes_one_answer() -> None:
    book, phone, session = open_chat("Hi")
    book.hand.request_approval()
    call = {"method": "approval.respond", "params": {"session_id": session, "choice": "once"}}
    phone.text("\n".join(json.dumps({"id": number, **call}) for number in ("a", "b")))
    assert [phone.answers[number]["result"]["resolved"] for number in ("a", "b")] == [1, 0]
