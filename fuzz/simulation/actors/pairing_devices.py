"""Devices that pair: operators register codes, devices use them, and reconnect with their tokens."""

from collections.abc import Callable
from random import Random
from typing import Any

from attrs import define, field

from fuzz.simulation.actors.actor_context import (
    GRANTS,
    PHONE,
    ActorContext,
    SignedInDevice,
    SignIn,
    StepHandler,
    no_further_checks,
)
from fuzz.simulation.deployment import REMOTE
from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.models.grant_model import NOTHING, GrantTerms, RequestedTerms, Spans, fits, paired
from fuzz.simulation.models.reference_model import SLACK, AuthAttempt, CodeModel, SessionModel
from fuzz.steps import DisconnectSocket, PairDevice, ReconnectSession, RegisterCode, Step
from runtimes.sim.host import SimHost
from tests.support.sim_http import RequestClient, WebSocketClient

EXPIRED = "is not accepted any more"  # reason of a refusal
UNCOUNTED = ("rate limited", "first message", "timeout", "too many")  # reasons of refusals that count as no guess

TTL_WISHES = (*[None] * 5, 60, 7_200, 0)  # s that a phone requests itself
GRANT_WISHES: tuple[dict[str, float] | None, ...] = (*[None] * 5, {"terminal": 50, "bridge": 0}, {"tui": 3_600})


