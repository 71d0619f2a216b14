"""Answers of simulated MCP servers to tool calls: good, late, wrong, long, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from fuzz.simulation.servers.mcp_servers import SimMcpServers

TIMEOUT = 4  # s until a call times out; ten times as long with progress
BEHAVIORS = (
    *("echo", "late", "slow", "wrong", "garbage", "asks", "flood", "huge", "changed"),  # faulty answers with a good end
    *("silent", "crash", "fail", "refuse", "cut", "forget", "endless"),
)
ENDLESS = 60  # words
STRAY = "stray words"  # in answers to requests that were never sent
HUGE = "much " * 18_000  # characters: more than a model receives of one result
FLOOD = 600  # notes at once: more than the limit of a second
SOON = 1.2  # s
Said: TypeAlias = Mapping[str, object]


class ToolTransport(Protocol):
    """Transport of the answer to one request."""

    def send_message(self, message: Said, *, last: bool = False) -> None:
        """Send a message; the `last` one is the response."""
        ...

    def send_garbage(self, data: bytes) -> None:
        """Send bytes that are no message."""
        ...

    def crash(self) -> None:
        """End the server or its connection."""
        ...

    def cut(self, later: Callable[[ToolTransport], None]) -> None:
        """Interrupt the connection; `later` continues the answer."""
        ...


class ToolCallBehavior:
    """Answer to one call: a method for each word of `BEHAVIORS`."""

    def __init__(
        self, shed: SimMcpServers, server: str, identity: object, params: Mapping[str, Any], way: ToolTransport
    ) -> None:
        self.mark = str(params["arguments"]["mark"])
        self._shed = shed
        self._server = server
        self._identity = identity
        self._token = params["_meta"]["progressToken"]
        self._way = way
        self._after = shed.world.sim.after

    def echo(self, more: str = "", way: ToolTransport | None = None) -> None:
        """Answer correctly."""
        self._shed.answered[self.mark] = self._shed.world.sim.now
        (way or self._way).send_message(_result(self._identity, f"done {self.mark} {more}"), last=True)

    def late(self) -> None:
        """Answer correctly after a pause."""
        self._after(SOON, self.echo)

    def slow(self, words: int = 3) -> None:
        """Answer after the timeout of a call, with progress notifications before."""
        for count in range(1, words + 1):
            told = {"progressToken": self._token, "progress": count}
            self._after(0.6 * TIMEOUT * count, partial(self._way.send_message, note("notifications/progress", told)))
        if words < ENDLESS:
            self._after(0.6 * TIMEOUT * (words + 1), self.echo)

    def endless(self) -> None:
        """Send progress notifications, and no answer."""
        self.slow(ENDLESS)

    def wrong(self) -> None:
        """Answer unknown request ids first."""
        for identity in (f"other {self._identity}", 10_000):
            self._way.send_message(_result(identity, STRAY))
        self._after(SOON, self.echo)

    def garbage(self) -> None:
        """Send invalid messages first."""
        self._way.send_garbage(b"\xff{no message\n\n")
        self._way.send_message({"jsonrpc": "1.0", "result": [STRAY]})
        self._after(0.1, self.echo)

    def asks(self) -> None:
        """Send requests to the client first, one with a used id."""
        self._way.send_message({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        self._way.send_message(
            {"jsonrpc": "2.0", "id": self._identity, "method": "sampling/createMessage", "params": {}}
        )
        self._after(0.2, self.echo)

    def flood(self) -> None:
        """Send more notifications than the limit of a second first."""
        for _ in range(FLOOD):
            self._way.send_message(note("notifications/message", {"level": "info", "data": "x"}))
        self.echo()

    def huge(self) -> None:
        """Send a long answer."""
        self.echo(HUGE)

    def changed(self) -> None:
        """Answer, and change the tools."""
        self._shed.editions[self._server] = self._shed.editions.get(self._server, 0) + 1
        self._way.send_message(note("notifications/tools/list_changed", {}))
        self.echo()

    def silent(self) -> None:
        """Do not answer."""

    def crash(self) -> None:
        """End the server."""
        self._way.crash()

    def fail(self) -> None:
        """Answer that the tool has failed."""
        result = {**_content("no"), "isError": True}
        self._way.send_message({"jsonrpc": "2.0", "id": self._identity, "result": result}, last=True)

    def refuse(self) -> None:
        """Answer with a JSON-RPC error."""
        error = {"code": -32000, "message": "no"}
        self._way.send_message({"jsonrpc": "2.0", "id": self._identity, "error": error}, last=True)

    def cut(self) -> None:
        """Answer after a reconnect."""
        self._way.cut(lambda way: self.echo(way=way))

    def forget(self) -> None:
        """Answer correctly; before that, `_McpConnection` may have dropped the session."""
        self.echo()


def _content(text: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}]}


def _result(identity: object, text: str) -> Said:
    return {"jsonrpc": "2.0", "id": identity, "result": _content(text)}


def note(method: str, params: Said) -> Said:
    """Build a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}
