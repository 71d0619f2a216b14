from typing import Any

import pytest
from attrs import evolve

from svc_proto.agent.interface import (
    ModelCallFinished,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
)
from svc_proto.api.chat.store_requests import AddMessages
from svc_proto.api.config import ApiConfig
from svc_proto.basics.brand import HERMES
from tests.api.harness import CONFIG, KEY, ROUTED, ApiCall
from tests.api.scripted_agent import TurnHarness, call_of, names

PATH = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "default", "messages": [{"role": "user", "content": "Hi"}]}
USAGE = {"prompt_tokens": 150, "completion_tokens": 12, "total_tokens": 162}


def post(book: TurnHarness, body: object = None, **options: Any) -> ApiCall:
    return book.call("POST", PATH, BODY if body is None else body, **options)


def session_of(call: ApiCall) -> str:
    return dict(call.head.headers)[b"x-svc-session-id"].decode()


def test_single_completion() -> None:
    book = TurnHarness()
    call = post(book)
    book.hand.emit(ReasoningDelta("hm"), TextDelta("Hel"), TextDelta("lo"), ModelCallFinished(150, 12))
    book.hand.finish()
    answer = call.result
    assert answer.status == 200
    body = answer.json
    assert body.pop("id") == f"chatcmpl-{book.hand.turn.run_id.removeprefix('run_')}"
    message = {"role": "assistant", "content": "Hello", "reasoning_content": "hm"}
    assert body == {
        "object": "chat.completion",
        "created": int(book.now.wall),
        "model": "default",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": USAGE,
    }
    assert [row["content"] for row in book.messages(session_of(call))] == ["Hi", "Hello"]


def test_tool_progress_is_sent_on_request() -> None:
    for brand, value, told in (("svc", b"1", 2), ("hermes", b"true", 2), ("svc", b"0", 0)):
        book = TurnHarness()
        header = f"x-{brand}-tool-progress".encode("ascii")
        call = post(book, {**BODY, "stream": True}, headers=[(header, value)])
        book.hand.emit(ToolCallStarted(call_of()), ToolCallFinished(call=call_of(), output="x"))
        book.hand.finish()
        assert names(call).count(f"{brand}.tool.progress") == told  # the names follow the client


def test_disconnected_client_interrupts_the_agent() -> None:
    for body in (BODY, {**BODY, "stream": "true"}):
        book = TurnHarness()
        call = post(book, body)
        book.hand.emit(TextDelta("Half"))
        session = book.hand.turn.session_id
        call.vanish()
        assert book.hand.cancelled
        row = book.messages(session)[-1]
        assert (row["content"], row["finish_reason"]) == ("Half", "interrupted")


def test_incomplete_completion() -> None:
    book = TurnHarness(ApiConfig(key=KEY, brand=HERMES))
    call = post(book)
    book.hand.emit(TextDelta("Half"))
    book.hand.finish("length")
    answer, fields = call.result, dict(call.result.headers)
    assert (answer.status, answer.json["choices"][0]["finish_reason"]) == (200, "length")
    assert answer.json["hermes"]["error_code"] == "output_truncated"
    assert (fields[b"x-hermes-completed"], fields[b"x-hermes-partial"]) == (b"false", b"true")
    assert b"x-hermes-error" not in fields
    call = post(book)
    book.hand.emit(TextDelta("Half"))
    book.hand.finish("error", error="gone", code="upstream_error")
    answer, fields = call.result, dict(call.result.headers)
    assert (answer.status, answer.json["choices"][0]["finish_reason"]) == (200, "error")
    flags = {"completed": False, "partial": True, "failed": True}
    assert answer.json["hermes"] == {**flags, "error": "gone", "error_code": "agent_error"}
    assert fields[b"x-hermes-error"] == b"agent_error"
    call = post(book)
    book.hand.finish("error", error="gone", code="upstream_error")
    assert (call.result.status, call.result.json["error"]["code"]) == (502, "agent_incomplete")


def test_instructions_of_a_completion() -> None:
    book = TurnHarness(files={CONFIG: ROUTED})
    history = [{"role": "user", "content": "One"}, {"role": "assistant", "content": "1"}]
    messages = [{"role": "system", "content": "Short."}, *history, {"role": "user", "content": "Two"}]
    post(book, {"model": "fast", "messages": messages})
    turn = book.hand.turn
    assert (turn.system, turn.prompt) == ("Be kind.\n\nShort.", "Two")
    assert turn.history == tuple(history)
    assert turn.model is not None
    assert turn.model.model == "small"


