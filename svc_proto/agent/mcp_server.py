"""Lifecycle of one configured MCP server: started at the first use, restarted after a failure.

| state    | trigger | next     |                                                                           |
|----------|---------|----------|---------------------------------------------------------------------------|
| DOWN     | START   | STARTING | the first use, such as a turn with tools                                  |
| STARTING | UP      | READY    | its tools are listed                                                      |
| STARTING | FAIL    | WAITING  | for a pause that doubles from 1 s to 5 minutes                            |
| READY    | FAIL    | WAITING  | the same; the pause is short again after a minute of service              |
| WAITING  | START   | STARTING | the pause is over, a test is requested, or a call found its session ended |
| any      | STOP    | STOPPED  | removed, changed or reloaded configuration, or the process ends           |

A call waits for a server that is starting, at most for its timeout. If the server is not started or has failed, the
call fails at once, with a text for the model, and the turn goes on.
"""

from enum import Enum
from typing import cast

from svc_proto.agent.mcp_config import McpServerConfig
from svc_proto.agent.tools.mcp_tools import parse_tool_result, tools_of
from svc_proto.agent.tools.tool import Arguments, Tool, ToolResult
from svc_proto.basics.errors import ToolError
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.sync import Condition
from svc_proto.machines.transitions import Table, step
from svc_proto.service_clients.mcp_client import McpClient, McpError, McpTransport
from svc_proto.service_clients.mcp_http_transport import HttpParameters, McpHttpTransport
from svc_proto.service_clients.mcp_stdio_transport import McpStdioTransport

__all__ = ["MCP_SERVER_TABLE", "McpServer", "McpServerState", "McpServerTrigger"]

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0  # s between two attempts
STABLE_AFTER = 60.0  # s of service after which the pause is reset
LISTS_AGAIN = 5.0  # s at least between two lists of tools, however often a server reports changes


class McpServerState(Enum):
    """State of an MCP server."""

    DOWN = "not started"
    STARTING = "starting"
    READY = "ready"
    WAITING = "failed"
    STOPPED = "stopped"


class McpServerTrigger(Enum):
    """Event that can change the state of an MCP server (`McpServerState`)."""

    START = "start"
    UP = "up"
    FAIL = "fail"
    STOP = "stop"


MCP_SERVER_TABLE: Table[McpServerState, McpServerTrigger] = {
    (McpServerState.DOWN, McpServerTrigger.START): McpServerState.STARTING,
    (McpServerState.STARTING, McpServerTrigger.UP): McpServerState.READY,
    (McpServerState.STARTING, McpServerTrigger.FAIL): McpServerState.WAITING,
    (McpServerState.READY, McpServerTrigger.FAIL): McpServerState.WAITING,
    (McpServerState.WAITING, McpServerTrigger.START): McpServerState.STARTING,
    **{(state, McpServerTrigger.STOP): McpServerState.STOPPED for state in McpServerState},
}


