import pytest

from svc_proto.agent.interface import ReasoningDelta, TextDelta, ToolCallFinished, ToolCallPending, ToolCallStarted
from svc_proto.api.chat.store_requests import GetChat
from tests.api.gateway_client import open_chat, open_gateway
from tests.api.scripted_agent import TurnHarness, call_of, chatting, names

DONE = ["message.complete", "session.info"]
CALL = call_of(command="ls")


def test_an_ordinary_turn_comes_in_order_and_titles_the_chat() -> None:
    book = TurnHarness()
    phone = open_gateway(book)
    session = phone.new_session(source="webui")
    assert phone.call("prompt.submit", session_id=session, text="Plan  my trip")["status"] == "streaming"
    book.hand.emit(ReasoningDelta("Hm"), ReasoningDelta("m"), TextDelta("Hel"), TextDelta("lo"))
    book.hand.finish()
    events = phone.take()
    assert [event["type"] for event in events] == ["message.start", "reasoning.delta", "message.delta", *DONE]
    assert {event["session_id"] for event in events} == {session}
    assert [event["payload"]["text"] for event in events[1:4]] == ["Hmm", "Hello", "Hello"]
    assert events[3]["payload"]["status"] == "complete"
    assert {"input", "output", "total"} <= events[3]["payload"]["usage"].keys()
    assert events[4]["payload"]["running"] is False
    assert events[4]["payload"]["title"] == "Plan my trip"
    assert [row["content"] for row in book.messages(session)] == ["Plan  my trip", "Hello"]


def test_rapid_tools_and_interim_text_keep_their_order() -> None:
    book, phone, _ = open_chat("Hi")
    phone.take()
    hand = book.hand
    for number in range(3):
        call = call_of(identity=f"call_{number}", path=f"/{number}")
        hand.emit(TextDelta(f"step {number}"))
        hand.store_calls(call, text=f"step {number}")
        hand.emit(ToolCallStarted(call))
        hand.store_result(call, "fine")
        hand.emit(ToolCallFinished(call=call, output="fine", preview="fine", error="broken" if number else None))
    hand.respond("All done")
    step = ["message.delta", "message.interim", "tool.start", "tool.complete"]
    assert phone.kinds() == [*step * 3, "message.delta", *DONE]
    interim = [event["payload"]["text"] for event in phone.happened if event["type"] == "message.interim"]
    assert interim == ["step 0", "step 1", "step 2"]
    assert phone.last("tool.start")["args"] == {"path": "/2"}
    outcomes = [event["payload"] for event in phone.happened if event["type"] == "tool.complete"]
    assert [outcome["tool_id"] for outcome in outcomes] == ["call_0", "call_1", "call_2"]
    assert outcomes[0]["result_text"] == "fine"
    assert outcomes[1]["error"] == "broken"
    assert phone.last("message.complete")["text"] == "All done"


@pytest.mark.parametrize("declared", [{"queued": True}, {}])
def test_a_follow_up_waits_for_the_end_of_the_turn(declared: dict[str, object]) -> None:
    book, phone, session = open_chat("one")
    assert phone.call("prompt.submit", session_id=session, text="two", **declared)["status"] == "queued"
    assert book.turns == 1
    assert phone.call("session.activate", session_id=session)["queued"] == {"user": "two"}
    phone.take()
    book.hand.finish()
    assert phone.kinds() == ["message.complete", "session.info", "message.start"]
    assert phone.last("session.info")["running"] is True
    book.hold = (GetChat,)
    book.hand.finish()
    phone.call("prompt.submit", session_id=session, text="three", **declared)  # before the end is stored
    book.hold = ()
    book.release()
    assert phone.last("session.info")["running"] is True
    book.hand.finish()
    assert phone.last("session.info")["running"] is False
    assert [row["content"] for row in book.messages(session) if row["role"] == "user"] == ["one", "two", "three"]


