from __future__ import annotations

from svc_proto.agent.contract import ModelAnswered, ModelAsked, TextDelta, ToolPending
from svc_proto.api.store import AddMessages
from tests.api.puppet import TurnBook, call_of, chatting, names


def test_usage_and_calls_are_summed() -> None:
    book = TurnBook()
    call = book.chat()
    book.hand.tell(ModelAsked(), ModelAnswered(1, 2), ModelAsked(), ModelAnswered(10, 20), TextDelta("x"))
    book.hand.finish()
    (told,) = [data for name, data in call.told() if name == "run.completed"]
    assert told["api_calls"] == 2
    assert told["usage"] == {"input_tokens": 11, "output_tokens": 22, "total_tokens": 33}


def test_a_row_that_is_under_way_when_the_turn_is_stopped_is_stored() -> None:
    book, session, _ = chatting()
    run_id = book.hand.turn.run_id
    book.hand.tell(TextDelta("I look."))
    book.hold = (AddMessages,)
    book.hand.keep_calls(call_of(), text="I look.")
    book.request("POST", f"/v1/runs/{run_id}/stop")
    book.hold = ()
    book.release()
    assert [row["content"] for row in book.messages(session)] == ["Hi", "I look."]
    book.chat(session, {"message": "And?"})
    roles = [message["role"] for message in book.hand.turn.history]
    assert roles == ["user", "assistant", "tool"]  # the call that was cut off has a result


def test_a_row_that_could_not_be_stored_goes_with_the_next() -> None:
    book, session, call = chatting()
    book.hand.tell(TextDelta("I look."))
    book.refuse = (AddMessages,)
    book.hand.keep_calls(call_of(), text="I look.")
    book.refuse = ()
    book.hand.tell(TextDelta("It is there."))
    book.hand.finish()
    (told,) = [data for name, data in call.told() if name == "assistant.completed"]
    assert told["content"] == "I look.\n\nIt is there."
    assert [row["content"] for row in book.messages(session)] == ["Hi", "I look.", "It is there."]


def test_a_row_that_could_not_be_stored_is_tried_again_when_the_turn_is_stopped() -> None:
    book, session, _ = chatting()
    book.hand.tell(TextDelta("I look."))
    book.refuse = (AddMessages,)
    book.hand.keep_calls(call_of(), text="I look.")
    book.refuse = ()
    book.request("POST", f"/v1/runs/{book.hand.turn.run_id}/stop")
    assert [row["content"] for row in book.messages(session)] == ["Hi", "I look."]


def test_a_run_remembers_its_last_event() -> None:
    book = TurnBook()
    book.chat(book.session())
    run = book.api.runs.find(book.hand.turn.run_id)
    found = [run.last_event]
    book.hand.tell(ToolPending(call_of()))
    found.append(run.last_event)
    book.hand.finish()
    assert [*found, run.last_event] == ["run.started", "run.started", "run.completed"]


def test_waits_look_again() -> None:
    book = TurnBook()
    session = book.session()
    first, second = book.chat(session), book.chat(session)
    blocking = book.call("POST", f"/api/sessions/{session}/chat", {"message": "Hi"})
    hand = book.hand
    book.after(200.0)  # longer than any single wait
    hand.tell(TextDelta("x"))
    hand.finish()
    assert names(first)[-1] == "done"
    book.hand.finish()
    assert names(second)[-1] == "done"
    book.hand.tell(TextDelta("z"))
    book.hand.finish()
    assert blocking.result.json["message"]["content"] == "z"


def test_a_run_that_is_over_keeps_no_rows() -> None:
    book = TurnBook()
    book.chat(book.session())
    book.hand.tell(TextDelta("I look."))
    book.refuse = (AddMessages,)
    book.hand.keep_calls(call_of(), text="I look.")
    book.refuse = ()
    book.hand.finish()
    assert not book.api.runs.find(book.hand.turn.run_id).last_rows(finish="interrupted")
