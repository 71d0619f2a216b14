"""Programs behind the relay's channels, as those see it: what they are started with, told, and told again of them.

In place of the worlds' shell and gateway there are programs that note each byte and size that comes, and say what they
are told to: whole lines and halves, what is no text and what is no JSON. So both ways are compared to the byte.
"""

from __future__ import annotations

import json
from typing import Any

from attrs import define, field

from fuzz.audit import Audit, Seat
from fuzz.audits.paired import pair
from fuzz.world import API_KEY, GATEWAY
from runtimes.sim.child import Child, Script
from svc_proto.commands import SignalName

__all__ = ["WITNESSES"]

MOST = 4  # terminals of a socket
SHELL = "/bin/bash"
SIGNALS = {SignalName.KILL: 137, SignalName.TERMINATE: 143, SignalName.HANGUP: 129}
SIZES: tuple[tuple[dict[str, Any], tuple[int, int] | None], ...] = (
    *(({"cols": 100, "rows": 30}, (100, 30)), ({"cols": "120", "rows": 40}, (120, 40)), ({}, (80, 24))),
    *(({"cols": 0}, (80, 24)), ({"cols": -3, "rows": 1}, (1, 1)), ({"cols": 65_535, "rows": None}, (65_535, 24))),
    *(({"cols": 65_536}, None), ({"rows": "x"}, None), ({"cols": True}, None)),
)
SAID = (b"plain", "é€😀".encode(), b"\xff\xfe", b"\x1b[1m", b"a\r\nb", "ü".encode()[:1], b"")


class Witness(Script):
    """Notes what it is told."""

    def __init__(self, child: Child, kept: dict[int, Witness]) -> None:
        super().__init__(child)
        self.heard = b""
        self.signals: list[SignalName] = []
        kept[child.pid] = self

    def on_input(self, data: bytes) -> None:
        """Keep it."""
        self.heard += data


@define(eq=False)
class _Shell:
    name: str
    pid: int
    size: tuple[int, int]
    typed: bytes = b""
    said: bytes = b""
    shown: str = ""


