"""Terminals and gateways of one socket: names, sizes, how many, what is typed and shown, and how each ends."""

from __future__ import annotations

from typing import Any

from attrs import define

from fuzz.audit import Audit, Seat
from fuzz.audits.paired import Paired, pair
from fuzz.terms import Wish
from svc_proto.version import VERSION

__all__ = ["DESKS"]

MOST = 4  # terminals of a socket
SHELL = "/bin/bash"
SHOWN = 2.0  # s in which a shell has said what it has to say
SIZES: tuple[tuple[dict[str, Any], tuple[int, int]], ...] = (
    ({}, (80, 24)),
    ({"cols": 100, "rows": 30}, (100, 30)),
    ({"cols": 0, "rows": None}, (80, 24)),
    ({"cols": -5, "rows": 1}, (1, 1)),
    ({"cols": 65_535, "rows": 7}, (65_535, 7)),
)


@define(eq=False)
class _Terminal:
    name: str
    pid: int


class _Desk:
    """The terminals of a socket, the last attached last."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.one: Paired = pair(audit)
        self.seat: Seat = self.one.seat
        self.there: list[_Terminal] = []

    def steps(self) -> None:
        kinds = (*[self.attach] * 2, *[self.type] * 3, self.end, self.list_all, self.refuse, self.again)
        for _ in range(self.audit.rng.randint(12, 24)):
            self.audit.pick(kinds)()
        self.list_all()
        pids = [terminal.pid for terminal in self.there]
        self.seat.hang_up()
        self.audit.rest(5.0)
        left = [pid for pid in pids if pid in self.audit.shells]
        self.audit.same(left, [], "shells whose socket is gone")

    def say(self, kind: str, payload: object, identity: str = "t") -> None:
        self.seat.say("terminal", f"terminal.{kind}", payload, identity)

    def told(self, kind: str, identity: str = "t") -> dict[str, Any]:
        told = self.seat.take()
        self.audit.same(
            (told["channel"], told["type"]), ("terminal", f"terminal.{kind}"), f"{told} behind what was said"
        )
        if identity:
            self.audit.same(told["id"], identity, f"the id of {kind}")
        payload: dict[str, Any] = told["payload"]
        return payload

    def attach(self) -> None:
        audit = self.audit
        name = audit.pick((None, audit.word(), audit.word()))
        asked, (cols, rows) = audit.pick(SIZES)
        payload = {**asked, **({} if name is None else {"session_name": name})}
        payload |= {"shell": SHELL} if audit.chance(0.3) else {}
        self.say("attach", payload, "a")
        if len(self.there) >= MOST:
            told = self.told("error", "a")
            if name is not None:
                audit.same(told["session_name"], name, "whose error it is")
            return
        told = self.told("attached", "a")
        if name is None and (not told["session_name"].startswith("shell-") or len(told["session_name"]) != 14):
            audit.wrong(f"a terminal without a name is {told['session_name']!r}")
        is_ = {"cols": cols, "rows": rows, "shell": SHELL, "tmux_available": False, "reattach": False}
        is_ |= {"session_name": name or told["session_name"], "pid": told["pid"]}
        audit.same(told, is_, "a terminal")
        if told["pid"] in [terminal.pid for terminal in self.there]:
            audit.wrong(f"two terminals have one shell: {told}")
        self.there.append(_Terminal(told["session_name"], told["pid"]))

    def again(self) -> None:
        """One that is there already: it is the same, and is meant from now on where none is named."""
        if not self.there:
            return
        audit, terminal = self.audit, self.audit.pick(self.there)
        self.say("attach", {"session_name": terminal.name, "cols": 90, "rows": 20}, "a")
        told = self.told("attached", "a")
        is_ = {"cols": 90, "rows": 20, "shell": SHELL, "tmux_available": False, "reattach": True}
        audit.same(told, {**is_, "session_name": terminal.name, "pid": terminal.pid}, "a terminal that was there")
        self.there.remove(terminal)
        self.there.append(terminal)

    def type(self) -> None:
        """What is typed is said by the shell that is meant, in order, and by no other."""
        if not self.there:
            return
        audit = self.audit
        named = audit.chance(0.5)
        terminal = audit.pick(self.there) if named else self.there[-1]
        lines = [audit.word() + "é€" * audit.pick((0, 30)) for _ in range(audit.rng.randint(1, 4))]
        for line in lines:
            self.say("input", {**({"session_name": terminal.name} if named else {}), "data": f"{line}\n"})
        self.hear(terminal, "".join(f"{line}\n" for line in lines))

    def hear(self, terminal: _Terminal, text: str) -> None:
        said = ""
        while len(said) < len(text):
            told = self.told("output", "")
            self.audit.same(told["session_name"], terminal.name, "which terminal shows what was typed")
            said += told["data"]
        self.audit.same(said, text, f"what {terminal.name} shows")

    def end(self) -> None:
        if not self.there:
            return
        audit, named = self.audit, self.audit.chance(0.6)
        terminal = audit.pick(self.there) if named else self.there[-1]
        payload = {"session_name": terminal.name} if named else {}
        way = audit.pick(("detach", "kill", "exit"))
        if way == "exit":
            word = audit.word()
            self.say("input", {**payload, "data": f"{word}\nexit\n"})
            self.hear(terminal, f"{word}\n")
        else:
            self.say(way, payload)
        told = self.told("detached", "")
        reason = {"detach": "client detach", "kill": "client kill", "exit": "eof"}[way]
        status = {"exit_status": 0} if way == "exit" else {}
        audit.same(told, {"session_name": terminal.name, "reason": reason, **status}, "the end of a terminal")
        self.there.remove(terminal)
        audit.rest(3.0)
        if terminal.pid in audit.shells:
            audit.wrong(f"the shell of {terminal.name} is there after {way}")
        self.say("input", {"session_name": terminal.name, "data": "nobody\n"})  # which nobody hears
        self.say("detach", {"session_name": terminal.name})

    def list_all(self) -> None:
        audit = self.audit
        self.say("list", {}, "l")
        told = self.told("sessions", "l")
        audit.same(told["tmux_available"], False, "whether there is tmux")
        told_of = {row["name"]: row for row in told["sessions"]}
        alike = {"shell": SHELL, "live": True, "owned_by_client": True}
        is_ = {each.name: {"name": each.name, "pid": each.pid, **alike} for each in self.there}
        audit.same(told_of, is_, "the terminals that are there")

    def refuse(self) -> None:
        audit = self.audit
        kind, payload = audit.pick(
            (("other", {}), ("attach", {"cols": 65_536}), ("attach", {"shell": "bash", "rows": "x"}))
        )
        self.say(kind, payload, "r")
        self.told("error", "r")
        if self.there:
            self.say("input", {"session_name": self.there[0].name, "data": audit.pick((5, None, ["x"]))})
            self.say("resize", {"session_name": self.there[0].name, "cols": 10, "rows": 10})
        audit.rest(0.3)
        if self.seat.heard:
            audit.wrong(f"{self.seat.heard} is told, and nothing was asked")


def terminals(audit: Audit) -> None:
    """Terminals are opened, typed in, listed and closed."""
    _Desk(audit).steps()


class _Gate:
    """The gateway of a socket."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self.seat = pair(audit).seat
        self.pid = 0

    def steps(self) -> None:
        """It comes, is asked, and goes, again and again."""
        audit = self.audit
        for _ in range(audit.rng.randint(4, 8)):
            if not self.pid:
                self.pid = self.attach()
            audit.pick((self.replace, self.detach, self.die, self.ask, self.ask))()
        self.seat.hang_up()
        audit.rest(8.0)
        self.check_gone(self.pid, "its socket ended")

    def take(self, kind: str) -> dict[str, Any]:
        told = self.seat.take()
        self.audit.same((told["channel"], told["type"]), ("tui", f"tui.{kind}"), "what a gateway tells")
        payload: dict[str, Any] = told["payload"]
        return payload

    def attach(self) -> int:
        self.seat.say("tui", "tui.attach", {"cols": 80, "rows": 24}, "a")
        told = self.take("attached")
        self.audit.same(told["server_version"], VERSION, "the version that is told")
        ready = self.take("rpc.event")
        self.audit.same((ready["method"], ready["params"]["type"]), ("event", "gateway.ready"), "its first word")
        return int(told["pid"])

    def check_gone(self, pid: int, why: str) -> None:
        if pid in self.audit.shells or self.seat.heard:
            self.audit.wrong(f"a gateway is there, or says {self.seat.heard}, and {why}")

    def replace(self) -> None:
        before, self.pid = self.pid, self.attach()
        self.audit.rest(6.0)
        self.check_gone(before, "another came")

    def detach(self) -> None:
        self.seat.say("tui", "tui.detach", {})
        self.audit.rest(6.0)
        self.check_gone(self.pid, "it was let go of")
        self.pid = 0

    def die(self) -> None:
        self.seat.say("tui", "tui.rpc.request", _request(1, "die"))
        told = self.take("error")
        if "3" not in told["message"]:
            self.audit.wrong(f"a gateway that exits with 3 is said to have: {told}")
        self.pid = 0

    def ask(self) -> None:
        audit = self.audit
        marks = [audit.rng.randrange(10**6, 10**9) for _ in range(audit.rng.randint(1, 5))]
        for number, mark in enumerate(marks):
            request = _request(mark, audit.pick(("say", "noise")), f"r{number}")
            self.seat.say("tui", "tui.rpc.request", request)
        for number, mark in enumerate(marks):
            told = self.take("rpc.response")
            audit.same((told["id"], told["result"]), (f"r{number}", {"mark": mark}), "an answer of a gateway")


def gateways(audit: Audit) -> None:
    """One gateway for a socket: what it is asked and says, in order, and how it ends."""
    _Gate(audit).steps()
    poor = pair(audit, wish=Wish(None, {"tui": None, "terminal": None}))
    for channel, kind in (("tui", "tui.attach"), ("terminal", "terminal.attach"), ("terminal", "terminal.list")):
        poor.seat.say(channel, kind, {}, "x")
        told = poor.seat.take()
        is_ = ("system", "error", "x", "grant_required")
        audit.same((told["channel"], told["type"], told["id"], told["payload"]["error"]), is_, "no grant")
    poor.seat.hang_up()


def _request(mark: int, method: str, identity: str = "r") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": {"mark": mark}}


DESKS = (terminals, terminals, gateways)