def test_requests_of_one_conversation_share_a_session() -> None:
    book = TurnHarness()
    one, two = {"role": "user", "content": "One"}, {"role": "user", "content": "Two"}
    answer = {"role": "assistant", "content": "1"}
    text = {"type": "text", "text": "One"}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    found = []
    for messages in (
        [one],
        [one, answer, two],
        [answer, {**one, "content": [text]}],
        [{**one, "content": "Other"}],
        [{"role": "system", "content": "S"}, one],
        [{**one, "content": [text, picture]}, two],
    ):
        call = post(book, {"messages": messages})
        book.hand.finish()
        found.append(session_of(call))
    assert found[0] == found[1] == found[2] == found[5]
    assert len(set(found)) == 3
    assert found[0].startswith("api-")
    assert len(found[0]) == 20


def test_named_session_replaces_the_history() -> None:
    book = TurnHarness()
    session = book.session(system_prompt="Own.")
    book.chat(session, {"message": "Stored"})
    book.hand.respond("Yes")
    body = {"messages": [{"role": "user", "content": "ignored"}, {"role": "user", "content": "Now"}]}
    call = post(book, body, headers=[(b"x-hermes-session-id", session.encode()), (b"x-svc-session-key", b"me")])
    turn = book.hand.turn
    assert (turn.session_id, turn.system) == (session, "Own.")
    assert turn.history == ({"role": "user", "content": "Stored"}, {"role": "assistant", "content": "Yes"})
    book.hand.finish()
    fields = dict(call.head.headers)  # of the brand of the first branded header
    assert (fields[b"x-hermes-session-id"], fields[b"x-hermes-session-key"]) == (session.encode(), b"me")
    fresh = post(book, headers=[(b"x-svc-session-id", b"mine")])
    assert book.hand.turn.history == ()
    book.hand.finish()
    assert session_of(fresh) == "mine"
    assert len(book.messages("mine")) == 2


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        (b"x-svc-session-id", b"../x", "invalid_session_id"),
        *((b"x-svc-session-key", value, None) for value in (b"x" * 257, b"a\x85b")),
    ],
)
def test_refused_headers(name: bytes, value: bytes, code: str | None) -> None:
    book = TurnHarness()
    answer = book.request("POST", PATH, BODY, headers=[(name, value)])
    assert (answer.status, answer.json["error"]["code"], book.turns) == (400, code, 0)
    call = post(book, BODY, headers=[(b"x-svc-session-key", b"x" * 256)])
    book.hand.finish()
    assert call.head.headers.get(b"x-svc-session-key") == b"x" * 256


def test_without_a_key_no_session_can_be_named() -> None:
    book = TurnHarness(ApiConfig())
    assert book.request("POST", PATH, BODY, headers=[(b"x-svc-session-id", b"s")]).status == 403


MODEL = {CONFIG: 'model: {default: big, base_url: "http://127.0.0.1:9000/v1", max_tokens: 100}'}
ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
ADDED = ToolCall(id="c1", name="add", args={"a": 2}, arguments='{"a": 2}')
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "4"}
CALLED = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}


def test_the_options_reach_the_model() -> None:
    options = {"temperature": 0.3, "top_p": 1, "stop": ["."], "seed": 7, "response_format": {"type": "json_object"}}
    book = TurnHarness(files=MODEL)
    post(book, {**BODY, **options, "user": "me"})
    assert (book.hand.turn.options, book.hand.turn.tools, book.hand.turn.max_tokens) == (options, None, 100)


@pytest.mark.parametrize(("wanted", "given"), [(7, 7), (101, 100)])
def test_token_limit_of_the_operator_is_the_maximum(wanted: int, given: int) -> None:
    book = TurnHarness(files=MODEL)
    post(book, {**BODY, "max_tokens": wanted})
    assert book.hand.turn.max_tokens == given


def test_client_with_its_own_tools() -> None:
    book = TurnHarness(files=MODEL)
    call = post(book, {**BODY, "tools": [ADD], "tool_choice": "auto"})
    turn = book.hand.turn
    assert (turn.tools, turn.options, turn.prompt) == ((ADD,), {"tool_choice": "auto"}, "Hi")
    book.hand.store_calls(ADDED)
    book.hand.finish("tool_calls", calls=(ADDED,))
    choice = call.result.json["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": None, "tool_calls": [CALLED]}
    assert choice["finish_reason"] == "tool_calls"
    assert "svc" not in call.result.json
    messages = [*BODY["messages"], choice["message"], RESULT]
    again = post(book, {"messages": messages})  # without a list of tools
    turn = book.hand.turn
    assert (turn.tools, turn.prompt, turn.history[-1]) == ((), "", RESULT)
    assert turn.history[1]["tool_calls"] == [CALLED]
    book.hand.respond("Four.")
    assert again.result.json["choices"][0]["message"] == {"role": "assistant", "content": "Four."}
    assert session_of(again) == session_of(call)
    rows = book.messages(session_of(call))
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant"]
    assert (rows[2]["tool_call_id"], rows[2]["content"]) == ("c1", "4")


