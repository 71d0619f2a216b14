"""MCP servers of the valid entries in the configuration, as the toolbox's source of dynamic tools."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING

from svc_proto.agent.mcp_config import OFF, parse_mcp_servers
from svc_proto.agent.mcp_server import McpServer, McpServerState
from svc_proto.agent.tools.mcp_tools import GROUP
from svc_proto.agent.tools.tool import Tool, Toolset
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.service_clients.mcp_http_transport import HttpParameters

if TYPE_CHECKING:
    from svc_proto.schema.api_types import McpServerRowJson

__all__ = ["McpServers"]

MAX_TOOLS = 128  # tools of all servers for a model
MAX_BYTES = 128 * 1024  # size of all tool definitions for a model
READY_TIMEOUT = 20.0  # s that a turn waits for servers that have never been ready


class McpServers:
    """MCP servers by name. Implements `DynamicToolSource`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._servers: dict[str, McpServer] = {}
        self._problems: dict[str, str] = {}

    def configure(self, found: Mapping[str, object]) -> None:
        """Apply a configuration: stop removed and changed servers; servers with an unchanged entry keep running.

        New and changed servers are started at their next use.
        """
        configs, self._problems = parse_mcp_servers(found)
        before, self._servers = self._servers, {}
        for config in configs:
            known = before.get(config.name)
            if known is not None and known.config == config:
                self._servers[config.name] = before.pop(config.name)
            else:
                self._servers[config.name] = McpServer(self._engine, config)
        for server in before.values():
            server.stop()

    def reload(self) -> Flow[None]:
        """Restart all servers, and wait until each is ready or has failed, at most 20 s."""
        old, self._servers = self._servers, {}
        for name, server in old.items():
            server.stop()
            self._servers[name] = McpServer(self._engine, server.config)
        yield from self.ready()

    def test(self, name: str) -> Flow[None]:
        """Start a server if it is not ready, and wait until it is ready or has failed, at most 20 s.

        A name without a server is ignored.
        """
        server = self._servers.get(name)
        if server is not None:
            server.start()
            yield from server.wait_settled(self._engine.now.mono + READY_TIMEOUT)

    def stop(self) -> None:
        """Stop and remove all servers."""
        for server in self._servers.values():
            server.stop()
        self._servers = {}

    # --- for the toolbox ------------------------------------------------------------------------------------------

    def ready(self) -> Flow[None]:
        """Start servers that are not started, and wait for the first attempt of each, at most 20 s together.

        A server that has failed before is not waited for.
        """
        until = self._engine.now.mono + READY_TIMEOUT
        for server in self._servers.values():
            if server.state is McpServerState.DOWN:
                server.start()
        for server in list(self._servers.values()):
            if server.attempts == 1:
                yield from server.wait_settled(until)

    def tool(self, name: str) -> Tool | None:
        """Return a tool by its name, whether its server is ready or not; None if no server has it."""
        every = chain.from_iterable(server.tools for server in self._servers.values())
        return next((tool for tool in every if tool.name == name), None)

    def toolsets(self) -> tuple[Toolset, ...]:
        """Return one toolset for each server: its tools if it is ready, within the limits for all; else no tools."""
        found: list[Toolset] = []
        left, room = MAX_TOOLS, MAX_BYTES
        for name, server in self._servers.items():
            tools: list[Tool] = []
            for tool in server.tools if server.state is McpServerState.READY else ():
                left, room = left - 1, room - len(tool.description) - len(repr(tool.parameters))
                if left >= 0 and room >= 0:
                    tools.append(tool)
            found.append(
                Toolset(
                    name=f"{GROUP}-{server.config.slug}",
                    label=name,
                    description=f"Tools of the MCP server {name}",
                    configured=server.state is McpServerState.READY,
                    tools=tuple(tools),
                )
            )
        return tuple(found)

    # --- status ---------------------------------------------------------------------------------------------------

    def report(self) -> list[McpServerRowJson]:
        """Return a row for each server, and for each entry that is invalid, disabled or one too many.

        Rows have no members for commands, addresses, variables and headers, which may hold secrets.
        """
        rows: list[McpServerRowJson] = []
        offered = {toolset.label: toolset.tools for toolset in self.toolsets()}
        for name, server in self._servers.items():
            tools = offered[name]
            rows.append(
                {
                    "name": name,
                    "transport": "http" if isinstance(server.config.transport, HttpParameters) else "stdio",
                    "state": server.state.value,
                    "problem": server.problem or None,
                    "tools": [{"name": tool.name, "asks": tool.needs_approval is not None} for tool in tools],
                    "left_out": server.left_out + len(server.tools) - len(tools) if server.ready else 0,
                }
            )
        for name, problem in self._problems.items():
            state = "off" if problem == OFF else "not usable"
            rows.append(
                {"name": name, "transport": None, "state": state, "problem": problem, "tools": [], "left_out": 0}
            )
        return rows
