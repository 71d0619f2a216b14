"""All tools by name, and the running of calls: arguments, approval, events, rows, limits.

    results = yield from toolbox.run_calls(turn, host, calls)      # texts for the model, in the order of the calls

The calls of one model answer run side by side, but for those that are `in_order`: these wait for each other, since
what is done to a phone is done in the order in which the model said it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from svc_proto.agent.approvals import Approvals, pattern_of
from svc_proto.agent.contract import ToolCall, ToolFinished, ToolPending, ToolStarted, Turn, TurnHost
from svc_proto.agent.tools import arguments
from svc_proto.agent.tools.tool import Tool, ToolFailed, Toolset
from svc_proto.agent.waiting import OneAtATime, gather
from svc_proto.basics import strict_json
from svc_proto.basics.redact import summary
from svc_proto.engine.flow import Flow

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["DENIED", "MAX_OUTPUT", "Toolbox", "Wanted", "call_preview", "preview_of"]

MAX_OUTPUT = 64 * 1024  # characters that the model gets of one result
MAX_PREVIEW = 120  # characters of what people see of a call or a result
CUT = "\n[cut: the rest is too long]"
DENIED = "the user did not allow this call. Respect that: do not try to do the same by other means."


@frozen
class Wanted:
    """A call that a model made, and what is wrong with it already."""

    call: ToolCall
    problem: str | None = None


class Toolbox:
    """The tools of an agent."""

    def __init__(self, engine: Engine, toolsets: tuple[Toolset, ...], approvals: Approvals) -> None:
        self._engine = engine
        self._toolsets = toolsets
        self._approvals = approvals
        self.tools: dict[str, Tool] = {tool.name: tool for toolset in toolsets for tool in toolset.tools}

    def toolsets(self) -> list[dict[str, object]]:
        """The rows of `GET /v1/toolsets` (wire api 8.2)."""
        return [
            {
                "name": toolset.name,
                "label": toolset.label,
                "description": toolset.description,
                "enabled": True,
                "configured": toolset.configured,
                "tools": [tool.name for tool in toolset.tools],
            }
            for toolset in self._toolsets
            if toolset.offered
        ]

    def offered(self) -> Flow[dict[str, tuple[Tool, ...]]]:
        """The tools that a model is told of now, by toolset. Those that cannot be used would only fill its memory."""
        found: dict[str, tuple[Tool, ...]] = {}
        for toolset in self._toolsets:
            if toolset.offered and (toolset.there is None or (yield from toolset.there())):
                found[toolset.name] = toolset.tools
        return found

    def run_calls(self, turn: Turn, host: TurnHost, calls: tuple[Wanted, ...]) -> Flow[list[str]]:
        """Run the calls of one answer. Each is stored and told of; none of them raises."""
        queue = OneAtATime(self._engine)
        flows = [self._run(turn, host, wanted, queue) for wanted in calls]
        return (yield from gather(self._engine, flows, name="tool"))

    def _run(self, turn: Turn, host: TurnHost, wanted: Wanted, queue: OneAtATime) -> Flow[str]:
        tool = self.tools.get(wanted.call.name)
        if tool is None or not tool.in_order:
            return (yield from self._attempt(turn, host, wanted, tool))
        yield from queue.enter()
        try:
            return (yield from self._attempt(turn, host, wanted, tool))
        finally:
            queue.leave()

    def _attempt(self, turn: Turn, host: TurnHost, wanted: Wanted, tool: Tool | None) -> Flow[str]:
        """One call from its check to its end."""
        engine, call = self._engine, wanted.call
        begun = engine.now.mono
        error: str | None = None
        try:
            able, given = _checked(wanted, tool)
            if able.asks is None or (yield from self._allowed(turn, host, call, able)):
                host.tell(ToolStarted(call))
                begun = engine.now.mono
                output = yield from able.run(given)
            else:
                output = error = DENIED
        except _CannotRun as failure:
            host.tell(ToolStarted(call))  # so that there is something that fails
            output = error = str(failure)
        except ToolFailed as failure:
            output = error = str(failure)
        except Exception as bug:  # the turn goes on without this call
            output = error = f"the tool has a bug, logged as {engine.bug(bug)}"
        if len(output) > MAX_OUTPUT:
            output = output[: MAX_OUTPUT - len(CUT)] + CUT
        text = output if error is None else f"error: {output}"
        yield from host.keep_result(call, text)
        host.tell(
            ToolFinished(
                call=call, output=text, preview=preview_of(output), seconds=engine.now.mono - begun, error=error
            )
        )
        return text

    def _allowed(self, turn: Turn, host: TurnHost, call: ToolCall, tool: Tool) -> Flow[bool]:
        if (yield from self._approvals.remembers(turn.session_id, pattern_of(tool, call))):
            return True
        host.tell(ToolPending(call))
        return (yield from self._approvals.ask(turn.session_id, tool, call, host))


class _CannotRun(Exception):  # noqa: N818 - not an error of the program
    """Why a call is over before it begins."""


def _checked(wanted: Wanted, tool: Tool | None) -> tuple[Tool, dict[str, object]]:
    if tool is None:
        raise _CannotRun(f"there is no tool {wanted.call.name[:MAX_PREVIEW]!r}")
    if wanted.problem is not None:
        raise _CannotRun(wanted.problem)
    try:
        return tool, arguments.check(tool.parameters, wanted.call.args)
    except ToolFailed as failure:
        raise _CannotRun(str(failure)) from None


def preview_of(output: str) -> str:
    """The first line of a result, shortened; of a JSON object the secrets are hidden."""
    if output.startswith("{"):
        try:
            return summary(strict_json.loads(output), MAX_PREVIEW)
        except strict_json.JsonError:
            pass  # it was cut, or only looks like one
    line = output.strip().partition("\n")[0]
    return line if len(line) <= MAX_PREVIEW else line[: MAX_PREVIEW - 1] + "…"


def call_preview(arguments_: object) -> str | None:
    """One line for people, secrets redacted; None when there is nothing to show."""
    return summary(arguments_, MAX_PREVIEW) if arguments_ else None
