"""Agent that calls a model, runs the requested tools, and calls the model again with the results.

For a turn with tools of the client it makes one model call and returns the requested tool calls to the client.
"""

import re
from collections.abc import Mapping
from typing import cast

from attrs import evolve

from svc_proto.agent.completion_assembler import CompletionAssembler, PartialToolCall
from svc_proto.agent.context_window import estimate_tokens
from svc_proto.agent.foreign_text import neutralize_history
from svc_proto.agent.interface import (
    AgentHost,
    ModelCallFinished,
    ModelCallStarted,
    ModelEndpoint,
    TextDelta,
    TextRetracted,
    ToolCall,
    Turn,
    TurnOutcome,
)
from svc_proto.agent.loop_guard import LoopGuard
from svc_proto.agent.memory import TARGETS, AgentMemory
from svc_proto.agent.message_extras import call_row
from svc_proto.agent.model_client import ModelCallFailure, ModelCallLimits, call_model
from svc_proto.agent.model_profiles import ModelProfiles
from svc_proto.agent.repetition_watch import RepeatedText
from svc_proto.agent.request_shaper import RequestShaper
from svc_proto.agent.screen_history import screen_budget, shorten_screens
from svc_proto.agent.skills import SkillLibrary
from svc_proto.agent.system_prompt import (
    MCP,
    NO_PHONE,
    PHONE,
    PHONE_WITHHELD,
    TOOLS,
    apps_part,
    build_system_prompt,
    date_part,
    notes_part,
    skills_part,
)
from svc_proto.agent.tool_images import ToolImages
from svc_proto.agent.tool_selection import SMALL_CONTEXT, KnownRows, ToolSelection
from svc_proto.agent.toolbox import RequestedToolCall, Toolbox, call_preview
from svc_proto.basics import lenient_json, strict_json
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject, NotJsonObjectError, as_text, content_text
from svc_proto.schema.model_profile import ModelProfile
from svc_proto.service_clients.authority import BRIDGE
from svc_proto.service_clients.model_probe import probe_context

__all__ = ["PARAGRAPH_BREAK", "MAX_CONTEXT_BYTES", "ModelAgent", "parse_arguments"]

MAX_CONTEXT_BYTES = 4 * 1024 * 1024  # characters of answers and results that return to the model; the turn is cut there
ID_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
ID_SIZE = 9  # letters or digits of an id that is made here: the form that all servers take
EMPTY_ANSWER = "the model gave an empty answer"
ONLY_THOUGHTS = "the model thought, and gave no answer"
CUT_THOUGHTS = "the model's answer was cut at its limit of tokens before it began"
PARAGRAPH_BREAK = "\n\n"  # emitted between the texts of two answers of one turn
NO_OBJECT = "the arguments are not a JSON object: {why}. Call the tool again with valid JSON."
REPEATED_TEXT = "The answer was stopped: its text repeated itself."
Row = Mapping[str, object]
ABSENT_ARGUMENTS = ("", "null", "None", '""', "[]")
_FENCE = re.compile(r"```[a-z]*\s*(.*?)\s*```", re.DOTALL)


