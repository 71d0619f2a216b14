"""Terminal users of the simulation: scripted shells, and checks of the output that each device receives."""

from __future__ import annotations

import re
from typing import Any

from attrs import define, field, frozen

from fuzz.simulation.actors.actor_context import ActorContext, SignedInDevice, StepHandler
from fuzz.simulation.invariants import Invariant, violated
from fuzz.steps import Step, TypeInTerminal
from runtimes.sim.child import ScriptedProgram, SimChild

SHELL = "/bin/bash"
NAMES = ("main", "side")  # of the terminals of each device
FLOOD = 60_000  # characters that a command may print at once
OUTPUT_TIMEOUT = 40.0  # s from the output of a shell to its arrival at the device, without faults
SAID = re.compile(r"line-(\d+)-")


@define(eq=False)
class _TypedLine:
    """Line that was typed. `name` is the intended terminal; empty if that is uncertain."""

    device: SignedInDevice
    sent: float
    name: str
    is_named: bool  # by the request; else the relay chooses the terminal that was attached last
    typed: bool = False  # a shell received it
    shown: bool = False


@frozen
class _Leaving:
    """Terminal whose shell received `exit`."""

    name: str
    begun: float  # when it was attached
    left: float  # when `exit` was sent


@define(eq=False)
class _TerminalSet:
    """Terminals of a device; the one attached last, at the end, is used where none is named."""

    names: list[str] = field(factory=list)
    leaving: list[_Leaving] = field(factory=list)
    sure: bool = True  # no request was refused
    heard: dict[str, str] = field(factory=dict)  # the last characters of each output
    ended: dict[str, float] = field(factory=dict)  # when each was last reported as ended
    begun: dict[str, float] = field(factory=dict)  # when each was last attached

    @property
    def last(self) -> str:
        if not self.sure or not self.names or self.leaving:
            return ""
        name = self.names[-1]
        return name if self.ended.get(name, -1.0) < self.begun[name] else ""


class _EchoShell(ScriptedProgram):
    """Shell that prints each line of its input: `flood` many times, and `exit` not, since it ends the shell."""

    def __init__(self, child: SimChild, terminal_users: TerminalUsers) -> None:
        super().__init__(child)
        self._terminal_users = terminal_users
        self._typed = ""

    def on_input(self, data: bytes) -> None:
        *lines, self._typed = (self._typed + data.decode()).split("\n")
        for line in lines:
            self._terminal_users.typed(line)
            if line.startswith("exit"):
                self.child.exit(0)
                return
            again = FLOOD // len(line) if line.startswith("flood") else 1
            self.child.emit(f"{line}\n".encode() * again)