@define(eq=False)
class SignInAttempt:
    """Device that opens a WebSocket and authenticates with a token, a code or both; it checks the answer."""

    crowd: ActorContext
    host: SimHost
    payload: dict[str, object]
    code: CodeModel | None = None
    session: SessionModel | None = None
    wish: RequestedTerms = NOTHING
    on_welcome: Callable[[SignedInDevice], None] = no_further_checks
    sign_in: SignIn = field(init=False)
    attempt: AuthAttempt = field(init=False)
    patched: int = 0  # changes to the session until the sign-in
    terms: GrantTerms | None = None  # of the session at the sign-in
    device: SignedInDevice | None = None

    @property
    def _surface(self) -> str:
        return str(self.payload.get("client_surface", "unknown")) if self.session is None else self.session.surface

    def open(self, *, fresh: bool = False) -> WebSocketClient:
        """Open the WebSocket and authenticate; `fresh`: on a connection of its own."""
        world = self.crowd.world
        connection = world.connection_for(self.host, REMOTE, deflate=world.rng.random() < 0.5, fresh=fresh)
        talker = WebSocketClient(
            connection, REMOTE, headers={}, on_open=self._on_open, on_message=self._on_message, on_end=self._on_end
        )
        world.add_client(talker)
        world.maybe_abandon_later(talker)
        return talker

    def _on_open(self, talker: WebSocketClient) -> None:
        crowd, world, address = self.crowd, self.crowd.world, self.host.address
        self.sign_in = SignIn(talker, world.relay, crowd.now)
        if self._surface == PHONE:
            crowd.sign_ins.setdefault(self.host.name, []).append(self.sign_in)
        if self.session is not None:
            self.patched, self.terms = self.session.patched, self.session.sure
        world.note_registrations()
        world.addresses.check_open(address, talker.began, crowd.now)
        self.attempt = world.addresses.attempt(address, crowd.now)
        if self.code is not None:
            self.code.shown += 1
        talker.send_envelope("system", "auth", self.payload, "auth-1")

    def _on_message(self, talker: WebSocketClient, message: dict[str, Any]) -> None:
        members = message.get("payload", {})
        if self.device is not None:
            self.crowd.on_device_message(self.device, message)
        elif message.get("type") == "auth.ok":
            self.crowd.world.addresses.succeeded(self.host.address, self.attempt, self.crowd.now)
            self.sign_in.told = self.crowd.now
            if self.code is not None and (self.session is None or members.get("session_token") != self.session.token):
                # A valid token takes precedence over a code.
                self.crowd.on_token_refused(self.session, self.sign_in.sent)
                owned = self._paired(members, self.code)
            else:
                owned = self._returned(members)
                self._was_not_looked_up()
            self.crowd.world.count("signed in")
            name = f"{owned.owner}/{self.crowd.next_number()}"
            self.device = SignedInDevice(name, talker, owned, self.sign_in)
            self.crowd.open.append(self.device)
            for joined in (*self.crowd.on_join, self.on_welcome):
                joined(self.device)
        elif message.get("type") == "auth.fail":
            self._refused(str(members.get("reason", "")))

    def _on_end(self, talker: WebSocketClient) -> None:
        world, now = self.crowd.world, self.crowd.now
        world.lines.pop(talker, None)
        if talker.broken:
            violated(Invariant.STATUS, f"a WebSocket: {talker.broken}")
        if talker.status == 429:
            world.note_registrations()
            world.addresses.check_refused(talker.host.address, talker.began, now)
        elif talker.status == 408 and world.shaken >= talker.began:
            world.count("408 in a bad network")
        elif talker.status not in (0, 101, 503):
            violated(Invariant.STATUS, f"a WebSocket was refused with {talker.status}")
        if self.device is not None:
            self.device.left = now
            self.crowd.open.remove(self.device)

    def _refused(self, reason: str) -> None:
        world, code, sent = self.crowd.world, self.code, self.sign_in.sent
        world.check_no_secrets(reason, "auth.fail")
        self.sign_in.failed = True
        if any(word in reason for word in UNCOUNTED):
            world.addresses.attempts[self.host.address].remove(self.attempt)
            self._was_not_looked_up()
            return
        self.attempt.told = self.crowd.now
        self.crowd.on_token_refused(self.session, sent)
        # The new session expires before the store has it, if the clock is set forward meanwhile.
        has_expired = EXPIRED in reason and any(when >= sent for when, _ in world.wall.steps)
        if code is not None and not has_expired and code.must_count(sent, self.crowd.now):
            violated(Invariant.LIVE_CODE, f"{code.word} was refused to {self.host.name}: {reason}")

    def _paired(self, members: dict[str, Any], code: CodeModel) -> SessionModel:
        world, sent, now = self.crowd.world, self.sign_in.sent, self.crowd.now
        token = str(members.get("session_token"))
        code.use(sent, now)
        if token in world.secrets:
            violated(Invariant.OWN_BYTES, "the token of another session was given out")
        world.secrets[token] = f"the token {token[:8]}"
        session = SessionModel(token, self.host.name, self.host.name, self._surface)
        terms = session.learn(members)
        session.terms.append(terms)
        session.past.append(terms)
        asked = code.wish.or_else(self.wish)
        session.explicit = dict.fromkeys(asked.grants or ())
        session.withheld = tuple(channel for channel, span in (asked.grants or {}).items() if span is None)
        if not fits(terms, lambda wall: paired(asked, world.policy, wall), world.wall.spans(sent, now)):
            violated(Invariant.LIFETIME, f"{session.prefix} got {terms} at {world.home.wall():.3f} for {asked}")
        self.crowd.sessions.append(session)
        return session

    def _returned(self, members: dict[str, Any]) -> SessionModel:
        session = self.session
        if session is None:
            violated(Invariant.DEAD_TOKEN, f"a stranger was welcomed at {self.host.name}")
        if members.get("session_token") != session.token:
            violated(Invariant.OWN_BYTES, f"{session.prefix} was welcomed with another token")
        if session.is_dead(self.crowd.world.wall, self.sign_in.sent, self.crowd.now):
            violated(Invariant.DEAD_TOKEN, f"{session.prefix} was welcomed after its end")
        told = session.learn(members)
        if self.terms is not None and session.patched == self.patched and told != self.terms:
            violated(Invariant.LIFETIME, f"{session.prefix} came back with {told}, and had {self.terms}")
        return session

    def _was_not_looked_up(self) -> None:
        if self.code is not None:
            self.code.shown -= 1


