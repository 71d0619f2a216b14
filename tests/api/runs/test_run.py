import pytest
from attrs import evolve

from svc_proto.agent.interface import (
    ModelCallFinished,
    ModelCallStarted,
    ReasoningDelta,
    StoredPicture,
    TextDelta,
    TextRetracted,
    TurnNotice,
)
from svc_proto.api.chat.store_requests import AddMessages, SavePicture
from tests.api.scripted_agent import TurnHarness, call_of, chatting, names


def test_usage_and_calls_are_summed() -> None:
    book, _, call = chatting()
    book.hand.emit(ModelCallStarted(), ModelCallFinished(1, 2))
    book.hand.emit(ModelCallStarted(), ModelCallFinished(10, 20), TextDelta("x"))
    book.hand.finish()
    (told,) = [data for name, data in call.named_events() if name == "run.completed"]
    assert told["api_calls"] == 2
    assert told["usage"] == {"input_tokens": 11, "output_tokens": 22, "total_tokens": 33}


def test_row_in_progress_at_the_stop_is_stored() -> None:
    book, session, _ = chatting()
    run_id = book.hand.turn.run_id
    book.hand.emit(TextDelta("I look."))
    book.hold = (AddMessages,)
    book.hand.store_calls(call_of(), text="I look.")
    book.request("POST", f"/v1/runs/{run_id}/stop")
    book.hold = ()
    book.release()
    assert [row["content"] for row in book.messages(session)] == ["Hi", "I look."]
    book.chat(session, {"message": "And?"})
    roles = [message["role"] for message in book.hand.turn.history]
    assert roles == ["user", "assistant", "tool"]  # the interrupted call has a result


def test_stopped_turn_stores_and_reports_what_came_after_a_tool_call() -> None:
    book, session, call = chatting()
    book.hand.emit(ModelCallStarted(), TextDelta("I look."), ModelCallFinished(7, 3))
    book.hand.store_calls(tool := call_of(), text="I look.")
    book.hand.store_result(tool, "found")
    book.hand.emit(ModelCallStarted(), TextDelta("It is"))
    book.request("POST", f"/v1/runs/{book.hand.turn.run_id}/stop")
    last = book.messages(session)[-1]
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    assert (last["content"], last["finish_reason"], last["usage"]) == ("It is", "interrupted", usage)
    told = dict(call.named_events())
    assert told["assistant.completed"]["usage"] == told["run.completed"]["usage"] == usage
    assert told["run.completed"]["api_calls"] == 2


def test_pictures_of_results_are_stored_with_the_chat() -> None:
    book, session, call = chatting()
    book.hand.store_calls(tool := call_of())
    picture = StoredPicture(token="t0ken", kind="image/png", data=b"\x89PNG")
    book.hand.store_result(tool, "MEDIA:svc-relay://t0ken", picture)
    book.refuse = (SavePicture,)
    book.hand.store_result(tool, "MEDIA:svc-relay://other", evolve(picture, token="other"))
    book.refuse = ()
    book.hand.finish()
    assert names(call)[-1] == "done"  # a picture that could not be stored ends no turn
    pictures = f"/api/sessions/{session}/pictures"
    found = book.request("GET", f"{pictures}/t0ken")
    assert (found.status, found.body, found.headers.get(b"content-type")) == (200, b"\x89PNG", b"image/png")
    for missing in (f"{pictures}/other", "/api/sessions/none/pictures/t0ken"):
        refused = book.request("GET", missing)
        assert (refused.status, refused.json["error"]["message"]) == (404, "The chat has no such picture.")


def test_unstored_row_is_saved_with_the_next() -> None:
    book, session, call = chatting()
    book.hand.emit(TextDelta("I look."))
    book.refuse = (AddMessages,)
    book.hand.store_calls(call_of(), text="I look.")
    book.refuse = ()
    book.hand.respond("It is there.")
    (told,) = [data for name, data in call.named_events() if name == "assistant.completed"]
    assert told["content"] == "I look.\n\nIt is there."
    assert not book.api.runs.find(book.hand.turn.run_id).unsaved_rows(finish="interrupted")
    assert [row["content"] for row in book.messages(session)] == ["Hi", "I look.", "It is there."]


