"""MCP client of a server on standard input and output, in memory, with a simulated clock."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from svc_proto.agent.tools.tool import Arguments, Tool, schema
from svc_proto.basics.errors import ToolError
from svc_proto.cli.mcp_stdio_server import McpStdioServer
from svc_proto.commands import Abort, Command, Exit
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Accepted, Closed, OperationId, ReadClosed, Received, Sent, Started, Stopping
from svc_proto.mcp.pending_request import STATELESS_VERSION
from svc_proto.mcp.server_features import Content, DirectTool, Prompt, ServerFeatures, ServerTool
from svc_proto.mcp.subscriptions import Resource
from tests.support.playbook import CH, LOCAL, PEER, Playbook, counting_entropy, make_flow, wire_bytes

ELICITS: Mapping[str, object] = {"elicitation": {}}
WORD: Mapping[str, object] = {"type": "string"}
TICKETS = [OperationId(1_000 + number) for number in range(100)]


def modern(capabilities: Mapping[str, object] | None = None, **params: object) -> dict[str, object]:
    """Return the parameters of a stateless request."""
    about = {"protocolVersion": STATELESS_VERSION, "clientCapabilities": capabilities or {}}
    return {**params, "_meta": {f"io.modelcontextprotocol/{name}": value for name, value in about.items()}}


class McpStdioHarness:
    """MCP client of an `McpStdioServer`; `send`, `bytes` and `act` return the new messages of the server."""

    def __init__(self, offer: ServerFeatures) -> None:
        self.server = McpStdioServer(lambda engine: offer)
        self.engine = Engine(self.server, entropy=counting_entropy())
        self.book = Playbook(self.engine)
        self.commands: list[Command] = []
        self.numbers = 0
        self._record(self.book >> Started())
        self._record(self.book >> Accepted(CH, PEER, LOCAL))

    def send(self, **members: object) -> list[Any]:
        """Send one message to the server, and return the messages that follow."""
        return self.bytes(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")

    def bytes(self, data: bytes) -> list[Any]:
        return self._record(self.book >> Received(CH, data))

    def request(self, method: str, **params: object) -> Any:
        """Send a request and return its result or error; require that no other message follows."""
        self.numbers += 1
        (answer,) = self.send(id=self.numbers, method=method, params=params)
        assert answer["id"] == self.numbers
        return answer.get("result", answer.get("error"))

    def open(self, version: str = "2025-11-25", capabilities: Mapping[str, object] | None = None) -> Any:
        about = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "t"}}
        result = self.request("initialize", **about)
        assert self.send(method="notifications/initialized") == []
        return result

    def act(self, what: Callable[[], object]) -> list[Any]:
        """Call a function in the server's process, and return the messages that follow."""
        return self._record(self.book.act(what))

    def after(self, seconds: float) -> list[Any]:
        return self._record(self.book.after(seconds))

    def end(self) -> list[Any]:
        return self._record(self.book >> ReadClosed(CH))

    def stop(self) -> list[Any]:
        return self._record(self.book >> Stopping(10.0))

    def closed(self) -> list[Any]:
        return self._record(self.book >> Closed(CH, "reset"))

    @property
    def is_closed(self) -> bool:
        return Abort(CH) in self.commands

    @property
    def exited(self) -> bool:
        return any(isinstance(command, Exit) for command in self.commands)

    def _record(self, book: Playbook) -> list[Any]:
        commands = book.drain_commands()
        self.commands += commands
        data = wire_bytes(commands)
        if data:
            self.commands += (self.book >> Sent(CH, len(data))).drain_commands()
        return [json.loads(line) for line in data.splitlines()]


