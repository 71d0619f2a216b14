"""Requests of Open WebUI, release 0.12.4, and the answers to them.

The requests were recorded between that release, installed from its package, and an API server, and then paraphrased.
They list models, chat from its page and through its API, and use images, sliders, tools and tasks (titles, tags,
follow-ups).
Its page adds tools of its own to each chat, unless "Builtin Tools" is off among the model's capabilities. Some of them
are used here.
"""

import json
from typing import Any

import pytest

from svc_proto.agent.interface import (
    ModelCallFinished,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolCallFinished,
    ToolCallStarted,
)
from svc_proto.api.config import ApiConfig
from tests.api.harness import KEY, ApiCall
from tests.api.openai_schema import check_chunk, check_completion
from tests.api.scripted_agent import TurnHarness, call_of

PATH = "/v1/chat/completions"
PNG = "data:image/png;base64,iVBORw0KGgo="
HEADERS = [
    (b"content-type", b"application/json"),
    (b"x-openwebui-auth-type", b"jwt"),
    (b"x-openwebui-user-name", b"Ann Lee"),
    (b"x-openwebui-user-id", b"97ea7e00-3af7-40e7-835a-4c51f3dda74f"),
    (b"x-openwebui-user-email", b"ann@example.org"),
    (b"x-openwebui-user-role", b"admin"),
    (b"x-openwebui-chat-id", b"95f264ce-82ad-43af-959b-0ef9463c27e2"),
    (b"accept", b"*/*"),
    (b"accept-encoding", b"gzip, deflate, br"),
    (b"user-agent", b"Python/3.11 aiohttp/3.14.5"),
]
HELLO = [{"role": "user", "content": "Hello"}]
IMAGE = {"type": "image_url", "image_url": {"url": PNG}}
SEEN = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, IMAGE]}]
TASK = "### Task:\nGenerate a concise title summarizing the chat history.\n### Guidelines:\n### Output:\nJSON"
CHAT: dict[str, Any] = {"stream": True, "model": "svc-agent", "messages": HELLO}
USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}
SLIDERS: dict[str, Any] = {
    "temperature": 0.8,
    "top_p": 0.9,
    "max_tokens": 128,
    "seed": 42,
    "stop": ["###"],
    "frequency_penalty": 0.1,
    "presence_penalty": 0.1,
    "reasoning_effort": "low",
    "logit_bias": {"50256": -100},
    "top_k": 40,
    "min_p": 0.1,
    "repeat_penalty": 1.1,
    "num_ctx": 4096,
}


def a_tool(name: str, *required: str, **properties: Any) -> dict[str, Any]:
    parameters = {"properties": properties, **({"required": [*required]} if required else {}), "type": "object"}
    return {"type": "function", "function": {"name": name, "description": "What it does.", "parameters": parameters}}


TEXT = {"type": "string"}
FILE = {"path": TEXT, "content": TEXT, "encoding": {"const": "base64", "type": "string"}}
FILES = {"additionalProperties": False, "properties": FILE, "required": ["path"], "type": "object"}
TOOLS = [
    a_tool("get_current_timestamp"),
    a_tool(
        "ask_user",
        "questions",
        questions={"items": {"additionalProperties": True, "type": "object"}, "type": "array"},
        allow_other={"default": True, "type": "boolean"},
        timeout_ms={"default": 120000, "type": "integer"},
    ),
    a_tool("create_skill", "id", id=TEXT, files={"items": FILES, "type": "array"}),
]
STREAMS: dict[str, dict[str, Any]] = {
    "a program's chat": CHAT,
    "a chat with usage": {**CHAT, **USAGE},
    "a picture": {**CHAT, "messages": SEEN},
    "sliders": {**CHAT, **SLIDERS},
}


def post(book: TurnHarness, body: object) -> ApiCall:
    return book.call("POST", PATH, body, headers=HEADERS)


