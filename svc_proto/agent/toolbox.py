"""All tools by name, and the execution of calls: arguments, approval, events, rows, limits.

    results = yield from toolbox.run_calls(turn, host, calls)      # for the model, in the order of the calls

The calls of one model answer run concurrently, except `sequential` ones, which run one after the other: actions on a
phone keep the model's order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from attrs import define, evolve, frozen

from svc_proto.agent.approval_memory import (
    ApprovalMemory,
    build_approval_request,
    build_effect_request,
    build_owner_question,
    pattern_of,
    pattern_of_effect,
)
from svc_proto.agent.foreign_text import fence, neutralize
from svc_proto.agent.interface import (
    AgentHost,
    ApprovalRequested,
    MemoryChanged,
    StoredPicture,
    ToolCall,
    ToolCallFinished,
    ToolCallPending,
    ToolCallStarted,
    Turn,
)
from svc_proto.agent.loop_guard import LoopGuard
from svc_proto.agent.phone_consent import ALREADY_DENIED
from svc_proto.agent.tool_output import MAX_OUTPUT, fit_output, output_limit
from svc_proto.agent.tool_selection import MORE_TOOLS, ToolPolicy, more_tools, unwrap_call
from svc_proto.agent.tools import arguments
from svc_proto.agent.tools.phone_screen_text import SCREEN_BLOCK
from svc_proto.agent.tools.tool import Arguments, MemoryToolResult, Tool, ToolImage, ToolResult, Toolset
from svc_proto.agent.turn_consent import TurnConsent
from svc_proto.basics import strict_json
from svc_proto.basics.brand import spell_markers
from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Lock, gather
from svc_proto.schema.effects.command_effects import Effect
from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.json_object import JsonObject, content_text
from svc_proto.schema.redact import summary
from svc_proto.service_clients.authority import MANAGE, OWNER, Authority

if TYPE_CHECKING:
    from svc_proto.schema.api_types import ToolsetJson

__all__ = [
    "DENIED",
    "MAX_OUTPUT",
    "NO_APPROVER",
    "ONE_CALL",
    "WITHHELD",
    "DynamicToolSource",
    "Toolbox",
    "RequestedToolCall",
    "call_preview",
    "preview_of",
]

ALL = ToolPolicy()
_MEDIA = re.compile(r"^MEDIA:", re.MULTILINE)
MAX_WORD = 16  # characters of a result that is one ASCII word or number
MAX_REPORT = 300  # characters of an act's result that only reports what was done
ONE_CALL = ("once", "deny")  # choices of a principal that may not give approvals beyond one call
MAX_PREVIEW = 120  # characters of a call or a result for people
NO_APPROVER = (
    "This call needs the user's approval, which cannot be requested here, so it was not made.",
    "Tell the user to ask for it where approvals are shown (dashboard, chat, voice); do not try the same otherwise.",
)
WITHHELD = (
    "The device of this chat may not do this: its pairing withholds the grant {power}.",
    "Tell the user; do not try to do the same by other means.",
)
DENIED = ("The user did not allow this call.", "Respect that: do not try to do the same by other means.")


@frozen
class RequestedToolCall:
    """Tool call of the model, with the problem of its arguments; None: they are a JSON object."""

    call: ToolCall
    problem: str | None = None


class DynamicToolSource(Protocol):
    """Source of tools that change at run time: those of MCP servers."""

    def ready(self) -> Flow[None]:
        """Wait, for a limited time, until the tools are known."""
        ...

    def tool(self, name: str) -> Tool | None:
        """Return a tool by its name; None if no server has it."""
        ...

    def toolsets(self) -> tuple[Toolset, ...]:
        """Return the tools that can be called now, grouped by server."""
        ...


class Toolbox:
    """The tools of an agent, with those of `dynamic_tools`, and the execution of calls."""

    dynamic_tools: DynamicToolSource | None = None

    def __init__(
        self, engine: Engine, toolsets: tuple[Toolset, ...], approvals: ApprovalMemory, choice: ToolPolicy = ALL
    ) -> None:
        self._engine = engine
        self._toolsets = (*toolsets, more_tools(self._all_tools, self.hidden_arguments))
        self._selected = tuple(each for each in self._toolsets if each.offered and choice.includes(each.name))
        self._hiding = tuple(each for each in self._toolsets if each.hidden is not None)
        self.choice = choice
        self._approvals = approvals
        self._needs = {tool.name: toolset.needs for toolset in self._toolsets for tool in toolset.tools}
        self.tools: dict[str, Tool] = {tool.name: tool for toolset in self._toolsets for tool in toolset.tools}

    @property
    def all_toolsets(self) -> tuple[Toolset, ...]:
        """Return the agent's own toolsets, also those that are not offered."""
        return self._toolsets

    def toolsets(self) -> list[ToolsetJson]:
        """Return the rows of `GET /v1/toolsets` (wire api 8.2)."""
        more = () if self.dynamic_tools is None else self.dynamic_tools.toolsets()
        return [
            {
                "name": toolset.name,
                "label": toolset.label,
                "description": toolset.description,
                "enabled": self.choice.includes(toolset.name),
                "configured": toolset.configured,
                "tools": [tool.name for tool in toolset.tools],
                "descriptions": {tool.name: tool.description for tool in toolset.tools},
            }
            for toolset in (*self._toolsets, *more)
            if toolset.offered
        ]

    def visible_tools(self, authority: Authority = OWNER) -> Flow[dict[str, tuple[Tool, ...]]]:
        """Return the tools to offer to a model, by toolset.

        Toolsets that are disabled, unavailable now or not permitted by `authority` are omitted. Those of MCP servers
        are permitted by any authority.
        """
        found: dict[str, tuple[Tool, ...]] = {}
        for toolset in self._selected:
            is_allowed = not toolset.needs or authority.holds(toolset.needs)
            if is_allowed and (toolset.available is None or (yield from toolset.available())):
                found[toolset.name] = toolset.tools
        if self.dynamic_tools is not None and self.choice.includes("mcp"):
            yield from self.dynamic_tools.ready()
            found |= {toolset.name: toolset.tools for toolset in self.dynamic_tools.toolsets() if toolset.tools}
        return found

    def hidden_arguments(self, offered: Iterable[str] | None = None) -> Flow[tuple[str, ...]]:
        """Return the names of arguments that descriptions of tools omit, since no call needs them.

        `offered`: names of the offered toolsets; None: all are.
        """
        found: list[str] = []
        for toolset in self._hiding:
            if toolset.hidden is not None and (offered is None or toolset.name in offered):
                found += yield from toolset.hidden()
        return tuple(found)

    def unwrap(self, calls: Iterable[RequestedToolCall]) -> tuple[RequestedToolCall, ...]:
        """Return the calls, with each valid call of `more_tools` replaced by the call that it names."""
        return tuple(map(self._unwrapped, calls))

    def _unwrapped(self, requested: RequestedToolCall) -> RequestedToolCall:
        call = requested.call
        named = unwrap_call(call.args, self._find) if call.name == MORE_TOOLS else None
        if named is None:
            return requested
        name, args = named
        inner = evolve(call, name=name, args=args, arguments=strict_json.dumps(args), preview=call_preview(args))
        return RequestedToolCall(inner, requested.problem)

    def _find(self, name: str) -> Tool | None:
        tool = self.tools.get(name)
        return self.dynamic_tools.tool(name) if tool is None and self.dynamic_tools is not None else tool

    def _all_tools(self) -> Iterator[Tool]:
        more = () if self.dynamic_tools is None else self.dynamic_tools.toolsets()
        for toolset in (*self._toolsets, *more):
            if toolset.offered:
                yield from toolset.tools

    def reads(self, names: Iterable[str]) -> bool:
        """Report whether results of any of these tools may hold foreign content; those of unknown tools may."""
        return any(name not in self.tools or self.tools[name].reads_foreign_content for name in names)

    def begin_turn(self, turn: Turn, guard: LoopGuard, *, has_servers: bool = False) -> TurnConsent:
        """Return the state of a turn, with `has_read` set if the model's first request has foreign content.

        Foreign content is in a history with calls of tools whose results may hold some, in a history that a client
        sent, and in the descriptions of MCP servers' tools. Private data in the results of the history is recorded.
        """
        if not turn.history:
            return TurnConsent.begin(
                self._engine, content_text(turn.prompt), has_read=has_servers, loop=guard, apps=turn.apps
            )
        rows = [JsonObject.of(row) for row in turn.history]
        calls = [call for row in rows for call in row.objects("tool_calls")]
        names = {call.text("id"): call.get_object("function").text("name") for call in calls}
        has_read = has_servers or (turn.client_history and bool(rows)) or self.reads(names.values())
        consent = TurnConsent.begin(
            self._engine, content_text(turn.prompt), has_read=has_read, loop=guard, apps=turn.apps
        )
        for row in rows:
            if row.get("role") == "tool":
                consent.private.read_history(names.get(row.text("tool_call_id"), ""), row.text("content"))
        return consent

    def run_calls(
        self, turn: Turn, host: AgentHost, calls: tuple[RequestedToolCall, ...], consent: TurnConsent | None = None
    ) -> Flow[list[ToolResult]]:
        """Run the calls of one answer, store each result and emit its events; return the results in the calls' order.

        A tool's error is its result, and is not raised.

        `consent` is the state of the turn before the calls; None: a new one.
        """
        state = TurnConsent.begin(self._engine, apps=turn.apps) if consent is None else consent
        queue = Lock(self._engine)
        flows = [self._run(_Attempt(turn, host, requested.call, state), requested, queue) for requested in calls]
        return (yield from gather(self._engine, flows))

    def _run(self, attempt: _Attempt, requested: RequestedToolCall, queue: Lock) -> Flow[ToolResult]:
        tool = self._find(requested.call.name)
        if tool is None or not tool.sequential:
            return (yield from self._attempt(attempt, requested, tool))
        yield from queue.acquire()
        try:
            return (yield from self._attempt(attempt, requested, tool))
        finally:
            queue.release()

    def _attempt(self, attempt: _Attempt, requested: RequestedToolCall, tool: Tool | None) -> Flow[ToolResult]:
        """Run one call (check, approval, execution, stored row, events) and return its result, also of a failure."""
        engine, call, host = self._engine, requested.call, attempt.host
        begun = engine.now.mono
        error: str | None = None
        pictures: tuple[ToolImage, ...] = ()
        stored: tuple[StoredPicture, ...] = ()
        ignored = "" if tool is None or tool.pass_through else arguments.ignored_note(tool.parameters, call.args)
        try:
            if attempt.state.loop.reason is not None:
                raise ToolError(attempt.state.loop.reason)
            able, given = _checked(requested, tool)
            self._check_authority(attempt.turn, able)
            question, given = yield from self._question(attempt, able, given)
            if question is not None:
                effect = attempt.effect or _effect_of_tool(able)
                yield from self._ask(attempt, question, effect)
                attempt.state.grant(effect, ScreenTree())
            attempt.is_announced = True
            host.emit(ToolCallStarted(call))
            begun = engine.now.mono
            if able.with_consent is not None:
                consent = _CallConsent(attempt, self._ask, self._approvals)
                able = able.with_consent(consent)
            result = yield from able.run(given)
            if isinstance(result, MemoryToolResult):
                host.emit(MemoryChanged(call, result.change))
                result = result.text
            elif isinstance(result, ToolResult):
                pictures, stored, result = result.pictures, result.stored, result.text
            output = result
        except ToolError as failure:
            output, error = str(failure), failure.message
        except Exception as bug:  # the turn goes on without this call
            output = error = f"the tool has a bug, logged as {engine.log_bug(bug)}"
        if not attempt.is_announced:
            host.emit(ToolCallStarted(call))
        model = attempt.turn.model
        output = fit_output(output + ignored, output_limit(None if model is None else model.context))
        text = _marked(output, tool, attempt.state) if error is None else f"error: {neutralize(output)}"
        if attempt.turn.brand is not None:
            text = spell_markers(text, attempt.turn.brand)
        yield from host.store_result(call, text, stored)
        host.emit(
            ToolCallFinished(
                call=call,
                output=text,
                preview=preview_of(error or output),
                seconds=engine.now.mono - begun,
                error=error,
            )
        )
        notice = attempt.state.loop.record(call, text, is_act=tool is not None and tool.is_act)
        return ToolResult(text if notice is None else f"{text}\n\n[notice: {notice}]", pictures)

    def _check_authority(self, turn: Turn, tool: Tool) -> None:
        power = self._needs.get(tool.name, "")
        if power and not turn.authority.holds(power):
            raise ToolError(WITHHELD[0].format(power=power), WITHHELD[1])

    def _question(
        self, attempt: _Attempt, tool: Tool, given: Arguments
    ) -> Flow[tuple[ApprovalRequested | None, Arguments]]:
        """Return the approval request for a call, None if it needs none, and the arguments to run the call with.

        Raises `ToolError` if approval is needed and the owner has denied the effect in this turn, or the call cannot be
        shown.
        """
        state = attempt.state
        attempt.effect = None if tool.effect_of is None else tool.effect_of(given)
        # An intent may be one that only opens a page of the settings.
        why = None if tool.effect_of is not None and attempt.effect is None else tool.needs_approval
        if why is None and state.has_read:
            why = tool.needs_approval_after_reading
        if why is None:
            return None, given
        if state.is_denied(attempt.effect or _effect_of_tool(tool)):
            raise ToolError(*ALREADY_DENIED)
        if (yield from self._approvals.remembers(attempt.turn.session_id, pattern_of(tool, given))):
            return None, given
        bound = None if tool.requests_own_approval is None else (yield from tool.requests_own_approval(given))
        if bound is not None:
            return None, bound
        return build_approval_request(tool, attempt.call, given, why, attempt.effect), given

    def _ask(self, attempt: _Attempt, question: ApprovalRequested, effect: Effect) -> Flow[None]:
        """Request an approval; a turn has one open request at a time. Raises `ToolError` if the call is not allowed."""
        if not attempt.host.can_request_approval:
            raise ToolError(*NO_APPROVER)
        if not attempt.turn.authority.holds(MANAGE):
            question = evolve(question, choices=ONE_CALL)
        state = attempt.state
        attempt.is_announced = True
        attempt.host.emit(ToolCallPending(attempt.call))
        yield from state.asking.acquire()
        try:
            if state.is_denied(effect):
                raise ToolError(*ALREADY_DENIED)
            if (yield from self._approvals.request(attempt.turn.session_id, question, attempt.host)):
                return
            state.deny(effect)
            raise ToolError(*DENIED)
        finally:
            state.asking.release()


