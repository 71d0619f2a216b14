"""A server of MCP that an audit keeps, as a program or far away: it says what it is told, and notes what it hears."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fuzz.audits.heard import Events, Listener
from fuzz.audits.lodge import Lodge
from fuzz.part import Round, asking
from runtimes.sim.child import Child, Script
from runtimes.sim.host import Host
from svc_proto.commands import SignalName
from svc_proto.wire.events import Headers, RequestHead, ResponseData, ResponseEnd, ResponseHead
from tests.support.sim_http import ScriptedHttpServer as Place
from tests.support.sim_http import ServerSideConnection as Visit

__all__ = ["CHATS", "Bench", "Members", "Shop", "called", "tool"]

CHATS = "/api/sessions"
PORT = 9300
AGREED = "2025-06-18"
Members = dict[str, Any]
Say = Callable[[Members], None]


def tool(name: str, words: str = "", **hints: bool) -> Members:
    """What a server says of one of its tools."""
    schema = {"type": "object", "properties": {"mark": {"type": "string"}}, "required": ["mark"]}
    return {"name": name, "description": words or f"{name}s", "inputSchema": schema, "annotations": hints}


def called(shop: str, name: str, mark: str, **more: object) -> list[Any]:
    """A call that a model makes."""
    return [f"mcp_{shop}_{name}", {"mark": mark, **more}]


class Shop:
    """One server. `reply` makes the members of an answer to a call, or None for silence."""

    def __init__(self, name: str, *tools: Members) -> None:
        self.name = name
        self.tools = [*tools]
        self.calls: list[Members] = []  # that were made here
        self.heard: list[Members] = []  # all that was said to it
        self.heads: list[RequestHead] = []  # the same, of one that is far away
        self.children: list[_Program] = []
        self.begun: list[float] = []  # when each of them was
        self.crashes = False  # as soon as it is greeted
        self.stubborn = False  # does not mind to be told to go
        self.greets_after = 0.0  # s
        self.answers_after = 0.0  # s
        self.session = 0  # the number of the newest
        self.forgets = False  # it knows no session any more
        self.reply: Callable[[Members], Members | None] = _echo
        self._after: Callable[[float, Callable[[], None]], object] = lambda seconds, then: then()

    @property
    def marks(self) -> list[str]:
        """What it was called with, call by call."""
        return [str(call["arguments"].get("mark")) for call in self.calls]

    def hear(self, message: Members, say: Say) -> None:
        """Take a message, and answer it."""
        self.heard.append(message)
        if "id" not in message or "method" not in message:
            return
        method, answer = message["method"], dict[str, Any]()
        if method == "initialize":
            about = {"name": self.name, "version": "1"}
            answer = {"protocolVersion": AGREED, "capabilities": {"tools": {}}, "serverInfo": about}
        elif method == "tools/list":
            answer = {"tools": self.tools}
        elif method == "tools/call":
            self.calls.append(message["params"])
            found = self.reply(message["params"])
            if found is not None:
                self._later(self.answers_after, say, {"jsonrpc": "2.0", "id": message["id"], **found})
            return
        wait = self.greets_after if method == "initialize" else 0.0
        self._later(wait, say, {"jsonrpc": "2.0", "id": message["id"], "result": answer})

    def tell_changed(self) -> None:
        """Its tools are others now."""
        for program in self.children:
            program.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})

    def cancelled(self) -> list[object]:
        """The numbers of what nobody waits for any more, as it was told."""
        notes = [each for each in self.heard if each.get("method") == "notifications/cancelled"]
        return [note["params"]["requestId"] for note in notes]

    def numbers(self) -> list[object]:
        """Those of the calls."""
        return [each["id"] for each in self.heard if each.get("method") == "tools/call"]

    def opens(self, lodge: Lodge) -> str:
        """It is a program of the lodge's host: its name."""
        self._after = lodge.world.sim.after
        lodge.home.programs[f"/usr/bin/{self.name}"] = lambda child: _Program(self, child)
        return self.name

    def opens_far(self, lodge: Lodge) -> str:
        """It is elsewhere: its address."""
        self._after = lodge.world.sim.after
        host = lodge.host()
        _Far(self, host)
        return f"http://{host.address}:{PORT}/mcp"

    def _later(self, seconds: float, say: Say, message: Members) -> None:
        if seconds:
            self._after(seconds, lambda: say(message))
        else:
            say(message)


