"""Requests to `/v1/responses`: their options, compared with `/v1/chat/completions`, and their items."""

from typing import Any

import pytest

from svc_proto.agent.interface import ToolCall
from svc_proto.api.completion_options import NOT_PASSED
from svc_proto.api.response_request import as_completion_messages
from svc_proto.basics.errors import Refused
from tests.api.harness import CONFIG
from tests.api.scripted_agent import TurnHarness

MODEL = {CONFIG: 'model: {default: big, base_url: "http://127.0.0.1:9000/v1"}'}
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "description": "Tells", "parameters": SCHEMA}}
TOOL = {"type": "function", "name": "weather", "description": "Tells", "parameters": SCHEMA}
CALL = ToolCall(id="c1", name="weather", args={"city": "Rome"}, arguments='{"city":"Rome"}')
NAMED = {"type": "function", "function": {"name": "weather"}}


UNUSED = (
    "user", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
)  # fmt: skip
SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"temperature": 0.3, "top_p": 1}, {"temperature": 0.3, "top_p": 1}),
    ({"max_tokens": 7}, {"max_output_tokens": 7}),
    ({"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}, "strict": True}}},
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": {}, "strict": True}}},
    ),
    ({}, {"text": {"format": {"type": "text"}}}),
    ({"verbosity": "low"}, {"text": {"verbosity": "low"}}),
    ({"reasoning_effort": "high"}, {"reasoning": {"effort": "high", "summary": "auto"}}),
    ({"tools": [CHAT_TOOL]}, {"tools": [TOOL]}),
    ({"tools": [CHAT_TOOL]}, {"tools": [CHAT_TOOL]}),
    ({"tools": [CHAT_TOOL], "tool_choice": "required"}, {"tools": [TOOL], "tool_choice": "required"}),
    *(
        ({"tools": [CHAT_TOOL], "tool_choice": NAMED}, {"tools": [TOOL], "tool_choice": choice})
        for choice in ({"type": "function", "name": "weather"}, NAMED)
    ),
    ({"tools": [CHAT_TOOL], "parallel_tool_calls": False}, {"tools": [TOOL], "parallel_tool_calls": False}),
    ({"tools": [], "tool_choice": None}, {"tools": [], "tool_choice": None}),
    ({"tool_choice": "none"}, {"tool_choice": "none"}),
    ({"top_k": 5, "min_p": 0.1}, {"top_k": 5, "min_p": 0.1}),
    ({"user": "me", "metadata": {}}, {"user": "me", "metadata": {}, "include": ["reasoning.encrypted_content"]}),
    ({"presence_penalty": 1, "frequency_penalty": -1}, {"presence_penalty": 1, "frequency_penalty": -1}),
    ({"seed": 5, "stop": ["."]}, {"seed": 5, "stop": ["."]}),
    ({"max_completion_tokens": 7}, {"max_output_tokens": 7}),
    ({"n": 1, "logprobs": False, "modalities": ["text"]}, {"n": 1, "top_logprobs": 0, "modalities": ["text"]}),
    ({"store": True, "top_logprobs": 0}, {"store": True, "top_logprobs": 0}),
    (dict.fromkeys(UNUSED, "x"), dict.fromkeys(UNUSED, "x")),
]  # fmt: skip
REFUSED_ALIKE: dict[str, Any] = {
    "temperature": 3, "tools": 7, "tool_choice": "required", "logprobs": True, "top_logprobs": 3, "n": 2, "seed": "x",
    "functions": [{}], "function_call": "auto", "audio": {}, "modalities": ["audio"], "stop": 7,
}  # fmt: skip
REFUSED: list[tuple[dict[str, Any], str, dict[str, Any], str]] = [
    *(({name: value}, name, {name: value}, name) for name, value in REFUSED_ALIKE.items()),
    ({"max_tokens": 0}, "max_tokens", {"max_output_tokens": 0}, "max_output_tokens"),
    ({"response_format": 7}, "response_format", {"text": {"format": 7}}, "text.format"),
    ({"tools": [7]}, "tools[0]", {"tools": [7]}, "tools[0]"),
    ({"tools": [{"type": "custom"}]}, "tools[0]", {"tools": [{"type": "web_search"}]}, "tools[0]"),
    (
        {"tools": [{"type": "function", "function": {}}]},
        "tools[0].function.name",
        {"tools": [{"type": "function"}]},
        "tools[0].name",
    ),
]


def turn_of(path: str, options: dict[str, Any]) -> Any:
    asked = {"messages": [{"role": "user", "content": "Hi"}]} if path == CHAT else {"input": "Hi"}
    book = TurnHarness(files=MODEL)
    call = book.call("POST", path, {**asked, **options})
    if not book.scripted.hands:
        return call.result.status, call.result.json["error"]["param"]
    turn = book.hand.turn
    return turn.options, turn.tools, turn.max_tokens, turn.prompt, turn.system, turn.model


@pytest.mark.parametrize(("chat", "response"), SAME)
def test_both_routes_have_the_same_turn(chat: dict[str, Any], response: dict[str, Any]) -> None:
    found = turn_of(RESPONSES, response)
    assert found == turn_of(CHAT, chat)
    assert len(found) == 6


