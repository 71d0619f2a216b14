"""Chat command `/mcp`: lists the MCP servers, their state and their tools; `/mcp reload` restarts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from svc_proto.agent.interface import AgentHost, TextDelta, Turn, TurnOutcome
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import content_text

if TYPE_CHECKING:
    from svc_proto.agent.mcp_servers import McpServers

__all__ = ["matches", "run"]

NAME = "/mcp"
RELOAD = "reload"
NONE = "No MCP server is configured: name some under `mcp_servers` in config.yaml (docs/howto/mcp-servers.md)."
HOW = "`/mcp` lists the MCP servers, `/mcp reload` starts them anew."


def matches(turn: Turn) -> bool:
    """Report whether a turn is the `/mcp` command; without a model the command needs no slash."""
    prompt = turn.prompt
    if turn.model is None and content_text(prompt).lower().split() in (["mcp"], ["mcp", RELOAD]):
        return True
    if isinstance(prompt, str) and not prompt.lstrip().startswith("/"):
        return False
    return content_text(prompt).lower().split()[:1] == [NAME]


def run(servers: McpServers | None, turn: Turn, host: AgentHost) -> Flow[TurnOutcome]:
    """Answer the turn's `/mcp` command: start the MCP servers that are not started, and list all.

    For `/mcp reload` all are restarted first. Other words behind `/mcp` are answered with its usage. Without configured
    servers, the answer only states that.
    """
    words = content_text(turn.prompt).lower().split()[1:]
    if servers is None:
        text = NONE
    elif words not in ([], [RELOAD]):
        text = HOW
    else:
        yield from servers.reload() if words else servers.ready()
        text = "\n".join(map(_line, servers.report())) or NONE
    host.emit(TextDelta(text))
    return TurnOutcome()


def _line(row: Mapping[str, object]) -> str:
    tools = cast("Sequence[Mapping[str, object]]", row["tools"])
    pieces = [f"- **{row['name']}**: {row['state']}"]
    if row["problem"]:
        pieces.append(f" ({row['problem']})")
    if tools:
        names = ", ".join(f"`{tool['name']}`{'' if tool['asks'] else ' (no approval)'}" for tool in tools)
        pieces.append(f", {len(tools)} tools: {names}")
    if row["left_out"]:
        pieces.append(f"; {row['left_out']} more are left out, being too many or too long")
    return "".join(pieces)
