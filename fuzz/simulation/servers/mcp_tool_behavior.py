"""How the servers of MCP of a world answer calls of their tools: well, late, beside the point, at length, never."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from fuzz.simulation.servers.mcp_servers import SimMcpServers

TIMEOUT = 4  # s that a call has; ten times as long for who tells of progress
BEHAVIORS = (
    *("echo", "late", "slow", "wrong", "garbage", "asks", "flood", "huge", "changed"),  # and all is well in the end
    *("silent", "crash", "fail", "refuse", "cut", "forget", "endless"),
)
ENDLESS = 60  # words
STRAY = "stray words"  # in answers to what was never asked
HUGE = "much " * 18_000  # characters: more than a model is given of one result
FLOOD = 600  # notes at once: more than may be said in a second
SOON = 1.2  # s
Said: TypeAlias = Mapping[str, object]


class ToolTransport(Protocol):
    """How one request is answered."""

    def send_message(self, message: Said, *, last: bool = False) -> None:
        """A message; the `last` one is the answer."""
        ...

    def send_garbage(self, data: bytes) -> None:
        """Bytes that are no message."""
        ...

    def crash(self) -> None:
        """Nothing more."""
        ...

    def cut(self, later: Callable[[ToolTransport], None]) -> None:
        """Break off; `later` goes on."""
        ...


class ToolCallBehavior:
    """One call, and how it is answered: a method for each word of `BEHAVIORS`."""

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
        """As it should be."""
        self._shed.answered[self.mark] = self._shed.world.sim.now
        (way or self._way).send_message(_result(self._identity, f"done {self.mark} {more}"), last=True)

    def late(self) -> None:
        """After a while."""
        self._after(SOON, self.echo)

    def slow(self, words: int = 3) -> None:
        """After more than a call has, but with a word now and then."""
        for count in range(1, words + 1):
            told = {"progressToken": self._token, "progress": count}
            self._after(0.6 * TIMEOUT * count, partial(self._way.send_message, note("notifications/progress", told)))
        if words < ENDLESS:
            self._after(0.6 * TIMEOUT * (words + 1), self.echo)

    def endless(self) -> None:
        """With words, and never."""
        self.slow(ENDLESS)

    def wrong(self) -> None:
        """First to what was never asked."""
        for identity in (f"{self._identity}", 10_000):
            self._way.send_message(_result(identity, STRAY))
        self._after(SOON, self.echo)

    def garbage(self) -> None:
        """Behind what is no message."""
        self._way.send_garbage(b"\xff{no message\n\n")
        self._way.send_message({"jsonrpc": "1.0", "result": [STRAY]})
        self._after(0.1, self.echo)

    def asks(self) -> None:
        """And it has questions of its own, by a number that was taken."""
        self._way.send_message({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        self._way.send_message(
            {"jsonrpc": "2.0", "id": self._identity, "method": "sampling/createMessage", "params": {}}
        )
        self._after(0.2, self.echo)

    def flood(self) -> None:
        """Behind more than may be said in a second."""
        for _ in range(FLOOD):
            self._way.send_message(note("notifications/message", {"level": "info", "data": "x"}))
        self.echo()

    def huge(self) -> None:
        """At length."""
        self.echo(HUGE)

    def changed(self) -> None:
        """And its tools are not what they were."""
        self._shed.editions[self._server] = self._shed.editions.get(self._server, 0) + 1
        self._way.send_message(note("notifications/tools/list_changed", {}))
        self.echo()

    def silent(self) -> None:
        """Never."""

    def crash(self) -> None:
        """By its end."""
        self._way.crash()

    def fail(self) -> None:
        """That the tool has failed."""
        result = {**_content("no"), "isError": True}
        self._way.send_message({"jsonrpc": "2.0", "id": self._identity, "result": result}, last=True)

    def refuse(self) -> None:
        """By an error."""
        error = {"code": -32000, "message": "no"}
        self._way.send_message({"jsonrpc": "2.0", "id": self._identity, "error": error}, last=True)

    def cut(self) -> None:
        """To who comes back."""
        self._way.cut(lambda way: self.echo(way=way))

    def forget(self) -> None:
        """The session may have been forgotten before; see `_Visit`."""
        self.echo()


def _content(text: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}]}


def _result(identity: object, text: str) -> Said:
    return {"jsonrpc": "2.0", "id": identity, "result": _content(text)}


def note(method: str, params: Said) -> Said:
    """A message that nobody answers."""
    return {"jsonrpc": "2.0", "method": method, "params": params}