def test_a_stored_session_takes_results_too() -> None:
    book = TurnHarness(files=MODEL)
    headers = [(b"x-svc-session-id", b"mine")]
    post(book, {**BODY, "tools": [ADD]}, headers=headers)
    book.hand.store_calls(ADDED)
    book.hand.finish("tool_calls", calls=(ADDED,))
    post(book, {"messages": [RESULT], "tools": [ADD]}, headers=headers)
    assert [row["role"] for row in book.hand.turn.history] == ["user", "assistant", "tool"]
    assert book.hand.turn.history[-1] == RESULT


def test_a_call_needs_a_model() -> None:
    answer = TurnHarness().request("POST", PATH, {"messages": [RESULT]})
    assert (answer.status, answer.json["error"]["param"]) == (400, "messages")
    assert "SVC_MODEL_BASE_URL" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({**BODY, "temperature": "hot"}, "temperature"),
        ({}, "messages"),
        ({**BODY, "stream": 7}, "stream"),
        ({**BODY, "stream_options": "usage"}, "stream_options"),
        ({**BODY, "stream_options": {"include_usage": 7}}, "include_usage"),
    ],
)
def test_refused_bodies(body: object, param: str | None) -> None:
    answer = TurnHarness().request("POST", PATH, body)
    assert (answer.status, answer.json["error"]["code"], answer.json["error"]["param"]) == (400, None, param)


AGAIN = [(b"idempotency-key", b"k-1")]


def test_repeated_request_is_not_run_again() -> None:
    book = TurnHarness()
    first, second = post(book, headers=AGAIN), post(book, headers=AGAIN)
    assert book.turns == 1
    first.vanish()
    assert not book.hand.cancelled  # another client still waits
    book.hand.finish()
    assert second.result.body == post(book, headers=AGAIN).result.body
    assert book.turns == 1


def test_of_repeated_requests_for_a_stream_the_last_one_is_answered() -> None:
    book = TurnHarness()
    streamed = {**BODY, "stream": True}
    post(book, streamed, headers=AGAIN)
    book.hand.emit(TextDelta("Hel"))
    book.hold = (AddMessages,)  # the first turn cannot end while the store has not answered
    repeated = [post(book, streamed, headers=AGAIN) for _ in range(2)]
    book.hold = ()
    book.release()
    assert len(book.api.runs) == 1
    book.hand.respond("Hello")
    assert ["Hello" in call.text for call in repeated] == [False, True]


def test_different_body_with_the_same_key_is_run() -> None:
    book = TurnHarness()
    post(book, headers=AGAIN)
    book.hand.finish()
    other = {**BODY, "messages": [{"role": "user", "content": "Other"}]}
    post(book, other, headers=AGAIN)
    book.hand.finish()
    assert post(book, {**other, "temperature": 1}, headers=AGAIN).result.status == 200
    assert book.turns == 2
    post(book, other, headers=[*AGAIN, (b"x-svc-session-id", b"mine")])
    book.hand.finish()
    assert book.turns == 3
    post(book, headers=AGAIN)  # its entry was replaced
    assert book.turns == 4


def test_members_of_the_server_reach_a_client_with_its_own_tools() -> None:
    called = evolve(ADDED, extra={"extra_content": {"s": 1}})
    extra = {"reasoning_content": "hm", "signature": "x"}
    book = TurnHarness(files=MODEL)
    call = post(book, {**BODY, "tools": [ADD]})
    book.hand.emit(ReasoningDelta("hm"))
    book.hand.store_calls(called, **extra)
    book.hand.finish("tool_calls", calls=(called,), extra=extra)
    message = call.result.json["choices"][0]["message"]
    assert {name: message[name] for name in extra} == extra
    assert message["tool_calls"][0]["extra_content"] == {"s": 1}


def test_option_that_the_model_s_server_refuses_is_a_bad_request() -> None:
    book = TurnHarness(files=MODEL)
    call = post(book, {**BODY, "top_k": 5})
    assert book.hand.turn.options == {"top_k": 5}
    book.hand.finish("error", error="the model's server refused the request", code="unsupported_option")
    assert (call.result.status, call.result.json["error"]["code"]) == (400, "unsupported_option")
