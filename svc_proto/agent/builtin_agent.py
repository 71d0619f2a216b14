"""Built-in agent for servers without a model: explains how to connect one, and runs commands with every tool.

The agent is deterministic and emits its words one by one as a model would. So streaming, tool events and phone control
work without a key. Words count as tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from svc_proto.agent.builtin_commands import Plan, parse_message
from svc_proto.agent.interface import (
    AgentHost,
    ModelCallFinished,
    ModelCallStarted,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    Turn,
    TurnEvent,
    TurnOutcome,
)
from svc_proto.agent.memory import TARGETS, AgentMemory, usage_of
from svc_proto.agent.toolbox import RequestedToolCall, Toolbox, call_preview
from svc_proto.basics import strict_json
from svc_proto.basics.entropy import new_uuid
from svc_proto.engine.flow import Flow, sleep
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject, content_text

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["GREETING", "BuiltinAgent"]

MAX_SHOWN = 4_000  # characters of one result in the answer
_WORD = re.compile(r"\s*\S+\s*")

GREETING = """\
Hello! No model is connected yet, so this is the built-in agent speaking.

To connect a model, set these variables and start the server again; anything that speaks the OpenAI chat-completions \
protocol will do, such as Ollama, llama.cpp, vLLM or a vendor:
- `SVC_MODEL_BASE_URL`, such as `http://127.0.0.1:11434/v1`
- `SVC_MODEL`, the model's name
- `SVC_MODEL_API_KEY`, if the server wants a key

Until then I run commands: `help` lists them, `phone ping` asks your phone whether it is there, `screenshot` shows its \
screen. They work with and without a slash in front."""


class BuiltinAgent:
    """Agent that answers commands. `pace` is the time between two words, in seconds."""

    def __init__(self, engine: Engine, toolbox: Toolbox, memory: AgentMemory, *, pace: float) -> None:
        self._engine = engine
        self._toolbox = toolbox
        self._memory = memory
        self._pace = pace

    def run(self, turn: Turn, host: AgentHost) -> Flow[TurnOutcome]:
        """Answer one turn."""
        prompt = content_text(turn.prompt).strip()
        plan = parse_message(prompt, self._toolbox.tools) or Plan(say=GREETING)
        asked = (
            _count_words(turn.system)
            + _count_words(prompt)
            + sum(_count_words(JsonObject.of(row).text("content")) for row in turn.history)
        )
        say = (yield from self._notes()) if plan.show_memory else plan.say
        host.emit(ModelCallStarted())
        yield from self._emit_text(host, plan.think, ReasoningDelta)
        if plan.calls:
            calls = tuple(self._call(name, arguments) for name, arguments in plan.calls)
            host.emit(ModelCallFinished(asked, _count_words(plan.think) + len(calls)))
            yield from host.store_calls("", plan.think, calls)
            results = yield from self._toolbox.run_calls(turn, host, tuple(map(RequestedToolCall, calls)))
            if turn.max_calls < 2:
                return TurnOutcome(finish="length")
            say = "\n\n".join(_displayed_result(call, result.text) for call, result in zip(calls, results, strict=True))
            asked += sum(_count_words(result.text) for result in results)
            host.emit(ModelCallStarted())
        yield from self._emit_text(host, say, TextDelta)
        host.emit(ModelCallFinished(asked, _count_words(say) + (0 if plan.calls else _count_words(plan.think))))
        return TurnOutcome()

    def _emit_text(self, host: AgentHost, text: str, kind: Callable[[str], TurnEvent]) -> Flow[None]:
        for place, word in enumerate(_WORD.findall(text)):
            if place and self._pace:
                yield from sleep(self._engine, self._pace)
            host.emit(kind(word))
            if host.reader_behind:
                yield from host.wait_drained()

    def _call(self, name: str, arguments: Mapping[str, object]) -> ToolCall:
        return ToolCall(
            id=f"call_{new_uuid(self._engine.entropy).replace('-', '')[:24]}",
            name=name,
            args=arguments,
            arguments=strict_json.dumps(arguments),
            preview=call_preview(arguments),
        )

    def _notes(self) -> Flow[str]:
        pieces: list[str] = []
        for target in TARGETS:
            entries = yield from self._memory.entries(target)
            if isinstance(entries, Failure):
                return "The memory cannot be read at the moment."
            pieces += [f"{target} ({usage_of(target, entries)}):", *(f"- {entry}" for entry in entries)]
        return "\n".join(pieces)


def _displayed_result(call: ToolCall, result: str) -> str:
    """Return a result for people: the markers that clients act on, else the text without advice for a model."""
    markers = [line for line in result.splitlines() if line.startswith("MEDIA:")]
    if markers:
        return "\n".join(markers)
    if result.startswith("error: "):
        result = result.partition("\n")[0]
    shown = result if len(result) <= MAX_SHOWN else f"{result[:MAX_SHOWN]}…"
    return f"`{call.name}` answered:\n\n```\n{shown}\n```"


def _count_words(text: str) -> int:
    return len(text.split())
