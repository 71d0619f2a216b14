"""People who pair: operators who register codes, devices that show them and come back with their tokens."""

from __future__ import annotations

from typing import Any

from fuzz.invariants import Invariant
from fuzz.model import SLACK, Attempt, Code, Session, violated
from fuzz.peers import Caller, Talker
from fuzz.people.crowd import GRANTS, Crowd, Deeds, Device
from fuzz.script import Deed, Step
from fuzz.world import REMOTE
from runtimes.sim.host import Host

__all__ = ["Pairing"]

UNCOUNTED = ("rate limited", "first message", "timeout", "too many")  # refusals that are no failed guesses


class Pairing:
    """The steps that end with a socket, or with none."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self.deeds: dict[Deed, Deeds] = {
            Deed.REGISTER: self._register,
            Deed.PAIR: self._pair,
            Deed.RECONNECT: self._reconnect,
            Deed.LEAVE: self._leave,
        }

    def _register(self, step: Step) -> None:
        self.register(GRANTS[step.other % len(GRANTS)], step.amount)

    def register(self, grants: dict[str, int] | None = None, ttl: float = 0.0) -> Code:
        """Have the operator register a fresh code."""
        body: dict[str, object] = {"code": f"C{self.crowd.number():05}"}
        if grants is not None:
            body["grants"] = grants
        if ttl:
            body["ttl_seconds"] = int(ttl)
        code = Code(str(body["code"]), self.crowd.now)
        self.crowd.codes.append(code)
        sent = self.crowd.now
        forgotten = (sent, float("inf"))
        self.world.addresses.cleared.append(forgotten)

        def done(caller: Caller) -> None:
            self.world.addresses.cleared.remove(forgotten)
            until = self.crowd.now if caller.status else self.crowd.now + SLACK
            self.world.addresses.forget(sent, until, sure=caller.status == 200)
            if caller.status == 200:
                code.told = self.crowd.now
            elif caller.status not in (0, 408, 503):
                violated(Invariant.STATUS, f"a code was refused with {caller.status} {caller.answer.body!r:.200}")

        self.crowd.local("POST", "/pairing/register", body, done)
        return code

    def _pair(self, step: Step) -> None:
        if self.crowd.codes:
            code = self.crowd.codes[-1 if step.other < 0 else step.other % len(self.crowd.codes)]
            self.pair(self.world.devices[step.who % len(self.world.devices)], code, phone=step.who % 3 != 2)

    def pair(self, host: Host, code: Code, *, phone: bool = True) -> Talker:
        """A device shows a code."""
        payload = {
            "pairing_code": code.word,
            "device_name": host.name,
            "device_id": f"id of {host.name}",
            "client_surface": "android" if phone else "desktop",
        }
        if self.world.rng.random() < 0.2:
            payload["ttl_seconds"] = "nonsense"
        return self.sign_in(host, payload, code=code)

    def _reconnect(self, step: Step) -> None:
        if self.crowd.sessions:
            self.reconnect(self.crowd.session(step.who))

    def reconnect(self, session: Session) -> Talker:
        """A device comes back with its token."""
        host = self.world.sim.hosts[session.owner]
        return self.sign_in(host, {"session_token": session.token}, session=session)

    def sign_in(
        self, host: Host, payload: dict[str, str], *, code: Code | None = None, session: Session | None = None
    ) -> Talker:
        """Open a WebSocket and show a credential."""
        world = self.world
        sent = [0.0]  # when `system/auth` went out
        attempt: list[Attempt] = []
        device: list[Device] = []

        def opened(talker: Talker) -> None:
            sent[0] = self.crowd.now
            world.note_registrations()
            world.addresses.check_open(host.address, talker.began, self.crowd.now)
            attempt.append(world.addresses.attempt(host.address, self.crowd.now))
            talker.say("system", "auth", payload, "auth-1")

        def heard(talker: Talker, message: dict[str, Any]) -> None:
            if device:
                self.crowd.heard(device[0], message)
                return
            kind = message.get("type")
            members = message.get("payload", {})
            if kind == "auth.ok":
                world.addresses.succeeded(host.address, attempt[0], self.crowd.now)
                device.append(self._welcomed(host, talker, members, code, session, sent[0]))
            elif kind == "auth.fail":
                reason = str(members.get("reason", ""))
                world.refuse_secrets(reason, "auth.fail")
                if any(word in reason for word in UNCOUNTED):
                    world.addresses.did_not_fail(host.address, attempt[0])
                else:
                    attempt[0].told = self.crowd.now
                    self.crowd.refused(session, sent[0])

        def ended(talker: Talker) -> None:
            self._judge_end(talker)
            for one in device:
                self.crowd.open.remove(one)

        talker = Talker(
            world.carrier(host, REMOTE, deflate=world.rng.random() < 0.5),
            REMOTE,
            headers={},
            on_open=opened,
            on_message=heard,
            on_end=ended,
        )
        world.keep(talker)
        return talker

    def _judge_end(self, talker: Talker) -> None:
        world = self.world
        world.lines.pop(talker, None)
        if talker.broken:
            violated(Invariant.STATUS, f"a WebSocket: {talker.broken}")
        if talker.status == 429:
            world.note_registrations()
            world.addresses.check_refused(talker.host.address, talker.began, self.crowd.now)
        elif talker.status == 408 and world.shaken >= talker.began:
            world.count("408 in a bad network")
        elif talker.status not in (0, 101, 503):
            violated(Invariant.STATUS, f"a WebSocket was refused with {talker.status}")

    def _welcomed(
        self,
        host: Host,
        talker: Talker,
        members: dict[str, Any],
        code: Code | None,
        session: Session | None,
        sent: float,
    ) -> Device:
        world = self.world
        token = str(members.get("session_token"))
        world.count("signed in")
        if code is not None:
            code.use(sent, self.crowd.now)
            if token in world.secrets:
                violated(Invariant.OWN_BYTES, "the token of another session was given out")
            world.secrets[token] = f"the token {token[:8]}"
            session = Session(token, host.name, host.name, "android")
            session.terms.append(session.learn(members))
            self.crowd.sessions.append(session)
        elif session is None:
            violated(Invariant.DEAD_TOKEN, f"a stranger was welcomed at {host.name}")
        else:
            if token != session.token:
                violated(Invariant.OWN_BYTES, f"{session.prefix} was welcomed with another token")
            if session.is_dead(world.wall, sent, self.crowd.now):
                violated(Invariant.DEAD_TOKEN, f"{session.prefix} was welcomed after its end")
            session.learn(members)
        device = Device(f"{host.name}/{self.crowd.number()}", talker, session)
        self.crowd.open.append(device)
        return device

    def _leave(self, step: Step) -> None:
        if self.crowd.open:
            self.crowd.open[step.who % len(self.crowd.open)].talker.hang_up(reset=step.other % 2 == 1)