@define
class _Attempt:
    """Attempt to run one call of a turn. `effect` is the effect that follows from the arguments alone."""

    turn: Turn
    host: AgentHost
    call: ToolCall
    state: TurnConsent
    effect: Effect | None = None
    is_announced: bool = False  # `ToolCallPending` or `ToolCallStarted` was emitted


@frozen
class _CallConsent:
    """Consent for one running call. Implements `CallConsent`."""

    _attempt: _Attempt
    _ask: Callable[[_Attempt, ApprovalRequested, Effect], Flow[None]]
    _approvals: ApprovalMemory

    @property
    def session_id(self) -> str:
        """Return the id of the chat that the call belongs to."""
        return self._attempt.turn.session_id

    @property
    def turn(self) -> TurnConsent:
        """Return the consent state of the call's turn."""
        return self._attempt.state

    def request(self, effect: Effect, tree: ScreenTree) -> Flow[None]:
        """Obtain the owner's consent to an effect, stored or requested, and record it, or raise `ToolError`."""
        if not (yield from self._approvals.remembers(self.session_id, pattern_of_effect(effect))):
            yield from self._ask(self._attempt, build_effect_request(effect, self._attempt.call), effect)
        self._attempt.state.grant(effect, tree)

    def ask(self, question: str) -> Flow[str | None]:
        """Return the owner's answer to a question of the agent; None if this turn shows no questions."""
        host, call, state = self._attempt.host, self._attempt.call, self._attempt.state
        if not host.can_request_approval:
            return None
        yield from state.asking.acquire()
        try:
            return (yield from host.request_approval(build_owner_question(question, call)))
        finally:
            state.asking.release()


