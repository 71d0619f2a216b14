"""Selection of tools for a model: all, or for a small context a few with short descriptions, and more on demand.

The 37 tools with a phone are 16 kB of schemas, some 4,000 tokens: the whole of a small context. The selected few
suffice for most tasks; the others are in groups, and the tool `more_tools` adds a group for the rest of the turn. A
call of a tool outside the selection is run as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from attrs import frozen

from svc_proto.agent.interface import ToolCall
from svc_proto.agent.tools.tool import Arguments, Tool, Toolset, schema
from svc_proto.engine.flow import Flow

__all__ = ["MORE_TOOLS", "SMALL_CONTEXT", "TOOLSETS", "ToolSelection", "ToolPolicy", "more_tools"]

SMALL_CONTEXT = 16_384  # tokens; a model with less is offered a few tools
TOOLSETS = ("phone", "memory", "skills", "user", "mcp")
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
    """The tools of one turn. `rows` is the list for the model; it grows."""

    def __init__(self, toolsets: Mapping[str, tuple[Tool, ...]], *, few: bool) -> None:
        self._groups: dict[str, list[Tool]] = {}
        self.rows: list[Mapping[str, object]] = []
        for tool in (tool for tools in toolsets.values() for tool in tools):
            if few and tool.group:
                self._groups.setdefault(tool.group, []).append(tool)
            else:
                self.rows.append(_tool_definition(tool, short=few))
        if self._groups:
            self.rows.append(_function(*_more(self._groups)))

    def expand(self, calls: Iterable[ToolCall]) -> None:
        """Add the groups that these calls request, for the model's next request."""
        for call in calls:
            if call.name == MORE_TOOLS:
                self.rows += [
                    _tool_definition(tool, short=True) for tool in self._groups.pop(str(call.args.get("group")), ())
                ]


def more_tools(toolsets: tuple[Toolset, ...]) -> Toolset:
    """Return the toolset of `more_tools`. `ToolSelection` offers the tool if there is a group to add."""
    names: dict[str, list[str]] = {}
    for tool in (tool for toolset in toolsets for tool in toolset.tools if tool.group):
        names.setdefault(tool.group, []).append(tool.name)

    def run(arguments: Arguments) -> Flow[str]:
        yield from ()
        group = str(arguments["group"])
        return f"until this answer is done you have: {', '.join(names.get(group, (GROUPS[group],)))}"

    name, description, parameters = _more(GROUPS)
    tool = Tool(name=name, description=description, parameters=parameters, run=run, reads_foreign_content=False)
    return Toolset(name="more", label="More", description="Brings groups of tools", tools=(tool,), offered=False)


def _more(groups: Iterable[str]) -> tuple[str, str, Mapping[str, object]]:
    """Return name, description and parameters of the tool that adds a group."""
    lines = "; ".join(f"{group}: {GROUPS[group]}" for group in groups)
    parameters = schema(("group",), group={"type": "string", "enum": list(groups)})
    return MORE_TOOLS, f"Bring more tools, by group. {lines}.", parameters


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
