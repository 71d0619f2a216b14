"""The agent that asks a model: call it, run the tools that it wants, call it again with the results.

It ends when an answer wants no tools, after `max_calls` answers or `MAX_CARRIED` characters, or with an error of the
model's server. Cancelled at any wait, it drops the connection to the server and every tool that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from svc_proto.agent.completion_assembler import Assembly, Fragment
from svc_proto.agent.interface import ModelAnswered, ModelAsked, ModelRoute, ToolCall, Turn, TurnHost, TurnOutcome
from svc_proto.agent.memory import TARGETS, Memory
from svc_proto.agent.model_client import AnswerProblem, UpstreamLimits, ask_model
from svc_proto.agent.skills import Skills
from svc_proto.agent.system_prompt import MCP, NO_PHONE, PHONE, TOOLS, notes_part, skills_part, system_prompt
from svc_proto.agent.tool_images import Pictures
from svc_proto.agent.tool_selection import SMALL_CONTEXT, ToolOffer
from svc_proto.agent.toolbox import Toolbox, WantedCall, call_preview
from svc_proto.basics import strict_json
from svc_proto.basics.entropy import new_uuid
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["BETWEEN", "MAX_CARRIED", "ModelAgent"]

MAX_CARRIED = 4 * 1024 * 1024  # characters of answers and results that go back to the model: the turn is cut
BETWEEN = "\n\n"  # told between the texts of two answers of one turn
NO_OBJECT = "the arguments are not a JSON object: {why}. Call the tool again with valid JSON."
Row = Mapping[str, object]


class ModelAgent:
    """See the module."""

    def __init__(
        self, engine: Engine, toolbox: Toolbox, memory: Memory, skills: Skills, limits: UpstreamLimits
    ) -> None:
        self._engine = engine
        self._toolbox = toolbox
        self._memory = memory
        self._skills = skills
        self._limits = limits

    def run(self, turn: Turn, host: TurnHost) -> Flow[TurnOutcome]:
        """Answer one turn, whose `model` is set."""
        if turn.tools is not None:
            return (yield from self._run_for_client(turn, turn.tools, host))
        route = cast("ModelRoute", turn.model)
        tools = yield from self._toolbox.offered()
        choice = self._toolbox.choice
        offer = ToolOffer(tools, few=choice.wants_few(route.context))
        missing = NO_PHONE if choice.wants("phone") else ""
        others = MCP if any(toolset.startswith("mcp-") for toolset in tools) else ""
        system = yield from self._system(turn, PHONE if "phone" in tools else missing, others)
        request, rows = _request(turn, system, offer.rows)
        ids = _ids_in(turn)
        spoken, carried = False, 0
        pictures = Pictures(takes=route.context is None or route.context >= SMALL_CONTEXT)
        has_read = self._toolbox.reads(
            call.get_object("function").text("name") for row in turn.history for call in _calls_of(row)
        )
        for _ in range(turn.max_calls):
            host.tell(ModelAsked())
            answer = yield from ask_model(
                self._engine, route, request, host, self._limits, before_text=BETWEEN if spoken else ""
            )
            if isinstance(answer, AnswerProblem) and pictures.drop(answer.status):
                answer = yield from ask_model(
                    self._engine, route, request, host, self._limits, before_text=BETWEEN if spoken else ""
                )
            if isinstance(answer, AnswerProblem):
                return TurnOutcome(finish="error", error=answer.text, code=answer.code)
            host.tell(ModelAnswered(answer.input_tokens, answer.output_tokens))
            if not answer.calls or answer.full or answer.finish in ("error", "content_filter"):
                return _outcome(answer)
            spoken = spoken or bool(answer.text)
            calls = self._calls(answer.calls, ids)
            yield from host.keep_calls(answer.text, answer.reasoning, tuple(wanted.call for wanted in calls))
            results = yield from self._toolbox.run_calls(turn, host, calls, has_read=has_read)
            offer.take(wanted.call for wanted in calls)
            has_read = has_read or self._toolbox.reads(wanted.call.name for wanted in calls)
            carried += len(answer.text) + sum(len(wanted.call.arguments) for wanted in calls)
            carried += sum(len(result.text) for result in results)
            if carried > MAX_CARRIED:
                break
            rows.append(_assistant_row(answer.text, calls))
            rows += [
                {"role": "tool", "tool_call_id": wanted.call.id, "content": result.text}
                for wanted, result in zip(calls, results, strict=True)
            ]
            rows += pictures.rows(zip((wanted.call.name for wanted in calls), results, strict=True))
        return TurnOutcome(finish="length")

    def _run_for_client(self, turn: Turn, tools: tuple[Row, ...], host: TurnHost) -> Flow[TurnOutcome]:
        """With tools that the client carries out: one answer, and nothing of ours in what the model is told."""
        request, _ = _request(turn, turn.system, list(tools))
        host.tell(ModelAsked())
        route = cast("ModelRoute", turn.model)
        answer = yield from ask_model(self._engine, route, request, host, self._limits, needed=("tools",))
        if isinstance(answer, AnswerProblem):
            return TurnOutcome(finish="error", error=answer.text, code=answer.code)
        host.tell(ModelAnswered(answer.input_tokens, answer.output_tokens))
        if not answer.calls or answer.full or answer.finish in ("error", "content_filter", "length"):
            return _outcome(answer)
        calls = tuple(wanted.call for wanted in self._calls(answer.calls, _ids_in(turn)))
        yield from host.keep_calls(answer.text, answer.reasoning, calls)
        return TurnOutcome(finish="tool_calls", calls=calls)

    def _system(self, turn: Turn, *about: str) -> Flow[str]:
        notes: dict[str, tuple[str, ...]] = {}
        for target in TARGETS:
            entries = yield from self._memory.entries(target)
            if not isinstance(entries, Failure):
                notes[target] = entries
        skills = yield from self._skills.list()
        rows = [(skill.name, skill.description) for skill in skills]
        return system_prompt(turn.system, *about, TOOLS, notes_part(notes), skills_part(rows))

    def _calls(self, fragments: list[Fragment], ids: dict[str, None]) -> tuple[WantedCall, ...]:
        """The calls of an answer, each with an id that no other of the conversation has: clients match by it."""
        calls: list[WantedCall] = []
        for fragment in fragments:
            identity = fragment.id
            if not identity or identity in ids:
                identity = f"call_{new_uuid(self._engine.entropy).replace('-', '')[:24]}"
            ids[identity] = None
            calls.append(_wanted(identity, fragment))
        return tuple(calls)


def _request(turn: Turn, system: str, tools: list[Row]) -> tuple[dict[str, object], list[Row]]:
    """The request to a model, and its list of messages, which grows."""
    rows: list[Row] = [{"role": "system", "content": system}] if system else []
    rows += map(_mended, turn.history)
    if turn.prompt:
        rows.append({"role": "user", "content": turn.prompt if isinstance(turn.prompt, str) else list(turn.prompt)})
    request = {**turn.options, "messages": rows}
    if tools:
        request["tools"] = tools
    if turn.max_tokens is not None:
        request["max_tokens"] = turn.max_tokens
    return request, rows


def _ids_in(turn: Turn) -> dict[str, None]:
    return {str(call.get("id")): None for row in turn.history for call in _calls_of(row)}


def _wanted(identity: str, fragment: Fragment) -> WantedCall:
    arguments = fragment.arguments.strip() or "{}"
    try:
        args = JsonObject.load(arguments)
    except strict_json.JsonError as error:
        call = ToolCall(id=identity, name=fragment.name, args={}, arguments=arguments)
        return WantedCall(call, NO_OBJECT.format(why=error))
    call = ToolCall(id=identity, name=fragment.name, args=args, arguments=arguments, preview=call_preview(args))
    return WantedCall(call)


def _assistant_row(text: str, calls: tuple[WantedCall, ...]) -> Row:
    """What the model is shown of its own answer. Arguments that were no JSON would be refused by some servers."""
    wanted = [
        {
            "id": each.call.id,
            "type": "function",
            "function": {
                "name": each.call.name,
                "arguments": each.call.arguments if each.problem is None else strict_json.dumps(each.call.args),
            },
        }
        for each in calls
    ]
    return {"role": "assistant", "content": text, "tool_calls": wanted}


def _calls_of(row: Row) -> list[JsonObject]:
    return JsonObject.of(row).objects("tool_calls")


def _mended(row: Row) -> Row:
    """A row of the history whose arguments are JSON objects, for the same reason."""
    calls = _calls_of(row)
    return {**row, "tool_calls": [_mended_call(call) for call in calls]} if calls else row


def _mended_call(call: JsonObject) -> Row:
    function = call.get_object("function")
    if not function or JsonObject.parse(str(function.get("arguments"))) is not None:
        return call
    return {**call, "function": {**function, "arguments": "{}"}}


def _outcome(answer: Assembly) -> TurnOutcome:
    if answer.full or answer.finish == "length":
        return TurnOutcome(finish="length")
    if answer.finish == "content_filter":
        if answer.text:
            return TurnOutcome(finish="length")
        return TurnOutcome(finish="error", error="the model's server withheld the answer", code="content_filter")
    if answer.finish == "error":
        return TurnOutcome(finish="error", error="the model's server failed while it answered", code="upstream_error")
    return TurnOutcome()