def lines(call: ApiCall, *, usage: bool = False) -> list[dict[str, Any]]:
    events = call.stream()
    assert events.pop().data == "[DONE]"
    assert {event.event for event in events} == {"message"}
    chunks = [json.loads(event.data) for event in events]
    for chunk in chunks:
        check_chunk(chunk, usage=usage)
    return chunks


def content_of(chunks: list[dict[str, Any]]) -> str:
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"])


@pytest.mark.parametrize("name", STREAMS)
def test_a_chat_is_a_stream_of_openais_objects(name: str) -> None:
    book, body = TurnHarness(), STREAMS[name]
    call = post(book, body)
    tool = call_of()
    book.hand.emit(ReasoningDelta("Hm."), TextDelta("Hel"), ToolCallStarted(tool))
    book.hand.emit(ToolCallFinished(call=tool, output="x"), TextDelta("lo"), ModelCallFinished(3, 2))
    book.hand.finish()
    chunks = lines(call, usage="stream_options" in body)
    assert content_of(chunks) == "Hello"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"]][-1] == "stop"
    assert dict(call.head.headers)[b"content-type"] == b"text/event-stream"


def test_task_is_a_single_completion() -> None:
    book = TurnHarness()
    messages = [{"role": "user", "content": TASK}]
    call = post(book, {"model": "svc-agent", "messages": messages, "stream": False, "max_tokens": 1000})
    assert book.hand.turn.prompt == TASK
    book.hand.emit(TextDelta('{"title": "Hello"}'), ModelCallFinished(3, 2))
    book.hand.finish()
    check_completion(call.result.json)
    assert call.result.json["choices"][0]["message"]["content"] == '{"title": "Hello"}'


def test_chat_with_the_tools_of_the_page() -> None:
    """Check that a turn gets the page's tools if a model is configured, and that it runs without them otherwise."""
    body = {**CHAT, **USAGE, "tools": TOOLS}
    for config in (ApiConfig(key=KEY, model_base_url="http://model:1/v1", model="m"), ApiConfig(key=KEY)):
        book = TurnHarness(config)
        call = post(book, body)
        assert book.hand.turn.tools == (tuple(TOOLS) if config.model_base_url else None)
        book.hand.emit(TextDelta("Hello"), ModelCallFinished(3, 2))
        book.hand.finish()
        assert content_of(lines(call, usage=True)) == "Hello"


@pytest.mark.parametrize("finish", ["stop", "length", "tool_calls", "error"])
def test_every_end_of_a_stream(finish: str) -> None:
    book = TurnHarness(ApiConfig(key=KEY, model_base_url="http://model:1/v1", model="m"))
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    call = post(book, {**CHAT, **USAGE, **({"tools": [tool]} if finish == "tool_calls" else {})})
    more: dict[str, Any] = {}
    if finish == "tool_calls":
        more["calls"] = (ToolCall(id="call_1", name="get_weather", args={"city": "Köln"}, arguments='{"city":"Köln"}'),)
    if finish == "error":
        more |= {"error": "the model is away", "code": "upstream_error"}
    book.hand.emit(TextDelta("So"), ModelCallFinished(3, 2))
    book.hand.finish(finish, **more)
    chunks = lines(call, usage=True)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk.get("choices")][-1] == finish
    assert chunks[-1]["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


BAD: list[dict[str, Any]] = [
    {"choices": []},
    {"system": 1},
    {"created": 1.5},
    {"object": "chat.completion"},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]},
    {"choices": [{"index": 0, "delta": {"role": "user"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}}]},
    {"choices": [{"index": True, "delta": {}, "finish_reason": None}]},
]


@pytest.mark.parametrize("change", BAD)
def test_schema_refuses_invalid_chunks(change: dict[str, Any]) -> None:
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": None}
    good = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    check_chunk(good)
    with pytest.raises(AssertionError):
        check_chunk({**good, **change})
