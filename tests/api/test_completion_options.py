from typing import Any

import pytest

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.api.agent_settings import AgentSettings
from svc_proto.api.completion_options import (
    MAX_SEED,
    CompletionOptions,
    brings_tools,
    parse_completion_options,
    resolve_options,
)
from svc_proto.api.content import MessageList
from svc_proto.basics.errors import Refused

ADD: dict[str, Any] = {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {}}}
MAIN, SIDE = (ModelEndpoint(base_url=f"http://{name}/v1", model=name) for name in ("main", "side"))
TOOL = {"type": "function", "function": {"name": "add"}}
ASKED = MessageList(system="", history=(), prompt="Hi")
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "4"}


@pytest.mark.parametrize(
    "members",
    [
        {"temperature": 0},
        {"temperature": 2.0, "top_p": 0.5},
        {"presence_penalty": -2, "frequency_penalty": 2},
        {"seed": MAX_SEED},
        {"stop": "."},
        {"stop": [".", "!"]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
        {"top_k": 5, "min_p": 0.1, "repeat_penalty": 1.1, "logit_bias": {"5": 1}, "grammar": "root ::= x"},
        {"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}},
        {"parallel_tool_calls": False},
        {f"option{number}": 1 for number in range(64)},
    ],
)
def test_options_passed_on_unchanged(members: dict[str, object]) -> None:
    assert parse_completion_options({"messages": [], **members}) == CompletionOptions(members=members)


@pytest.mark.parametrize(
    "members",
    [
        dict.fromkeys(("temperature", "stop", "seed", "response_format", "max_tokens", "tools", "n")),
        {"n": 1, "logprobs": False, "top_logprobs": 0, "user": "me", "tools": [], "tool_choice": "auto"},
        {"modalities": ["text"], "store": True, "metadata": {}, "profile": "x", "top_k": None},
    ],
)
def test_options_without_effect(members: dict[str, object]) -> None:
    assert parse_completion_options(members) == CompletionOptions()


def test_the_limit_of_tokens_has_two_names() -> None:
    for body, limit in (
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 8}, 8),
        ({"max_tokens": 9, "max_completion_tokens": 8}, 8),
    ):
        assert parse_completion_options(body) == CompletionOptions(max_tokens=limit)


def test_tools_of_a_client() -> None:
    plain = {"type": "function", "function": {"name": "now"}}
    body = {"tools": [ADD, plain], "tool_choice": {"type": "function"}, "parallel_tool_calls": False}
    found = parse_completion_options(body)
    assert found.tools == (ADD, plain)
    assert found.members == {"tool_choice": {"type": "function"}, "parallel_tool_calls": False}
    assert parse_completion_options({"tools": [ADD] * 128}).members == {}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"logprobs": False, "top_logprobs": 3}, "top_logprobs"),
        ({"temperature": "0.5"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"top_p": float("nan")}, "top_p"),
        ({"seed": 1.5}, "seed"),
        ({"seed": True}, "seed"),
        ({"seed": MAX_SEED + 1}, "seed"),
        ({"stop": []}, "stop"),
        ({"stop": ["x", ""]}, "stop"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {}}, "response_format"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": "7"}, "max_completion_tokens"),
        ({"tools": {}}, "tools"),
        ({"tools": [ADD] * 129}, "tools"),
        ({"tools": [ADD, 7]}, "tools[1]"),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "x", "parameters": 7}}]}, "tools[0].function.parameters"),
        ({"tools": [ADD], "tool_choice": "perhaps"}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"parallel_tool_calls": "yes"}, "parallel_tool_calls"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({f"option{number}": 1 for number in range(65)}, "option64"),
    ],
)
def test_refused_options(body: dict[str, object], param: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_completion_options(body)
    assert (caught.value.status, caught.value.extra["field"]) == (400, param)
    assert param.rpartition(".")[2].partition("[")[0].removesuffix("s").rstrip("0123456789") in caught.value.message


@pytest.mark.parametrize(("choice", "none"), [("none", True), ("auto", False), (None, False)])
def test_no_tool_may_be_called(choice: str | None, none: bool) -> None:
    assert parse_completion_options({"tool_choice": choice}).no_tools is none
    assert parse_completion_options({"tool_choice": choice, "tools": [ADD]}).no_tools is False


def settings(endpoint: ModelEndpoint | None) -> AgentSettings:
    return AgentSettings(endpoint=endpoint, name="agent", personalities={}, aliases={"fast": SIDE}, max_tokens=100)


@pytest.mark.parametrize(
    ("name", "endpoint", "model"), [("", MAIN, "agent"), ("fast", SIDE, "fast"), ("other", MAIN, "other")]
)
def test_model_of_a_name(name: str, endpoint: ModelEndpoint, model: str) -> None:
    found = resolve_options(settings(MAIN), name, CompletionOptions(max_tokens=7), ASKED, place="input")
    assert (found.endpoint, found.model, found.max_tokens) == (endpoint, model, 7)


@pytest.mark.parametrize(
    ("options", "results", "with_model", "without"),
    [
        (CompletionOptions(), (), None, None),
        (CompletionOptions(tools=(TOOL,)), (), (TOOL,), None),
        (CompletionOptions(no_tools=True), (), (), None),
        (CompletionOptions(), (RESULT,), (), "input"),
        (CompletionOptions(tools=(TOOL,), members={"tool_choice": "required"}), (), (TOOL,), "tools"),
    ],
)
def test_tools(options: CompletionOptions, results: tuple[Any, ...], with_model: object, without: str | None) -> None:
    messages = MessageList(system="", history=results, prompt="", results=results)
    assert resolve_options(settings(MAIN), "", options, messages, place="input").tools == with_model
    if without is None:
        assert resolve_options(settings(None), "", options, messages, place="input").tools is None
        return
    with pytest.raises(Refused) as caught:
        resolve_options(settings(None), "", options, messages, place="input")
    assert caught.value.extra["field"] == without


def test_client_that_runs_tools() -> None:
    assert brings_tools([], CompletionOptions(tools=(TOOL,)))
    assert brings_tools([{"role": "user"}, RESULT], CompletionOptions())
    assert not brings_tools([RESULT, {"role": "user"}], CompletionOptions())
    assert not brings_tools([], CompletionOptions())
