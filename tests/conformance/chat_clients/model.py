"""Scripted model for the clients: the last text of the user selects the answer (`steps.PROMPTS`)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.flow import Flow
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.schema.json_object import content_text
from tests.conformance.chat_clients.steps import PROMPTS
from tests.support.servers.model_server import ModelAnswer, ScriptedModel, calls, counting, plain, refusal, whole
from tests.support.servers.scripted_service import PacedAnswer

HELLO = "Hello from the model."
FAILURE = "The sky is falling"
ROME = {"city": "Rome", "degrees": 21}
REMEMBER = ("memory", {"action": "add", "target": "memory", "content": "likes tea"})
REMEMBERED = "I will remember it."
CITIES = ("Rome", "Oslo")


class ClientModel(ScriptedModel):
    """Model whose answer follows from its request. `GET /open` reports the number of unfinished streams."""

    def __init__(self) -> None:
        self._counts = {"open": 0}
        super().__init__(pages={"/open": self._counts}, default=answer)

    def write(
        self, writer: ResponseWriter, channel: ServerChannel, pieces: Iterable[bytes], how: PacedAnswer
    ) -> Flow[None]:
        self._counts["open"] += 1
        try:
            yield from super().write(writer, channel, pieces, how)
        finally:
            self._counts["open"] -= 1


def answer(request: dict[str, Any]) -> ModelAnswer:
    """Return the scripted answer to the last message of the user."""
    rows: list[Mapping[str, Any]] = request["messages"]
    users = [row for row in rows if row["role"] == "user"]
    prompt = content_text(users[-1]["content"])
    if prompt == PROMPTS["plain"]:
        return plain(HELLO)
    if prompt == PROMPTS["stream"]:
        return plain(HELLO, reasoning="Let me think")
    if prompt == PROMPTS["tools"]:
        return _weather(request, rows)
    if prompt == PROMPTS["structured"]:
        return _described(request)
    if prompt == PROMPTS["image"]:
        pictures = [part for part in users[-1]["content"] if part["type"] == "image_url"]
        return plain(f"{len(pictures)} picture")
    if prompt == PROMPTS["first turn"]:
        return plain("Hello, Ada.", reasoning="A name")
    if prompt == PROMPTS["second turn"]:
        return plain(f"{content_text(users[0]['content'])}, {len(rows) - len(users)}")
    if prompt == PROMPTS["refused"]:
        return refusal(400, FAILURE)
    if prompt == PROMPTS["own tools"]:
        return plain(REMEMBERED) if rows[-1]["role"] == "tool" else calls(REMEMBER)
    if prompt == PROMPTS["cancel"]:
        return counting(0, 100, together=1).slow(0.1)
    return plain(f"unexpected: {prompt}")


def _weather(request: Mapping[str, Any], rows: list[Mapping[str, Any]]) -> ModelAnswer:
    """Return a call of the client's tool for each city, or, once there are results, a text with them.

    If the client offers no such tool, return a text that lists its tools.
    """
    results = {row["tool_call_id"]: content_text(row["content"]) for row in rows if row["role"] == "tool"}
    if not results:
        names = [tool["function"]["name"] for tool in request.get("tools", ())]
        if "get_weather" not in names:
            return plain(f"There is no such tool among {names}")
        return calls(*(("get_weather", {"city": city}) for city in CITIES), text="I will look.")
    asked = [call for row in rows for call in row.get("tool_calls") or ()]
    found = [f"{json.loads(call['function']['arguments'])['city']} {results.get(call['id'])}" for call in asked]
    return plain(", ".join(found))


def _described(request: Mapping[str, Any]) -> ModelAnswer:
    """Return structured output in the client's schema, or as a call of the client's only tool.

    If the client offers neither, return a text.
    """
    if (request.get("response_format") or {}).get("type") == "json_schema":
        return plain(json.dumps(ROME)) if request.get("stream") else whole({"content": json.dumps(ROME)})
    tools = request.get("tools", ())
    return calls((tools[0]["function"]["name"], ROME)) if len(tools) == 1 else plain("There is no schema")
