"""All tools by name, and the execution of calls: arguments, approval, events, rows, limits.

    results = yield from toolbox.run_calls(turn, host, calls)      # for the model, in the order of the calls

The calls of one model answer run concurrently, except `sequential` ones, which run one after the other: actions on a
phone keep the model's order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from attrs import evolve, frozen

from svc_proto.agent.approval_memory import ApprovalMemory, build_approval_request, pattern_of
from svc_proto.agent.interface import (
    AgentHost,
    ApprovalRequested,
    MemoryChanged,
    ToolCall,
    ToolCallFinished,
    ToolCallPending,
    ToolCallStarted,
    Turn,
)
from svc_proto.agent.tool_selection import ToolPolicy, more_tools
from svc_proto.agent.tools import arguments
from svc_proto.agent.tools.tool import Arguments, MemoryToolResult, Tool, ToolImage, ToolResult, Toolset
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Lock, gather
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.redact import summary
from svc_proto.service_clients.authority import MANAGE, OWNER, Authority

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

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
ONE_CALL = ("once", "deny")  # choices of a principal that may not give approvals beyond one call
MAX_OUTPUT = 64 * 1024  # characters of one result for the model
MAX_PREVIEW = 120  # characters of a call or a result for people
CUT = "\n[cut: the rest is too long]"
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
    """Tool call of the model, with the problem that its arguments have."""

    call: ToolCall
    problem: str | None = None


class DynamicToolSource(Protocol):
    """Tools that change at run time: those of MCP servers."""

    def ready(self) -> Flow[None]:
        """Wait, for a limited time, until the tools are known."""
        ...

    def tool(self, name: str) -> Tool | None:
        """Return a tool by its name."""
        ...

    def toolsets(self) -> tuple[Toolset, ...]:
        """Return the available tools."""
        ...


class Toolbox:
    """The tools of an agent, with those of `dynamic_tools`."""

    dynamic_tools: DynamicToolSource | None = None

    def __init__(
        self, engine: Engine, toolsets: tuple[Toolset, ...], approvals: ApprovalMemory, choice: ToolPolicy = ALL
    ) -> None:
        self._engine = engine
        self._toolsets = (*toolsets, more_tools(toolsets))
        self.choice = choice
        self._approvals = approvals
        self._needs = {tool.name: toolset.needs for toolset in self._toolsets for tool in toolset.tools}
        self.tools: dict[str, Tool] = {tool.name: tool for toolset in self._toolsets for tool in toolset.tools}

    @property
    def all_toolsets(self) -> tuple[Toolset, ...]:
        """The agent's own toolsets, also those that are not offered."""
        return self._toolsets

    def toolsets(self) -> list[dict[str, object]]:
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
        """Return the tools to offer to a model, by toolset. Unavailable and withheld ones are omitted."""
        found: dict[str, tuple[Tool, ...]] = {}
        for toolset in self._toolsets:
            is_selected = toolset.offered and self.choice.includes(toolset.name)
            is_selected = is_selected and (not toolset.needs or authority.holds(toolset.needs))
            if is_selected and (toolset.available is None or (yield from toolset.available())):
                found[toolset.name] = toolset.tools
        if self.dynamic_tools is not None and self.choice.includes("mcp"):
            yield from self.dynamic_tools.ready()
            found |= {toolset.name: toolset.tools for toolset in self.dynamic_tools.toolsets() if toolset.tools}
        return found

    def reads(self, names: Iterable[str]) -> bool:
        """Report whether results of these tools hold foreign content; unknown tools count as such."""
        return any(name not in self.tools or self.tools[name].reads_foreign_content for name in names)

    def run_calls(
        self, turn: Turn, host: AgentHost, calls: tuple[RequestedToolCall, ...], *, has_read: bool = False
    ) -> Flow[list[ToolResult]]:
        """Run the calls of one answer; store each result and emit its events. Tool errors do not raise.

        `has_read`: the model had read foreign content before it made the calls (see `reads`).
        """
        queue = Lock(self._engine)
        flows = [self._run(turn, host, requested, queue, has_read) for requested in calls]
        return (yield from gather(self._engine, flows))

    def _run(
        self, turn: Turn, host: AgentHost, requested: RequestedToolCall, queue: Lock, has_read: bool
    ) -> Flow[ToolResult]:
        tool = self.tools.get(requested.call.name)
        if tool is None and self.dynamic_tools is not None:
            tool = self.dynamic_tools.tool(requested.call.name)
        if tool is None or not tool.sequential:
            return (yield from self._attempt(turn, host, requested, tool, has_read))
        yield from queue.acquire()
        try:
            return (yield from self._attempt(turn, host, requested, tool, has_read))
        finally:
            queue.release()

    def _attempt(
        self, turn: Turn, host: AgentHost, requested: RequestedToolCall, tool: Tool | None, has_read: bool
    ) -> Flow[ToolResult]:
        """Run one call from its check to its end."""
        engine, call = self._engine, requested.call
        begun = engine.now.mono
        error: str | None = None
        told = False  # `ToolCallPending` or `ToolCallStarted` was emitted
        pictures: tuple[ToolImage, ...] = ()
        try:
            able, given = _checked(requested, tool)
            self._check_authority(turn, able)
            question, given = yield from self._question(turn, host, call, able, given, has_read)
            if question is not None:
                told = True
                host.emit(ToolCallPending(call))
                if not (yield from self._approvals.request(turn.session_id, question, host)):
                    raise ToolError(*DENIED)
            told = True
            host.emit(ToolCallStarted(call))
            begun = engine.now.mono
            result = yield from able.run(given)
            if isinstance(result, MemoryToolResult):
                host.emit(MemoryChanged(call, result.change))
                result = result.text
            elif isinstance(result, ToolResult):
                pictures, result = result.pictures, result.text
            output = result
        except ToolError as failure:
            output, error = str(failure), failure.message
        except Exception as bug:  # the turn goes on without this call
            output = error = f"the tool has a bug, logged as {engine.log_bug(bug)}"
        if not told:
            host.emit(ToolCallStarted(call))
        if len(output) > MAX_OUTPUT:
            output = output[: MAX_OUTPUT - len(CUT)] + CUT
        text = output if error is None else f"error: {output}"
        yield from host.store_result(call, text)
        host.emit(
            ToolCallFinished(
                call=call,
                output=text,
                preview=preview_of(error or output),
                seconds=engine.now.mono - begun,
                error=error,
            )
        )
        return ToolResult(text, pictures)

    def _check_authority(self, turn: Turn, tool: Tool) -> None:
        power = self._needs.get(tool.name, "")
        if power and not turn.authority.holds(power):
            raise ToolError(WITHHELD[0].format(power=power), WITHHELD[1])

    def _question(
        self, turn: Turn, host: AgentHost, call: ToolCall, tool: Tool, given: Arguments, has_read: bool
    ) -> Flow[tuple[ApprovalRequested | None, Arguments]]:
        """Return the approval request, if one is needed, and the tool's arguments. Raises `ToolError` if refused."""
        why = tool.needs_approval_after_reading if tool.needs_approval is None and has_read else tool.needs_approval
        if why is None or (yield from self._approvals.remembers(turn.session_id, pattern_of(tool, given))):
            return None, given
        bound = None if tool.requests_own_approval is None else (yield from tool.requests_own_approval(given))
        if bound is not None:
            return None, bound
        if not host.can_request_approval:
            raise ToolError(*NO_APPROVER)
        asked = build_approval_request(tool, call, given, why)
        return (asked if turn.authority.holds(MANAGE) else evolve(asked, choices=ONE_CALL)), given


def _checked(requested: RequestedToolCall, tool: Tool | None) -> tuple[Tool, Arguments]:
    if tool is None:
        raise ToolError(f"there is no tool {requested.call.name[:MAX_PREVIEW]!r}")
    if requested.problem is not None:
        raise ToolError(requested.problem)
    return tool, dict(requested.call.args) if tool.pass_through else arguments.check_arguments(
        tool.parameters, requested.call.args
    )


def preview_of(output: str) -> str:
    """Return the first line of a result, shortened; secrets of a JSON object are redacted."""
    if output.startswith("{") and (found := JsonObject.parse(output)) is not None:  # else it was cut
        return summary(found, MAX_PREVIEW)
    line = output.strip().partition("\n")[0]
    return line if len(line) <= MAX_PREVIEW else line[: MAX_PREVIEW - 1] + "…"


def call_preview(arguments_: object) -> str | None:
    """Return one line for people, secrets redacted; None if there is nothing to show."""
    return summary(arguments_, MAX_PREVIEW) if arguments_ else None
