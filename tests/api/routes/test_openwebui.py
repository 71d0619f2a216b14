"""Requests of Open WebUI, release 0.12.4, and the answers to them.

The requests were recorded between that release, installed from its package, and an API server, and then paraphrased.
They list models, chat from its page and through its API, and use images, sliders, tools and tasks (titles, tags,
follow-ups).
Its page adds tools of its own to each chat, unless "Builtin Tools" is off among the model's capabilities. Some of them
are used here.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc_proto.agent.interface import ModelCallFinished, ReasoningDelta, TextDelta, ToolCallFinished, ToolCallStarted
from svc_proto.api.config import ApiConfig
from tests.api.harness import KEY, ApiCall
from tests.api.openapi.test_run_types import DOCUMENTED, told
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
LONG = [*HELLO, {"role": "assistant", "content": "Hi!"}, *HELLO]
PICTURE = {"type": "image_url", "image_url": {"url": PNG}}
SEEN = [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, PICTURE]}]
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
QUESTIONS = {"items": {"additionalProperties": True, "type": "object"}, "type": "array"}
FILE = {"additionalProperties": False, "properties": {"path": TEXT}, "required": ["path"], "type": "object"}
TOOLS = [
    a_tool("get_current_timestamp"),
    a_tool("ask_user", "questions", questions=QUESTIONS, timeout_ms={"default": 120000, "type": "integer"}),
    a_tool("create_skill", "id", id=TEXT, files={"items": FILE, "type": "array"}),
]
CALLED = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Köln"}'}}
ROUND = [
    {"role": "user", "content": "What is the weather?"},
    {"role": "assistant", "content": "", "tool_calls": [CALLED]},
    {"role": "tool", "tool_call_id": "call_1", "content": "rain in Köln"},
]
STREAMS: dict[str, dict[str, Any]] = {
    "a program's chat": CHAT,
    "a chat with usage": {**CHAT, **USAGE},
    "a chat that goes on": {**CHAT, **USAGE, "messages": LONG},
    "a picture": {**CHAT, "messages": SEEN},
    "sliders": {**CHAT, **SLIDERS},
    "tools of the page without a model": {**CHAT, **USAGE, "tools": TOOLS},
}
TASKS: dict[str, dict[str, Any]] = {"title": {"max_tokens": 1000}, "tags": {}, "emoji": {"max_tokens": 4}}


def post(book: TurnHarness, body: object) -> ApiCall:
    return book.call("POST", PATH, body, headers=HEADERS)


def content_of(call: ApiCall) -> str:
    """Return the text of a stream, whose chunks match the document."""
    assert told(call, f"POST {PATH}") == {"message"}
    events = call.stream()
    assert events.pop().data == "[DONE]"
    chunks = [json.loads(event.data) for event in events]
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"])


@pytest.mark.parametrize("name", STREAMS)
def test_chats_are_streamed(name: str) -> None:
    book, tool = TurnHarness(), call_of()
    call = post(book, STREAMS[name])
    assert book.hand.turn.tools is None
    book.hand.emit(ReasoningDelta("Hm."), TextDelta("Hel"), ToolCallStarted(tool))
    book.hand.emit(ToolCallFinished(call=tool, output="x"), TextDelta("lo"), ModelCallFinished(3, 2))
    book.hand.finish()
    assert content_of(call) == "Hello"


@pytest.mark.parametrize("task", TASKS)
def test_task_is_a_single_completion(task: str) -> None:
    book = TurnHarness()
    body = {"model": "svc-agent", "messages": [{"role": "user", "content": TASK}], "stream": False, **TASKS[task]}
    call = post(book, body)
    assert book.hand.turn.prompt == TASK
    book.hand.respond('{"title": "Hello"}')
    DOCUMENTED.check(f"POST {PATH}", call.result)
    assert call.result.json["choices"][0]["message"]["content"] == '{"title": "Hello"}'


def test_a_model_gets_the_tools_of_the_page_and_their_results() -> None:
    book = TurnHarness(ApiConfig(key=KEY, model_base_url="http://model:1/v1", model="m"))
    call = post(book, {**CHAT, **USAGE, "messages": ROUND, "tools": TOOLS})
    assert (book.hand.turn.tools, book.hand.turn.history[-1]) == (tuple(TOOLS), ROUND[-1])
    book.hand.respond("It rains.")
    assert content_of(call) == "It rains."
