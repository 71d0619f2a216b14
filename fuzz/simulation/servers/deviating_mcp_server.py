"""MCP server whose answers deviate, as a child process and over HTTP; the argument `how` selects the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runtimes.sim.child import ScriptedProgram, SimChild
from svc_proto.wire.events import Headers, ResponseData, ResponseEnd, ResponseHead
from tests.support.sim_http import ServerSideConnection

if TYPE_CHECKING:
    from runtimes.sim.connection import SimEnd
    from runtimes.sim.simulation import Simulation

PORT = 9300
RESULT = '{"content":[{"type":"text","text":"there is tea"}]}'
RESULTS: Mapping[str, str] = {  # text of a response by its name; # stands for the id of the request
    "half a surrogate pair": '{"jsonrpc":"2.0","id":#,"result":{"content":[{"type":"text","text":"tea \\ud83d"}]}}',
    "NaN": '{"jsonrpc":"2.0","id":#,"result":{"n":NaN,"content":[{"type":"text","text":"tea"}]}}',
    "repeated member": f'{{"jsonrpc":"2.0","id":#,"result":{{}},"result":{RESULT}}}',
    "text in place of parts": '{"jsonrpc":"2.0","id":#,"result":{"content":"tea"}}',
    "error null": f'{{"jsonrpc":"2.0","id":#,"result":{RESULT},"error":null}}',
    "byte order mark": f'\ufeff{{"jsonrpc":"2.0","id":#,"result":{RESULT}}}',
}
PROBLEMS: Mapping[str, str] = {  # these lead to an error
    "cut": '{"jsonrpc":"2.0","id":#,"result":{"content":[{"type":"te',
    "number": '{"jsonrpc":"2.0","id":#,"result":5}',
    "depth": f'{{"jsonrpc":"2.0","id":#,"result":{"[" * 500}{"]" * 500}}}',
    "neither": '{"jsonrpc":"2.0","id":#}',
}
SESSIONS = ("forgotten, 404", "forgotten, 400", "moved")  # over HTTP, with a good result in the end
TOOL = {"name": "look", "inputSchema": {"type": "object", "properties": {"how": {"type": "string"}}}}


class DeviatingMcpServer:
    """State that both transports share. `replied` is the time of the last answer to a call, or refusal of a session."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.replied = 0.0
        self.forgot = False  # every session, until a new one is opened
        self.renewed = False  # a session was opened since then

    def response(self, message: Mapping[str, Any]) -> bytes:
        """Return the JSON-RPC response to a request; for a tool call the argument `how` selects the deviation."""
        identity = json.dumps(message["id"])
        if message["method"] == "tools/call":
            self.replied = self.sim.now
            how = message["params"]["arguments"]["how"]
            text = {**RESULTS, **PROBLEMS}.get(how) or f'{{"jsonrpc":"2.0","id":#,"result":{RESULT}}}'
            return text.replace("#", identity).encode()
        results = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            },
            "tools/list": {"tools": [TOOL]},
        }
        result = results.get(message["method"], {})
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


class DeviatingMcpProgram(ScriptedProgram):
    """The deviating MCP server as a program on standard input and output."""

    def __init__(self, server: DeviatingMcpServer, child: SimChild) -> None:
        super().__init__(child)
        self._server = server
        self._received = b""

    def on_input(self, data: bytes) -> None:
        """Answer the request in each whole line; ignore notifications."""
        *lines, self._received = (self._received + data).split(b"\n")
        for message in map(json.loads, lines):
            if "id" in message:
                self.child.emit(self._server.response(message) + b"\n")


class DeviatingMcpConnection(ServerSideConnection):
    """HTTP connection to the deviating MCP server."""

    def __init__(self, server: DeviatingMcpServer, end: SimEnd) -> None:
        super().__init__(end)
        self._server = server

    def on_request(self, body: bytes) -> None:
        """Answer an HTTP request: 202 to a notification, 405 to another request without an id, else as `how` selects.

        Requests in an unknown session get 404 or 400, until `initialize`; those to a path that has moved get 307.
        """
        server = self._server
        message = json.loads(body) if self.head.method == "POST" else {}
        how = message.get("params", {}).get("arguments", {}).get("how", "")
        if "id" not in message:
            self.answer(202 if message else 405, b"")
        elif message["method"] == "initialize":
            server.renewed, server.forgot = server.forgot, False
            self._respond(message)
        elif server.forgot or (how.startswith("forgotten") and not server.renewed):
            server.forgot, server.replied = True, server.sim.now
            if how.endswith("404"):
                self.answer(404, b"")
            else:
                self.answer(400, b'{"error":{"message":"Bad Request: No valid session ID provided"}}')
        elif how == "moved" and not self.head.target.endswith("/"):
            self.answer(307, b"", (b"location", self.head.target.encode() + b"/"))
        else:
            server.renewed = server.renewed and not how
            self._respond(message)

    def _respond(self, message: Mapping[str, Any]) -> None:
        fields = ((b"content-type", b"application/json"), (b"mcp-session-id", b"s1"))
        self.put(
            ResponseHead(self.stream, 200, Headers(fields)),
            ResponseData(self.stream, self._server.response(message)),
            ResponseEnd(self.stream),
        )