class McpServer:
    """MCP server of the configuration. `tools`: those of its latest list that the configuration and limits allow."""

    def __init__(self, engine: Engine, config: McpServerConfig) -> None:
        self.config = config
        self.state = McpServerState.DOWN
        self.tools: tuple[Tool, ...] = ()
        self.left_out = 0  # tools beyond the limits
        self.problem = ""  # why the server is unavailable
        self.attempts = 0
        self._engine = engine
        self._client: McpClient | None = None
        self._task: Task | None = None
        self._bell = Condition(engine)
        self._again = engine.timers.timer(self.start)
        self._lists = engine.timers.timer(self._list_again)
        self._pause = FIRST_PAUSE
        self._since = 0.0  # monotonic seconds of the latest start
        self._listed = 0.0  # monotonic seconds of the latest list

    @property
    def ready(self) -> bool:
        """Report whether the tools can be called."""
        return self.state is McpServerState.READY

    def start(self) -> None:
        """Start the server, unless it is starting, ready or stopped for good."""
        if (self.state, McpServerTrigger.START) in MCP_SERVER_TABLE:
            self._step(McpServerTrigger.START)
            self._again.cancel()
            self.attempts += 1
            self._task = self._engine.spawn(self._open())

    def stop(self) -> None:
        """Stop the server's process or connection for good; calls that wait for its start fail."""
        self._step(McpServerTrigger.STOP)
        self._bell.notify_all()
        self._again.retire()
        self._lists.retire()
        if self._task is not None:
            self._task.cancel()
        if self._client is not None:
            self._client.close()

    def wait_settled(self, until: float) -> Flow[None]:
        """Wait until the server is not starting any more, or until a monotonic time."""
        while self.state is McpServerState.STARTING and self._engine.now.mono < until:
            yield from self._bell.wait(until)

    def call(self, name: str, arguments: Arguments) -> Flow[ToolResult]:
        """Call a tool by the server's name for it, and return its result. Raises `ToolError` if that fails.

        A call that the server did not receive because its session had ended is repeated once.
        """
        try:
            return (yield from self._request(name, arguments))
        except McpError as failed:
            if not failed.unheard or self.ready:
                raise self._failure(failed) from None
        self.start()
        try:
            return (yield from self._request(name, arguments))
        except McpError as failed:
            raise self._failure(failed) from None

    # --- helpers --------------------------------------------------------------------------------------------------

    def _request(self, name: str, arguments: Arguments) -> Flow[ToolResult]:
        within = self.config.timeout
        yield from self.wait_settled(self._engine.now.mono + within)
        if self._client is None or not self.ready:
            raise ToolError(f"the MCP server {self.config.name} is not there: {self.problem or self.state.value}")
        asked = self._client.request("tools/call", {"name": name, "arguments": arguments}, within=within)
        return parse_tool_result((yield from asked))

    def _failure(self, failed: McpError) -> ToolError:
        return ToolError(f"the MCP server {self.config.name} did not do it: {failed}")

    def _open(self) -> Flow[None]:
        config = self.config
        client = self._client = McpClient(self._engine, self._carry, on_over=self._ended, on_changed=self._changed)
        try:
            yield from client.open(config.connect_timeout)
            yield from self._list(client)
        except McpError as failed:
            client.close()
            self._failed(failed)
            return
        self.problem = ""
        self._since = self._engine.now.mono
        self._step(McpServerTrigger.UP)
        self._engine.log(Level.INFO, "MCP server ready", server=config.name, tools=len(self.tools))
        self._bell.notify_all()

    def _carry(self, client: McpClient) -> McpTransport:
        way = self.config.transport
        if isinstance(way, HttpParameters):
            return McpHttpTransport(self._engine, way, client)
        return McpStdioTransport(self._engine, way, client)

    def _list(self, client: McpClient) -> Flow[None]:
        self._listed = self._engine.now.mono
        rows = []
        if "tools" in client.offers:
            rows = yield from client.list_all("tools/list", "tools", within=self.config.connect_timeout)
        self.tools, self.left_out = tools_of(self.config, rows, self.call)

    def _ended(self, why: McpError) -> None:
        if self.state is McpServerState.READY:
            self._failed(why)

    def _failed(self, why: McpError) -> None:
        now = self._engine.now.mono
        if self.state is McpServerState.READY and now - self._since >= STABLE_AFTER:
            self._pause = FIRST_PAUSE
        self.problem = str(why)
        self._step(McpServerTrigger.FAIL)
        self._lists.cancel()
        self._again.set(now + self._pause)
        name, seconds = self.config.name, self._pause
        self._engine.log(Level.WARNING, "MCP server failed", server=name, problem=self.problem, again=seconds)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._bell.notify_all()

    def _changed(self) -> None:
        if self.state is McpServerState.READY and self._lists.when is None:
            self._lists.set(max(self._engine.now.mono, self._listed + LISTS_AGAIN))

    def _list_again(self) -> None:
        self._task = self._engine.spawn(self._listed_again(cast("McpClient", self._client)))

    def _listed_again(self, client: McpClient) -> Flow[None]:
        try:
            yield from self._list(client)
        except McpError as failed:
            self._engine.log(Level.WARNING, "MCP tools not listed", server=self.config.name, problem=str(failed))

    def _step(self, trigger: McpServerTrigger) -> None:
        self.state = step(MCP_SERVER_TABLE, self.state, trigger)
