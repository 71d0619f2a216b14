"""Selection of the tools that a model is offered, and the tool `more_tools`, which describes and runs the others.

A call of `more_tools` that names a tool and its arguments is replaced by a call of that tool (`unwrap_call`).
"""

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import TypeAlias, cast

from attrs import frozen

from svc_proto.agent.request_encoder import EncodedRow
from svc_proto.agent.tools.tool import Arguments, Tool, Toolset, schema
from svc_proto.basics import strict_json
from svc_proto.basics.errors import ToolError
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject, as_text
from svc_proto.schema.model_profile import DEFAULT_TOOL_LIMIT

__all__ = ["MORE_TOOLS", "SMALL_CONTEXT", "TOOLSETS", "KnownRows", "ToolPolicy", "ToolSelection"]
__all__ += ["more_tools", "unwrap_call"]

SMALL_CONTEXT = 16_384  # tokens; a model with less is offered a few tools
TOOLSETS = ("phone", "memory", "skills", "user", "mcp")
MORE_TOOLS = "more_tools"
# Groups by name, with the purpose of their tools.
GROUPS = {
    "look": "apps, search, details, events",
    "touch": "long press, drag, swipe, wait, bars",
    "send": "clipboard, playback, sharing, intents",
    "people": "user, contacts, calls, messages, location",
    "skills": "instructions",
    "mcp": "servers of the user",
}
MORE_BY_GROUP = "Put a group into tool to read what it has, or one of its tools: "
MORE_BY_NAME = "Put one into tool, with its arguments, or without to read what it takes: "
MORE_PARAMETERS = schema(("tool",), tool={"type": "string"}, arguments={"type": "object"})
OFFERED_MORE_PARAMETERS = {name: value for name, value in MORE_PARAMETERS.items() if name != "additionalProperties"}
USE = f"Call them by {MORE_TOOLS} with tool and arguments."
UNSAID = ("minimum", "maximum")  # members of a schema that are left out for models
MAX_DESCRIBED = 20  # tools of one description
MAX_KNOWN = 16  # selections that are kept
Row = Mapping[str, object]
# Toolsets and rows of a selection, by the toolsets' names, few, limit and hidden arguments.
KnownRows: TypeAlias = dict[
    tuple[tuple[str, ...], bool, int, tuple[str, ...]], tuple[tuple[tuple[Tool, ...], ...], tuple[Row, ...]]
]


@frozen(kw_only=True)
class ToolPolicy:
    """The operator's choice of tools. `few` None: by the model's context. `only` None: all toolsets."""

    few: bool | None = None
    only: tuple[str, ...] | None = None

    def includes(self, toolset: str) -> bool:
        """Report whether a toolset is enabled. The toolset of an MCP server, `mcp-<name>`, is enabled as `mcp`."""
        return self.only is None or toolset.partition("-")[0] in self.only

    def prefers_few(self, context: int | None) -> bool:
        """Report whether a model with a context of so many tokens (None: unknown) is offered a few tools."""
        return self.few if self.few is not None else context is not None and context < SMALL_CONTEXT


class ToolSelection:
    """The tools that a model is offered: `rows`, at most `limit`, a list that changes in place.

    `hidden`: arguments that the model does not need. `known`: earlier selections, to which this one is added. Behind
    `more_tools` are rare tools, with `few` also those of a group, and whole toolsets that do not fit, the last first.
    """

    def __init__(
        self,
        toolsets: Mapping[str, tuple[Tool, ...]],
        *,
        few: bool,
        limit: int = DEFAULT_TOOL_LIMIT,
        hidden: tuple[str, ...] = (),
        known: KnownRows | None = None,
    ) -> None:
        self.rows: list[Row] = []
        self._known: KnownRows = {} if known is None else known
        self._toolsets = toolsets
        self._few = few
        self._limit = limit
        self._hidden = hidden
        self._select()

    def reduce(self, limit: int | None = None) -> bool:
        """Select few tools, or with a `limit` at most that many; report whether the list has changed."""
        before = list(self.rows)
        if limit is None:
            self._few = True
        else:
            self._limit = limit
        self._select()
        return self.rows != before

    def _select(self) -> None:
        key = (tuple(self._toolsets), self._few, self._limit, self._hidden)
        tools, rows = self._known.get(key, ((), ()))
        if not tools or not all(map(is_, tools, self._toolsets.values())):
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            rows = self._build_rows()
            self._known[key] = tuple(self._toolsets.values()), rows
        self.rows[:] = rows

    def _build_rows(self) -> tuple[Row, ...]:
        shown = {
            name: [tool for tool in tools if not (tool.is_rare or (self._few and tool.group))]
            for name, tools in self._toolsets.items()
        }
        every = [tool for tools in self._toolsets.values() for tool in tools]
        groups = dict.fromkeys(tool.group for tool in every if self._few and tool.group)
        rare = [tool.name for tool in every if tool.is_rare and not groups]
        series: list[str] = []
        for name in reversed(list(shown)):  # the servers' tools are last
            if sum(map(len, shown.values())) + bool(groups or rare or series) <= self._limit:
                break
            moved = shown.pop(name)
            series[:0] = [f"{name}: {len(moved)} tools"] * bool(moved)
        rows = [
            _function(tool.name, *_definition(tool, short=self._few, hidden=self._hidden))
            for tools in shown.values()
            for tool in tools
        ]
        if groups or rare or series:
            about = [*(f"{group}: {GROUPS[group]}" for group in groups), *series, *([", ".join(rare)] if rare else ())]
            start = MORE_BY_GROUP if groups or series else MORE_BY_NAME
            rows.append(_function(MORE_TOOLS, f"{start}{'; '.join(about)}.", OFFERED_MORE_PARAMETERS))
        return tuple(rows[: self._limit])


