"""Terminals where tmux is: sessions that outlive their clients, who shares one, what was on the screen, and their ends.

In the place of tmux is a program that understands what the relay asks of it, as tmux does: a target that is not exact
is a prefix of a name. What it keeps outlives the relay.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from attrs import define, field

from fuzz.audit import Audit, Seat
from fuzz.audits.annex import Annex
from fuzz.audits.paired import Paired, pair, sign_in
from runtimes.sim.child import Child, Script
from svc_proto.commands import SignalName

__all__ = ["PANES"]

TMUX, SHELL, OTHER = "/usr/bin/tmux", "/bin/bash", "/bin/sh"
MOST = 4  # terminals of a socket
KEPT = 64 * 1024  # bytes of an earlier screen
PREFIX = "svc-"
NAMES = ("work", "work2", "work.x", "work x", "work_x", "_w", "é", None)  # some of which are one session of tmux
FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")


def _tmux_name(name: str) -> str:
    return PREFIX + (FOREIGN.sub("_", name).strip("_") or "default")


@define(eq=False)
class _Pane:
    """A session of tmux."""

    name: str
    created: int
    env: list[str]
    shell: str
    size: tuple[str, str]
    text: str = ""
    clients: list[_Tmux] = field(factory=list)

    def show(self, text: str) -> None:
        self.text += text
        for client in self.clients:
            client.child.emit(text.encode())


class _Server:
    """All sessions of one host; somebody else's is among them."""

    def __init__(self) -> None:
        self.panes: dict[str, _Pane] = {"other": _Pane("other", 5, [], SHELL, ("80", "24"))}
        self.asked: list[tuple[str, ...]] = []

    def find(self, target: str) -> _Pane | None:
        """As tmux does: exactly, or the first whose name begins so."""
        name = target.removesuffix(":")
        if name.startswith("="):
            return self.panes.get(name[1:])
        return next((pane for each, pane in sorted(self.panes.items()) if each.startswith(name)), None)

    def end(self, pane: _Pane) -> None:
        del self.panes[pane.name]
        for client in pane.clients:
            client.child.exit(0)


class _Tmux(Script):
    """A client: a command, or somebody who looks on."""

    def __init__(self, child: Child, server: _Server) -> None:
        super().__init__(child)
        self.server = server
        self.pane: _Pane | None = None

    def on_start(self) -> None:
        """Do what is asked."""
        words = [*self.child.argv[3:]]  # behind `-L` and the socket
        self.server.asked.append(self.child.argv[:3])
        while words[0] in ("-f", "-u"):
            del words[: 2 if words[0] == "-f" else 1]
        command, *rest = words
        told = dict(pairwise(rest))
        getattr(self, command.replace("-", "_"))(rest, told)

    def new_session(self, rest: list[str], told: dict[str, str]) -> None:
        """`-d`, and never attached."""
        name = told["-s"]
        if name in self.server.panes:
            return self.child.exit(1)
        env = [word for before, word in pairwise(rest) if before == "-e"]
        created = int(self.child.host.wall())
        self.server.panes[name] = _Pane(name, created, env, rest[-2], (told["-x"], told["-y"]))
        return self.child.exit(0)

    def has_session(self, rest: list[str], told: dict[str, str]) -> None:
        """Whether it is there."""
        self.child.exit(0 if self.server.find(told["-t"]) else 1)

    def kill_session(self, rest: list[str], told: dict[str, str]) -> None:
        """It ends, with all who look on."""
        pane = self.server.find(told["-t"])
        if pane is not None:
            self.server.end(pane)
        self.child.exit(0 if pane is not None else 1)

    def capture_pane(self, rest: list[str], told: dict[str, str]) -> None:
        """What is on the screen, and above it."""
        pane = self.server.find(told["-t"])
        if pane is not None:
            self.child.emit(pane.text.encode())
        self.child.exit(0 if pane is not None else 1)

    def list_sessions(self, rest: list[str], told: dict[str, str]) -> None:
        """A line for each."""
        for name, pane in self.server.panes.items():
            self.child.emit(f"{name} {len(pane.clients)} 1 {pane.created}\n".encode())
        self.child.exit(0)

    def attach_session(self, rest: list[str], told: dict[str, str]) -> None:
        """Look on."""
        self.pane = self.server.find(told["-t"])
        if self.pane is None:
            self.child.exit(1)
        else:
            self.pane.clients.append(self)

    def on_input(self, data: bytes) -> None:
        """What is typed is shown to all."""
        if self.pane is not None:
            self.pane.show(data.decode())

    def on_signal(self, signal: SignalName) -> None:
        """A client that is hung up leaves, and its session stays."""
        if self.pane is not None and self in self.pane.clients:
            self.pane.clients.remove(self)
        super().on_signal(signal)


