"""What all people of a world know of each other: codes, sessions, open sockets, and how to call the relay."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import define, field

from fuzz.invariants import Invariant
from fuzz.model import Code, Session, violated
from fuzz.peers import Caller, Talker
from fuzz.provider import NUMBER
from fuzz.script import Step
from fuzz.world import LOCAL, REMOTE, World

__all__ = ["GRANTS", "Crowd", "Deeds", "Device", "nothing", "task_of"]

Deeds: TypeAlias = Callable[[Step], None]

GRANTS: tuple[dict[str, int] | None, ...] = (
    None,
    {"bridge": 5},
    {"bridge": 0, "terminal": 100, "tui": 30},
    {"bridge": 90 * 86_400, "chat": 10},
    None,
    {"bridge": 40},
    {"bridge": 5, "terminal": 5, "tui": 5},
    {"voice:tts": 5, "voice:realtime": 12},
)


@define(eq=False)
class Device:
    """A socket of a session, and how it behaves."""

    name: str
    talker: Talker
    session: Session
    sent: dict[str, str] = field(factory=dict)  # request id of what it was ordered -> mark


class Crowd:
    """Everybody."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.codes: list[Code] = []
        self.sessions: list[Session] = []
        self.open: list[Device] = []
        self.listeners: list[Callable[[Device, dict[str, Any]], None]] = []  # of what a device is told
        self.allowed: dict[int, None] = {}  # tasks whose question somebody has answered with yes
        self._numbers = 0

    def number(self) -> int:
        """A fresh one."""
        self._numbers += 1
        return self._numbers

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.world.sim.now

    def session(self, who: int) -> Session:
        """One of them; there is one at least."""
        return self.sessions[who % len(self.sessions)]

    def heard(self, device: Device, message: dict[str, Any]) -> None:
        """A device was told something."""
        if message.get("type") != "bridge.command":  # which may hold what its caller put in
            self.world.refuse_secrets(device.talker.text, f"a message to {device.name}")
        for listener in self.listeners:
            listener(device, message)

    def refused(self, session: Session | None, sent: float) -> None:
        """A token was not accepted."""
        if session is None or self.world.store_trouble:
            return
        latest = self.world.wall.steps[-1][1] + self.now
        highest = max(offset for _, offset in self.world.wall.steps) + self.now
        if session.surely_lives(max(latest, highest)):
            violated(Invariant.LIVE_TOKEN, f"{session.prefix} was refused")

    def denied(self, session: Session, status: int, grant: str, sent: float) -> None:
        """A route that wants a grant has answered."""
        if status == 401:
            self.refused(session, sent)
        if status == 403 and not self.world.store_trouble:
            highest = max(offset for _, offset in self.world.wall.steps) + self.now
            if session.surely_holds(grant, highest):
                violated(Invariant.VOICE_GRANT, f"{session.prefix} was refused, and holds {grant}")

    def check_allowed(self, task: int, where: str) -> None:
        """Something was done that has to be allowed first."""
        if task not in self.allowed:
            violated(Invariant.CONFIRMED, f"{where}: task {task} was done, and nobody has allowed it")

    def local(self, method: str, path: str, body: object, done: Callable[[Caller], None]) -> None:
        """A call of the operator, on the home itself."""
        data = b"" if body is None else json.dumps(body).encode()
        self.world.call(self.world.home, LOCAL, method, path, body=data, done=done)

    def remote(
        self, method: str, path: str, body: object, session: Session | None, done: Callable[[Caller], None]
    ) -> None:
        """A call of an agent elsewhere, with a session's token or with none."""
        headers = {} if session is None else {"authorization": f"Bearer {session.token}"}
        data = b"" if body is None else json.dumps(body).encode()
        self.world.call(self.world.agent, REMOTE, method, path, headers=headers, body=data, done=done)


def task_of(text: str) -> int:
    """The number of a spoken task in a text; 0 for none."""
    found = NUMBER.search(text)
    return int(found[1]) if found else 0


def nothing(caller: Caller) -> None:
    """Only the common checks."""
