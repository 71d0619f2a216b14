"""What all people of a world know of each other: codes, sessions, open sockets, and how to call the relay."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, TypeAlias

from attrs import define, field

from fuzz.simulation.deployment import LOCAL, REMOTE, World
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.grant_model import Spans
from fuzz.simulation.models.reference_model import Code, Session, violated
from fuzz.simulation.resource_accounting import RECHECK
from fuzz.simulation.servers.speech_server import NUMBER
from runtimes.sim.process import SimProcess
from tests.support.sim_http import Pairs, RequestClient, WebSocketClient

__all__ = [
    "BOUNDARY",
    "ENDED_WITHIN",
    "RECHECK",
    "GRANTS",
    "LATE",
    "Crowd",
    "Deeds",
    "PHONE",
    "Device",
    "SignIn",
    "nothing",
    "task_of",
]

Deeds: TypeAlias = Callable[[Any], None]
Told: TypeAlias = Callable[[RequestClient], None]

GRANTS: tuple[Spans | None, ...] = (
    None,
    {"bridge": 5},
    {"bridge": 0, "terminal": 100, "tui": 30},
    {"bridge": 90 * 86_400, "chat": 10},
    None,
    {"bridge": 40},
    {"bridge": 5, "terminal": 5, "tui": 5},
    {"voice:tts": 5, "voice:realtime": 12},
    {"terminal": None, "tui": None},
    {"bridge": 600, "voice:tts": None},
)


ENDED_WITHIN = 20.0  # s in which a socket is gone whose session is over, on a sound connection
PHONE = "android"  # the surface of what is a phone as soon as it is welcomed
LATE = 5.0  # s after which nothing may be under way any more there
SERVED = range(200, 300)
BOUNDARY = "boundary-of-a-form"


@define(eq=False)
class SignIn:
    """A socket that was opened to show a credential; `relay` is the process that it came to."""

    talker: WebSocketClient
    relay: SimProcess
    sent: float  # when `system/auth` went out
    told: float | None = None  # when `auth.ok` came
    failed: bool = False
    reported: float | None = None  # when a status was sent on it last, which makes it its device's phone


@define(eq=False)
class Device:
    """A socket of a session, and how it behaves."""

    name: str
    talker: WebSocketClient
    session: Session
    sign_in: SignIn
    sent: dict[str, str] = field(factory=dict)  # request id of what it was ordered -> mark
    left: float | None = None  # when its socket was over

    def respond(self, request_id: str, mark: str, *, stray: bool = False) -> None:
        """Say of a command that it is done, with the mark that it had, also where it was another phone's."""
        result = {"echo": mark, "by": f"stray {self.name}" if stray else self.name}
        self.talker.say("bridge", "bridge.response", {"request_id": request_id, "status": 200, "result": result})


