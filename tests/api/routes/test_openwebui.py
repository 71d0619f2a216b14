"""Requests of Open WebUI, release 0.12.4, and the answers to them.

The requests were recorded between that release, installed from its package, and an API server, and then paraphrased.
Its page adds tools of its own to each chat, unless "Builtin Tools" is off among the model's capabilities. Some of them
are used here. `tests/api/projections/test_completions.py` has the exact members of each chunk.
"""

import json
from typing import Any

import pytest

from svc_proto.agent.interface import ModelCallFinished, ReasoningDelta, TextDelta, ToolCallFinished, ToolCallStarted
from svc_proto.api.config import ApiConfig
from tests.api.harness import KEY
from tests.api.scripted_agent import TurnHarness, call_of

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
SEEN = [
    {
        "role": "user",
        "content": [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": PNG}}],
    }
]
SLIDERS: dict[str, Any] = {
    "temperature": 0.8,
    "top_p": 0.9,
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
TOOLS = [
    a_tool("get_current_timestamp"),
    a_tool(
        "ask_user",
        "questions",
        questions={"items": {"additionalProperties": True, "type": "object"}, "type": "array"},
        allow_other={"default": True, "type": "boolean"},
        timeout_ms={"default": 120000, "type": "integer"},
    ),
    a_tool(
        "create_skill",
        "id",
        id=TEXT,
        files={
            "items": {"additionalProperties": False, "properties": FILE, "required": ["path"], "type": "object"},
            "type": "array",
        },
    ),
]
MODEL = {"model_base_url": "http://model:1/v1", "model": "m"}


@pytest.mark.parametrize("model", [MODEL, {}], ids=["a model", "no model"])
def test_chat_with_a_picture_sliders_and_the_tools_of_the_page(model: dict[str, str]) -> None:
    """Check that the model gets options and tools, and that a turn without a model runs without them."""
    book = TurnHarness(ApiConfig(key=KEY, **model))  # type: ignore[arg-type]  # text fields only
    asked = {"stream": True, "messages": SEEN, "stream_options": {"include_usage": True}, "max_tokens": 128}
    call = book.call("POST", "/v1/chat/completions", {**asked, **SLIDERS, "tools": TOOLS}, headers=HEADERS)
    turn, tool = book.hand.turn, call_of()
    assert (turn.tools, turn.options, turn.max_tokens) == (tuple(TOOLS) if model else None, SLIDERS, 128)
    assert list(turn.prompt) == SEEN[0]["content"]
    book.hand.emit(ReasoningDelta("Hm."), TextDelta("Hel"), ToolCallStarted(tool))
    book.hand.emit(ToolCallFinished(call=tool, output="x"), TextDelta("lo"), ModelCallFinished(3, 2))
    book.hand.finish()
    *events, done = call.stream()
    assert (done.data, {event.event for event in events}) == ("[DONE]", {"message"})
    *chunks, counted = (json.loads(event.data) for event in events)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "Hello"
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert counted["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