class ToyMcpServer:
    """Toy MCP server with tools for tests; `done` records the calls of some tools."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.asks_there = False
        self.on_begin: Callable[[], None] = lambda: None  # called when a tool begins
        self.ringing: list[Callable[[Any], bool]] = []  # callbacks for the answer to a knock
        self.watching: list[Callable[[], None]] = []  # callbacks for a changed sign

    def offer(self) -> ServerFeatures:
        ringing, unused = DirectTool(self._ring, self._rung), cast("Any", None)
        arguments = {"what": "", "who": ""}  # of the prompt

        def tool(name: str, run: Any, **more: Any) -> ServerTool:
            made = Tool(name=name, description=name, parameters=schema((), word=WORD), run=unused, **more)
            return ServerTool(tool=made, title=name.title(), reads_only=False, destructive=False, run=run)

        def there(arguments: Arguments) -> Flow[Arguments | None]:
            return make_flow({**arguments, "there": True} if self.asks_there else None)

        def resource(name: str, kind: str, read: Any, watch: Any = None) -> Resource:
            about = {"uri": f"shop://{name}", "name": name, "description": name, "media_type": kind}
            return Resource(**about, read=read, watch=watch)

        return ServerFeatures(
            name="shop",
            title="Shop",
            version="1",
            instructions="Buy.",
            tools=(
                tool("echo", self._echo),
                tool("wait", self._wait),
                tool("turn", self._wait, is_act=True),
                tool("fail", self._fail),
                tool("break", self._break),
                tool("pay", self._echo, needs_approval="It costs money.", requests_own_approval=there),
                tool("weigh", self._weigh),
                tool("ring", ringing),
                tool("knock", ringing, is_act=True),
                tool("call", ringing, needs_approval="It is late.", requests_own_approval=there),
            ),
            resources=(
                resource("sign", "text/plain", self._sign, self._watch),
                resource("photo", "image/png", self._photo),
                resource("shut", "text/plain", self._shut),
            ),
            prompts=(Prompt(name="buy", description="b", text="Buy {what} for {who}.", arguments=arguments),),
        )

    def _echo(self, arguments: Arguments) -> Flow[Sequence[Content]]:
        self.on_begin()
        self.done.append(dict(arguments))
        return make_flow([{"type": "text", "text": str(arguments.get("word"))}])

    def _weigh(self, arguments: Arguments) -> Flow[str]:
        return make_flow(json.dumps({"grams": 7, "of": arguments.get("word")}, separators=(",", ":")))

    def _ring(self, arguments: Arguments, tell: Callable[[Any], bool]) -> object:
        word = arguments.get("word")
        if word == "absent":
            return word
        if word == "shut":
            raise ToolError("it is shut")
        self.on_begin()
        self.done.append(word)
        self.ringing.append(tell)
        return None

    def _rung(self, arguments: Arguments, outcome: object) -> Sequence[Content]:
        if isinstance(outcome, Exception):
            raise outcome
        return [{"type": "text", "text": f"{arguments.get('word')}: {outcome}"}]

    def _wait(self, arguments: Arguments) -> Flow[Sequence[Content]]:
        place = len(self.done)
        self.on_begin()
        self.done.append(arguments.get("word"))
        try:
            yield from wait(TICKETS[place], 1e9)
        finally:
            self.done.append(f"end of {arguments.get('word')}")
        return []

    def _fail(self, arguments: Arguments) -> Flow[Sequence[Content]]:
        yield from ()
        raise ToolError("no bread")

    def _break(self, arguments: Arguments) -> Flow[Sequence[Content]]:
        yield from ()
        raise ZeroDivisionError

    def _sign(self) -> Flow[str | bytes]:
        return make_flow("open")

    def turn_sign(self) -> None:
        for tell in self.watching:
            tell()

    def _watch(self, tell: Callable[[], None]) -> Callable[[], None]:
        self.watching.append(tell)
        return lambda: self.watching.remove(tell)

    def _photo(self) -> Flow[str | bytes]:
        return make_flow(b"\x89PNG")

    def _shut(self) -> Flow[str | bytes]:
        yield from ()
        raise ToolError("it is shut")
