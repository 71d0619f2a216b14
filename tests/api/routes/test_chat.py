import pytest

from svc_proto.agent.interface import (
    EphemeralText,
    ModelCallFinished,
    ModelCallStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from svc_proto.api.chat.store_requests import AddMessages, BeginTurn
from svc_proto.api.config import ApiConfig
from svc_proto.commands import Send
from svc_proto.facts import Address
from tests.api.harness import CONFIG, KEY
from tests.api.routes.chat_stream_checks import CLOSING, OPENING, check, data_of
from tests.api.scripted_agent import TurnHarness, call_of, chatting, names, streamed_text


def test_a_long_message_is_taken_whole() -> None:
    book = TurnHarness()
    session = book.session()
    text = "x" * 200_000 + "END"
    call = book.chat(session, {"message": text, "system_message": text})
    assert (book.hand.turn.prompt, book.hand.turn.system) == (text, text)
    book.hand.respond("Long.")
    echo = data_of(call, "run.started")["user_message"]["content"]
    assert echo == f"{text[:131_072]}\n[{len(text) - 131_072} more characters, which are in the session]"
    assert [row["content"] for row in book.messages(session)] == [text, "Long."]
    call = book.chat(session, {"message": "x" * 131_072})
    book.hand.finish()
    assert data_of(call, "run.started")["user_message"]["content"] == "x" * 131_072


def test_a_plain_turn() -> None:
    book = TurnHarness()
    session = book.session(title="Trip")
    call = book.chat(session, {"message": "Grüße"})
    assert dict(call.head.headers)[b"content-type"] == b"text/event-stream"
    assert dict(call.head.headers)[b"cache-control"] == b"no-cache"
    assert dict(call.head.headers)[b"x-accel-buffering"] == b"no"
    assert dict(call.head.headers)[b"x-svc-session-id"] == session.encode()
    assert book.hand.turn.prompt == "Grüße"
    book.hand.emit(TextDelta("Häl"), TextDelta("lo\n"), TextDelta("there"), ModelCallFinished(150, 12))
    book.hand.finish()
    assert check(call) == [*OPENING, *["assistant.delta"] * 3, *CLOSING]
    told = dict(call.named_events())
    user, answer = book.messages(session)
    assert told["session.created"]["title"] == "Trip"
    assert told["run.started"]["user_message"] == {"id": user["id"], "role": "user", "content": "Grüße"}
    assert told["message.started"]["message"] == {"id": answer["id"], "role": "assistant"}
    assert streamed_text(call) == answer["content"] == told["assistant.completed"]["content"] == "Hällo\nthere"
    assert answer["usage"] == {"input_tokens": 150, "output_tokens": 12, "total_tokens": 162}
    assert answer["finish_reason"] == "stop"
    assert call.answer is not None  # the response is complete
    assert not book.leaks()


def test_rows_are_stored_before_their_events() -> None:
    book = TurnHarness()
    book.hold = (BeginTurn, AddMessages)
    call = book.chat()
    assert names(call) == []
    assert book.turns == 0
    book.release()
    assert names(call) == OPENING
    book.hand.respond("yes")
    assert names(call) == [*OPENING, "assistant.delta"]
    book.hold = ()
    book.release()
    assert names(call)[-3:] == CLOSING


def test_one_tool() -> None:
    book, session, call = chatting()
    hand, tool = book.hand, call_of(q="x")
    hand.emit(ModelCallStarted(), TextDelta("I look. "), ModelCallFinished(10, 2))
    hand.store_calls(tool, text="I look. ", reasoning="hm")
    hand.emit(ToolCallStarted(tool))
    hand.store_result(tool, "42")
    hand.emit(ToolCallFinished(call=tool, output="42", preview="4", seconds=1.23456))
    hand.emit(ModelCallStarted(), TextDelta("It is 42."), ModelCallFinished(20, 3))
    hand.finish()
    told = ["assistant.delta", "tool.started", "tool.completed", "assistant.delta", "assistant.delta"]
    assert check(call) == [*OPENING, *told, *CLOSING]
    assert data_of(call, "tool.completed")["duration"] == 1.235
    assert streamed_text(call) == data_of(call, "assistant.completed")["content"] == "I look. \n\nIt is 42."
    rows = book.messages(session)
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant"]
    assert [row["content"] for row in rows] == ["Hi", "I look. ", "42", "It is 42."]
    called = {"id": "call_7", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    assert rows[1]["tool_calls"] == [called]
    assert (rows[1]["reasoning"], rows[2]["tool_call_id"], rows[2]["tool_name"]) == ("hm", "call_7", "terminal")
    assert rows[3]["id"] == data_of(call, "message.started")["message"]["id"]
    assert "reasoning" not in rows[3]
    assert len({row["id"] for row in rows}) == len(rows)


def test_separator_between_answers_is_sent_once() -> None:
    book, session, call = chatting()
    hand, tool = book.hand, call_of()
    hand.store_calls(tool)  # a separator follows a text only
    hand.emit(TextDelta("A"))
    hand.store_calls(tool, text="A")
    hand.emit(TextDelta("\n\n"), TextDelta("B"))  # an agent that sends the separator itself
    hand.finish()
    assert streamed_text(call) == "A\n\nB"
    assert book.messages(session)[-1]["content"] == "B"


@pytest.mark.parametrize(("said", "may_ask"), [({}, False), ({"approvals": True}, True), ({"approvals": "yes"}, False)])
def test_approvals_require_declared_support(said: dict[str, object], may_ask: bool) -> None:
    book = TurnHarness()
    path = f"/api/sessions/{book.session()}/chat"
    book.call("POST", f"{path}/stream", {"message": "Hi", **said})
    assert book.hand.host.can_request_approval is may_ask
    book.hand.finish()
    book.call("POST", path, {"message": "Hi", **said})  # a single response has no place for an approval
    assert book.hand.host.can_request_approval is False
    book.hand.finish()
    book.call("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], **said})
    assert book.hand.host.can_request_approval is False
    book.hand.finish()
    book.call("POST", "/v1/runs", {"input": "Hi", **said})
    assert book.hand.host.can_request_approval is True


def test_an_error_or_a_stop_before_any_text_stores_no_answer() -> None:
    book, session, call = chatting()
    book.hand.finish("error", error="the model's server is gone", code="upstream_error")
    assert check(call) == [*OPENING, "error", "done"]
    error = data_of(call, "error")
    assert (error["message"], error["error"]) == ("the model's server is gone", "upstream_error")
    assert [row["role"] for row in book.messages(session)] == ["user"]
    again = book.chat(session, {"message": "And now?"})
    book.hand.respond("Yes")
    assert names(again)[-1] == "done"
    assert [row["content"] for row in book.messages(session)] == ["Hi", "And now?", "Yes"]
    stopped = book.chat(session, {"message": "Wait"})
    book.request("POST", f"/v1/runs/{book.hand.turn.run_id}/stop")
    assert check(stopped) == [*OPENING, *CLOSING]
    assert [row["content"] for row in book.messages(session)] == ["Hi", "And now?", "Yes", "Wait"]


@pytest.mark.parametrize(("finish", "end"), [("error", ["error", "done"]), ("length", CLOSING)])
def test_text_of_an_incomplete_turn_is_stored(finish: str, end: list[str]) -> None:
    book, session, call = chatting()
    book.hand.emit(TextDelta("Half"))
    book.hand.finish(finish, error="cut" if finish == "error" else None)
    assert check(call) == [*OPENING, "assistant.delta", *end]
    row = book.messages(session)[-1]
    assert (row["role"], row["content"], row["finish_reason"]) == ("assistant", "Half", finish)


def test_a_bug_of_the_agent_is_an_error_with_a_reference() -> None:
    book, _, call = chatting()
    book.hand.crash(KeyError("sk-secret"))
    assert check(call) == [*OPENING, "error", "done"]
    assert data_of(call, "error")["error"] == "agent_error"
    assert "reference bug-" in data_of(call, "error")["message"]
    assert "sk-secret" not in call.text + repr(book.logs)


def test_turns_of_one_session_are_sequential() -> None:
    book = TurnHarness()
    session = book.session()
    first, second = book.chat(session, {"message": "one"}), book.chat(session, {"message": "two"})
    assert book.turns == 1
    assert second.head.status == 200
    assert second.text == ""
    book.after(30.0)
    assert second.text == ": keepalive\n\n"
    assert [row["content"] for row in book.messages(session)] == ["one"]
    book.hand.respond("1")
    assert names(first)[-1] == "done"
    assert book.turns == 2
    assert book.hand.turn.history == ({"role": "user", "content": "one"}, {"role": "assistant", "content": "1"})
    book.hand.respond("2")
    assert second.text.startswith(": keepalive\n\nevent: session.created\n")
    assert names(second) == [*OPENING, "assistant.delta", *CLOSING]
    assert [row["content"] for row in book.messages(session)] == ["one", "1", "two", "2"]


def test_stopped_waiting_turn_stores_nothing() -> None:
    book = TurnHarness()
    session = book.session()
    book.chat(session, {"message": "one"})
    second = book.chat(session, {"message": "two"})
    run_id = dict(second.head.headers)[b"x-svc-run-id"].decode()
    assert book.request("GET", f"/v1/runs/{run_id}").json["status"] == "queued"
    assert "last_event" not in book.request("GET", f"/v1/runs/{run_id}").json
    assert book.request("POST", f"/v1/runs/{run_id}/stop").status == 200
    assert check(second) == ["error", "done"]
    assert data_of(second, "error")["error"] == "interrupted"
    book.hand.finish()
    assert [row["content"] for row in book.messages(session)] == ["one", ""]


def test_at_the_cap_a_session_turn_waits_and_others_are_refused() -> None:
    book = TurnHarness(ApiConfig(key=KEY, max_concurrent_runs=1))
    one, two = book.session(), book.session()
    book.chat(one)
    second = book.chat(two)
    assert (book.turns, second.head.status) == (1, 200)
    for path in ("/v1/chat/completions", "/v1/runs"):
        answer = book.request("POST", path, b"not read")
        assert (answer.status, answer.json["error"]["code"]) == (429, "rate_limit_exceeded")
        assert dict(answer.headers)[b"retry-after"] == b"1"
    book.hand.finish()
    assert book.turns == 2
    assert names(second) == OPENING


def test_silence_is_filled_with_comments() -> None:
    book, _, call = chatting()
    length = len(call.text)
    book.after(29.9)
    assert len(call.text) == length
    book.hand.emit(TextDelta("x"))
    length = len(call.text)
    book.after(29.9)
    assert len(call.text) == length  # the interval restarts with each event
    book.after(0.1)
    assert call.text[length:] == ": keepalive\n\n"
    book.after(30.0)
    assert call.text[length:] == ": keepalive\n\n: keepalive\n\n"


def test_slow_reader_pauses_the_agent() -> None:
    book, session, call = chatting()
    hand = book.hand
    call.reads = False
    piece = TextDelta("x" * 8_192)
    for _ in range(60):
        hand.emit(piece)
        if hand.is_reader_behind():
            break
    assert hand.is_reader_behind()
    hand.do(hand.host.wait_drained)
    done = len(hand.answers)
    book.after(20.0)
    assert len(hand.answers) == done
    call.read()
    assert not hand.is_reader_behind()
    assert len(hand.answers) == done + 1
    hand.finish()
    assert names(call)[-1] == "done"
    assert streamed_text(call) == book.messages(session)[-1]["content"]


def test_blocked_reader_is_dropped_and_the_turn_continues() -> None:
    book, session, call = chatting()
    hand = book.hand
    call.reads = False
    while not hand.is_reader_behind():
        hand.emit(TextDelta("x" * 8_192))
    hand.do(hand.host.wait_drained)
    done = len(hand.answers)
    book.after(61.0)  # the connection's own `write_timeout`
    assert call.aborted
    assert len(hand.answers) == done + 1
    assert not hand.is_reader_behind()
    hand.respond("the end")
    assert book.messages(session)[-1]["content"].endswith("the end")


def test_one_read_of_the_upstream_is_one_write_to_the_client() -> None:
    book, _, call = chatting()
    before = len([each for each in book.commands if isinstance(each, Send)])
    book.hand.emit(*[TextDelta(f"{number} ") for number in range(100)])
    assert len([each for each in book.commands if isinstance(each, Send)]) == before + 1
    assert names(call).count("assistant.delta") == 100


def test_instructions_of_a_turn() -> None:
    book = TurnHarness(files={CONFIG: "agent: {system_prompt: Be kind., personalities: {brief: One line.}}"})
    session = book.session()
    book.chat(session, {"input": "Hi", "personality": 7, "model": "x", "zzz": 1})
    assert book.hand.turn.system == "Be kind."
    book.hand.finish()
    book.chat(session, {"message": "Hi", "instructions": "You are on a phone.", "personality": "brief"})
    assert book.hand.turn.system == "Be kind.\n\nOne line.\n\nYou are on a phone."
    book.hand.finish()
    other = book.session(system_prompt="Own.")
    book.chat(other, {"message": "Hi", "system_message": "Two."})
    assert book.hand.turn.system == "Own.\n\nTwo."
    assert book.hand.turn.model is None
    assert book.hand.turn.max_calls == 90
    book.hand.finish()
    book.chat(other, {"message": "Hi", "apps": ["org.x"]})
    assert book.hand.turn.apps == ("org.x",)


def test_images_reach_the_agent_and_the_store() -> None:
    book = TurnHarness()
    session = book.session()
    body = {"message": "Look", "attachments": [{"contentType": "image/png", "content": "aGk="}]}
    call = book.chat(session, body)
    assert data_of(call, "run.started")["user_message"]["content"] == "Look"
    assert [part["type"] for part in book.messages(session)[0]["content"]] == ["text", "image_url"]
    assert book.messages(session)[0]["content"] == list(book.hand.turn.prompt)


OPERATOR = (b"x-svc-operator", b"1")
SECRET = (b"x-svc-local-secret", b"5ec")
LOCAL = Address("127.0.0.1", 50_000)


@pytest.mark.parametrize(
    ("headers", "peer", "operator"),
    [
        ([OPERATOR], LOCAL, ()),
        ([OPERATOR, SECRET], LOCAL, (SECRET,)),
        ([SECRET], LOCAL, None),  # the TUI gateway and voice act for a device
        ([(b"x-svc-operator", b"yes")], LOCAL, None),
        ([OPERATOR, (b"x-forwarded-for", b"192.0.2.1")], LOCAL, None),
        ([OPERATOR, (b"origin", b"https://evil.example")], LOCAL, None),
        ([OPERATOR, SECRET], Address("192.0.2.7", 50_000), None),
    ],
)
def test_operator_requires_key_and_local_request(
    headers: list[tuple[bytes, bytes]], peer: Address, operator: object
) -> None:
    book = TurnHarness(ApiConfig(key=KEY, cors_origins=("https://evil.example",)))
    session = book.session()
    book.chat(session, headers=headers, peer=peer, host=b"127.0.0.1:8642")
    assert book.hand.turn.operator == operator
    book.hand.finish()
    book.call("POST", f"/api/sessions/{session}/chat", {"message": "Hi"}, headers=headers, peer=peer)
    assert book.hand.turn.operator is None  # from its answer


def test_ephemeral_text_is_streamed_but_not_stored() -> None:
    book, session, call = chatting()
    book.hand.emit(TextDelta("Look: "), EphemeralText("code Q7M2ZK\n"), TextDelta("gone."))
    book.hand.finish()
    assert streamed_text(call) == "Look: code Q7M2ZK\ngone."
    assert data_of(call, "assistant.completed")["content"] == "Look: gone."
    assert book.messages(session)[-1]["content"] == "Look: gone."
