"""State that the actors at the relay share: codes, sessions, open sockets, and methods that send requests to it."""

from collections.abc import Callable
from math import inf
from typing import Any, TypeAlias

from attrs import define, field

from fuzz.simulation.deployment import LOCAL, REMOTE, Deployment
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.grant_model import Spans
from fuzz.simulation.models.reference_model import CodeModel, SessionModel
from fuzz.simulation.resource_accounting import RECHECK
from runtimes.sim.process import SimProcess
from tests.support.sim_http import Pairs, RequestClient, WebSocketClient

__all__ = [
    "BOUNDARY", "END_TIMEOUT", "RECHECK", "GRANTS", "LATE", "ActorContext", "StepHandler", "PHONE", "SignedInDevice",
    "SignIn", "no_further_checks"
]  # fmt: skip

StepHandler: TypeAlias = Callable[[Any], None]
Told: TypeAlias = Callable[[RequestClient], None]

GRANTS: tuple[Spans | None, ...] = (
    None, {"bridge": 5}, {"bridge": 0, "terminal": 100, "tui": 30}, {"bridge": 90 * 86_400, "chat": 10}, None,
    {"bridge": 40}, {"bridge": 5, "terminal": 5, "tui": 5}, {"voice:tts": 5, "voice:realtime": 12},
    {"terminal": None, "tui": None}, {"bridge": 600, "voice:tts": None}
)  # fmt: skip


END_TIMEOUT = 20.0  # s in which a socket must be closed after its session, on a connection without faults
PHONE = "android"  # client surface of a phone
LATE = 5.0  # s after which nothing may be sent to an ended session
SERVED = range(200, 300)
BOUNDARY = "boundary-of-a-form"


@define(eq=False)
class SignIn:
    """Socket on which a device authenticates; `relay` is the process that accepted it."""

    talker: WebSocketClient
    relay: SimProcess
    sent: float  # when `system/auth` was sent
    told: float | None = None  # when `auth.ok` arrived
    failed: bool = False
    reported: float | None = None  # when a status was last sent; the device's phone is the socket that did


@define(eq=False)
class SignedInDevice:
    """Authenticated socket of a session."""

    name: str
    talker: WebSocketClient
    session: SessionModel
    sign_in: SignIn
    sent: dict[str, str] = field(factory=dict)  # by request id of a command: its mark
    left: float | None = None  # when its socket ended

    def send_result(self, request_id: str, mark: str, *, stray: bool = False) -> None:
        """Answer a command with `mark` and this device's name; `stray`: the command was sent to another phone."""
        result = {"echo": mark, "by": f"stray {self.name}" if stray else self.name}
        self.talker.send_envelope(
            "bridge", "bridge.response", {"request_id": request_id, "status": 200, "result": result}
        )


class ActorContext:
    """State that the actors at the relay share, and methods that send requests to the relay."""

    def __init__(self, world: Deployment) -> None:
        self.world = world
        self.codes: list[CodeModel] = []
        self.sessions: list[SessionModel] = []
        self.open: list[SignedInDevice] = []
        self.sign_ins: dict[str, list[SignIn]] = {}  # of possible phones, by the name of the device
        # Called with each message to a device.
        self.listeners: list[Callable[[SignedInDevice, dict[str, Any]], None]] = []
        self.on_join: list[Callable[[SignedInDevice], None]] = []  # called with each authenticated device
        self._numbers = 0

    def next_number(self) -> int:
        """Return a number that was not returned before."""
        self._numbers += 1
        return self._numbers

    @property
    def now(self) -> float:
        """Return the monotonic time in seconds."""
        return self.world.sim.now

    def pick_session(self, who: int) -> SessionModel:
        """Return the session with number `who`, modulo their count; there must be at least one."""
        return self.sessions[who % len(self.sessions)]

    @property
    def phones(self) -> list[SignedInDevice]:
        """Return the authenticated sockets that belong to phones."""
        return [device for device in self.open if device.session.surface == PHONE]

    def on_device_message(self, device: SignedInDevice, message: dict[str, Any]) -> None:
        """Check a message to a device, and call the listeners."""
        self._check_device_message(device, message)
        if message.get("type") != "bridge.command":  # a command may contain its caller's secret
            self.world.check_no_secrets(device.talker.text, f"a message to {device.name}")
        for listener in self.listeners:
            listener(device, message)

    def on_token_refused(self, session: SessionModel | None, sent: float) -> None:
        """Report a violation if the session of a refused token must be alive. Ignore None."""
        if session is not None and self.must_be_alive(session):
            violated(Invariant.LIVE_TOKEN, f"{session.prefix} was refused")

    def must_be_alive(self, session: SessionModel) -> bool:
        """Report whether the relay must accept the token of a session."""
        session.stored = session.stored and self.world.is_stored(session.prefix)
        return session.surely_lives(self.world.wall.highest(self.now))

    def must_have_grant(self, session: SessionModel, grant: str) -> bool:
        """Report whether the relay must accept requests of a session that require this grant."""
        return self.must_be_alive(session) and session.surely_holds(grant, self.world.wall.highest(self.now))

    def must_have_had_grant(self, session: SessionModel, grant: str) -> bool:
        """Report whether a session must have had this grant since its pairing."""
        return self.must_be_alive(session) and session.surely_held(grant, self.world.wall.highest(self.now))

    def latest_end(self, session: SessionModel) -> float | None:
        """Return when the relay must have detected the end of a session; None while it may live."""
        now = self.now
        ended = session.ended(self.world.wall, now)
        if ended is None or ended in (session.revoked, session.suspended):
            return ended
        stepped = max(when for when, _ in self.world.wall.steps if when <= ended)
        begun = self.world.wall.steps[0][0]
        return max(ended, stepped + RECHECK) if begun < stepped and ended - stepped < RECHECK else ended

    def seconds_past_end(self, session: SessionModel, slack: float, since: float = -inf) -> float:
        """Return the seconds since `latest_end`; 0 for a session that may live.

        Also 0 until `slack` s after the later of that end and `since`.
        """
        over = self.latest_end(session)
        return 0.0 if over is None or self.now <= max(over, since) + slack else self.now - over

    def check_invariants(self) -> None:
        """Check that no socket is open over `END_TIMEOUT` s after its session's end.

        Sockets under a fault are exempt; while the relay does not run, all are.
        """
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

    def request(
        self, by: SessionModel | None, method: str, path: str, body: object, done: Told, headers: Pairs | None = None
    ) -> None:
        """Send a request with the token of session `by`, or as the operator if `by` is None."""
        if by is None:
            self.request_as_operator(method, path, body, done, headers)
        else:
            self.request_as_agent(method, path, body, by, done, headers)

    def request_as_operator(self, method: str, path: str, body: object, done: Told, more: Pairs | None = None) -> None:
        """Send a request as the operator, from the relay's host, with the local secret; `done` gets the response."""
        world = self.world
        headers = {**world.local_headers(), **(more or {})}
        world.request(world.home, LOCAL, method, path, headers=headers, body=body, done=done)

    def request_as_agent(
        self, method: str, path: str, body: object, session: SessionModel | None, done: Told, more: Pairs | None = None
    ) -> None:
        """Send a request as a remote agent, with or without a session's token.

        A status 2xx for a session that had ended before the request is a violation. `done` gets the response. A body of
        bytes is sent as a form.
        """
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


def no_further_checks(result: object) -> None:
    """Accept any result, such as a response; the common checks are done elsewhere."""
