from typing import Any

import pytest

from svc_proto.agent.interface import ModelCallFinished, TextDelta
from svc_proto.commands import OpenFile
from tests.api.harness import CONFIG, ApiCall
from tests.api.scripted_agent import TurnHarness, names


def post(book: TurnHarness, body: dict[str, object] | None = None, **options: Any) -> ApiCall:
    return book.call("POST", "/v1/responses", {"input": "Hi", **(body or {})}, **options)


def answered(book: TurnHarness, body: dict[str, object] | None = None, text: str = "Hello", **options: Any) -> Any:
    call = post(book, body, **options)
    book.hand.emit(TextDelta(text), ModelCallFinished(1, 2))
    book.hand.finish()
    assert call.result.status == 200
    return call.result.json


def test_a_response() -> None:
    book = TurnHarness()
    found = answered(book)
    assert found["id"].startswith("resp_")
    assert len(found["id"]) == 33
    assert (found["object"], found["status"], found["created_at"]) == ("response", "completed", int(book.now.wall))
    assert found["output"][0]["content"][0]["text"] == "Hello"
    assert found["usage"] == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    path = f"/v1/responses/{found['id']}"
    assert book.request("GET", path).json == found
    deleted = book.request("DELETE", path)
    assert (deleted.status, deleted.json) == (200, {"id": found["id"], "object": "response", "deleted": True})
    assert book.request("POST", "/v1/responses", {"input": "on", "previous_response_id": found["id"]}).status == 404
    for method in ("GET", "DELETE"):
        answer = book.request(method, path)
        assert (answer.status, answer.json["error"]["code"]) == (404, None)
    unstored = answered(book, {"store": False})
    assert book.request("GET", f"/v1/responses/{unstored['id']}").status == 404


def test_a_stream() -> None:
    book = TurnHarness()
    call = post(book, {"stream": True})
    book.hand.respond("Hello")
    assert names(call)[0] == "response.created"
    assert names(call)[-1] == "response.completed"
    assert "[DONE]" not in call.text
    final = call.named_events()[-1][1]["response"]
    assert book.request("GET", f"/v1/responses/{final['id']}").json == final


def test_disconnected_client_leaves_an_incomplete_response() -> None:
    book = TurnHarness()
    call = post(book, {"stream": True})
    book.hand.emit(TextDelta("Half"))
    identity = call.named_events()[0][1]["response"]["id"]
    call.vanish()
    assert book.hand.cancelled
    found = book.request("GET", f"/v1/responses/{identity}").json
    assert (found["status"], found["output"][0]["content"][0]["text"]) == ("incomplete", "Half")


def test_a_chain_has_one_session() -> None:
    book = TurnHarness()
    first = answered(book)
    session = book.hand.turn.session_id
    answered(book, {"input": ["And", "then?"], "previous_response_id": first["id"], "truncation": "auto"})
    turn = book.hand.turn
    assert (turn.session_id, turn.prompt) == (session, "then?")
    assert [(row["role"], row["content"]) for row in turn.history] == [
        ("user", "Hi"), ("assistant", "Hello"), ("user", "And")
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["t", "t" * 256])
def test_a_conversation_has_a_name(name: str) -> None:
    book = TurnHarness()
    answered(book, {"conversation": name})
    session = book.hand.turn.session_id
    answered(book, {"conversation": {"id": name}})
    assert book.hand.turn.session_id == session
    assert len(book.hand.turn.history) == 2
    answered(book, {"conversation": name, "conversation_history": [{"role": "user", "content": "Own"}]})
    assert list(book.hand.turn.history) == [{"role": "user", "content": "Own"}]


def test_instructions_of_a_response() -> None:
    book = TurnHarness(files={CONFIG: "agent: {system_prompt: Be kind.}"})
    body = {"input": [{"role": "system", "content": "Short."}, {"role": "user", "content": "Hi"}], "model": "m"}
    assert answered(book, {**body, "instructions": "Now."})["model"] == "m"
    assert book.hand.turn.system == "Be kind.\n\nShort.\n\nNow."


def test_output_may_be_sent_back_as_input() -> None:
    """Accept `input += response.output`, as in OpenAI's guides; of the input, only messages become history."""
    book = TurnHarness()
    output = answered(book)["output"]
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "42"},
    ]
    answered(book, {"input": [{"role": "user", "content": "Hi"}, *items, *output, {"role": "user", "content": "So?"}]})
    turn = book.hand.turn
    assert (turn.prompt, [row["content"] for row in turn.history]) == ("So?", ["Hi", "Hello"])


def test_items_of_stored_responses_by_their_ids() -> None:
    book = TurnHarness()
    output = answered(book)["output"]
    reference = {"type": "item_reference", "id": output[0]["id"]}
    user = {"role": "user", "content": "Hi"}
    answered(book, {"input": [user, reference, reference, {**user, "content": "So?"}]})
    assert [row["content"] for row in book.hand.turn.history] == ["Hi", "Hello", "Hello"]
    unstored = answered(book, {"store": False})["output"][0]["id"]
    for wanted in (unstored, "msg_9" + reference["id"][5:], "msg_1_0", "call", None):
        refused = post(book, {"input": [user, {"type": "item_reference", "id": wanted}, user]}).result
        assert (refused.status, refused.json["error"]["param"]) == (404, "input[1].id")


def test_repeated_request_is_not_run_again() -> None:
    book = TurnHarness()
    again = [(b"idempotency-key", b"k")]
    first = answered(book, headers=again)
    assert post(book, headers=again).result.json == first
    assert book.turns == 1
    post(book, {"input": "Other"}, headers=again)
    post(book, {"input": "Other"}, headers=again)
    assert book.turns == 2
    post(book, {"input": "Other", "stream": True}, headers=again)
    assert book.turns == 3
    post(book, {"input": "Other", "stream": True}, headers=again)
    assert book.turns == 4
    assert [hand.cancelled for hand in book.scripted.hands] == [False, False, True, False]
    book = TurnHarness()
    book.hold = (OpenFile,)  # of the configuration file
    calls = [post(book, headers=[(b"idempotency-key", b"k")]) for _ in range(2)]
    book.hold = ()
    book.release()
    assert book.turns == 1
    book.hand.finish()
    assert calls[0].result.body == calls[1].result.body


def test_failed_response() -> None:
    book = TurnHarness()
    call = post(book)
    book.hand.finish("error", error="gone", code="upstream_error")
    assert (call.result.status, call.result.json["error"]["code"]) == (502, "agent_incomplete")


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"input": [{"type": "reasoning"}, {"role": "user", "content": " "}]}, 400, "input[1].content"),
        ({"input": " "}, 400, "input[0].content"),
        ({"previous_response_id": "resp_x"}, 404, None),
        ({"previous_response_id": "resp_x", "conversation": "c"}, 400, "conversation"),
        ({"conversation": ""}, 400, "conversation"),
        ({"conversation": "x" * 257}, 400, "conversation"),
        ({"conversation_history": 7}, 400, "conversation_history"),
        ({"store": "perhaps"}, 400, "store"),
        ({"instructions": 7}, 400, "instructions"),
    ],
)
def test_refused_bodies(body: dict[str, object], status: int, param: str | None) -> None:
    book = TurnHarness()
    answer = post(book, body).result
    assert (answer.status, answer.json["error"]["code"], answer.json["error"]["param"]) == (status, None, param)
    assert book.turns == 0
