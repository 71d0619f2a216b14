"""What Open WebUI sends, in the shapes that its documentation and its requests have, and what it gets.

Its server passes a chat on as OpenAI's API has it; its browsers send all that they know ("direct connections"), and its
tasks (titles, tags, follow-ups) are chats of one message.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc_proto.agent.contract import ModelAnswered, ReasoningDelta, TextDelta, ToolCall, ToolFinished, ToolStarted
from svc_proto.api.config import ApiConfig
from tests.api.openai_schema import check_chunk, check_completion
from tests.api.puppet import TurnBook, call_of
from tests.api.world import KEY, ApiCall

PATH = "/v1/chat/completions"
PNG = "data:image/png;base64,iVBORw0KGgo="
HEADERS = [
    (b"content-type", b"application/json"),
    (b"x-openwebui-user-name", b"Ann%20Lee"),
    (b"x-openwebui-user-id", b"6a1f"),
    (b"x-openwebui-user-email", b"ann@example.org"),
    (b"x-openwebui-user-role", b"admin"),
    (b"x-openwebui-chat-id", b"0b7c"),
]
HELLO = [{"role": "user", "content": "Hello"}]
LONG = [{"role": "system", "content": "Be kind."}, *HELLO, {"role": "assistant", "content": "Hi!"}, *HELLO]
SEEN = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PNG}}],
    }
]
TASK = "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Output:\nJSON"
CHAT: dict[str, Any] = {"stream": True, "model": "svc-agent", "messages": HELLO}
USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}
BROWSER: dict[str, Any] = {
    "params": {},
    "files": [{"type": "file", "id": "f1", "name": "notes.txt"}],
    "tool_servers": [],
    "features": {"image_generation": False, "code_interpreter": False, "web_search": False, "memory": False},
    "variables": {"{{USER_NAME}}": "Ann", "{{CURRENT_DATE}}": "2026-01-02"},
    "model_item": {"id": "svc-agent", "object": "model", "owned_by": "svc"},
    "session_id": "Zx1",
    "chat_id": "0b7c",
    "id": "m1",
    "background_tasks": {"title_generation": True, "tags_generation": True, "follow_up_generation": True},
}
SLIDERS: dict[str, Any] = {
    "temperature": 0.8,
    "top_p": 0.9,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "max_tokens": 128,
    "seed": 42,
    "stop": ["###"],
    "logit_bias": {"50256": -100},
    "reasoning_effort": "low",
}
STREAMS: dict[str, dict[str, Any]] = {
    "a chat": CHAT,
    "a chat with usage": {**CHAT, **USAGE},
    "a chat that goes on": {**CHAT, **USAGE, "messages": LONG},
    "a picture": {**CHAT, "messages": SEEN},
    "a browser's": {**CHAT, **USAGE, **BROWSER},
    "sliders": {**CHAT, **SLIDERS},
    "a pipeline's user": {**CHAT, "user": {"name": "Ann", "id": "6a1f", "email": "ann@example.org", "role": "admin"}},
    "metadata": {**CHAT, "metadata": {"user_id": "6a1f", "chat_id": "0b7c", "features": {}}, "tools": []},
}
TASKS: dict[str, dict[str, Any]] = {
    "title": {"max_completion_tokens": 1000, "metadata": {"task": "title_generation", "task_body": {}}},
    "tags": {"metadata": {"task": "tags_generation"}},
    "follow-ups": {"max_tokens": 50},
    "autocompletion": {"max_completion_tokens": 50, "temperature": 0},
}


def post(book: TurnBook, body: object) -> ApiCall:
    return book.call("POST", PATH, body, headers=HEADERS)


def lines(call: ApiCall, *, usage: bool = False) -> list[dict[str, Any]]:
    events = call.stream()
    assert events.pop().data == "[DONE]"
    assert {event.event for event in events} == {"message"}
    chunks = [json.loads(event.data) for event in events]
    for chunk in chunks:
        check_chunk(chunk, usage=usage)
    return chunks


def test_it_lists_the_models() -> None:
    listed = TurnBook().request("GET", "/v1/models", headers=HEADERS[1:])
    assert listed.status == 200
    assert [(model["id"], model["object"]) for model in listed.json["data"]] == [("svc-agent", "model")]


@pytest.mark.parametrize("name", STREAMS)
def test_a_chat_is_a_stream_of_openais_objects(name: str) -> None:
    book, body = TurnBook(), STREAMS[name]
    call = post(book, body)
    tool = call_of()
    book.hand.tell(ReasoningDelta("Hm."), TextDelta("Hel"), ToolStarted(tool), ToolFinished(call=tool, output="x"))
    book.hand.tell(TextDelta("lo"), ModelAnswered(3, 2))
    book.hand.finish()
    chunks = lines(call, usage="stream_options" in body)
    said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"])
    assert said == "Hello"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"]][-1] == "stop"
    assert dict(call.head.headers)[b"content-type"] == b"text/event-stream"


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_one_answer(task: str) -> None:
    book = TurnBook()
    body = {"model": "svc-agent", "messages": [{"role": "user", "content": TASK}], "stream": False, **TASKS[task]}
    call = post(book, body)
    assert book.hand.turn.prompt == TASK
    book.hand.tell(TextDelta('{"title": "Hello"}'), ModelAnswered(3, 2))
    book.hand.finish()
    check_completion(call.result.json)
    assert call.result.json["choices"][0]["message"]["content"] == '{"title": "Hello"}'


@pytest.mark.parametrize("finish", ["stop", "length", "tool_calls", "error"])
def test_every_end_of_a_stream(finish: str) -> None:
    book = TurnBook(ApiConfig(key=KEY, model_base_url="http://model:1/v1", model="m"))
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    call = post(book, {**CHAT, **USAGE, **({"tools": [tool]} if finish == "tool_calls" else {})})
    more: dict[str, Any] = {}
    if finish == "tool_calls":
        more["calls"] = (ToolCall(id="call_1", name="get_weather", args={"city": "Köln"}, arguments='{"city":"Köln"}'),)
    if finish == "error":
        more |= {"error": "the model is away", "code": "upstream_error"}
    book.hand.tell(TextDelta("So"), ModelAnswered(3, 2))
    book.hand.finish(finish, **more)
    chunks = lines(call, usage=True)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"]][-1] == finish
    assert chunks[-1]["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


BAD: list[dict[str, Any]] = [
    {"choices": []},
    {"system": 1},
    {"created": 1.5},
    {"object": "chat.completion"},
    {"usage": None},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]},
    {"choices": [{"index": 0, "delta": {"role": "user"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"content": 1}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}}]},
    {"choices": [{"index": True, "delta": {}, "finish_reason": None}]},
]


@pytest.mark.parametrize("change", BAD)
def test_the_schema_refuses_what_is_none(change: dict[str, Any]) -> None:
    choice = {"index": 0, "delta": {"content": "x"}, "finish_reason": None}
    good = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    check_chunk(good)
    with pytest.raises(AssertionError):
        check_chunk({**good, **change})
