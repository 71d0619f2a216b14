"""All tools by name, and the running of calls: arguments, approval, events, rows, limits.

    results = yield from toolbox.run_calls(turn, host, calls)      # for the model, in the order of the calls

The calls of one model answer run side by side, but for those that are `in_order`: these wait for each other, since
what is done to a phone is done in the order in which the model said it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from svc_proto.agent.approval_memory import ApprovalMemory, pattern_of, question_about
from svc_proto.agent.interface import (
    ApprovalAsked,
    NoteChanged,
    ToolCall,
    ToolFinished,
    ToolPending,
    ToolStarted,
    Turn,
    TurnHost,
)
from svc_proto.agent.tool_selection import ToolChoice, more_tools
from svc_proto.agent.tools import arguments
from svc_proto.agent.tools.tool import Arguments, Noted, Picture, Returned, Tool, Toolset
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Lock, gather
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.redact import summary

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["DENIED", "MAX_OUTPUT", "NOBODY", "MoreTools", "Toolbox", "WantedCall", "call_preview", "preview_of"]

ALL = ToolChoice()
MAX_OUTPUT = 64 * 1024  # characters that the model gets of one result
MAX_PREVIEW = 120  # characters of what people see of a call or a result
CUT = "\n[cut: the rest is too long]"
NOBODY = (
    "This call needs the user's approval, which cannot be requested here, so it was not made.",
    "Tell the user to ask for it where approvals are shown (dashboard, chat, voice); do not try the same otherwise.",
)
DENIED = ("The user did not allow this call.", "Respect that: do not try to do the same by other means.")


@frozen
class WantedCall:
    """A call that a model made, and what is wrong with it already."""

    call: ToolCall
    problem: str | None = None


class MoreTools(Protocol):
    """Tools that come and go: those of MCP servers."""

    def ready(self) -> Flow[None]:
        """Wait until it is known which there are, for a while."""
        ...

    def tool(self, name: str) -> Tool | None:
        """One by its name."""
        ...

    def toolsets(self) -> tuple[Toolset, ...]:
        """Those that are there."""
        ...


class Toolbox:
    """The tools of an agent. `more` come besides."""

    more: MoreTools | None = None

    def __init__(
        self, engine: Engine, toolsets: tuple[Toolset, ...], approvals: ApprovalMemory, choice: ToolChoice = ALL
    ) -> None:
        self._engine = engine
        self._toolsets = (*toolsets, more_tools(toolsets))
        self.choice = choice
        self._approvals = approvals
        self.tools: dict[str, Tool] = {tool.name: tool for toolset in self._toolsets for tool in toolset.tools}

    def toolsets(self) -> list[dict[str, object]]:
        """The rows of `GET /v1/toolsets` (wire api 8.2)."""
        more = () if self.more is None else self.more.toolsets()
        return [
            {
                "name": toolset.name,
                "label": toolset.label,
                "description": toolset.description,
                "enabled": self.choice.wants(toolset.name),
                "configured": toolset.configured,
                "tools": [tool.name for tool in toolset.tools],
                "descriptions": {tool.name: tool.description for tool in toolset.tools},
            }
            for toolset in (*self._toolsets, *more)
            if toolset.offered
        ]

    def offered(self) -> Flow[dict[str, tuple[Tool, ...]]]:
        """The tools that a model is told of now, by toolset. Those that cannot be used would only fill its memory."""
        found: dict[str, tuple[Tool, ...]] = {}
        for toolset in self._toolsets:
            wanted = toolset.offered and self.choice.wants(toolset.name)
            if wanted and (toolset.there is None or (yield from toolset.there())):
                found[toolset.name] = toolset.tools
        if self.more is not None and self.choice.wants("mcp"):
            yield from self.more.ready()
            found |= {toolset.name: toolset.tools for toolset in self.more.toolsets() if toolset.tools}
        return found

    def reads(self, names: Iterable[str]) -> bool:
        """Whether the results of these tools hold what others wrote. Of an unknown one nobody knows."""
        return any(name not in self.tools or self.tools[name].reads for name in names)

    def run_calls(
        self, turn: Turn, host: TurnHost, calls: tuple[WantedCall, ...], *, has_read: bool = False
    ) -> Flow[list[Returned]]:
        """Run the calls of one answer. Each is stored and told of; none of them raises.

        `has_read`: whoever made them had read what others wrote (see `reads`).
        """
        queue = Lock(self._engine)
        flows = [self._run(turn, host, wanted, queue, has_read) for wanted in calls]
        return (yield from gather(self._engine, flows))

    def _run(self, turn: Turn, host: TurnHost, wanted: WantedCall, queue: Lock, has_read: bool) -> Flow[Returned]:
        tool = self.tools.get(wanted.call.name)
        if tool is None and self.more is not None:
            tool = self.more.tool(wanted.call.name)
        if tool is None or not tool.in_order:
            return (yield from self._attempt(turn, host, wanted, tool, has_read))
        yield from queue.acquire()
        try:
            return (yield from self._attempt(turn, host, wanted, tool, has_read))
        finally:
            queue.release()

    def _attempt(
        self, turn: Turn, host: TurnHost, wanted: WantedCall, tool: Tool | None, has_read: bool
    ) -> Flow[Returned]:
        """One call from its check to its end."""
        engine, call = self._engine, wanted.call
        begun = engine.now.mono
        error: str | None = None
        told = False  # there is something that may fail
        pictures: tuple[Picture, ...] = ()
        try:
            able, given = _checked(wanted, tool)
            question, given = yield from self._question(turn, host, call, able, given, has_read)
            if question is not None:
                told = True
                host.tell(ToolPending(call))
                if not (yield from self._approvals.ask(turn.session_id, question, host)):
                    raise ToolError(*DENIED)
            told = True
            host.tell(ToolStarted(call))
            begun = engine.now.mono
            result = yield from able.run(given)
            if isinstance(result, Noted):
                host.tell(NoteChanged(call, result.change))
                result = result.text
            elif isinstance(result, Returned):
                pictures, result = result.pictures, result.text
            output = result
        except ToolError as failure:
            output, error = str(failure), failure.message
        except Exception as bug:  # the turn goes on without this call
            output = error = f"the tool has a bug, logged as {engine.log_bug(bug)}"
        if not told:
            host.tell(ToolStarted(call))
        if len(output) > MAX_OUTPUT:
            output = output[: MAX_OUTPUT - len(CUT)] + CUT
        text = output if error is None else f"error: {output}"
        yield from host.keep_result(call, text)
        host.tell(
            ToolFinished(
                call=call,
                output=text,
                preview=preview_of(error or output),
                seconds=engine.now.mono - begun,
                error=error,
            )
        )
        return Returned(text, pictures)

    def _question(
        self, turn: Turn, host: TurnHost, call: ToolCall, tool: Tool, given: Arguments, has_read: bool
    ) -> Flow[tuple[ApprovalAsked | None, Arguments]]:
        """What somebody has to be asked first, if anything, and what the tool is given. Raises `ToolError` if not."""
        why = tool.asks_having_read if tool.asks is None and has_read else tool.asks
        if why is None or (yield from self._approvals.remembers(turn.session_id, pattern_of(tool, given))):
            return None, given
        bound = None if tool.asks_itself is None else (yield from tool.asks_itself(given))
        if bound is not None:
            return None, bound
        if not host.may_ask:
            raise ToolError(*NOBODY)
        return question_about(tool, call, given, why), given


def _checked(wanted: WantedCall, tool: Tool | None) -> tuple[Tool, Arguments]:
    if tool is None:
        raise ToolError(f"there is no tool {wanted.call.name[:MAX_PREVIEW]!r}")
    if wanted.problem is not None:
        raise ToolError(wanted.problem)
    return tool, dict(wanted.call.args) if tool.passes else arguments.check(tool.parameters, wanted.call.args)


def preview_of(output: str) -> str:
    """The first line of a result, shortened; of a JSON object the secrets are hidden."""
    if output.startswith("{") and (found := JsonObject.parse(output)) is not None:  # else it was cut, or only looks so
        return summary(found, MAX_PREVIEW)
    line = output.strip().partition("\n")[0]
    return line if len(line) <= MAX_PREVIEW else line[: MAX_PREVIEW - 1] + "…"


def call_preview(arguments_: object) -> str | None:
    """One line for people, secrets redacted; None when there is nothing to show."""
    return summary(arguments_, MAX_PREVIEW) if arguments_ else None
