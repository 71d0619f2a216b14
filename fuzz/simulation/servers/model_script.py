"""Scripted model answers: the question holds the model calls of its turn, with tool calls and texts.

script: audit7x #[{"calls": [["memory", {"action": "add", "content": "x"}]]}, {"text": "Done."}]
"""

import json
from typing import Any

from attrs import field, frozen


@frozen(kw_only=True)
class ModelRound:
    """Scripted answer of the model: its text and reasoning, its tool calls, and its end."""

    text: str = ""
    think: str = ""
    calls: list[list[Any]] = field(factory=list)  # name and arguments of each; a text is sent unchanged
    finish: str = "stop"
    usage: list[int] | None = None  # tokens in, and out
    status: int = 200  # other than 200: an error
    wait: float = 0.0  # s of silence before the end
    hang: bool = False  # nothing follows the words
    number: int = 0

    @property
    def deltas(self) -> list[dict[str, object]]:
        """Return the deltas of reasoning, then those of the text."""
        told = (("reasoning_content", self.think), ("content", self.text))
        return [{name: word} for name, text in told for word in _words(text)]

    def ending(self) -> list[bytes]:
        """Return the chunks that follow the text: tool calls, finish reason, and usage, without `[DONE]`."""
        calls = [(f"call_{self.number}_{n}", *call) for n, call in enumerate(self.calls)]
        pieces = calling(*calls) if calls else [chunk({}, self.finish)]
        return pieces if self.usage is None else [*pieces, usage(*self.usage)]


def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    """Return a chunk of an answer as an event of the stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event({"id": "c", "object": "chat.completion.chunk", "choices": [choice]})


def calling(*calls: tuple[str, str, Any]) -> list[bytes]:
    """Return the end of an answer with tool calls: for each the id, the tool, and its arguments."""
    told = [
        {"index": n, "id": identity, "type": "function", "function": _function(name, arguments)}
        for n, (identity, name, arguments) in enumerate(calls)
    ]
    return [chunk({"tool_calls": told}), chunk({}, "tool_calls")]


def usage(asked: int, said: int) -> bytes:
    """Return the stream event with the token counts."""
    told = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
    return _event({"id": "c", "choices": [], "usage": told})


def _event(told: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(told).encode() + b"\n\n"


def question_with_script(word: str, *rounds: ModelRound) -> str:
    """Return the question for which the simulated model gives the answers `rounds`."""
    told = [{name: value for name, value in _members(each).items() if value} for each in rounds]
    return f"script: {word} #{json.dumps(told)}"


def round_of(rows: list[dict[str, Any]], question: str) -> ModelRound:
    """Return the present answer, by the number of the model's messages since the question; the last one is repeated."""
    last = max(place for place, row in enumerate(rows) if row["role"] == "user")
    made = sum(row["role"] == "assistant" for row in rows[last:])
    rounds = json.loads(question.partition("#")[2])
    return ModelRound(number=made, **rounds[min(made, len(rounds) - 1)])


def _members(part: ModelRound) -> dict[str, Any]:
    names = ("text", "think", "calls", "usage", "wait", "hang")
    members: dict[str, Any] = {name: getattr(part, name) for name in names}
    members["finish"] = part.finish if part.finish != "stop" else ""
    members["status"] = part.status if part.status != 200 else 0
    return members


def _function(name: str, arguments: Any) -> dict[str, str]:
    return {"name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}


def _words(text: str) -> list[str]:
    return [f"{word} " for word in text.split(" ")] if text else []
