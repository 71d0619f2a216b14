"""Simulated MCP servers for the agent: a child process of the home, a remote server, and one with false statements.

The arguments of a call select its answer: good, late, missing, wrong, endless, or a crash. These servers are none of
ours: no flows, no deadlines, and their statements need not be true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fuzz.simulation.deployment import Deployment
from fuzz.simulation.servers.mcp_tool_behavior import SOON, TIMEOUT, Said, ToolCallBehavior, ToolTransport, note
from runtimes.sim.child import ScriptedProgram, SimChild
from runtimes.sim.connection import SimEnd
from svc_proto.commands import SignalName
from svc_proto.wire.events import (
    Headers,
    ResponseData,
    ResponseEnd,
    ResponseHead,
)
from tests.support.sim_http import ServerSideConnection, listen

PORT = 9200
PROGRAMS = {"files": "/usr/bin/files-server", "gossip": "/usr/bin/gossip-server"}
SERVERS: Mapping[str, Mapping[str, object]] = {
    "files": {"command": PROGRAMS["files"], "auto": ["look"]},
    "gossip": {"command": PROGRAMS["gossip"]},
    "tickets": {"url": f"http://10.0.0.6:{PORT}/mcp", "trust": True},
}
ASKING = ("mcp_files_act", "mcp_gossip_look", "mcp_gossip_act", "mcp_tickets_act")  # tools that need an approval


class SimMcpServers:
    """All simulated MCP servers. `heard` is called for each call, with the model's name of its tool."""

    def __init__(self, world: Deployment, heard: Callable[[str, str, str], None]) -> None:
        self.world = world
        self.heard = heard
        self.answered: dict[str, float] = {}  # by mark, when a good answer was sent
        self.editions: dict[str, int] = {}  # by server, how often its tool descriptions have changed
        self._open = False

    def open(self) -> None:
        """Start and configure the servers."""
        if self._open:
            return
        self._open = True
        home = self.world.home
        for name, path in PROGRAMS.items():
            home.programs[path] = partial(_StdioMcpServer, self, name)
        far = self.world.sim.host("toolshed", "10.0.0.6")
        listen(far, PORT, partial(_McpConnection, _HttpMcpServer(self)))
        self._configure(
            {name: {**about, "timeout": TIMEOUT, "connect_timeout": TIMEOUT} for name, about in SERVERS.items()}
        )

    def close(self) -> None:
        """Remove the configuration: the next turn ends the servers."""
        if self._open:
            self._configure({})

    def _configure(self, servers: Mapping[str, object]) -> None:
        text = json.dumps({"mcp_servers": servers})
        self.world.home.disk.put(f"{self.world.home.state}/config.yaml", text.encode())

    # --- answers ---

    def answer(self, server: str, message: Mapping[str, Any], way: ToolTransport) -> None:
        """Answer a request."""
        identity, method = message["id"], message["method"]
        if method == "tools/call":
            params = message["params"]
            call = ToolCallBehavior(self, server, identity, params, way)
            how = str(params["arguments"]["how"])
            self.heard(f"mcp_{server}_{params['name']}", call.mark, how)
            getattr(call, how)()
            return
        results: dict[str, Said] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": server, "version": "1"},
            },
            "tools/list": {"tools": self._tools(server)},
        }
        way.send_message({"jsonrpc": "2.0", "id": identity, "result": results.get(method, {})}, last=True)

    def _tools(self, server: str) -> list[Said]:
        edition = self.editions.get(server, 0)
        schema = {"type": "object", "properties": {"how": {"type": "string"}, "mark": {"type": "string"}}}
        return [
            {
                "name": name,
                "description": f"{name}s, edition {edition}",
                "inputSchema": schema,
                "annotations": {"readOnlyHint": name == "look" or server == "gossip"},
            }
            for name in ("look", "act")
        ]