@define(eq=False)
class _Held:
    """A terminal of a socket."""

    name: str
    pid: int
    shown: str = ""
    due: str = ""


@define(eq=False)
class _Socket:
    seat: Seat
    held: list[_Held] = field(factory=list)

    def find(self, name: str | None) -> _Held | None:
        """By its name, or the last that was attached."""
        if name is None:
            return self.held[-1] if self.held else None
        return next((each for each in self.held if each.name == name), None)


class _Panes:
    def __init__(self, audit: Audit) -> None:
        self.server = _Server()
        programs = {TMUX: lambda child: _Tmux(child, self.server), SHELL: Script, OTHER: Script}
        self.annex = Annex(audit, programs=programs, terminal_tmux=True)
        self.people: list[Paired] = [pair(self.annex) for _ in range(2)]
        self.sockets = [_Socket(one.seat) for one in self.people]
        self.mine: dict[str, str] = {}  # what is on the screen of each of our sessions, by the name of tmux

    def steps(self) -> None:
        annex = self.annex
        kinds = (*[self.attach] * 5, *[self.type] * 4, self.detach, *[self.kill] * 2, self.exit, self.look, self.drop)
        for _ in range(annex.rng.randint(14, 26)):
            annex.pick(kinds)()
            self.settle()
            if annex.chance(0.3):
                self.look()
        if annex.chance(0.4):
            self.restart()
        self.look()
        socket = {words[1:3] for words in self.server.asked}
        annex.same((len(socket), {each[0] for each in socket}), (1, {"-L"}), "the sockets of tmux that are used")
        conf = annex.home.disk.get(f"{annex.home.state}/tmux.conf").decode()
        annex.same("history-limit 10000" in conf and "status off" in conf, True, "what tmux is set to")
        for one in self.sockets:
            one.seat.hang_up()
        annex.rest(4.0)
        annex.same(
            [len(pane.clients) for pane in self.server.panes.values()], [0] * len(self.server.panes), "who looks on"
        )
        annex.stop()
        annex.same({*self.server.panes}, {"other", *self.mine}, "the sessions of tmux that outlive the relay")

    def one(self) -> _Socket:
        socket: _Socket = self.annex.pick(self.sockets)
        return socket

    def say(self, socket: _Socket, kind: str, payload: dict[str, Any]) -> None:
        socket.seat.say("terminal", f"terminal.{kind}", payload, "x")

    def take(self, socket: _Socket, kind: str, identity: str | None = None) -> dict[str, Any]:
        told = socket.seat.take()
        while told["type"] == "terminal.output":
            self.show(socket, told["payload"])
            told = socket.seat.take()
        self.annex.same((told["channel"], told["type"]), ("terminal", f"terminal.{kind}"), f"{told}")
        if identity is not None:
            self.annex.same(told["id"], identity, f"the id of {kind}")
        payload: dict[str, Any] = told["payload"]
        return payload

    def show(self, socket: _Socket, payload: dict[str, Any]) -> None:
        held = socket.find(payload["session_name"])
        if held is None:
            self.annex.wrong(f"{payload} is shown, and held are {[each.name for each in socket.held]}")
        else:
            held.shown += payload["data"]

    def settle(self) -> None:
        """All has come that was shown."""
        annex = self.annex
        annex.rest(1.0)
        for socket in self.sockets:
            while socket.seat.heard:
                told = socket.seat.take()
                annex.same(told["type"], "terminal.output", f"{told}")
                self.show(socket, told["payload"])
            for held in socket.held:
                annex.same(held.shown, held.due, f"what {held.name} shows")

    # --- what is done ---

    def attach(self) -> None:
        annex, socket = self.annex, self.one()
        name, cols = annex.pick(NAMES), annex.rng.randint(20, 200)
        payload: dict[str, Any] = {"cols": cols, "rows": 30} | ({} if name is None else {"session_name": name})
        payload |= {"shell": OTHER} if annex.chance(0.2) else {}
        held = None if name is None else socket.find(name)
        self.say(socket, "attach", payload)
        if held is None and len(socket.held) >= MOST:
            told = self.take(socket, "error", "x")
            annex.same(told.get("session_name"), name or told.get("session_name"), "whose error it is")
            return
        told = self.take(socket, "attached", "x")
        named = name or told["session_name"]
        inner = _tmux_name(named)
        there = inner in self.mine
        screen = self.mine.setdefault(inner, "")
        is_ = {"session_name": named, "cols": cols, "rows": 30, "tmux_available": True, "reattach": there}
        is_ |= {"pid": told["pid"], "shell": told["shell"]}
        if there and held is None and screen.strip():
            is_["replay"] = screen[-KEPT:]
        annex.same(told, is_, f"a terminal {name!r}, there before: {there}, held: {held is not None}")
        if held is None:
            held = _Held(named, told["pid"])
        elif held.pid != told["pid"]:
            annex.wrong(f"{named} is held by {held.pid}, and now by {told['pid']}")
        else:
            socket.held.remove(held)
        socket.held.append(held)
        if not there:
            pane = self.server.panes.get(inner)
            if pane is None:
                annex.wrong(f"there is no session {inner}, but {[*self.server.panes]}")
                return
            annex.same(
                (pane.size, pane.shell), ((str(cols), "30"), payload.get("shell", SHELL)), "how a session begins"
            )
            env = {"COLORTERM=truecolor", f"SVC_RELAY_TERMINAL={named}"}
            annex.same({*pane.env}, env, "what its shell is started with")
            if annex.chance(0.1):  # a screen that is long
                pane.text = self.mine[inner] = "".join(f"line {n}\n" for n in range(9_000))
        (child,) = [each for each in annex.home.children if each.pid == held.pid]
        annex.rest(0.2)
        annex.same((child.argv[-2:], child.size and child.size.cols), (("-t", f"={inner}"), cols), "who looks on")

    def type(self) -> None:
        annex, socket = self.annex, self.one()
        held = socket.find(annex.pick((None, *(each.name for each in socket.held))))
        if held is None:
            return
        word = f"{annex.word()}\n"
        named = {} if held is socket.held[-1] and annex.chance(0.5) else {"session_name": held.name}
        self.say(socket, "input", {**named, "data": word})
        inner = _tmux_name(held.name)
        self.mine[inner] += word
        for each in self.sockets:
            for other in each.held:
                other.due += word if _tmux_name(other.name) == inner else ""

    def detach(self) -> None:
        annex, socket = self.annex, self.one()
        held = socket.find(annex.pick((None, *(each.name for each in socket.held))))
        if held is None:
            return
        self.say(socket, "detach", {"session_name": held.name})
        is_ = {"session_name": held.name, "reason": "client detach"}
        annex.same(self.take(socket, "detached"), is_, "who lets go of a terminal")
        socket.held.remove(held)

    def kill(self) -> None:
        """One that is held, or any that there is, or one that is not there."""
        annex, socket = self.annex, self.one()
        begun = ["work"] * 9 if "work" not in self.mine else []  # names of others may begin so
        name = annex.pick((*(each.name for each in socket.held), *(name for name in NAMES if name), "nobody", *begun))
        held, inner = socket.find(name), _tmux_name(name)
        self.say(socket, "kill", {"session_name": name})
        is_ = {"session_name": name, "reason": "client kill"}
        if held is None and inner not in self.mine:
            told = self.take(socket, "error")
            annex.same(
                ({**told, "message": ""}, bool(told["message"])), ({**is_, "message": ""}, True), f"to kill {name}"
            )
            return
        self.over(inner, {(socket, name): is_}, also=None if held else (socket, is_))

    def exit(self) -> None:
        """A shell ends by itself, and so do all who look on."""
        if self.mine:
            inner = self.annex.pick([*self.mine])
            self.server.end(self.server.panes[inner])
            self.over(inner, {})

    def over(
        self, inner: str, said: dict[Any, dict[str, Any]], also: tuple[_Socket, dict[str, Any]] | None = None
    ) -> None:
        """A session has ended: all who had it are told so, each by his own name for it."""
        annex = self.annex
        self.mine.pop(inner)
        for socket in self.sockets:
            gone = [each for each in socket.held if _tmux_name(each.name) == inner]
            due = [said.get((socket, each.name), {"session_name": each.name, "reason": "eof"}) for each in gone]
            due += [also[1]] if also is not None and also[0] is socket else []
            told = [self.take(socket, "detached") for _ in due]
            key = repr
            annex.same(sorted(told, key=key), sorted(due, key=key), f"the end of {inner}")
            socket.held = [each for each in socket.held if each not in gone]
        annex.rest(1.5)
        annex.same(inner in self.server.panes, False, f"whether {inner} is there")

    def drop(self) -> None:
        """A socket is lost; the device comes back with another, which holds nothing."""
        annex = self.annex
        if annex.chance(0.5):
            place = annex.rng.randrange(2)
            one, socket = self.people[place], self.sockets[place]
            socket.seat.hang_up()
            annex.rest(2.0)
            seat = sign_in(annex, one.host, {"session_token": one.token})
            annex.same(seat.take()["type"], "auth.ok", "who comes back")
            self.sockets[place] = _Socket(seat)

    def restart(self) -> None:
        """The relay goes, and is there again; what runs in tmux is not touched."""
        annex = self.annex
        held = [sorted(each.name for each in socket.held) for socket in self.sockets]
        annex.process.stop(5.0)
        annex.wait(lambda: not annex.process.alive, 30.0, "another relay does not stop")
        for socket, names in zip(self.sockets, held, strict=True):
            told = [each["payload"] for each in socket.seat.heard if each["type"] == "terminal.detached"]
            is_ = [{"session_name": name, "reason": "server shutdown"} for name in names]
            annex.same(sorted(told, key=repr), sorted(is_, key=repr), "what is told of terminals when the relay goes")
            annex.same(socket.seat.talker.close_code, 1001, "how a socket ends when the relay goes")
        annex.again()
        for place, one in enumerate(self.people):
            seat = sign_in(annex, one.host, {"session_token": one.token})
            annex.same(seat.take()["type"], "auth.ok", "who comes back to another relay")
            self.sockets[place] = _Socket(seat)
        self.look()
        self.attach()
        self.settle()

    def look(self) -> None:
        """The list: all sessions of tmux that are ours, whoever has them."""
        annex, socket = self.annex, self.one()
        self.say(socket, "list", {})
        told = self.take(socket, "sessions", "x")
        annex.same(told["tmux_available"], True, "whether there is tmux")
        rows = []
        for inner in self.mine:
            pane = self.server.panes[inner]
            own = [each for each in socket.held if _tmux_name(each.name) == inner]
            others = [each for one in self.sockets for each in one.held if _tmux_name(each.name) == inner]
            row = {"tmux_name": inner, "attached": len(others), "windows": 1, "created_at": pane.created}
            row |= {"name": own[-1].name if own else inner.removeprefix(PREFIX), "live": bool(others)}
            row["owned_by_client"] = bool(own)
            rows.append(row)
            if len(own) > 1:
                return  # by two names of one's own: either may be shown
        shown = [
            {name: value for name, value in row.items() if name not in ("pid", "shell")} for row in told["sessions"]
        ]
        annex.same({row["tmux_name"]: row for row in shown}, {row["tmux_name"]: row for row in rows}, "what there is")
        inner_names = [row["tmux_name"].removeprefix(PREFIX) for row in told["sessions"]]
        annex.same(inner_names, sorted(inner_names), "their order")
        for row in told["sessions"]:
            pids = [each.pid for one in self.sockets for each in one.held if _tmux_name(each.name) == row["tmux_name"]]
            annex.same(row.get("pid") in pids if pids else "pid" in row, bool(pids), f"the process of {row}")


def panes(audit: Audit) -> None:
    """Two devices open, share, leave and end sessions of tmux."""
    _Panes(audit).steps()


PANES = (panes, panes)
