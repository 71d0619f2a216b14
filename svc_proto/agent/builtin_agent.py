"""Built-in agent for servers without a model: explains how to connect one, runs commands and plain sentences.

The agent emits its words one by one as a model would. So streaming, tool events and phone control work without a key.
Words and calls count as tokens.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from svc_proto.agent.builtin_commands import Plan, parse_command, parse_message
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
from svc_proto.agent.sentence_actions import SentenceActions
from svc_proto.agent.sentences import Sentence, SentenceIntent
from svc_proto.agent.toolbox import RequestedToolCall, Toolbox, call_preview
from svc_proto.basics import strict_json
from svc_proto.basics.entropy import new_uuid
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject, content_text

__all__ = ["GREETING", "BuiltinAgent"]

MAX_SHOWN = 4_000  # characters of one result in the answer
_WORD = re.compile(r"\s*\S+\s*")

GREETING = """\
Hello! No model is connected yet, so this is the built-in agent speaking.

To connect one, run `svc model NAME --url http://127.0.0.1:11434/v1` on the host: it tests the model and writes the \
choice for the next message. Without NAME it lists the models of the server. Anything that speaks the OpenAI \
chat-completions protocol will do, such as Ollama, llama.cpp, vLLM or a vendor. `SVC_MODEL_BASE_URL`, `SVC_MODEL` and \
`SVC_MODEL_API_KEY` in `~/.svc/.env` do the same at the next start.

Until then I understand sentences such as "open mail" or "what is on the screen", and commands, with or without a \
slash: `help` lists them, `phone ping` asks your phone whether it is there."""


class BuiltinAgent:
    """Agent that answers commands and, with `sentences`, plain sentences. `pace`: seconds between two words."""

    def __init__(
        self, engine: Engine, toolbox: Toolbox, memory: AgentMemory, sentences: SentenceActions | None, *, pace: float
    ) -> None:
        self._engine = engine
        self._toolbox = toolbox
        self._memory = memory
        self._sentences = sentences
        self._pace = pace

    def run(self, turn: Turn, host: AgentHost) -> Flow[TurnOutcome]:
        """Answer one turn: run its command or sentence, else explain what is possible.

        With `max_calls` under 2, a command with tool calls ends with `length` after them, and a sentence that needs an
        action before it.
        """
        prompt = content_text(turn.prompt).strip()
        sentence, plan = None, parse_message(prompt, self._toolbox.tools)
        if plan is None and self._sentences is not None:
            sentence, plan = self._plan(self._sentences, prompt)
        plan = plan or Plan(say=GREETING)
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
        if sentence is not None and self._sentences is not None:
            if turn.max_calls < 2:
                return TurnOutcome(finish="length")
            say = yield from self._sentences.run(sentence, partial(self._call_tool, turn, host), _displayed_output)
        yield from self._emit_text(host, say, TextDelta)
        host.emit(ModelCallFinished(asked, _count_words(say) + (0 if plan.calls else _count_words(plan.think))))
        return TurnOutcome()

    def _plan(self, sentences: SentenceActions, prompt: str) -> tuple[Sentence | None, Plan]:
        """Parse a prompt: return a sentence that needs an action and an empty plan, else None and the answer's plan."""
        sentence = sentences.parser.parse(prompt)
        if sentence is None:
            language, nearest = sentences.parser.nearest(prompt)
            head = sentences.parser.reply(language, sentences.parser.head(language, prompt))
            return None, Plan(say=_bullets(head, nearest))
        match sentence.intent:
            case SentenceIntent.GREETING:
                return None, Plan(say=GREETING)
            case SentenceIntent.HELP:
                intro = sentences.parser.reply(sentence.language, "help")
                return None, Plan(say=_bullets(intro, sentences.parser.examples(sentence.language)))
            case SentenceIntent.STOP:
                return None, Plan(say=sentences.parser.reply(sentence.language, "nothing_runs"))
            case SentenceIntent.TOOLS:
                return None, parse_command("/tools", self._toolbox.tools)
            case SentenceIntent.MEMORY:
                return None, Plan(show_memory=True)
            case _:
                return sentence, Plan()

    def _call_tool(self, turn: Turn, host: AgentHost, name: str, arguments: Mapping[str, object]) -> Flow[str]:
        """Run one tool call of a sentence and return its result's text.

        The events end the present model call before the tool call, and start another model call after it.
        """
        call = self._call(name, arguments)
        host.emit(ModelCallFinished(0, 1))
        yield from host.store_calls("", "", (call,))
        results = yield from self._toolbox.run_calls(turn, host, (RequestedToolCall(call),))
        host.emit(ModelCallStarted())
        return results[0].text

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


def _bullets(intro: str, lines: Iterable[str]) -> str:
    return "\n".join((intro, *(f"- {line}" for line in lines)))


def _displayed_result(call: ToolCall, result: str) -> str:
    """Return a call's result for people: its `MEDIA:` lines alone, else the tool's name and the result in a fence.

    Of an error only the first line is shown, and a long result is cut.
    """
    return _displayed_output(call.name, result)


def _displayed_output(name: str, result: str) -> str:
    markers = [line for line in result.splitlines() if line.startswith("MEDIA:")]
    if markers:
        return "\n".join(markers)
    if result.startswith("error: "):
        result = result.partition("\n")[0]
    shown = result if len(result) <= MAX_SHOWN else f"{result[:MAX_SHOWN]}…"
    return f"`{name}` answered:\n\n```\n{shown}\n```"


def _count_words(text: str) -> int:
    return len(text.split())