class PairingDevices:
    """Handler of the steps in which devices pair, reconnect and disconnect; checks each sign-in."""

    def __init__(self, crowd: ActorContext) -> None:
        self.crowd = crowd
        self.world = crowd.world
        crowd.world.on_relay_gone.append(self._relay_gone)
        self.handlers: dict[type[Step], StepHandler] = {
            RegisterCode: self._register,
            PairDevice: self._pair,
            ReconnectSession: self._reconnect,
            DisconnectSocket: self._disconnect,
        }

    def _register(self, step: RegisterCode) -> None:
        self.register(GRANTS[step.grants % len(GRANTS)], step.lifetime)

    def register(self, grants: Spans | None = None, ttl: float = 0.0) -> CodeModel:
        """Register a new code as the operator, and return its model. The response is checked when it arrives."""
        wish = RequestedTerms(int(ttl) or None, grants)
        code = CodeModel(f"C{self.crowd.next_number():05}", self.crowd.now, wish=wish)
        self.crowd.codes.append(code)
        sent = self.crowd.now
        forgotten = (sent, float("inf"))
        self.world.addresses.cleared.append(forgotten)

        def done(caller: RequestClient) -> None:
            self.world.addresses.cleared.remove(forgotten)
            until = self.crowd.now if caller.status else self.crowd.now + SLACK
            self.world.addresses.forget(sent, until, sure=caller.status == 200)
            if caller.status == 200:
                code.told = self.crowd.now
            elif caller.status == 403 and self.world.may_lack_secret(sent):
                self.world.count("codes refused since the secret is unreadable")
            elif caller.status not in (0, 408, 503):
                violated(Invariant.STATUS, f"a code was refused with {caller.status} {caller.answer.body!r:.200}")

        # The model keeps earlier sessions; tests/relay/websocket/test_client_connection.py has tests of their end.
        body = {"code": code.word, "keep_earlier": True, **wish.members}
        self.crowd.request_as_operator("POST", "/pairing/register", body, done)
        return code

    def _pair(self, step: PairDevice) -> None:
        if self.crowd.codes:
            code = self.crowd.codes[-1 if step.code < 0 else step.code % len(self.crowd.codes)]
            self.pair(self.world.devices[step.device % len(self.world.devices)], code, phone=step.device % 3 != 2)

    def pair(self, host: SimHost, code: CodeModel, *, phone: bool = True) -> WebSocketClient:
        """Pair a device with a code, and with random requested terms."""
        rng = Random(f"wish {self.world.script.seed} {code.word} {host.name}")
        ttl, grants = rng.choice(TTL_WISHES), rng.choice(GRANT_WISHES)
        payload: dict[str, object] = {
            "pairing_code": code.word,
            "device_name": host.name,
            "device_id": f"id of {host.name}",
            "client_surface": PHONE if phone else "desktop",
            **({} if ttl is None else {"ttl_seconds": ttl}),
            **({} if grants is None else {"grants": {**grants, "chat": "nonsense"}}),
        }
        if self.world.rng.random() < 0.2:
            payload["ttl_seconds"], ttl = "nonsense", None
        return SignInAttempt(self.crowd, host, payload, code, wish=RequestedTerms(ttl, grants)).open()

    def _reconnect(self, step: ReconnectSession) -> None:
        if not self.crowd.sessions:
            return
        session, codes = self.crowd.pick_session(step.session), [code for code in self.crowd.codes if not code.shown]
        if step.credential % 3 or not codes:
            self.reconnect(session)
            return
        code = codes[-1]  # sent as well, and not necessarily used up

        def welcomed(device: SignedInDevice) -> None:
            if device.session is session:
                self.pair(device.talker.host, code)

        self.reconnect(session, code=code, welcomed=welcomed)

    def reconnect(
        self,
        session: SessionModel,
        *,
        code: CodeModel | None = None,
        fresh: bool = False,
        welcomed: Callable[[SignedInDevice], None] = no_further_checks,
    ) -> WebSocketClient:
        """Reconnect a device with its token, and perhaps a code; `fresh`: on a connection of its own."""
        host = self.world.sim.hosts[session.owner]
        payload: dict[str, object] = {"session_token": session.token}
        if code is not None:
            payload |= {"pairing_code": code.word, "device_name": host.name, "device_id": f"id of {host.name}"}
            payload["client_surface"] = session.surface
        return SignInAttempt(self.crowd, host, payload, code, session, on_welcome=welcomed).open(fresh=fresh)

    def _relay_gone(self) -> None:
        """Update the expected state for a restart of the relay: codes and changes that were not stored may be lost."""
        for session in self.crowd.sessions:
            session.suspended = None
            session.terms, session.afterwards = session.afterwards or session.terms, []
        for code in self.crowd.codes:
            code.lost = True

    def _disconnect(self, step: DisconnectSocket) -> None:
        if self.crowd.open:
            self.crowd.open[step.socket % len(self.crowd.open)].talker.disconnect(reset=step.ending % 2 == 1)