def more_tools(tools: Callable[[], Iterable[Tool]], hidden: Callable[[], Flow[tuple[str, ...]]]) -> Toolset:
    """Return the toolset with the tool `more_tools`, which describes those of `tools()` that its argument names.

    The argument names one tool, a group, or the start of tools' names, such as `mcp-shop` for an MCP server. At most
    `MAX_DESCRIBED` tools are described, without the arguments that `hidden()` returns.
    """

    def run(arguments: Arguments) -> Flow[str]:
        unneeded = yield from hidden()
        wanted = str(arguments["tool"])
        series = f"{wanted.replace('-', '_')}_"  # the toolset `mcp-shop` has `mcp_shop_…`
        found = [
            tool for tool in tools() if wanted and (wanted in (tool.name, tool.group) or tool.name.startswith(series))
        ]
        if not found:
            names = ", ".join([*GROUPS, *(tool.name for tool in tools() if tool.group or tool.is_rare)])
            raise ToolError(f"there is no tool and no group {wanted[:60]!r}. There are: {names}")
        lines = []
        for tool in found[:MAX_DESCRIBED]:
            description, parameters = _definition(tool, short=True, hidden=unneeded)
            lines.append(f"{tool.name}: {description} {strict_json.dumps(parameters['properties'])}")
        lines += [f"and {len(found) - MAX_DESCRIBED} more"] * (len(found) > MAX_DESCRIBED)
        return "\n".join([*lines, USE])

    description = f"{MORE_BY_GROUP}{'; '.join(f'{group}: {about}' for group, about in GROUPS.items())}."
    tool = Tool(
        name=MORE_TOOLS, description=description, parameters=MORE_PARAMETERS, run=run, reads_foreign_content=False
    )
    return Toolset(name="more", label="More", description="Shows and runs further tools", tools=(tool,), offered=False)


def unwrap_call(arguments: Arguments, find: Callable[[str], Tool | None]) -> tuple[str, Arguments] | None:
    """Return the tool and the arguments that a call of `more_tools` names.

    None: it names no other tool, or has no valid arguments for a tool that takes some besides `device`.
    """
    name, given = str(arguments.get("tool", "")), arguments.get("arguments")
    tool = find(name)
    if tool is None or name == MORE_TOOLS:
        return None
    found = JsonObject.of_or_none(given) if (text := as_text(given)) is None else JsonObject.parse(text)
    if found is None:
        return None if _definition(tool, short=True, hidden=("device",))[1]["properties"] else (name, {})
    return name, found


def _definition(tool: Tool, *, short: bool, hidden: tuple[str, ...]) -> tuple[str, Mapping[str, object]]:
    """Return a tool's description and parameters for a model, without the schema members in `UNSAID`.

    Short: the first sentence of the description, and arguments without descriptions and without `hidden_by_default`. If
    not short, those of a `pass_through` tool are returned as they are. `hidden` does not apply to such a tool, since
    its arguments are another server's.
    """
    if tool.pass_through and not short:
        return tool.description, tool.parameters
    dropped = {*UNSAID, *(("description",) if short else ())}
    left_out = {*(() if tool.pass_through else hidden), *(tool.hidden_by_default if short else ())}
    properties = cast("Mapping[str, Mapping[str, object]]", tool.parameters["properties"])
    members = {
        name: {key: value for key, value in member.items() if key not in dropped}
        for name, member in properties.items()
        if name not in left_out
    }
    parameters: dict[str, object] = {"type": "object", "properties": members}
    if required := tool.parameters.get("required"):
        parameters["required"] = required
    description = f"{tool.description.partition('. ')[0].rstrip('.')}." if short else tool.description
    return description, parameters


def _function(name: str, description: str, parameters: Mapping[str, object]) -> Row:
    """Return a tool in the chat-completions form."""
    function = {"name": name, "description": description, "parameters": parameters}
    return EncodedRow({"type": "function", "function": function})