class Crowd:
    """Everybody."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.codes: list[Code] = []
        self.sessions: list[Session] = []
        self.open: list[Device] = []
        self.sign_ins: dict[str, list[SignIn]] = {}  # of those that may be phones, by the name of the device
        self.listeners: list[Callable[[Device, dict[str, Any]], None]] = []  # of what a device is told
        self.on_join: list[Callable[[Device], None]] = []  # of who was welcomed
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

    @property
    def phones(self) -> list[Device]:
        """Sockets of what is a phone as soon as it is welcomed."""
        return [device for device in self.open if device.session.surface == PHONE]

    def heard(self, device: Device, message: dict[str, Any]) -> None:
        """A device was told something."""
        self._check_told(device, message)
        if message.get("type") != "bridge.command":  # which may hold what its caller put in
            self.world.refuse_secrets(device.talker.text, f"a message to {device.name}")
        for listener in self.listeners:
            listener(device, message)

    def refused(self, session: Session | None, sent: float) -> None:
        """A token was not accepted."""
        if session is not None and self.surely_lives(session):
            violated(Invariant.LIVE_TOKEN, f"{session.prefix} was refused")

    def denied(self, session: Session, status: int, grant: str, sent: float) -> None:
        """A route that wants a grant has answered."""
        if status == 401:
            self.refused(session, sent)
        if status == 403 and self.surely_holds(session, grant):
            violated(Invariant.VOICE_GRANT, f"{session.prefix} was refused, and holds {grant}")

    def surely_lives(self, session: Session) -> bool:
        """Whether its token must be accepted."""
        session.stored = session.stored and self.world.is_stored(session.prefix)
        return session.surely_lives(self.world.wall.highest(self.now))

    def surely_holds(self, session: Session, grant: str) -> bool:
        """Whether it must be let in where that grant is wanted."""
        return self.surely_lives(session) and session.surely_holds(grant, self.world.wall.highest(self.now))

    def surely_held(self, session: Session, grant: str) -> bool:
        """Whether that has been so from its beginning."""
        return self.surely_lives(session) and session.surely_held(grant, self.world.wall.highest(self.now))

    def over_by(self, session: Session) -> float | None:
        """By when the relay had to know that a session is over; None while it may live.

        A timer ends what expires, and looks at the wall clock once an hour at least in case that was stepped.
        """
        now = self.now
        ended = session.ended(self.world.wall, now)
        if ended is None or ended in (session.revoked, session.suspended):
            return ended
        stepped = max(when for when, _ in self.world.wall.steps if when <= ended)
        begun = self.world.wall.steps[0][0]
        return max(ended, stepped + RECHECK) if begun < stepped and ended - stepped < RECHECK else ended

    def outlived(self, session: Session, slack: float, since: float = -inf) -> float:
        """For how many s a session has been over; 0 while it may live, and for `slack` s from then, or from `since`."""
        over = self.over_by(session)
        return 0.0 if over is None or self.now <= max(over, since) + slack else self.now - over

    def look(self) -> None:
        """No socket outlives its session."""
        for device in self.open:
            late = self.outlived(device.session, ENDED_WITHIN)
            if late and self._is_heard(device):
                violated(Invariant.SOCKETS_ENDED, f"{device.name} is open {late:.0f} s after the end of its session")

    def _check_told(self, device: Device, message: dict[str, Any]) -> None:
        late = self.outlived(device.session, LATE)
        if late and message.get("type") != "error" and self._is_heard(device):
            violated(Invariant.SOCKETS_ENDED, f"{device.name} is told {message!r:.100} {late:.0f} s after its session")

    def _is_heard(self, device: Device) -> bool:
        return self.world.relay.alive and self.world.is_sound(device.talker)

    def check_allowed(self, task: int, where: str) -> None:
        """Something was done that has to be allowed first."""
        if task not in self.allowed:
            violated(Invariant.CONFIRMED, f"{where}: task {task} was done, and nobody has allowed it")

    def ask(
        self, by: Session | None, method: str, path: str, body: object, done: Told, headers: Pairs | None = None
    ) -> None:
        """A call by a session's agent, or by the operator."""
        if by is None:
            self.local(method, path, body, done, headers)
        else:
            self.remote(method, path, body, by, done, headers)

    def local(self, method: str, path: str, body: object, done: Told, more: Pairs | None = None) -> None:
        """A call of the operator, on the home itself."""
        world = self.world
        headers = {**world.shown_here(), **(more or {})}
        world.call(world.home, LOCAL, method, path, headers=headers, body=body, done=done)

    def remote(
        self, method: str, path: str, body: object, session: Session | None, done: Told, more: Pairs | None = None
    ) -> None:
        """A call of an agent elsewhere, with a session's token or with none. A body of bytes is a form."""
        headers = {} if session is None else {"authorization": f"Bearer {session.token}"}
        if isinstance(body, bytes):
            headers["content-type"] = f"multipart/form-data; boundary={BOUNDARY}"
        sent = self.now

        def answered(caller: RequestClient) -> None:
            if session is not None and caller.status in SERVED and session.is_dead(self.world.wall, sent, self.now):
                where = f"{method} {path.partition('?')[0]}"
                violated(Invariant.DEAD_TOKEN, f"{session.prefix} got {caller.status} from {where} after its end")
            done(caller)

        fields = {**headers, **(more or {})}
        self.world.call(self.world.agent, REMOTE, method, path, headers=fields, body=body, done=answered)


def task_of(text: str) -> int:
    """The number of a spoken task in a text; 0 for none."""
    found = NUMBER.search(text)
    return int(found[1]) if found else 0


def nothing(caller: RequestClient) -> None:
    """Only the common checks."""
