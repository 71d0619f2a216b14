"""Requests for one turn by the OpenAI protocols of the API (wire api 5, 7), and the readers of their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Members: TypeAlias = dict[str, Any]
Events: TypeAlias = Sequence[tuple[str, Members]]
GAP = "\n\n"  # between the texts of two model answers of one turn


def _read_completion(body: Members, events: Events) -> Members:
    (choice,) = body["choices"]
    used = body["usage"]
    return {"text": choice["message"]["content"], "usage": _renamed(used), "end": choice["finish_reason"]}


def _read_chunks(body: Members, events: Events) -> Members:
    *chunks, last = (data for _, data in events if "choices" in data)  # an error is sent alone, too
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    return {
        "text": "".join(delta.get("content", "") for delta in deltas),
        "reasoning": "".join(delta.get("reasoning_content", "") for delta in deltas),
        "usage": _renamed(last["usage"]),
        "end": chunks[-1]["choices"][0]["finish_reason"],
    }


def _read_response(body: Members, events: Events) -> Members:
    items = body["output"]
    texts = [part["text"] for item in items if item["type"] == "message" for part in item["content"]]
    return {
        "text": GAP.join(texts),
        "tools": [(item["name"], item["status"] != "completed") for item in items if item["type"] == "mcp_call"],
        "usage": body["usage"],
        "end": {"completed": "stop", "incomplete": "length", "failed": "error"}[body["status"]],
    }


def _read_response_events(body: Members, events: Events) -> Members:
    deltas = (data["delta"] for name, data in events if name == "response.output_text.delta")
    report = _read_response(events[-1][1]["response"], ())
    assert "".join(deltas) == report["text"].replace(GAP, "")
    return report


def _renamed(usage: Members) -> Members:
    names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "total_tokens": "total_tokens"}
    return {name: usage[theirs] for theirs, name in names.items()}


Reader: TypeAlias = Callable[[Members, Events], Members]
COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/responses"
PROTOCOLS: Mapping[str, tuple[str, Callable[[str], Members], Reader]] = {
    "completion": (COMPLETIONS, lambda text: {"messages": [{"role": "user", "content": text}]}, _read_completion),
    "completion chunks": (
        COMPLETIONS,
        lambda text: {
            "messages": [{"role": "user", "content": text}],
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        _read_chunks,
    ),
    "response": (RESPONSES, lambda text: {"input": text}, _read_response),
    "response events": (RESPONSES, lambda text: {"input": text, "stream": True}, _read_response_events),
}
