"""Random turn of a scripted model, and the report of it in each protocol of the API (wire api 3 to 7)."""

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from tests.support.servers.model_server import DONE, ModelAnswer, chunk, refusal, usage

Members: TypeAlias = dict[str, Any]
Events: TypeAlias = Sequence[tuple[str, Members]]
GAP = "\n\n"  # between the texts of two model answers of one turn
NO_SKILLS = '{"skills":[],"count":0}'
TOOLS: tuple[tuple[str, Members, str], ...] = (  # name, arguments, result
    ("skills_list", {}, NO_SKILLS),
    ("skills_list", {"category": "c"}, NO_SKILLS),
    ("skill_view", {}, "error: the argument name is missing"),
    ("no_such_tool", {"a": 5}, "error: there is no tool 'no_such_tool'"),
)


@frozen(kw_only=True)
class ModelRound:
    """Scripted answer of the model: its text and reasoning, its tool calls, and its end."""

    text: str = ""
    think: str = ""
    calls: list[tuple[str, Members]] = field(factory=list)  # name and arguments of each
    finish: str = "stop"
    usage: tuple[int, int] | None = None  # tokens in, and out
    status: int = 200  # other than 200: an error

    def answer(self) -> ModelAnswer:
        """Return the model's answer: reasoning, words, tool calls, finish reason, and token counts."""
        if self.status != 200:
            return refusal(self.status)
        told = (("reasoning_content", self.think), ("content", self.text))
        events = [chunk({name: f"{word} "}) for name, text in told if text for word in text.split(" ")]
        for place, (name, arguments) in enumerate(self.calls):
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"index": place, "id": f"call_{name}_{place}", "type": "function", "function": function}
            events.append(chunk({"tool_calls": [call]}))
        events.append(chunk(finish="tool_calls" if self.calls else self.finish))
        counts = () if self.usage is None else (usage(*self.usage),)
        return ModelAnswer(events=(*events, *counts, DONE))

    @property
    def streamed(self) -> str:
        """Return the text as it is streamed: a space behind each word."""
        return f"{self.text} " if self.text else ""


@frozen
class TurnScript:
    """Model answers of one turn, in order; `end` is `stop`, `length` or `error`."""

    word: str
    rounds: tuple[ModelRound, ...]
    results: tuple[str, ...]  # of the tool call of each answer but the last
    end: str

    @property
    def texts(self) -> list[str]:
        """Return the text of each answer as it is streamed."""
        return [each.streamed for each in self.rounds]

    @property
    def usage(self) -> Members:
        """Return the numbers of input, output and all tokens, each summed over the answers that report them."""
        used = [each.usage for each in self.rounds if each.usage is not None]
        given, made = sum(pair[0] for pair in used), sum(pair[1] for pair in used)
        return {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}

    def report(self) -> Members:
        """Return all contents of the turn, of which each protocol reports a part."""
        thoughts = (f"{each.think} " for each in self.rounds if each.think)
        names = [each.calls[0][0] for each in self.rounds[:-1]]
        return {
            "text": GAP.join(filter(None, self.texts)),
            "reasoning": "".join(thoughts),
            "tools": [(name, result.startswith("error: ")) for name, result in zip(names, self.results, strict=True)],
            "usage": self.usage,
            "end": self.end,
        }

    def rows(self) -> list[tuple[object, ...]]:
        """Return the rows that must be stored, in order: role, content, finish reason, tool."""
        rows: list[tuple[object, ...]] = [("user", self.word, None, None)]
        for said, each, result in zip(self.texts, self.rounds, self.results, strict=False):
            rows += [("assistant", said, "tool_calls", None), ("tool", result, None, each.calls[0][0])]
        if self.texts[-1] or self.end != "error":
            rows.append(("assistant", self.texts[-1], self.end, None))
        return rows