class ModelAgent:
    """Agent that answers turns by calls of their model and of tools."""

    def __init__(
        self,
        engine: Engine,
        toolbox: Toolbox,
        memory: AgentMemory,
        skills: SkillLibrary,
        profiles: ModelProfiles,
        limits: ModelCallLimits,
    ) -> None:
        self._engine = engine
        self._toolbox = toolbox
        self._memory = memory
        self._skills = skills
        self._profiles = profiles
        self._limits = limits
        self._known_rows: KnownRows = {}

    def run(self, turn: Turn, host: AgentHost) -> Flow[TurnOutcome]:
        """Answer one turn, whose `model` is set: call the model and run its tool calls until an answer has none.

        The turn also ends at a limit, after an error, if a filter of the server stops the answer, or if the model
        repeats itself. If the turn has `tools` of the client, the model is called once, and the outcome has the
        tool calls for the client, if any.
        """
        if turn.tools is not None:
            return (yield from self._run_for_client(turn, turn.tools, host))
        guard = LoopGuard()
        endpoint = cast("ModelEndpoint", turn.model)
        tools = yield from self._toolbox.visible_tools(turn.authority)
        choice = self._toolbox.choice
        absent = NO_PHONE if turn.authority.holds(BRIDGE) else PHONE_WITHHELD
        phone_note = absent if choice.includes("phone") else ""
        mcp_note = MCP if any(toolset.startswith("mcp-") for toolset in tools) else ""
        system = yield from self._system(turn, PHONE if "phone" in tools else phone_note, mcp_note)
        history = neutralize_history(turn.history)
        if history is not turn.history:
            turn = evolve(turn, history=history)
        profile = yield from self._profile(endpoint)
        few = choice.prefers_few(profile.context)
        hidden = yield from self._toolbox.hidden_arguments(tools)
        selection = ToolSelection(tools, few=few, limit=profile.tool_limit, hidden=hidden, known=self._known_rows)
        request, rows = _request(turn, system, selection.rows)
        if (yield from self._probe(endpoint, profile)) and choice.prefers_few(profile.context):
            selection.reduce()
        shaper = RequestShaper(
            profile,
            turn_start=len(rows) - 1,
            reduce_tools=selection.reduce,
        )
        ids = _ids_in(turn)
        has_text, context_size = False, 0
        images = ToolImages(takes=profile.images and (profile.context is None or profile.context >= SMALL_CONTEXT))
        consent = self._toolbox.begin_turn(turn, guard, has_servers=bool(mcp_note))
        for _ in range(turn.max_calls):
            host.emit(ModelCallStarted())
            request["messages"] = shorten_screens(rows, screen_budget(profile.context), estimate_tokens(selection.rows))
            separator = PARAGRAPH_BREAK if has_text else ""
            answer = yield from call_model(
                self._engine, endpoint, request, host, self._limits, before_text=separator, shaper=shaper
            )
            self._profiles.save(endpoint, profile)
            if isinstance(answer, RepeatedText):
                return _stopped_text(host, guard, answer)
            if isinstance(answer, ModelCallFailure):
                return TurnOutcome(finish="error", error=answer.text, code=answer.code)
            host.emit(ModelCallFinished(answer.input_tokens, answer.output_tokens))
            if not answer.calls or answer.full or answer.finish in ("error", "content_filter"):
                unfinished = guard.unfinished(content_text(turn.prompt), answer.text)
                return _outcome(answer, has_text=has_text, unfinished=unfinished)
            has_text = has_text or bool(answer.text)
            calls = self._toolbox.unwrap(self._calls(answer.calls, ids))
            stored = tuple(requested.call for requested in calls)
            yield from host.store_calls(answer.text, answer.reasoning, stored, answer.extra)
            results = yield from self._toolbox.run_calls(turn, host, calls, consent)
            consent.taint(self._toolbox.reads(requested.call.name for requested in calls))
            context_size += len(answer.text) + sum(len(requested.call.arguments) for requested in calls)
            context_size += sum(len(result.text) for result in results)
            if guard.reason is not None:
                return _stopped(host, guard, guard.reason)
            if context_size > MAX_CONTEXT_BYTES:
                break
            rows.append(_assistant_row(answer, calls))
            rows += [
                {"role": "tool", "tool_call_id": requested.call.id, "content": result.text}
                for requested, result in zip(calls, results, strict=True)
            ]
            rows += images.rows(zip((requested.call.name for requested in calls), results, strict=True))
        return TurnOutcome(finish="length", unfinished=guard.unfinished())

    def _run_for_client(self, turn: Turn, tools: tuple[Row, ...], host: AgentHost) -> Flow[TurnOutcome]:
        """Run a turn with the client's tools: call the model once, without the agent's own prompts and tools.

        The outcome has the tool calls that the client is to run: none of a cut, filtered or failed answer, and only the
        first one if the option `parallel_tool_calls` is false.
        """
        request, rows = _request(turn, turn.system, list(tools))
        host.emit(ModelCallStarted())
        endpoint = cast("ModelEndpoint", turn.model)
        users = [place for place, row in enumerate(rows) if row["role"] == "user"]
        profile = yield from self._profile(endpoint)
        shaper = RequestShaper(profile, turn_start=max(users, default=0), keeps_tools=True)
        answer = yield from call_model(self._engine, endpoint, request, host, self._limits, shaper=shaper)
        self._profiles.save(endpoint, profile)
        if isinstance(answer, RepeatedText):
            return _stopped_text(host, LoopGuard(), answer)
        if isinstance(answer, ModelCallFailure):
            return TurnOutcome(finish="error", error=answer.text, code=answer.code)
        host.emit(ModelCallFinished(answer.input_tokens, answer.output_tokens))
        if not answer.calls or answer.full or answer.finish in ("error", "content_filter", "length"):
            return _outcome(answer)
        calls = tuple(requested.call for requested in self._calls(answer.calls, _ids_in(turn)))
        if turn.options.get("parallel_tool_calls") is False:
            calls = calls[:1]  # also where the option is unknown to the server
        yield from host.store_calls(answer.text, answer.reasoning, calls, answer.extra)
        return TurnOutcome(finish="tool_calls", calls=calls, extra=answer.extra)

    def _profile(self, endpoint: ModelEndpoint) -> Flow[ModelProfile]:
        """Return the profile of an endpoint, with a configured context size if the profile has none or a larger one."""
        profile = yield from self._profiles.find(endpoint)
        if endpoint.context is not None and (profile.context is None or endpoint.context < profile.context):
            profile.context = endpoint.context
        return profile

    def _probe(self, endpoint: ModelEndpoint, profile: ModelProfile) -> Flow[bool]:
        """Read the size of the model's context from its server; report whether it was found.

        Nothing is read, and False returned, if the size is configured or the profile was probed before.
        """
        if profile.probed or endpoint.context is not None:
            return False
        profile.probed = True
        context = yield from probe_context(self._engine, endpoint.base_url, endpoint.model, endpoint.api_key)
        profile.context = context or profile.context
        return context is not None

    def _system(self, turn: Turn, *about: str) -> Flow[str]:
        notes: dict[str, tuple[str, ...]] = {}
        for target in TARGETS:
            entries = yield from self._memory.entries(target)
            if not isinstance(entries, Failure):
                notes[target] = entries
        skills = yield from self._skills.list()
        rows = [(skill.name, skill.description) for skill in skills]
        parts = notes_part(notes), skills_part(rows), apps_part(turn.apps), date_part(self._engine.now)
        return build_system_prompt(turn.system, *about, TOOLS, *parts)

    def _calls(self, fragments: list[PartialToolCall], ids: dict[str, None]) -> tuple[RequestedToolCall, ...]:
        """Return the calls of an answer with ids that are unique in the conversation: clients match results by id."""
        calls: list[RequestedToolCall] = []
        for fragment in fragments:
            identity = fragment.id
            if not identity or identity in ids:
                identity = "".join(ID_LETTERS[byte % len(ID_LETTERS)] for byte in self._engine.entropy(ID_SIZE))
            ids[identity] = None
            calls.append(_requested_call(identity, fragment))
        return tuple(calls)