def _echo(call: Members) -> Members:
    return {"result": {"content": [{"type": "text", "text": f"done {call['arguments'].get('mark')}"}]}}


class _Program(Script):
    def __init__(self, shop: Shop, child: Child) -> None:
        super().__init__(child)
        self._shop = shop
        self._rest = b""
        shop.children.append(self)
        shop.begun.append(child.world.now)

    def on_input(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if self._shop.crashes:
                self.child.emit_error(b"out of order\n")
                self.child.exit(3)
                return
            self._shop.hear(json.loads(line), self.say)

    def on_input_closed(self) -> None:
        if not self._shop.stubborn or self.child.output.gone:
            super().on_input_closed()

    def on_signal(self, signal: SignalName) -> None:
        self.child.signals.append(signal)
        if not self._shop.stubborn:
            super().on_signal(signal)

    def say(self, message: Members) -> None:
        """A line, if it is there."""
        if self.child.alive:
            self.child.emit(json.dumps(message).encode() + b"\n")


class _Far(Place):
    def __init__(self, shop: Shop, host: Host) -> None:
        super().__init__(host, PORT)
        self._shop = shop

    def asked(self, visit: Visit, body: bytes) -> None:
        """By its method and its session."""
        shop, head = self._shop, visit.head
        shop.heads.append(head)
        if head.method != "POST":
            self._say(visit, 405 if head.method == "GET" else 204)
            return
        message = json.loads(body)
        if message.get("method") == "initialize":
            shop.session += 1
            shop.forgets = False
        elif shop.forgets or head.headers.get(b"mcp-session-id") != b"session-%d" % shop.session:
            self._say(visit, 404)
            return
        if "id" in message:
            shop.hear(message, lambda answer: self._say(visit, 200, json.dumps(answer).encode()))
        else:
            shop.hear(message, lambda answer: None)
            self._say(visit, 202)

    def _say(self, visit: Visit, status: int, data: bytes = b"") -> None:
        fields = [(b"content-length", b"%d" % len(data)), (b"content-type", b"application/json")]
        fields.append((b"mcp-session-id", b"session-%d" % self._shop.session))
        visit.put(ResponseHead(visit.stream, status, Headers(fields)))
        if data:
            visit.put(ResponseData(visit.stream, data))
        visit.put(ResponseEnd(visit.stream))


class Bench:
    """A lodge whose agent has such servers."""

    def __init__(self, lodge: Lodge) -> None:
        self.lodge = lodge
        self.asked: list[Members] = []  # questions of the last turn
        self.offered: dict[str, Members] = {}  # tools of which the model was told in it, by name
        self.rows: list[Members] = []  # what the model was given in it, from its question on
        self.began: float = 0.0  # when the model was first asked

    def configure(self, servers: Members) -> None:
        """The file says so from now on."""
        home = self.lodge.home
        home.disk.put(f"{home.state}/config.yaml", json.dumps({"mcp_servers": servers}).encode())

    def turn(self, calls: list[list[Any]], chat: str, choice: str = "deny", *more: Round) -> list[str]:
        """Make these calls at once, with one answer to each question: the results, in order."""
        lodge, heard, events = self.lodge, Listener(self.lodge), Events()
        rounds = [Round(calls=calls)] if calls else []
        text = asking(lodge.word(), *rounds, *more, Round(text="Done."))
        body = {"message": text, "approvals": True}
        caller = lodge.begin_api("POST", f"{CHATS}/{chat}/chat/stream", body, events)
        lodge.wait(lambda: caller.over or bool(heard.asked), 60.0, "no model is asked")
        self.began, self.asked = lodge.now, []
        while True:
            lodge.wait(
                lambda: caller.over or events.names.count("approval.request") > len(self.asked), 300.0, "a turn goes on"
            )
            told = [data for name, data in events.told if name == "approval.request"]
            if len(told) == len(self.asked):
                break
            data = told[len(self.asked)]
            self.asked.append(data)
            said = {"choice": choice, "call_id": data["call_id"]}
            lodge.right(lodge.ask_api("POST", f"/v1/runs/{data['run_id']}/approval", said), 200)
        lodge.right(caller, 200)
        heard.stop()
        self.offered = {each["function"]["name"]: each["function"] for each in heard.asked[0].get("tools", [])}
        rows = heard.rows(-1)
        last = max(place for place, row in enumerate(rows) if row.get("content") == text)
        self.rows = rows[last:]
        return [str(row["content"]) for row in self.rows if row["role"] == "tool"]