def draw_turn(rng: Random, word: str) -> TurnScript:
    """Draw a turn: up to two tool calls, then a text, an empty or shortened one, or an error of the model."""
    rounds, results = list[ModelRound](), list[str]()

    def tokens() -> tuple[int, int] | None:
        return rng.choice((None, (rng.randint(1, 99), rng.randint(1, 9))))

    for _ in range(rng.choice((0, 0, 1, 2))):
        name, arguments, result = rng.choice(TOOLS)
        text, thought = rng.choice(("", f"look {word}")), rng.choice(("", "hm"))
        rounds.append(ModelRound(text=text, think=thought, calls=[(name, arguments)], usage=tokens()))
        results.append(result)
    text, thought = rng.choice((word, f"{word}ä\u2028 <b> {word}", "")), rng.choice(("", "so then"))
    last, end = rng.choice(
        (
            *[(ModelRound(text=text, think=thought, usage=tokens()), "stop")] * 4,
            (ModelRound(text=text, usage=tokens(), finish="length"), "length"),
            (ModelRound(status=400), "error"),
        )
    )
    script = TurnScript(word, (*rounds, last), tuple(results), end)
    return script if any(script.texts) else evolve(script, end="error")  # a turn without a word is a failure


# --- protocols: path, body and a reader of the answer -----------------------------------------------------------------


def _read_chat(body: Members, events: Events) -> Members:
    end = "stop" if body["completed"] else "error" if "error" in body else "length"
    return {"text": body["message"]["content"], "usage": body["usage"], "end": end}


def _read_chat_stream(body: Members, events: Events) -> Members:
    last = dict(events)
    report = _read_events(events, "assistant.delta", "tool.progress", "delta", "tool_name")
    if "error" in last:
        return {**report, "end": "error"}
    done = last["assistant.completed"]
    assert done["content"] == report["text"]
    return {**report, "usage": done["usage"], "end": "stop" if done["completed"] else "length"}


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


def _read_run(body: Members, events: Events) -> Members:
    named = [(str(data["event"]), data) for _, data in events]
    report = _read_events(named, "message.delta", "reasoning.available", "text", "tool")
    name, last = named[-1]
    if name == "run.failed":
        return {**report, "end": "error"}
    assert last["output"] == report["text"]
    return {**report, "usage": last["usage"]}  # a run does not report that its answer was cut


def _read_events(events: Events, text: str, thought: str, member: str, tool: str) -> Members:
    ends = [(name, data) for name, data in events if name in ("tool.completed", "tool.failed")]
    return {
        "text": "".join(data["delta"] for name, data in events if name == text),
        "reasoning": "".join(data[member] for name, data in events if name == thought),
        "tools": [(data[tool], name == "tool.failed" or data.get("error") is True) for name, data in ends],
    }


def _renamed(usage: Members) -> Members:
    names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "total_tokens": "total_tokens"}
    return {name: usage[theirs] for theirs, name in names.items()}


Reader: TypeAlias = Callable[[Members, Events], Members]
CHAT, COMPLETIONS, RESPONSES = "/api/sessions/{chat}/chat", "/v1/chat/completions", "/v1/responses"
PROTOCOLS: Mapping[str, tuple[str, Callable[[str], Members], Reader]] = {
    "chat": (CHAT, lambda text: {"message": text}, _read_chat),
    "chat stream": (f"{CHAT}/stream", lambda text: {"message": text}, _read_chat_stream),
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
    "run": ("/v1/runs", lambda text: {"input": text, "stream": True}, _read_run),
}


def request_of(protocol: str, chat: str, turn: TurnScript) -> tuple[str, Members, bool]:
    """Return path and body of the request that sends a turn by a protocol, and whether the response is a stream."""
    path, body, _ = PROTOCOLS[protocol]
    members = body(turn.word) | ({"session_id": chat} if protocol == "run" else {})
    return path.replace("{chat}", chat), members, path.endswith("/stream") or bool(members.get("stream"))


def find_differences(turn: TurnScript, protocol: str, status: int, body: bytes, events: Events) -> Members:
    """Return the wrong members of a report: by name, the reported and the expected value; or a wrong status."""
    expected = turn.report()
    if turn.end != "stop" and not expected["text"] and not events:  # no content for an answer (wire api 2.1)
        return {} if status == 502 else {"status": (status, 502)}
    if status != 200:
        return {"status": (status, 200)}
    reported = PROTOCOLS[protocol][2]({} if events else json.loads(body), events)
    return {name: (value, expected[name]) for name, value in reported.items() if value != expected[name]}