def _stopped(host: AgentHost, guard: LoopGuard, reason: str) -> TurnOutcome:
    """Emit the reason why a turn is stopped as text, for clients that show nothing else; return its outcome."""
    host.emit(TextDelta(f"{PARAGRAPH_BREAK}[{reason}]"))
    return TurnOutcome(finish="length", reason=reason, unfinished=guard.unfinished())


def _stopped_text(host: AgentHost, guard: LoopGuard, stopped: RepeatedText) -> TurnOutcome:
    """Retract the repetition at the end of the text, if any, and stop the turn as `_stopped` does."""
    if stopped.repeated:
        host.emit(TextRetracted(stopped.repeated))
    return _stopped(host, guard, REPEATED_TEXT)


def _request(turn: Turn, system: str, tools: list[Row]) -> tuple[dict[str, object], list[Row]]:
    """Return the request to a model, and the list of messages in it, to which the caller adds."""
    rows: list[Row] = [{"role": "system", "content": system}] if system else []
    rows += map(_with_valid_arguments, turn.history)
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


def _requested_call(identity: str, fragment: PartialToolCall) -> RequestedToolCall:
    extra = fragment.extra.members
    try:
        args, arguments = parse_arguments(fragment.arguments)
    except strict_json.JsonError as error:
        call = ToolCall(id=identity, name=fragment.name, args={}, arguments=fragment.arguments.strip(), extra=extra)
        return RequestedToolCall(call, NO_OBJECT.format(why=error))
    call = ToolCall(
        id=identity, name=fragment.name, args=args, arguments=arguments, preview=call_preview(args), extra=extra
    )
    return RequestedToolCall(call)