class _StdioMcpServer(ScriptedProgram):
    """MCP server on standard input and output. One of two ignores requests to stop."""

    def __init__(self, shed: SimMcpServers, name: str, child: SimChild) -> None:
        super().__init__(child)
        self._shed = shed
        self._name = name
        self._heard = b""
        self._stubborn = shed.world.rng.random() < 0.5

    def on_start(self) -> None:
        """Write to standard error, which is discarded."""
        self.child.emit_error(b"starting\n")

    def on_input(self, data: bytes) -> None:
        """Handle whole lines."""
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "id" in message and "method" in message and self.child.alive:
                self._shed.answer(self._name, message, self)

    def on_input_closed(self) -> None:
        """Exit, unless this server is stubborn; always exit if the parent was killed."""
        if not self._stubborn or self.child.output.gone:
            super().on_input_closed()

    def on_signal(self, signal: SignalName) -> None:
        """Exit, unless this server is stubborn."""
        if not self._stubborn:
            super().on_signal(signal)

    # --- transport ---

    def send_message(self, message: Said, *, last: bool = False) -> None:
        """Write a message as one line."""
        self.send_garbage(json.dumps(message).encode() + b"\n")

    def send_garbage(self, data: bytes) -> None:
        """Write any bytes."""
        self.child.emit(data)

    def crash(self) -> None:
        """Exit with an error text."""
        self.child.emit_error(b"out of order\n")
        self.child.exit(3)

    def cut(self, later: Callable[[ToolTransport], None]) -> None:
        """Pause: a pipe cannot be interrupted."""
        self._shed.world.sim.after(SOON, lambda: later(self) if self.child.alive else None)


class _HttpMcpServer:
    """Remote MCP server over Streamable HTTP."""

    def __init__(self, shed: SimMcpServers) -> None:
        self.shed = shed
        self.sessions = 0
        self.forgotten = False  # every session is refused
        self.cut_off: Callable[[ToolTransport], None] | None = None  # continues the answer after event 1


class _McpConnection(ServerSideConnection):
    """Connection to the remote server."""

    def __init__(self, far: _HttpMcpServer, end: SimEnd) -> None:
        super().__init__(end)
        self._far = far
        self._begun = False  # an event stream has begun

    def on_request(self, body: bytes) -> None:
        """Answer a request by its method and the called tool."""
        self._begun = False
        head, far = self.head, self._far
        if head.method == "GET":
            later, far.cut_off = far.cut_off, None
            if head.headers.get(b"last-event-id") is None or later is None:
                self._send_response(405)
            else:
                later(self)
            return
        message = json.loads(body) if body else {}
        if head.method != "POST" or "id" not in message or "method" not in message:
            self._send_response(202)
            return
        if message["method"] == "initialize":
            far.sessions += 1
            far.forgotten = False
        elif far.forgotten:
            self._send_response(404)
            return
        how = message.get("params", {}).get("arguments", {}).get("how")
        if how == "forget" and far.sessions % 2:
            far.forgotten = True
            self._send_response(404)
            return
        far.shed.answer("tickets", message, self)

    def _send_response(self, status: int) -> None:
        self.put(ResponseHead(self.stream, status, Headers([(b"content-length", b"0")])), ResponseEnd(self.stream))

    # --- transport ---

    def send_message(self, message: Said, *, last: bool = False) -> None:
        """Send a message as an event."""
        self._event(b"", json.dumps(message).encode())
        if last and not self.end.gone:
            self.put(ResponseEnd(self.stream))

    def send_garbage(self, data: bytes) -> None:
        """Send an event that is no message."""
        self._event(b"", b"{no message")

    def crash(self) -> None:
        """Reset the connection."""
        self.end.abort()

    def cut(self, later: Callable[[ToolTransport], None]) -> None:
        """Reset the connection after an event with a number; the answer continues when the client resumes."""
        self._far.cut_off = later
        self._event(b"id: 1\n", json.dumps(note("notifications/message", {"level": "info", "data": "x"})).encode())
        self._far.shed.world.sim.after(0.1, self.end.abort)

    def _event(self, number: bytes, data: bytes) -> None:
        if self.end.gone:
            return
        if not self._begun:
            self._begun = True
            session = (b"mcp-session-id", b"session-%d" % self._far.sessions)
            self.put(ResponseHead(self.stream, 200, Headers([(b"content-type", b"text/event-stream"), session])))
        self.put(ResponseData(self.stream, number + b"data: " + data + b"\n\n"))