def _effect_of_tool(tool: Tool) -> Effect:
    """Return an effect for a call whose effect is unknown: it has the tool's name, so a denial covers that tool."""
    return Effect(kind=EffectKind.INTENT, label=tool.name, recipient=tool.name)


def _marked(output: str, tool: Tool | None, state: TurnConsent) -> str:
    """Return a result for the model: neutralized and, for a tool with a `source`, fenced.

    There is no fence around a short report of an act, a result with a media marker, or one short word or number. A tool
    whose results hold no foreign content has its result unchanged.
    """
    if tool is None or not tool.reads_foreign_content:
        return output
    output = neutralize(output)
    is_report = tool.is_act and len(output) <= MAX_REPORT and SCREEN_BLOCK.search(output) is None
    is_word = len(output) <= MAX_WORD and output.isascii() and output.isalnum()
    is_media = _MEDIA.search(output) is not None  # a marker is for the clients, on a line of its own
    if not tool.source or is_report or is_word or is_media:
        return output
    return fence(output, state.source or tool.source if tool.with_consent is not None else tool.source)


def _checked(requested: RequestedToolCall, tool: Tool | None) -> tuple[Tool, Arguments]:
    if tool is None:
        raise ToolError(f"there is no tool {requested.call.name[:MAX_PREVIEW]!r}")
    if requested.problem is not None:
        raise ToolError(requested.problem)
    return tool, dict(requested.call.args) if tool.pass_through else arguments.check_arguments(
        tool.parameters, requested.call.args
    )


def preview_of(output: str) -> str:
    """Return a line about a result: a summary of a JSON object without its secrets, else the first line, shortened."""
    if output.startswith("{") and (found := JsonObject.parse(output)) is not None:  # else it was cut
        return summary(found, MAX_PREVIEW)
    line = output.strip().partition("\n")[0]
    return line if len(line) <= MAX_PREVIEW else line[: MAX_PREVIEW - 1] + "…"


def call_preview(arguments_: object) -> str | None:
    """Return the arguments of a call as one line for people, secrets redacted; None if there are none."""
    return summary(arguments_, MAX_PREVIEW) if arguments_ else None
