"""Selection of tools for a model: all, or for a small context a few with short descriptions, and more on demand.

The 37 tools with a phone are 16 kB of schemas, some 4,000 tokens: the whole of a small context. The selected few
suffice for most tasks; the others are in groups, and the tool `more_tools` adds a group for the rest of the turn. A
list that is longer than the server takes is shortened in the same way: whole toolsets become groups, the last first.
A call of a tool outside the selection is run as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from attrs import frozen

from svc_proto.agent.interface import ToolCall
from svc_proto.agent.model_profile import DEFAULT_TOOL_LIMIT
from svc_proto.agent.tools.tool import Arguments, Tool, Toolset, schema
from svc_proto.engine.flow import Flow

__all__ = ["MORE_TOOLS", "SMALL_CONTEXT", "TOOLSETS", "ToolSelection", "ToolPolicy", "more_tools"]

SMALL_CONTEXT = 16_384  # tokens; a model with less is offered a few tools
TOOLSETS = ("phone", "memory", "skills", "mcp")
MORE_TOOLS = "more_tools"
# Groups by name, with the purpose of their tools.
GROUPS = {
    "look": "search the screen, one node in detail, what changed, the app in front, events",
    "touch": "long press, drag, swipe, wait",
    "send": "clipboard, playback, sharing, intents, broadcasts",
    "people": "contacts, calls, text messages, location",
    "skills": "instructions for special tasks",
    "mcp": "servers that the user has connected",
}


@frozen(kw_only=True)
class ToolPolicy:
    """The operator's choice of tools. `few` None: by the model's context. `only` None: all toolsets."""

    few: bool | None = None
    only: tuple[str, ...] | None = None

    def includes(self, toolset: str) -> bool:
        """Report whether a toolset is enabled; `mcp-…` is that of one MCP server."""
        return self.only is None or toolset.partition("-")[0] in self.only

    def prefers_few(self, context: int | None) -> bool:
        """Report whether a model with a context of so many tokens (None: unknown) is offered a few tools."""
        return self.few if self.few is not None else context is not None and context < SMALL_CONTEXT


class ToolSelection:
    """The tools of one turn. `rows` is the list for the model, of at most `limit` tools; it changes in place."""

    def __init__(self, toolsets: Mapping[str, tuple[Tool, ...]], *, few: bool, limit: int = DEFAULT_TOOL_LIMIT) -> None:
        self._toolsets = toolsets
        self._few = few
        self._limit = limit
        self._groups: dict[str, list[Tool]] = {}  # that can be added
        self._added: dict[str, list[Tool]] = {}  # that were added, the oldest first
        self._base: list[Mapping[str, object]] = []
        self.rows: list[Mapping[str, object]] = []
        self._select()

    def reduce(self, limit: int | None = None) -> bool:
        """Select few tools, or at most `limit`; report whether the list has changed."""
        few, limit = (True, self._limit) if limit is None else (self._few, limit)
        if (few, limit) == (self._few, self._limit):
            return False
        before = len(self.rows)
        self._few, self._limit = few, limit
        self._select()
        return len(self.rows) != before or few

    def expand(self, calls: Iterable[ToolCall]) -> None:
        """Add the groups that these calls request, for the model's next request."""
        for call in calls:
            group = str(call.args.get("group"))
            if call.name == MORE_TOOLS and group in self._groups:
                self._added[group] = self._groups.pop(group)
                self._show(group)

    def _select(self) -> None:
        every = [tool for tools in self._toolsets.values() for tool in tools]
        hidden = {tool.name: tool.group for tool in every if self._few and tool.group}
        shown = len(every) - len(hidden)
        for name, tools in reversed(list(self._toolsets.items())):  # the servers' tools are last
            if shown + bool(hidden) <= self._limit:
                break
            more = [tool for tool in tools if tool.name not in hidden]
            hidden |= {tool.name: name for tool in more}
            shown -= len(more)
        self._groups, self._added = {}, {}
        for tool in every:
            if tool.name in hidden:
                self._groups.setdefault(hidden[tool.name], []).append(tool)
        self._base = [_tool_definition(tool, short=self._few) for tool in every if tool.name not in hidden]
        if self._groups:
            self._base.append(_function(*_more(self._groups)))
        self.rows[:] = self._base[: self._limit]

    def _show(self, latest: str) -> None:
        """Show the groups that were added; the oldest ones can be added again where not all fit."""
        room = self._limit - len(self._base)
        while len(self._added) > 1 and sum(map(len, self._added.values())) > room:
            oldest = next(iter(self._added))
            self._groups[oldest] = self._added.pop(oldest)
        more = [tool for tools in self._added.values() for tool in tools][: max(room, 0)]
        self.rows[:] = [*self._base, *(_tool_definition(tool, short=True) for tool in more)]


def more_tools(toolsets: tuple[Toolset, ...]) -> Toolset:
    """Return the toolset of `more_tools`. `ToolSelection` offers the tool if there is a group to add."""
    names: dict[str, list[str]] = {}
    for tool in (tool for toolset in toolsets for tool in toolset.tools if tool.group):
        names.setdefault(tool.group, []).append(tool.name)

    def run(arguments: Arguments) -> Flow[str]:
        yield from ()
        group = str(arguments["group"])
        return f"until this answer is done you have: {', '.join(names.get(group, (_purpose(group),)))}"

    name, description, _ = _more(GROUPS)
    parameters = schema(("group",), group={"type": "string"})  # which groups there are depends on the turn
    tool = Tool(name=name, description=description, parameters=parameters, run=run, reads_foreign_content=False)
    return Toolset(name="more", label="More", description="Brings groups of tools", tools=(tool,), offered=False)


def _more(groups: Iterable[str]) -> tuple[str, str, Mapping[str, object]]:
    """Return name, description and parameters of the tool that adds a group."""
    lines = "; ".join(f"{group}: {_purpose(group)}" for group in groups)
    parameters = schema(("group",), group={"type": "string", "enum": list(groups)})
    return MORE_TOOLS, f"Bring more tools, by group. {lines}.", parameters


def _purpose(group: str) -> str:
    """Return the purpose of a group; one that has no name in `GROUPS` is a toolset."""
    return GROUPS.get(group, f"all tools of {group}")


def _tool_definition(tool: Tool, *, short: bool) -> Mapping[str, object]:
    """Return a tool's definition. Short: the first sentence of its description, and arguments without descriptions."""
    description, parameters = tool.description, tool.parameters
    if short:
        description = f"{description.partition('. ')[0].rstrip('.')}."
        properties = cast("Mapping[str, Mapping[str, object]]", parameters["properties"])
        parameters = {
            **parameters,
            "properties": {
                name: {key: value for key, value in member.items() if key != "description"}
                for name, member in properties.items()
                if name not in tool.hidden_by_default
            },
        }
    return _function(tool.name, description, parameters)


def _function(name: str, description: str, parameters: Mapping[str, object]) -> Mapping[str, object]:
    """Return a tool in the chat-completions form."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