def _assistant_row(answer: CompletionAssembler, calls: tuple[RequestedToolCall, ...]) -> Row:
    """Return the model's answer as a message. Invalid arguments are replaced, since some servers refuse them."""
    requested = [
        call_row(each.call, each.call.arguments if each.problem is None else strict_json.dumps(each.call.args))
        for each in calls
    ]
    return {**answer.extra, "role": "assistant", "content": answer.text, "tool_calls": requested}


def _calls_of(row: Row) -> list[JsonObject]:
    return JsonObject.of(row).objects("tool_calls")


def _with_valid_arguments(row: Row) -> Row:
    """Return a row of the history, with invalid JSON arguments of its calls replaced: some servers refuse them."""
    calls = _calls_of(row)
    return {**row, "tool_calls": [_with_valid_json(call) for call in calls]} if calls else row


def _with_valid_json(call: JsonObject) -> Row:
    function = call.get_object("function")
    if not function or JsonObject.parse(str(function.get("arguments"))) is not None:
        return call
    return {**call, "function": {**function, "arguments": "{}"}}


def _outcome(answer: CompletionAssembler, *, has_text: bool = False, unfinished: tuple[str, ...] = ()) -> TurnOutcome:
    """Return the outcome of the last answer. `has_text`: an earlier answer of the turn had text."""
    if answer.finish == "content_filter" and not answer.text:
        return _failed("the model's server withheld the answer", "content_filter", unfinished)
    if answer.finish == "error":
        return _failed("the model's server failed while it answered", "upstream_error", unfinished)
    if not (answer.text.strip() or has_text):
        return _failed(_emptiness(answer), "empty_answer", unfinished)
    is_cut = answer.full or answer.finish in ("length", "content_filter")
    return TurnOutcome(finish="length" if is_cut else "stop", extra=answer.extra, unfinished=unfinished)


def _failed(error: str, code: str, unfinished: tuple[str, ...]) -> TurnOutcome:
    return TurnOutcome(finish="error", error=error, code=code, unfinished=unfinished)


def _emptiness(answer: CompletionAssembler) -> str:
    if answer.finish == "length":
        return CUT_THOUGHTS
    return ONLY_THOUGHTS if answer.reasoning else EMPTY_ANSWER


def parse_arguments(written: str) -> tuple[JsonObject, str]:
    """Parse the arguments of a tool call as a model wrote them; return the object and its JSON text.

    The text may be in a Markdown fence, in quotes, with deviations from JSON, or without arguments: then the object is
    empty. Raises `JsonError` for other text and for JSON of another type.
    """
    arguments = written.strip()
    fenced = _FENCE.fullmatch(arguments)
    if fenced is not None:
        arguments = fenced[1]
    if arguments in ABSENT_ARGUMENTS:
        arguments = "{}"
    value, deviations = lenient_json.loads(arguments)
    inner = as_text(value)
    if inner is not None:  # encoded twice
        return parse_arguments(inner)
    members = JsonObject.of_or_none(value)
    if members is None:
        raise NotJsonObjectError("it is of another type")
    return members, strict_json.dumps(members) if deviations else arguments