def test_events_reach_the_clients_of_their_session_only() -> None:
    book = TurnHarness()
    phone, other = open_gateway(book), open_gateway(book)
    mine, foreign = phone.new_session(), other.new_session()
    phone.call("prompt.submit", session_id=mine, text="one")
    first = book.hand
    other.call("prompt.submit", session_id=foreign, text="two")
    first.emit(TextDelta("mine"))
    book.hand.emit(TextDelta("foreign"))
    assert {event["session_id"] for event in phone.take()} == {mine}
    assert {event["session_id"] for event in other.take()} == {foreign}
    phone.call("session.activate", session_id=foreign)  # any client of the owner may attach
    book.hand.emit(TextDelta("shared"))
    assert [event["session_id"] for event in phone.take()] == [foreign]


def test_a_lost_socket_is_replaced_before_the_end_of_the_turn() -> None:
    book, phone, session = open_chat("Hi")
    book.hand.emit(TextDelta("Hel"))
    phone.vanish()
    book.hand.emit(TextDelta("l"))
    again = open_gateway(book)
    snapshot = again.call("session.activate", session_id=session)
    assert snapshot["running"] is True
    assert snapshot["inflight"]["user"] == "Hi"
    assert snapshot["inflight"]["assistant"] == "Hell"
    book.hand.respond("o")
    assert again.kinds() == ["message.delta", *DONE]
    assert again.last("message.complete")["text"] == "Hello"
    assert [row["content"] for row in book.messages(session)] == ["Hi", "Hello"]


def test_a_turn_that_ends_without_a_socket_is_settled_by_its_state() -> None:
    book, phone, session = open_chat("Hi")
    phone.vanish()
    book.hand.respond("Hello")
    again = open_gateway(book)
    snapshot = again.call("session.activate", session_id=session)
    assert (snapshot["running"], snapshot["inflight"], snapshot["info"]["running"]) == (False, None, False)
    assert again.call("session.resume", session_id=session)["messages"][-1] == {"role": "assistant", "text": "Hello"}
    assert again.call("session.resume", session_id=session, source="webui")["messages"] == []


def test_a_turn_of_the_event_stream_is_seen_in_the_gateway() -> None:
    book, session, late = chatting()
    book.hand.emit(TextDelta("Hel"))
    phone = open_gateway(book)
    assert phone.call("session.resume", session_id=session)["inflight"]["assistant"] == "Hel"
    book.hand.respond("lo")
    assert names(late)[-1] == "done"
    assert phone.kinds() == ["message.delta", *DONE]
    assert phone.last("message.complete")["text"] == "Hello"
    book.chat()  # of a session that no client of the gateway has opened
    book.hand.finish()
    assert phone.kinds() == []
    book.chat(session)  # a turn that this client did not start
    book.hand.finish()
    assert phone.kinds() == ["message.start", *DONE]


def test_one_approval_is_shown_at_a_time_and_expires_before_the_end() -> None:
    book = TurnHarness()
    phone, other = open_gateway(book), open_gateway(book)
    session = phone.new_session()
    other.call("session.activate", session_id=session)
    phone.call("prompt.submit", session_id=session, text="Hi")
    phone.take()
    for name in ("c0", "c1", "c2"):
        book.hand.request_approval(call_of(identity=name), command=f"rm {name}")
    assert phone.kinds() == ["tool.generating", "approval.request", "tool.generating", "tool.generating"]
    shown = phone.last("approval.request")
    assert (shown["command"], shown["timeout_seconds"], shown["allow_permanent"]) == ("rm c0", 60, True)
    assert phone.call("approval.respond", session_id=session, choice="once") == {"resolved": 1}
    assert phone.kinds() == ["approval.expire", "approval.request"]
    assert other.last("approval.request")["command"] == "rm c1"
    third = open_gateway(book)
    third.call("session.resume", session_id=session)
    assert third.last("approval.request")["command"] == "rm c1"
    book.after(60.0)  # the others expire
    assert phone.call("approval.respond", session_id=session, choice="once") == {"resolved": 0, "status": "expired"}
    book.hand.request_approval(call_of(identity="c9"))
    phone.take()
    phone.call("session.interrupt", session_id=session)
    assert phone.kinds() == ["approval.expire", *DONE]
    assert phone.last("message.complete")["status"] == "interrupted"


def test_pending_calls_are_announced_once() -> None:
    book, phone, _ = open_chat("Hi")
    phone.take()
    book.hand.emit(TextDelta("a"), ToolCallPending(CALL), ToolCallPending(CALL))
    assert phone.kinds() == ["message.delta", "message.interim", "tool.generating"]
