"""Who lives in a world and works in terminals of the home: shells that say what they are told to, and who reads it."""

from __future__ import annotations

import re
from typing import Any

from attrs import define, field

from fuzz.invariants import Invariant
from fuzz.model import violated
from fuzz.people.crowd import Crowd, Deeds, Device
from fuzz.script import Deed, Step
from runtimes.sim.child import Child, Script

__all__ = ["Desks"]

SHELL = "/bin/bash"
FLOOD = 60_000  # characters that a command may say at once
SAID = re.compile(r"line-(\d+)-")


@define(eq=False)
class _Line:
    """Something that was typed."""

    device: Device
    sent: float


@define(eq=False)
class _Desk:
    """A device's terminal."""

    attached: int = 0
    heard: list[str] = field(factory=list)


class _Shell(Script):
    """Says again what it is told; `flood` much of it, `exit` nothing any more."""

    def __init__(self, child: Child, desks: Desks) -> None:
        super().__init__(child)
        self._desks = desks
        self._typed = ""

    def on_input(self, data: bytes) -> None:
        """Carry out whole lines."""
        *lines, self._typed = (self._typed + data.decode()).split("\n")
        for line in lines:
            self._desks.typed(line)
            if line.startswith("exit"):
                self.child.exit(0)
                return
            again = FLOOD // len(line) if line.startswith("flood") else 1
            self.child.emit(f"{line}\n".encode() * again)


class Desks:
    """The steps that concern terminals."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self.deeds: dict[Deed, Deeds] = {Deed.TERMINAL: self._terminal}
        self._lines: dict[int, _Line] = {}
        self._desks: dict[Device, _Desk] = {}
        crowd.listeners.append(self._heard)
        self.world.home.programs[SHELL] = lambda child: _Shell(child, self)

    def typed(self, line: str) -> None:
        """A shell was told something."""
        found = SAID.search(line)
        if found is None:
            return
        self.world.count("lines typed")
        said = self._lines[int(found[1])]
        session = said.device.session
        if session.lacks("terminal", self.world.wall, said.sent, self.world.sim.now):
            violated(Invariant.LIVE_GRANT, f"a shell was told {line[:40]!r} of {session.prefix}, which holds no grant")

    def _terminal(self, step: Step) -> None:
        if self.crowd.open:
            self._work(self.crowd.open[step.who % len(self.crowd.open)], step.other)

    def _work(self, device: Device, kind: int) -> None:
        desk = self._desks.setdefault(device, _Desk())
        if not desk.attached or kind % 7 == 0:
            desk.attached += 1
            device.talker.say("terminal", "terminal.attach", {"session_name": "main", "cols": 80, "rows": 24})
        match kind % 10:
            case 0:
                device.talker.say("terminal", "terminal.detach", {"session_name": "main"})
                desk.attached = 0
            case 1:
                device.talker.say("terminal", "terminal.list", {})
            case 2:
                self._type(device, "exit")
                desk.attached = 0
            case 9:
                device.talker.say("terminal", "terminal.kill", {"session_name": "main"})
                desk.attached = 0
            case 3:
                for _ in range(4):
                    self._type(device, "flood")
            case _:
                self._type(device, "say")

    def _type(self, device: Device, word: str) -> None:
        number = self.crowd.number()
        self._lines[number] = _Line(device, self.world.sim.now)
        data = f"{word} line-{number}-\n"
        device.talker.say("terminal", "terminal.input", {"session_name": "main", "data": data})

    def _heard(self, device: Device, message: dict[str, Any]) -> None:
        if message.get("type") != "terminal.output":
            return
        desk = self._desks.setdefault(device, _Desk())
        # A line may come in two pieces, so what came last is looked at again.
        text = "".join(desk.heard[-1:]) + message["payload"]["data"]
        desk.heard = [text[-40:]]
        for number in SAID.findall(text):
            said = self._lines.get(int(number))
            if said is None or said.device is not device:
                violated(Invariant.OWN_BYTES, f"{device.name} was shown line {number} of another terminal")
