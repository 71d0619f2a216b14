import pytest

from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.mcp_command import HOW, NONE
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from tests.agent.harness import ROUTE, AgentHarness
from tests.support.servers.mcp_program import READ, WRITE, McpProgram, install, tool


def said(world: AgentHarness, *lines: str, found: dict[str, object] | None = None) -> list[str]:
    """Run each line as a turn, alternately without and with a model; return the answers."""
    answers: list[str] = []

    def plan(parts: AgentParts, engine: Engine) -> Flow[None]:
        parts.use_servers(found or {})
        assert (parts.servers is None) is (found is None)  # nothing is loaded without servers
        for place, line in enumerate(lines):
            world.host.events.clear()
            route = ROUTE if place % 2 else None
            yield from world.turn(parts, line, model=route)
            answers.append(world.host.text)
        parts.stop()

    world.run(plan)
    return answers


def test_without_servers() -> None:
    assert said(AgentHarness(), "/mcp", " /MCP\n", "/mcp reload") == [NONE] * 3


def test_the_list() -> None:
    class Shop(McpProgram):
        tools = (READ, WRITE, *[tool(f"t{number}", "x" * 800) for number in range(70)])

    world = AgentHarness()
    shops = install(world.agent_host, Shop)
    found = {"shop": {"command": "/bin/shop", "auto": ["read"]}, "lost": {"command": "/bin/lost"}, "bad": {}}
    first, second, third = said(world, "/mcp", "/mcp reload", "/mcp what", found=found)
    lines = first.split("\n")
    assert lines[0].startswith("- **shop**: ready, 59 tools: `mcp_shop_read` (no approval), `mcp_shop_write`, ")
    assert lines[0].endswith("; 13 more are left out, being too many or too long")
    assert lines[1:] == [
        "- **lost**: failed ('/bin/lost' cannot be started: there is no such program, or folder)",
        "- **bad**: not usable (it needs a command or a url, and not both)",
    ]
    assert (second, third) == (first, HOW)
    assert len(shops) == 2


@pytest.mark.parametrize("line", ["mcp", "MCP reload"])
def test_without_a_model_it_needs_no_slash(line: str) -> None:
    assert said(AgentHarness(), line) == [NONE]


@pytest.mark.parametrize("line", ["mcp tools", "/mcpx", "/svc mcp", "tell me of /mcp"])
def test_other_lines_are_not_the_command(line: str) -> None:
    assert NONE not in said(AgentHarness(), line)
