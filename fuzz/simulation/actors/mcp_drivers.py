"""Remote agents that drive phones by MCP, with an OAuth grant or with a device's token.

Each call has a mark, which its phone receives and returns. So the checker can attribute each execution. No call is
executed after its caller's grant ended, or after its cancellation. A read-only grant changes nothing. A call that needs
confirmation is executed only after it.
"""

from __future__ import annotations

import re
from math import inf
from typing import Any

from attrs import define

from fuzz.simulation.actors.actor_context import LATE, ActorContext, SignedInDevice, StepHandler
from fuzz.simulation.actors.device_control import DeviceControlActors
from fuzz.simulation.actors.oauth_clients import ACT, READ, OAuthClientModel, OAuthClients
from fuzz.simulation.actors.session_owners import SessionOwners
from fuzz.simulation.deployment import REMOTE
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.mcp_client import McpClientSession, McpEndpoint, Message, PendingMcpRequest, SimMcpClient
from fuzz.simulation.models.reference_model import SessionModel, violated
from fuzz.steps import DrivePhone, PostNotification, Step

ANSWERED = 45.0  # s in which a read-only call has an answer
STREAMED = 6.0  # s after which an answer that has not arrived is a stream
BUSY = 7.0  # s that a phone takes at least for a call that others are queued behind
MAX_SESSIONS = 3  # of one caller
WAYS = 16
MARK = re.compile(r"drive-\d+!")
NOTES, DEVICES = "phone://notifications", "phone://devices"
# Tools of one command each, with the argument that has the mark.
TOOLS = {
    "look": ("phone_search_contacts", "query"),
    "act": ("phone_clipboard_write", "text"),
    "send": ("phone_call", "number"),
}


@define(eq=False)
class _Driver:
    """Caller of tools: its grant, and its MCP sessions."""

    session: SessionModel
    client: SimMcpClient
    app: OAuthClientModel | None


@define(eq=False)
class _DriverCall:
    """Tool call of a driver."""

    mark: str
    kind: str
    driver: _Driver
    talk: McpClientSession
    sent: float
    delay: float  # s that its phone takes
    is_device_named: bool  # else the default phone may be the reference phone, which answers by itself
    asked: PendingMcpRequest | None = None
    heard: float | None = None  # when a phone received it
    allowed: float | None = None  # when the caller's user accepted


