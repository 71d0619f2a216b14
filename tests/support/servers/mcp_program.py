"""MCP server as a scripted program of a simulated host; a test defines its tools and its faults.

shops = install(host, Shop)                             # a subclass of McpProgram
config = {"command": "/bin/shop"}
assert shops[0].seen == [...]                           # all messages to the first process
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from runtimes.sim.child import ScriptedProgram, SimChild
from runtimes.sim.host import SimHost

ScriptT = TypeVar("ScriptT", bound=ScriptedProgram)


def tool(name: str, description: str = "Does it.", **more: object) -> dict[str, Any]:
    """Return an entry of an MCP server's list of tools."""
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


READ = tool("read", annotations={"readOnlyHint": True})
WRITE = tool("write")


def install(host: SimHost, kind: Callable[[SimChild], ScriptT], path: str = "/bin/shop") -> list[ScriptT]:
    """Install a program at `path` of a host; return the list to which each started instance is appended."""
    started: list[ScriptT] = []

    def start(child: SimChild) -> ScriptT:
        started.append(kind(child))
        return started[-1]

    host.programs[path] = start
    return started


class McpProgram(ScriptedProgram):
    """Scripted MCP server over standard input and output.

    A message is answered by the method of its name, with `_` for `/`, and ignored if there is none.
    """

    tools: Sequence[Mapping[str, Any]] = (READ, WRITE)

    def __init__(self, child: SimChild) -> None:
        super().__init__(child)
        self._rest = b""
        self.seen: list[dict[str, Any]] = []

    def on_input(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self.seen.append(message)
            self.on_message(message)

    # --- hooks of tests ---

    def on_message(self, message: dict[str, Any]) -> None:
        """Call the method named like the message, if there is one, and send its result, unless that is None."""
        answer = getattr(self, str(message.get("method")).replace("/", "_"), None)
        if answer is not None:
            result = answer(**message.get("params", {}))
            if result is not None:
                self.send(id=message["id"], result=result)

    def initialize(self, protocolVersion: str, **about: object) -> Mapping[str, Any] | None:  # noqa: N803 - its name
        info = {"name": "shop", "version": "1"}
        return {"protocolVersion": protocolVersion, "capabilities": {"tools": {}}, "serverInfo": info}

    def tools_list(self, **params: object) -> Mapping[str, Any] | None:
        return {"tools": self.tools}

    def tools_call(self, name: str, arguments: Mapping[str, Any], **params: object) -> Mapping[str, Any] | None:
        return {"content": [{"type": "text", "text": f"{name} {json.dumps(arguments)}"}]}

    # --- sending ---

    def send(self, **members: object) -> None:
        self.say_bytes(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")

    def say_bytes(self, data: bytes) -> None:
        if self.child.alive:
            self.child.emit(data)
