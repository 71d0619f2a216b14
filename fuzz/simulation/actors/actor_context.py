"""What all people of a world know of each other: codes, sessions, open sockets, and how to call the relay."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, TypeAlias

from attrs import define, field

from fuzz.simulation.deployment import LOCAL, REMOTE, Deployment
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.models.grant_model import Spans
from fuzz.simulation.models.reference_model import CodeModel, SessionModel, violated
from fuzz.simulation.resource_accounting import RECHECK
from fuzz.simulation.servers.speech_server import NUMBER
from runtimes.sim.process import SimProcess
from tests.support.sim_http import Pairs, RequestClient, WebSocketClient

__all__ = [
    "BOUNDARY",
    "END_TIMEOUT",
    "RECHECK",
    "GRANTS",
    "LATE",
    "ActorContext",
    "Deeds",
    "PHONE",
    "SignedInDevice",
    "SignIn",
    "no_further_checks",
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


END_TIMEOUT = 20.0  # s in which a socket is gone whose session is over, on a sound connection
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
class SignedInDevice:
    """A socket of a session, and how it behaves."""

    name: str
    talker: WebSocketClient
    session: SessionModel
    sign_in: SignIn
    sent: dict[str, str] = field(factory=dict)  # request id of what it was ordered -> mark
    left: float | None = None  # when its socket was over

    def send_result(self, request_id: str, mark: str, *, stray: bool = False) -> None:
        """Say of a command that it is done, with the mark that it had, also where it was another phone's."""
        result = {"echo": mark, "by": f"stray {self.name}" if stray else self.name}
        self.talker.send_envelope(
            "bridge", "bridge.response", {"request_id": request_id, "status": 200, "result": result}
        )


class ActorContext:
    """Everybody."""

    def __init__(self, world: Deployment) -> None:
        self.world = world
        self.codes: list[CodeModel] = []
        self.sessions: list[SessionModel] = []
        self.open: list[SignedInDevice] = []
        self.sign_ins: dict[str, list[SignIn]] = {}  # of those that may be phones, by the name of the device
        self.listeners: list[Callable[[SignedInDevice, dict[str, Any]], None]] = []  # of what a device is told
        self.on_join: list[Callable[[SignedInDevice], None]] = []  # of who was welcomed
        self.allowed: dict[int, None] = {}  # tasks whose question somebody has answered with yes
        self._numbers = 0

    def next_number(self) -> int:
        """A fresh one."""
        self._numbers += 1
        return self._numbers

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.world.sim.now

    def pick_session(self, who: int) -> SessionModel:
        """One of them; there is one at least."""
        return self.sessions[who % len(self.sessions)]

    @property
    def phones(self) -> list[SignedInDevice]:
        """Sockets of what is a phone as soon as it is welcomed."""
        return [device for device in self.open if device.session.surface == PHONE]

    def on_device_message(self, device: SignedInDevice, message: dict[str, Any]) -> None:
        """A device was told something."""
        self._check_device_message(device, message)
        if message.get("type") != "bridge.command":  # which may hold what its caller put in
            self.world.check_no_secrets(device.talker.text, f"a message to {device.name}")
        for listener in self.listeners:
            listener(device, message)

    def on_token_refused(self, session: SessionModel | None, sent: float) -> None:
        """A token was not accepted."""
        if session is not None and self.must_be_alive(session):
            violated(Invariant.LIVE_TOKEN, f"{session.prefix} was refused")

    def on_grant_denied(self, session: SessionModel, status: int, grant: str, sent: float) -> None:
        """A route that wants a grant has answered."""
        if status == 401:
            self.on_token_refused(session, sent)
        if status == 403 and self.must_have_grant(session, grant):
            violated(Invariant.VOICE_GRANT, f"{session.prefix} was refused, and holds {grant}")

    def must_be_alive(self, session: SessionModel) -> bool:
        """Whether its token must be accepted."""
        session.stored = session.stored and self.world.is_stored(session.prefix)
        return session.surely_lives(self.world.wall.highest(self.now))

    def must_have_grant(self, session: SessionModel, grant: str) -> bool:
        """Whether it must be let in where that grant is wanted."""
        return self.must_be_alive(session) and session.surely_holds(grant, self.world.wall.highest(self.now))

    def must_have_had_grant(self, session: SessionModel, grant: str) -> bool:
        """Whether that has been so from its beginning."""
        return self.must_be_alive(session) and session.surely_held(grant, self.world.wall.highest(self.now))

    def latest_end(self, session: SessionModel) -> float | None:
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

    def seconds_past_end(self, session: SessionModel, slack: float, since: float = -inf) -> float:
        """For how many s a session has been over; 0 while it may live, and for `slack` s from then, or from `since`."""
        over = self.latest_end(session)
        return 0.0 if over is None or self.now <= max(over, since) + slack else self.now - over

    def check_invariants(self) -> None:
        """No socket outlives its session."""
        for device in self.open:
            late = self.seconds_past_end(device.session, END_TIMEOUT)
            if late and self._is_observed(device):
                violated(Invariant.SOCKETS_ENDED, f"{device.name} is open {late:.0f} s after the end of its session")

    def _check_device_message(self, device: SignedInDevice, message: dict[str, Any]) -> None:
        late = self.seconds_past_end(device.session, LATE)
        if late and message.get("type") != "error" and self._is_observed(device):
            violated(Invariant.SOCKETS_ENDED, f"{device.name} is told {message!r:.100} {late:.0f} s after its session")

    def _is_observed(self, device: SignedInDevice) -> bool:
        return self.world.relay.alive and self.world.is_unaffected(device.talker)

    def check_allowed(self, task: int, where: str) -> None:
        """Something was done that has to be allowed first."""
        if task not in self.allowed:
            violated(Invariant.CONFIRMED, f"{where}: task {task} was done, and nobody has allowed it")

    def request(
        self, by: SessionModel | None, method: str, path: str, body: object, done: Told, headers: Pairs | None = None
    ) -> None:
        """A call by a session's agent, or by the operator."""
        if by is None:
            self.request_as_operator(method, path, body, done, headers)
        else:
            self.request_as_agent(method, path, body, by, done, headers)

    def request_as_operator(self, method: str, path: str, body: object, done: Told, more: Pairs | None = None) -> None:
        """A call of the operator, on the home itself."""
        world = self.world
        headers = {**world.local_headers(), **(more or {})}
        world.request(world.home, LOCAL, method, path, headers=headers, body=body, done=done)

    def request_as_agent(
        self, method: str, path: str, body: object, session: SessionModel | None, done: Told, more: Pairs | None = None
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
        self.world.request(self.world.agent, REMOTE, method, path, headers=fields, body=body, done=answered)


def task_of(text: str) -> int:
    """The number of a spoken task in a text; 0 for none."""
    found = NUMBER.search(text)
    return int(found[1]) if found else 0


def no_further_checks(caller: RequestClient) -> None:
    """Only the common checks."""