@pytest.mark.parametrize(("chat", "param", "response", "name"), REFUSED)
def test_both_routes_refuse_the_same(chat: dict[str, Any], param: str, response: dict[str, Any], name: str) -> None:
    assert (turn_of(CHAT, chat), turn_of(RESPONSES, response)) == ((400, param), (400, name))


def test_each_option_of_a_chat_is_compared() -> None:
    compared = {name for row in (*SAME, *REFUSED) for name in row[0]}
    assert {*NOT_PASSED} - compared == {"model", "messages", "stream", "stream_options", "profile", "session_id"}


@pytest.mark.parametrize("name", ["background", "prompt", "max_tool_calls"])
def test_members_that_cannot_be_honoured(name: str) -> None:
    assert turn_of(RESPONSES, {name: {"id": "x"}}) == (400, name)
    assert len(turn_of(RESPONSES, {name: None})) == 6


def test_error_names_the_member_of_this_route() -> None:
    answer = TurnHarness().request("POST", RESPONSES, {"input": "Hi", "max_output_tokens": "many"})
    assert "max_output_tokens" in answer.json["error"]["message"]


def test_output_of_a_client_s_tool() -> None:
    book = TurnHarness(files=MODEL)
    call = book.call("POST", RESPONSES, {"input": "Weather?", "tools": [TOOL]})
    book.hand.store_calls(CALL)
    book.hand.finish("tool_calls", calls=(CALL,))
    first = call.result.json
    (item,) = first["output"]
    assert (item["type"], item["call_id"], item["arguments"]) == ("function_call", "c1", '{"city":"Rome"}')
    output = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
    result = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}
    # the whole conversation, in one body
    call = book.call("POST", RESPONSES, {"input": [{"role": "user", "content": "Weather?"}, item, output]})
    turn = book.hand.turn
    assert (turn.tools, turn.prompt, [row["role"] for row in turn.history]) == ((), "", ["user", "assistant", "tool"])
    assert turn.history[2] == result
    book.hand.respond("It is sunny.")
    assert call.result.json["output"][0]["content"][0]["text"] == "It is sunny."
    body = {"input": [{"role": "user", "content": "a"}, item, output]}
    without_model = TurnHarness().request("POST", RESPONSES, body)
    assert (without_model.status, without_model.json["error"]["param"]) == (400, "input")
    # the output alone, and with another question
    for more, prompt in (([], ""), ([{"role": "user", "content": "Sure?"}], "Sure?")):
        body = {"input": [output, *more], "previous_response_id": first["id"], "tools": [TOOL]}
        book.call("POST", RESPONSES, body)
        turn = book.hand.turn
        assert (turn.history[-1], turn.prompt) == (result, prompt)
        assert [row["role"] for row in turn.history] == ["user", "assistant", "tool"]
        book.hand.finish()
    odd = {"input": [{**output, "call_id": "zzz"}], "previous_response_id": first["id"]}
    answer = book.request("POST", RESPONSES, odd)
    assert (answer.status, answer.json["error"]["param"]) == (400, "input")


def function_call(identity: str) -> dict[str, object]:
    return {"type": "function_call", "call_id": identity, "name": "f", "arguments": "{}"}


def called(identity: str) -> dict[str, object]:
    return {"id": identity, "type": "function", "function": {"name": "f", "arguments": "{}"}}


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}


@pytest.mark.parametrize(
    ("items", "messages", "places"),
    [
        (["Hi"], [{"role": "user", "content": "Hi"}], [0]),
        (
            [{"role": "assistant", "content": "x"}, function_call("a"), function_call("b"), "go"],
            [
                {"role": "assistant", "content": "x", "tool_calls": [called("a"), called("b")]},
                {"role": "user", "content": "go"},
            ],
            [0, 3],
        ),
        (
            [THOUGHT, function_call("a")],
            [{"role": "assistant", "content": None, "tool_calls": [called("a")], "reasoning_content": "hm"}],
            [1],
        ),
        (
            [THOUGHT, {"type": "message", "id": "m", "role": "assistant", "content": "x", "status": "completed"}],
            [{"role": "assistant", "content": "x", "reasoning_content": "hm"}],
            [1],
        ),
        (
            [THOUGHT, {"type": "mcp_call", "id": "mcp_0_1", "name": "f"}, {"role": "assistant", "content": "x"}],
            [{"role": "assistant", "content": "x", "reasoning_content": "hm"}],
            [2],
        ),
        ([THOUGHT, {"role": "user", "content": "x"}], [{"role": "user", "content": "x"}], [1]),
        ([{"type": "message", "content": "x"}], [{"type": "message", "content": "x"}], [0]),
        ([7], [7], [0]),
    ],
)
def test_items_as_messages(items: list[object], messages: list[object], places: list[int]) -> None:
    assert as_completion_messages(items) == (messages, places)


def test_unknown_item_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        as_completion_messages(["Hi", {"type": "computer_call", "id": "x"}])
    assert caught.value.extra["field"] == "input[1].type"
