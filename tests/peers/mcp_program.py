"""An MCP server as a scripted program of a simulated host; a test says what its tools do, or what it does wrong.

    host.programs["/bin/shop"] = Shop                       # or a class that is made of it
    config = {"command": "/bin/shop"}

`seen` has every message that came, of all that were started; `running` those that run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from runtimes.sim.child import Child, Script
from svc_proto.commands import SignalName

__all__ = ["READ", "WRITE", "McpProgram", "tool"]


def tool(name: str, description: str = "Does it.", **more: object) -> dict[str, Any]:
    """A row of a list of tools."""
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


READ = tool("read", annotations={"readOnlyHint": True})
WRITE = tool("write")


class McpProgram(Script):
    """Answers as it should. Subclasses have lists of their own, as each test wants its own."""

    tools: ClassVar[list[dict[str, Any]]] = [READ, WRITE]
    seen: ClassVar[list[dict[str, Any]]] = []
    running: ClassVar[list[McpProgram]] = []

    def __init_subclass__(cls) -> None:
        cls.seen, cls.running = [], []

    def __init__(self, child: Child) -> None:
        super().__init__(child)
        self._rest = b""
        self.signals: list[SignalName] = []
        self.running.append(self)

    def on_input(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self.seen.append(message)
            self.take(message)

    def on_signal(self, signal: SignalName) -> None:
        self.signals.append(signal)
        super().on_signal(signal)

    # --- what a test may change ---

    def take(self, message: dict[str, Any]) -> None:
        """A message came."""
        answer = getattr(self, str(message.get("method")).replace("/", "_"), None)
        if answer is not None:
            result = answer(**message.get("params", {}))
            if result is not None:
                self.say(id=message["id"], result=result)

    def initialize(self, protocolVersion: str, **about: object) -> Mapping[str, Any] | None:  # noqa: N803 - its name
        info = {"name": "shop", "version": "1"}
        return {"protocolVersion": protocolVersion, "capabilities": {"tools": {}}, "serverInfo": info}

    def tools_list(self, **params: object) -> Mapping[str, Any] | None:
        return {"tools": self.tools}

    def tools_call(self, name: str, arguments: Mapping[str, Any], **params: object) -> Mapping[str, Any] | None:
        return {"content": [{"type": "text", "text": f"{name} {json.dumps(arguments)}"}]}

    # --- saying ---

    def say(self, **members: object) -> None:
        self.say_bytes(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")

    def say_bytes(self, data: bytes) -> None:
        if self.child.alive:
            self.child.emit(data)