@define(eq=False)
class _Room:
    """The terminals of one socket, the last attached last."""

    audit: Audit
    seat: Seat
    kept: dict[int, Witness]
    there: list[_Shell] = field(factory=list)

    def say(self, kind: str, payload: object, identity: str = "t") -> None:
        self.seat.say("terminal", f"terminal.{kind}", payload, identity)

    def take(self, kind: str) -> dict[str, Any]:
        """The next message, which is this; what is shown before is noted."""
        while (told := self.seat.take())["type"] == "terminal.output":
            self.show(told["payload"])
        self.audit.same((told["channel"], told["type"]), ("terminal", f"terminal.{kind}"), f"{told}")
        payload: dict[str, Any] = told["payload"]
        return payload

    def show(self, payload: dict[str, Any]) -> None:
        shell = next((each for each in self.there if each.name == payload["session_name"]), None)
        if shell is None or not payload["data"]:
            self.audit.wrong(f"{payload} is shown, and there are {[each.name for each in self.there]}")
            return
        shell.shown += payload["data"]

    def settle(self) -> None:
        """What was said has come, both ways, and each shell has its size."""
        audit = self.audit
        audit.rest(2.0)
        while self.seat.heard:
            told = self.seat.take()
            audit.same(told["type"], "terminal.output", f"{told}")
            self.show(told["payload"])
        for shell in self.there:
            child = self.kept[shell.pid].child
            assert child.size is not None
            audit.same((child.size.cols, child.size.rows), shell.size, f"the size of {shell.name}")
            audit.same(self.kept[shell.pid].heard, shell.typed, f"what {shell.name} is told")
            whole = shell.said.decode(errors="replace")
            rest = whole.removeprefix(shell.shown)
            if not whole.startswith(shell.shown) or len(rest) > 1:  # the last character may be a half one
                audit.wrong(f"{shell.name} has said {shell.said!r}, and {shell.shown!r} is shown")

    def meant(self) -> tuple[_Shell, dict[str, Any]]:
        """One of them, by its name, or the last by none."""
        named = self.audit.chance(0.5)
        shell = self.audit.pick(self.there) if named else self.there[-1]
        return shell, {"session_name": shell.name} if named else {}

    def attach(self) -> None:
        """A new one, as it is started; or one that is there, which only gets another size."""
        audit = self.audit
        asked, size = audit.pick(SIZES)
        known = audit.pick(self.there) if self.there and audit.chance(0.4) else None
        name = audit.word() if known is None else known.name
        self.say("attach", {"session_name": name, **asked}, "a")
        if size is None or (known is None and len(self.there) >= MOST):
            audit.same(self.take("error")["session_name"], name, "whose error it is")
            return
        told = self.take("attached")
        is_ = (name, *size, known is not None)
        audit.same((told["session_name"], told["cols"], told["rows"], told["reattach"]), is_, "a terminal")
        if known is not None:
            audit.same(told["pid"], known.pid, "the shell of a terminal that was there")
            known.size = size
            self.there.remove(known)
        else:
            known = _Shell(name, told["pid"], size)
            child = self.kept[known.pid].child
            audit.same(child.argv, (SHELL, "-l"), "how a shell is started")
            due = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "SVC_RELAY_TERMINAL": name}
            audit.same({key: child.env.get(key) for key in due}, due, "what a shell is started with")
            if API_KEY in child.env.values():
                audit.wrong("a shell is given the API's key")
        self.there.append(known)

    def resize(self) -> None:
        audit, (asked, size) = self.audit, self.audit.pick(SIZES)
        shell, named = self.meant()
        if audit.chance(0.15):
            self.say("resize", {"session_name": "nobody", **asked}, "r")
            return
        self.say("resize", {**named, **asked}, "r")
        if size is None:
            self.take("error")
        else:
            shell.size = size

    def type(self) -> None:
        audit = self.audit
        shell, named = self.meant()
        for _ in range(audit.rng.randint(1, 3)):
            data = audit.pick((audit.word(), "é€😀\n", "\x03", "x" * 3_000, 5, None, ["x"], ""))
            self.say("input", {**named, "data": data})
            shell.typed += data.encode() if isinstance(data, str) else b""

    def speak(self) -> None:
        """A shell says something; characters may come in halves."""
        shell, _ = self.meant()
        for piece in self.audit.rng.choices(SAID, k=self.audit.rng.randint(1, 6)):
            shell.said += piece
            self.kept[shell.pid].child.emit(piece)
            self.audit.rest(self.audit.pick((0.0, 0.005, 0.1)))

    def leave(self) -> None:
        """A shell exits, or is ended by a signal, behind its last word."""
        audit, (shell, _) = self.audit, self.meant()
        self.settle()
        child, status = self.kept[shell.pid].child, audit.pick((0, 1, 3, 255, *SIGNALS))
        shell.said += b"bye \xc3"
        child.emit(b"bye \xc3")
        if isinstance(status, SignalName):
            child.die(status)
        else:
            child.exit(status)
        told = self.take("detached")
        due = SIGNALS.get(status, status)
        is_ = {"session_name": shell.name, "reason": "eof", "exit_status": due}
        audit.same(told, is_, "the end of a shell")
        audit.same(shell.shown, shell.said.decode(errors="replace"), "what a shell has said up to its end")
        self.there.remove(shell)


def shells(audit: Audit) -> None:
    """Terminals as their shells see them."""
    home, kept = audit.world.home, dict[int, Witness]()
    before = home.programs[SHELL]
    home.programs[SHELL] = lambda child: Witness(child, kept)
    one = pair(audit)
    room = _Room(audit, one.seat, kept)
    for _ in range(audit.rng.randint(10, 18)):
        if not room.there:
            room.attach()
            continue
        audit.pick((room.attach, room.attach, room.resize, room.type, room.speak, room.leave))()
        if audit.chance(0.4):
            room.settle()
    room.settle()
    one.seat.hang_up()
    audit.rest(5.0)
    home.programs[SHELL] = before


# --- gateways ---