def test_unstored_rows_are_saved_with_the_first_success() -> None:
    book, session, _ = chatting()
    first, second = call_of("a", "call_1"), call_of("b", "call_2")
    book.refuse = (AddMessages,)
    book.hand.store_calls(first, second, text="I look.")
    book.hand.store_result(first, "one")
    book.refuse = ()
    book.hand.store_result(second, "two")
    assert [row["content"] for row in book.messages(session)] == ["Hi", "I look.", "one", "two"]


@pytest.mark.parametrize("fails", [(True, False), (False, True), (True, True)])
def test_rows_of_parallel_tools_are_saved_whichever_write_fails(fails: tuple[bool, bool]) -> None:
    book, session, _ = chatting()
    first, second = call_of("a", "call_1"), call_of("b", "call_2")
    book.hand.store_calls(first, second, text="I look.")
    book.hold = (AddMessages,)
    book.spawn(book.hand.host.store_result(first, "one"))
    book.spawn(book.hand.host.store_result(second, "two"))
    book.hold, writes = (), book.held
    for write, fail in zip(writes, fails, strict=True):
        book.held = [write]
        book.release(fail=fail)
    book.hand.respond("It is there.")
    assert [row["content"] for row in book.messages(session)] == ["Hi", "I look.", "one", "two", "It is there."]


def test_stored_row_is_not_written_again() -> None:
    book, _, _ = chatting()
    book.hand.store_calls(call := call_of(), text="I look.")
    book.hand.store_result(call, "one")
    book.hand.respond("It is there.")
    writes = [query for query in book.queries() if isinstance(query, AddMessages)]
    assert [[row.content for row in write.messages] for write in writes] == [["I look."], ["one"], ["It is there."]]


def test_unstored_row_is_saved_at_the_stop() -> None:
    book, session, _ = chatting()
    book.hand.emit(TextDelta("I look."))
    book.refuse = (AddMessages,)
    book.hand.store_calls(call_of(), text="I look.")
    book.refuse = ()
    book.request("POST", f"/v1/runs/{book.hand.turn.run_id}/stop")
    assert [row["content"] for row in book.messages(session)] == ["Hi", "I look."]


def test_waiting_turns_check_again() -> None:
    book = TurnHarness()
    session = book.session()
    first, second = book.chat(session), book.chat(session)
    blocking = book.call("POST", f"/api/sessions/{session}/chat", {"message": "Hi"})
    hand = book.hand
    book.after(200.0)  # longer than any single wait
    hand.respond("x")
    assert names(first)[-1] == "done"
    book.hand.finish()
    assert names(second)[-1] == "done"
    book.hand.respond("z")
    assert blocking.result.json["message"]["content"] == "z"


def test_retracted_text_is_no_part_of_the_answer() -> None:
    book, session, call = chatting()
    book.hand.emit(TextDelta("I look."))
    book.hand.store_calls(call_of(), text="I look.")
    book.hand.emit(TextDelta("I gre"), TextDelta("et."), TextRetracted(8))
    book.hand.emit(ReasoningDelta("I greet."), TextDelta("Hello."))
    book.hand.finish()
    (told,) = [data for name, data in call.named_events() if name == "assistant.completed"]
    assert told["content"] == "I look.\n\nHello."
    last = book.messages(session)[-1]
    assert (last["content"], last["reasoning"]) == ("Hello.", "I greet.")


def test_notices_are_told_and_stored() -> None:
    book, session, call = chatting()
    book.hand.emit(TurnNotice("[one]"))
    book.hand.store_calls(call_of(), reasoning="hm")
    book.hand.emit(TurnNotice("[two]"), TextDelta("Hello."))
    book.hand.finish()
    assert [data["delta"] for name, data in call.named_events() if name == "tool.progress"] == ["[one]", "[two]"]
    assert [row.get("reasoning") for row in book.messages(session)] == [None, "[one]hm", "[two]"]


def test_extra_members_return_to_the_model() -> None:
    book, session, _ = chatting()
    tool = call_of()
    book.hand.store_calls(tool, reasoning_content="hm")
    book.hand.store_result(tool, "found")
    book.hand.emit(TextDelta("Hello."))
    book.hand.finish(extra={"signature": "s"})
    book.chat(session, {"message": "And?"})
    _, calls, _, last = book.hand.turn.history
    assert calls["reasoning_content"] == "hm"
    assert last == {"role": "assistant", "content": "Hello.", "signature": "s"}
    assert "signature" not in str(book.messages(session))