class McpDrivers:
    """Steps of agents that drive phones."""

    def __init__(
        self,
        crowd: ActorContext,
        control: DeviceControlActors,
        owners: SessionOwners,
        apps: OAuthClients,
        post_note: StepHandler,
    ) -> None:
        self.crowd = crowd
        self.world = crowd.world
        self._owners = owners
        self._apps = apps
        self._post_note = post_note
        self._drivers: dict[SessionModel, _Driver] = {}
        self._calls: dict[str, _DriverCall] = {}
        control.others.append(self._on_command)
        self.handlers: dict[type[Step], StepHandler] = {DrivePhone: self._step}

    @property
    def talks(self) -> list[McpClientSession]:
        """Return all MCP sessions that ever existed."""
        return [talk for driver in self._drivers.values() for talk in driver.client.talks]

    def _step(self, step: DrivePhone) -> None:
        driver = self._driver(step.agent)
        if driver is None:
            return
        talks = [talk for talk in driver.client.talks if not talk.ending and talk.server is self.world.relay]
        if not talks or (step.action // WAYS % 3 == 0 and len(talks) < MAX_SESSIONS):
            driver.client.open(self.world.relay, lambda talk: self._act(driver, talk, step))
        else:
            self._act(driver, talks[step.action // WAYS % len(talks)], step)

    def _driver(self, who: int) -> _Driver | None:
        """Return the driver of a number: an OAuth client, or a paired device for each third number; None for none."""
        inside = self._apps.inside
        app = inside[who // 3 % len(inside)] if inside and who % 3 else None
        if app is None and not self.crowd.sessions:
            return None
        session = self.crowd.pick_session(who // 3) if app is None else app.session
        assert session is not None
        if session not in self._drivers:
            place = McpEndpoint(self.world.agent, REMOTE, lambda: session.token if app is None else app.access)
            self._drivers[session] = _Driver(session, SimMcpClient(self.world, place, elicits=True), app)
        return self._drivers[session]

    def _act(self, driver: _Driver, talk: McpClientSession, step: DrivePhone) -> None:
        sim, amount = self.world.sim, step.seconds
        match step.action % WAYS:
            case 0 | 1:
                self._call(driver, talk, "look", amount)
                self._call(driver, talk, "act", 0.1)
            case 2 | 3:  # a client that disconnects, and resumes
                call = self._call(driver, talk, "look", BUSY + 2 * amount)
                assert call.asked is not None
                asked = call.asked
                sim.after(STREAMED + amount, lambda: talk.disconnect_request(asked, 1.0 + amount))
            case 4 | 5 | 6:  # a queued call whose caller's grant ends
                self._queue(driver, talk)
                self._owners_answer(driver, step)
            case 7:  # a queued call that is cancelled
                waiting = self._queue(driver, talk)
                assert waiting.asked is not None
                asked_too = waiting.asked
                sim.after(0.5 + amount / 4, lambda: talk.cancel(asked_too))
            case 8:  # a queued call whose MCP session ends
                self._queue(driver, talk)
                sim.after(0.5 + amount / 4, talk.end)
            case 9 | 10:
                self._call(driver, talk, "send", amount)
            case 11:
                talk.listen()
                talk.subscribe(NOTES)
                talk.subscribe(DEVICES)
                sim.after(1.0, lambda: self._note(driver, talk, step))
            case 12:
                talk.subscribe(NOTES, off=True)
                sim.after(LATE + 1.0, lambda: self._note(driver, talk, step))
            case 13:  # the listener disconnects, and reconnects
                if talk.listener is not None:
                    talk.listener.disconnect(reset=True)
                self._note(driver, talk, step)
                sim.after(amount, talk.listen)
            case 14:  # two sessions send requests at once, with equal numbers
                driver.client.open(self.world.relay, lambda other: self._twins(driver, other, amount))
                driver.client.open(self.world.relay, lambda other: self._twins(driver, other, amount / 2))
            case _:
                self._try_route(talk, self._driver(step.agent + 1))

    def _owners_answer(self, driver: _Driver, step: DrivePhone) -> None:
        app = driver.app
        later = 0.5 + step.seconds / 4
        if app is not None and step.action % WAYS == 6:  # the rotated token is not accepted any more
            self._apps.renew(app)
        self.world.sim.after(later, lambda: self._owners.revoke(driver.session, None))

    def _queue(self, driver: _Driver, talk: McpClientSession) -> _DriverCall:
        """Send two acting calls; the phone must execute the second after the first. Return the second."""
        self._call(driver, talk, "act", BUSY)
        return self._call(driver, talk, "act", 0.1)

    def _twins(self, driver: _Driver, talk: McpClientSession, delay: float) -> None:
        for kind in ("look", "look"):
            self._call(driver, talk, kind, delay)

    def _call(self, driver: _Driver, talk: McpClientSession, kind: str, delay: float) -> _DriverCall:
        mark = f"drive-{self.crowd.next_number()}!"
        phones = self.crowd.phones
        call = self._calls[mark] = _DriverCall(mark, kind, driver, talk, self.crowd.now, delay, bool(phones))
        tool, argument = TOOLS[kind]
        given = {argument: mark}
        if phones:
            given["device"] = phones[len(self._calls) % len(phones)].session.device
        call.asked = talk.request(
            "tools/call",
            {"name": tool, "arguments": given},
            lambda message: self._answered(call, message),
            on_question=lambda message: self._asked(call, message),
        )
        if kind == "look":
            self.world.sim.after(delay + ANSWERED, lambda: self._check_answered(call))
        return call

    # --- results of a call ---

    def _on_command(self, device: SignedInDevice, payload: dict[str, Any]) -> bool:
        """Handle a command at a phone; return whether the command belongs to a call of a driver."""
        body = payload.get("body") or {}
        call = self._calls.get(str(body.get("text") or body.get("number") or body.get("query")))
        if call is None:
            return False
        now, driver = self.crowd.now, call.driver
        self.world.count("calls by MCP at a phone")
        if call.heard is not None:
            violated(Invariant.ONE_ANSWER, f"{call.mark} is done twice")
        call.heard = now
        grant = ACT if call.kind != "look" or driver.app is None else driver.app.scope
        if driver.app is not None and driver.app.scope == READ and call.kind != "look":
            violated(
                Invariant.LOOKS_ONLY,
                f"{call.mark} is done for {driver.app.name}, which may only look: {payload['path']}",
            )
        if driver.session.lacks(grant, self.world.wall, call.sent, now):
            violated(Invariant.LIVE_GRANT, f"{call.mark} of {driver.session.prefix}, which holds no {grant}")
        sound = self.world.is_unaffected(device.talker)
        if sound and (late := self.crowd.seconds_past_end(driver.session, LATE)):
            violated(Invariant.LIVE_GRANT, f"{call.mark} is done {late:.0f} s after the end of what let its caller in")
        asked, ended = call.asked, call.talk.ended
        if sound and asked is not None and asked.cancelled is not None and now > asked.cancelled + LATE:
            violated(Invariant.CANCELLED, f"{call.mark} was cancelled, and is done")
        if sound and ended is not None and now > ended + LATE:
            violated(Invariant.AFTER_END, f"{call.mark} is done after the end of its session of MCP")
        if call.kind == "send" and call.allowed is None:
            violated(Invariant.CONFIRMED, f"{call.mark} is sent without an approval")
        self.world.sim.after(call.delay, lambda: device.send_result(str(payload["request_id"]), call.mark))
        return True

    def _asked(self, call: _DriverCall, message: Message) -> None:
        """Answer the elicitation to the caller's user: accept, decline, or no answer."""
        if message["method"] != "elicitation/create" or call.mark not in message["params"]["message"]:
            violated(Invariant.OWN_ANSWER, f"{call.mark} is asked {message!r:.200}")
        word = ("accept", "decline", "")[self.crowd.next_number() % 3]
        if word == "accept":
            call.allowed = self.crowd.now
        if word:
            call.talk.send({"id": message["id"], "result": {"action": word, "content": {}}})

    def _answered(self, call: _DriverCall, message: Message) -> None:
        marks = MARK.findall(str(message))
        if [mark for mark in marks if mark != call.mark]:
            violated(Invariant.OWN_ANSWER, f"{call.mark} was answered {message!r:.200}")
        if marks and message.get("result", {}).get("isError") is False:
            self.world.count("calls by MCP that a phone has answered")
            if call.heard is None and call.is_device_named:
                violated(Invariant.OWN_ANSWER, f"{call.mark} was answered, and no phone was told")
        driver = call.driver
        if driver.session.is_dead(self.world.wall, call.sent, self.crowd.now):
            violated(Invariant.DEAD_TOKEN, f"{call.mark} was answered, and its caller was not let in any more")

    def _note(self, driver: _Driver, talk: McpClientSession, step: DrivePhone) -> None:
        """Post a notification at a phone, and check that a subscribed listener is notified."""
        if not self.crowd.open:
            return
        device, sent = self.crowd.open[step.agent % len(self.crowd.open)], self.crowd.now
        self._post_note(PostNotification(step.at, step.agent, step.action))

        def check() -> None:
            listener = talk.listener
            watches = talk.watching.get(NOTES, inf) < sent and self._is_let_in(driver, talk)
            if not watches or listener is None or listener.is_closed or listener.began + LATE > self.crowd.now:
                return
            said = device in self.crowd.open and self.crowd.must_be_alive(device.session)
            sound = self.world.is_unaffected(listener) and self.world.is_unaffected(device.talker)
            told = any(when >= sent and uri == NOTES for when, uri in talk.updates)
            if said and sound and not told and self.world.is_fault_free_since(sent):
                violated(Invariant.IN_TIME, f"{driver.session.prefix} watches {NOTES}, and was told of none")

        self.world.sim.after(step.seconds + 2 * LATE, check)

    def _is_let_in(self, driver: _Driver, talk: McpClientSession) -> bool:
        """Report whether the MCP session certainly exists, and its caller certainly has access."""
        app, session = driver.app, driver.session
        if talk.ending or talk.server is not self.world.relay or not self.world.is_relay_up:
            return False
        return self.crowd.must_have_had_grant(session, ACT) if app is None else self._apps.is_sure(app)

    def _check_answered(self, call: _DriverCall) -> None:
        """Check that a caller with a certain grant has an answer."""
        asked = call.asked
        assert asked is not None
        over = asked.answered is not None or asked.cancelled is not None
        if not over and self._is_let_in(call.driver, call.talk) and self.world.is_fault_free_since(call.sent):
            violated(Invariant.IN_TIME, f"{call.mark} has no answer after {self.crowd.now - call.sent:.0f} s")

    def _try_route(self, talk: McpClientSession, other: _Driver | None) -> None:
        if other is not None and other.client is not talk.client:
            other.client.try_foreign_session(talk)