GIVEN: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
    ({"cols": 80, "rows": 24}, {}),
    ({"profile": "work"}, {"SVC_PROFILE": "work"}),
    ({"resume_session_id": "s-1"}, {"SVC_TUI_RESUME": "s-1"}),
    ({"profile": "", "resume_session_id": 5}, {}),
)
LINES: tuple[tuple[bytes, tuple[str, Any] | None], ...] = (
    (b'{"id": 1, "result": {"a": [1]}}', ("response", {"id": 1, "result": {"a": [1]}})),
    (b'{"id": null, "error": {}}', ("response", {"id": None, "error": {}})),
    (b'{"method": "event", "params": {}}', ("event", {"method": "event", "params": {}})),
    (b'{"id": "x", "method": "event"}', ("event", {"id": "x", "method": "event"})),
    (b'{"no": "id"}', ("event", {"no": "id"})),
    ('{"e": "é€ \\ud83d\\ude00"}'.encode(), ("event", {"e": "é€ 😀"})),
    *((b"", None), (b"   ", None), (b"[1]", None), (b"5", None), (b"{nonsense", None), (b'{"a": "\xff"}', None)),
)


def lines(audit: Audit) -> None:
    """A gateway as it sees its client: each object a line as it was sent, each line of its own an event, or none."""
    home, kept = audit.world.home, dict[int, Witness]()
    before = home.programs[GATEWAY]
    home.programs[GATEWAY] = lambda child: Witness(child, kept)
    one = pair(audit)
    seat = one.seat
    payload, env = audit.pick(GIVEN)
    seat.say("tui", "tui.attach", payload, "a")
    child = kept[seat.take()["payload"]["pid"]].child
    shown = {name: value for name, value in child.env.items() if name in ("SVC_PROFILE", "SVC_TUI_RESUME")}
    audit.same(shown, env, f"what a gateway is started with by {payload}")
    due: list[dict[str, Any]] = []
    for _ in range(audit.rng.randint(6, 12)):
        match audit.rng.randrange(4):
            case 0:
                size = audit.pick(
                    ({"cols": 100, "rows": 30}, {"cols": 5}, {"cols": 1, "rows": 2, "session_id": "s", "x": 1})
                )
                seat.say("tui", "tui.resize", size, "r")
                params = {name: value for name, value in size.items() if name != "x"}
                due.append({"jsonrpc": "2.0", "method": "terminal.resize", "params": params})
            case 1:
                request = audit.pick((
                    {"jsonrpc": "2.0", "id": 5, "method": "m", "params": {"a": [None, 1.5, "é€\n"]}},
                    {"id": "x", "deep": {"password": "p", "token": "t"}},
                    {"method": "notify"},
                ))  # fmt: skip
                seat.say("tui", "tui.rpc.request", request, "q")
                due.append(request)
            case 2:
                seat.say("tui", "tui.other", {}, "o")
                told = seat.take()
                audit.same(
                    (told["channel"], told["id"], told["payload"]["error"]), ("system", "o", "unknown_type"), "x"
                )
            case _:
                _spoken(audit, seat, child)
    audit.rest(1.0)
    heard = [json.loads(line) for line in kept[child.pid].heard.decode().splitlines()]
    for line in heard:
        if str(line.get("id", "")).startswith("resize-"):
            del line["id"]
    audit.same(heard, due, "what a gateway is told")
    audit.same(seat.heard, [], "what is told besides")
    seat.hang_up()
    audit.rest(5.0)
    home.programs[GATEWAY] = before


def _spoken(audit: Audit, seat: Seat, child: Child) -> None:
    """Some lines, cut anywhere."""
    chosen = audit.rng.choices(LINES, k=audit.rng.randint(1, 5))
    said = b"".join(line + audit.pick((b"\n", b"\n", b"\r\n")) for line, _ in chosen)
    at = audit.rng.randint(0, len(said))
    for piece in (said[:at], said[at:]):
        child.emit(piece)
        audit.rest(audit.pick((0.0, 0.2)))
    for kind, members in [each for _, each in chosen if each is not None]:
        told = seat.take()
        audit.same((told["channel"], told["type"], told["payload"]), ("tui", f"tui.rpc.{kind}", members), "a line")
    audit.rest(0.3)
    audit.same(seat.heard, [], "what comes of lines that are none")


WITNESSES = (shells, lines)