class TerminalUsers:
    """Handler of the steps in which devices type in terminals; checks the output that each device receives."""

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self.handlers: dict[type[Step], StepHandler] = {TypeInTerminal: self._terminal}
        self._lines: dict[int, _TypedLine] = {}
        self._terminal_users: dict[SignedInDevice, _TerminalSet] = {}
        crowd.listeners.append(self._on_device_message)
        self.world.home.programs[SHELL] = lambda child: _EchoShell(child, self)

    def typed(self, line: str) -> None:
        """Check that the device of a numbered line that a shell received may use terminals.

        Record the line, unless it is `exit` or its terminal is uncertain.
        """
        found = SAID.search(line)
        if found is None:
            return
        self.world.count("lines typed")
        said = self._lines[int(found[1])]
        if not said.typed and said.name and not line.startswith("exit"):
            said.typed = True
            self.world.sim.after(OUTPUT_TIMEOUT, lambda: self._check_shown(said, self.world.sim.now - OUTPUT_TIMEOUT))
        session = said.device.session
        if session.lacks("terminal", self.world.wall, said.sent, self.world.sim.now):
            violated(Invariant.LIVE_GRANT, f"a shell was told {line[:40]!r} of {session.prefix}, which holds no grant")

    def _check_shown(self, line: _TypedLine, since: float) -> None:
        device, world = line.device, self.world
        if line.shown or world.left or device not in self.crowd.open or not world.is_relay_up:
            return
        held, terminal_user = self.crowd.must_have_had_grant(device.session, "terminal"), self._terminal_users[device]
        if not held or not terminal_user.sure or line.name not in terminal_user.names or device.session.patched:
            return
        if device.talker.slow or not world.is_fault_free_since(since):
            world.sim.after(OUTPUT_TIMEOUT, lambda: self._check_shown(line, world.sim.now - OUTPUT_TIMEOUT))
        elif terminal_user.ended.get(line.name, -1.0) < line.sent:
            violated(
                Invariant.ONE_END, f"{device.name} was not shown what {line.name} said {since - line.sent:.0f} s ago"
            )

    def _check_all_shown(self, device: SignedInDevice, gone: _Leaving) -> None:
        lines = [line for line in self._lines.values() if line.device is device and line.name == gone.name]
        missing = [line for line in lines if line.typed and not line.shown and gone.begun < line.sent <= gone.left]
        if missing:
            violated(Invariant.ONE_END, f"{gone.name} of {device.name} is over, {len(missing)} lines were not shown")

    def _terminal(self, step: TypeInTerminal) -> None:
        if self.crowd.open:
            self._work(self.crowd.open[step.socket % len(self.crowd.open)], step.action)

    def _work(self, device: SignedInDevice, kind: int) -> None:
        terminal_user, name = self._terminal_users.setdefault(device, _TerminalSet()), NAMES[kind // 10 % 2]
        if name not in terminal_user.names or kind % 7 == 0:
            self._attach(device, terminal_user, name)
        match kind % 10:
            case 0:
                device.talker.send_envelope("terminal", "terminal.detach", {"session_name": name})
                terminal_user.names.remove(name)
            case 1:
                device.talker.send_envelope("terminal", "terminal.list", {})
            case 2:  # the output before `exit` must arrive
                self._type(device, terminal_user, "say", name)
                self._type(device, terminal_user, "exit", name)
                terminal_user.names.remove(name)
                begun = terminal_user.begun.get(name, 0.0)
                terminal_user.leaving.append(_Leaving(name, begun, self.world.sim.now))
            case 9:
                device.talker.send_envelope("terminal", "terminal.kill", {"session_name": name})
                terminal_user.names.remove(name)
            case 3:
                for _ in range(4):
                    self._type(device, terminal_user, "flood", name)
            case 7:  # attach each terminal, and the first one again
                for each in (*NAMES, NAMES[0]):
                    self._attach(device, terminal_user, each)
                self._type(device, terminal_user, "say", "")
            case _:
                self._type(device, terminal_user, "say", name if kind % 2 else "")

    def _attach(self, device: SignedInDevice, terminal_user: _TerminalSet, name: str) -> None:
        device.talker.send_envelope("terminal", "terminal.attach", {"session_name": name, "cols": 80, "rows": 24})
        terminal_user.names = [*(each for each in terminal_user.names if each != name), name]
        terminal_user.begun[name] = self.world.sim.now

    def _type(self, device: SignedInDevice, terminal_user: _TerminalSet, word: str, name: str) -> None:
        number = self.crowd.next_number()
        self._lines[number] = _TypedLine(device, self.world.sim.now, name or terminal_user.last, bool(name))
        named = {"session_name": name} if name else {}
        device.talker.send_envelope("terminal", "terminal.input", {**named, "data": f"{word} line-{number}-\n"})

    def _on_device_message(self, device: SignedInDevice, message: dict[str, Any]) -> None:
        if message.get("channel") == "system" and message.get("type") == "error":
            self._on_refused(device)
        if message.get("channel") != "terminal":
            return
        terminal_user = self._terminal_users.setdefault(device, _TerminalSet())
        name = message["payload"].get("session_name", "")
        if message["type"] == "terminal.detached":
            terminal_user.ended[name] = self.world.sim.now
        match message["type"]:
            case "terminal.error":
                self._on_refused(device)
            case "terminal.detached" if gone := [each for each in terminal_user.leaving if each.name == name]:
                terminal_user.leaving.remove(gone[0])
                if message["payload"].get("reason") == "eof" and terminal_user.sure:
                    self._check_all_shown(device, gone[0])
            case "terminal.output":
                self._on_output(device, terminal_user, name, message["payload"]["data"])
            case _:
                pass

    def _on_refused(self, device: SignedInDevice) -> None:
        self._terminal_users.setdefault(device, _TerminalSet()).sure = False
        for line in self._lines.values():
            if line.device is device and not (line.is_named or line.shown):
                line.name = ""

    def _on_output(self, device: SignedInDevice, terminal_user: _TerminalSet, name: str, data: str) -> None:
        # A line may arrive in two pieces, so the end of earlier output is searched again.
        text = terminal_user.heard.get(name, "") + data
        terminal_user.heard[name] = text[-40:]
        for number in SAID.findall(text):
            said = self._lines.get(int(number))
            if said is not None:
                said.shown = True
            if said is None or said.device is not device:
                violated(Invariant.OWN_BYTES, f"{device.name} was shown line {number} of another terminal")
            if said.name not in ("", name):
                violated(Invariant.OWN_BYTES, f"{device.name} typed line {number} in {said.name}, and {name} shows it")
