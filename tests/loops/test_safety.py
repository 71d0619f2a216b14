"""Each safety gate end to end: caller, relay, the reference phone's refusal, and back (spec "Bridge safety gates").

Each test looks at three things: what the caller is told, what the relay's record says of it, and that the handset did
nothing. Gates that need minutes are tried in virtual time alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import define, field

from clients.phone.handset import SimulatedHandset
from clients.phone.handset.screens import MAIL
from svc_proto.basics.moment import Moment
from svc_proto.basics.timers import Timer
from svc_proto.commands import Tell
from svc_proto.device.phone import Phone, PhoneConfig
from svc_proto.device.safety.settings import SafetySettings, Switch
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted
from tests.loops.virtual import VirtualWorld
from tests.loops.world import PhoneHandle, World, bearer
from tests.support.http_client import Response

ARMED = SafetySettings(armed=True)
SETUP = Moment(0.0, 1_800_000_000.0)
SEND = {"text": "Send"}
Deed = Callable[[Phone], object]


@define(eq=False)
class Person:
    """A person with a phone: answers what they are asked, and does something after a command of some path."""

    handset: SimulatedHandset
    safety: SafetySettings = ARMED
    word: Callable[[int], tuple[bool, bool] | None] = lambda count: None  # allow, remember; None: never answers
    after: dict[str, Deed] = field(factory=dict)
    asked: list[Tell] = field(factory=list)
    todo: list[Deed] = field(factory=list)
    phone: Phone = field(init=False)
    engine: Engine = field(init=False)
    timer: Timer = field(init=False)

    def __call__(self, config: PhoneConfig) -> Person:
        self.phone = Phone(config, self.handset, self.safety, on_news=self.hear)
        return self

    def hear(self, news: Tell) -> None:
        deed: Deed | None = None
        if news.event == "asked":
            self.asked.append(news)
            key, word = str(news.fields["confirmation"]), self.word(len(self.asked))
            if word is not None:
                allow, remember = word
                deed = lambda phone: phone.controls.decide(key, allow=allow, remember=remember)  # noqa: E731 - a deed like others
        elif news.event == "performed":
            deed = self.after.pop(str(news.fields["path"]), None)
        if deed is not None:
            self.todo.append(deed)
            self.timer.set(self.engine.now.mono)

    def act(self) -> None:
        for deed in self.todo:
            deed(self.phone)
        self.todo.clear()

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        self.engine = engine
        self.timer = engine.timers.timer(self.act)
        self.phone.bind(engine)

    def on_started(self) -> None:
        self.phone.on_started()

    def on_accepted(self, fact: Accepted) -> Channel | None:
        return self.phone.on_accepted(fact)

    def on_stopping(self) -> None:
        self.phone.on_stopping()


@define(eq=False)
class Scene:
    """A relay, a phone with its person, and a caller."""

    world: World
    person: Person
    phone: PhoneHandle
    before: tuple[object, ...] = ()

    @property
    def handset(self) -> SimulatedHandset:
        return self.person.handset

    def call(self, method: str, path: str, body: object = None, *, timeout: float = 10.0) -> Response:
        """One command, with the state of the handset before it."""
        self.before = state(self.handset)
        return self.world.http(method, path, body, headers=bearer(self.phone.token), timeout=timeout)

    def refused(
        self, method: str, path: str, body: object = None, *, timeout: float = 10.0
    ) -> tuple[int, object, object]:
        """One command that is refused: its status, its code, and the relay's decision about it."""
        answer = self.call(method, path, body, timeout=timeout)
        assert state(self.handset) == self.before, "the handset did something"
        record = self.record()
        assert (record["path"], record["response_status"]) == (path, answer.status)
        assert answer.json["error"]
        return answer.status, answer.json.get("error_code"), record["decision"]

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = self.world.http("GET", "/bridge/activity?limit=1").json["activity"][0]
        return found

    def do(self, deed: Deed) -> None:
        """Have the person do something, after a command that changes nothing."""
        self.person.after["/setup"] = deed
        assert self.call("POST", "/setup", {}).status == 200


def state(handset: SimulatedHandset) -> tuple[object, ...]:
    """All that a command could have done."""
    device = handset.device
    return (
        tuple(handset.gestures),
        tuple(handset.outbox),
        device.front,
        device.overlay,
        device.clipboard,
        dict(device.texts),
        device.screen_on,
        device.locked,
        device.volume,
        device.playing,
    )


def scene(
    world: World,
    safety: SafetySettings = ARMED,
    *,
    handset: SimulatedHandset | None = None,
    word: Callable[[int], tuple[bool, bool] | None] = lambda count: None,
) -> Scene:
    person = Person(handset or SimulatedHandset(), safety, word)
    return Scene(world, person, world.phone(make=person))


def composing() -> SimulatedHandset:
    """A letter to Ada is written and waits for its Send button."""
    handset = SimulatedHandset()
    device = handset.device
    device.launch(MAIL, SETUP, "compose")
    for name, text in (("to", "ada@example.com"), ("subject", "Lunch"), ("body", "Gladly")):
        device.texts[MAIL, name] = text
    return handset


def yes(count: int) -> tuple[bool, bool]:
    return True, False


def no(count: int) -> tuple[bool, bool]:
    return False, False


# --- master toggle, accessibility, consent ------------------------------------------------------------------------


def test_master_off(relayed: World) -> None:
    at = scene(relayed, SafetySettings())
    assert at.refused("POST", "/tap", {"x": 500, "y": 1200}) == (403, "bridge_disabled", "blocked")
    assert at.refused("GET", "/screen") == (403, "bridge_disabled", "blocked")
    for method, path in (("GET", "/ping"), ("GET", "/current_app"), ("POST", "/return_to_svc")):
        assert at.call(method, path, {}).status == 200
    at.do(lambda phone: phone.controls.turn(Switch.MASTER, True))
    assert at.call("GET", "/screen").status == 200
    at.do(lambda phone: phone.controls.turn(Switch.MASTER, False))
    assert at.refused("POST", "/open_app", {"package": MAIL}) == (403, "bridge_disabled", "blocked")
    relayed.eventually(lambda: relayed.http("GET", "/bridge/status").json["bridge"]["master_enabled"] is False)


def test_screen_capture_consent_missing(relayed: World) -> None:
    at = scene(relayed)
    assert at.call("GET", "/screenshot").status == 200
    at.do(lambda phone: phone.controls.turn(Switch.MASTER, False))
    at.do(lambda phone: phone.controls.turn(Switch.MASTER, True))  # the consent ended with the toggle
    assert at.refused("GET", "/screenshot") == (500, None, "error")
    assert relayed.http("GET", "/relay/info").json["pending_commands"] == 0
    at.do(lambda phone: phone.controls.turn(Switch.CAPTURE, True))
    assert at.call("GET", "/screenshot").json["media"].startswith("MEDIA:")


# --- destructive verbs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/tap_text", SEND),
        ("/tap_text", {"text": "en"}),  # presses the same button
        ("/type", {"text": "Please pay 5"}),
        ("/call", {"number": "112233"}),
        ("/send_sms", {"to": "+15550100", "body": "Hello"}),
    ],
)
def test_denied(relayed: World, path: str, body: object) -> None:
    at = scene(relayed, handset=composing(), word=no)
    assert at.refused("POST", path, body) == (403, "user_denied", "blocked")
    assert len(at.person.asked) == 1
    at.person.word = yes  # a denial is final: the next one is a new question
    at.call("POST", path, body)
    assert len(at.person.asked) == 2


def test_allowed(relayed: World) -> None:
    at = scene(relayed, handset=composing(), word=yes)
    answer = at.call("POST", "/tap_text", SEND)
    assert (answer.status, answer.json["confirmed"]) == (200, True)
    assert [item.kind for item in at.handset.outbox] == ["mail"]
    assert at.record()["decision"] == "confirmed"


def test_a_question_does_not_hold_up_others(relayed: World) -> None:
    at = scene(relayed, handset=composing())
    calling = relayed.client().begin("POST", "/tap_text", SEND, headers=bearer(at.phone.token))
    relayed.wait_until(lambda: at.phone.count("asked") == 1)
    assert at.call("GET", "/screen").status == 200
    at.do(lambda phone: phone.controls.turn(Switch.MASTER, False))
    answer = calling.finish()
    assert (answer.status, answer.json["error_code"]) == (403, "bridge_disabled")
    assert list(at.handset.outbox) == []


def test_a_phone_that_goes_while_it_asks(relayed: World) -> None:
    at = scene(relayed, handset=composing())
    calling = relayed.client().begin("POST", "/tap_text", SEND, headers=bearer(at.phone.token))
    relayed.wait_until(lambda: at.phone.count("asked") == 1)
    key = str(at.person.asked[0].fields["confirmation"])
    assert at.phone.stop() == 0
    assert (calling.finish().status, at.record()["decision"]) == (502, "error")
    assert not at.person.phone.controls.decide(key, allow=True)
    assert list(at.handset.outbox) == []


# --- unattended access, store build -------------------------------------------------------------------------------


def locked(*, credential: bool) -> SimulatedHandset:
    handset = SimulatedHandset()
    handset.device.locked, handset.device.credential_lock, handset.device.screen_on = True, credential, False
    return handset


def test_unattended_a_lock_without_credential_opens(relayed: World) -> None:
    at = scene(relayed, SafetySettings(armed=True, unattended=True), handset=locked(credential=False))
    assert at.call("GET", "/screen").status == 200
    assert at.handset.device.locked  # looking does not wake it
    assert at.call("POST", "/tap", {"x": 500, "y": 1200}).status == 200
    assert at.record()["decision"] == "executed"
    assert not at.handset.device.locked


def test_unattended_a_credential_is_respected(relayed: World) -> None:
    at = scene(relayed, SafetySettings(armed=True, unattended=True), handset=locked(credential=True))
    answer = at.call("POST", "/tap", {"x": 500, "y": 1200})
    assert (answer.status, answer.json["error_code"], answer.json["final"]) == (423, "keyguard_blocked", True)
    assert at.record()["decision"] == "blocked"
    assert not at.handset.gestures
    assert at.handset.device.locked


# --- what takes minutes -------------------------------------------------------------------------------------------


def test_nobody_answers(virtual_world: VirtualWorld) -> None:
    at = scene(virtual_world, handset=composing())
    began = virtual_world.clock()
    assert at.refused("POST", "/tap_text", SEND, timeout=40.0) == (403, "user_denied", "blocked")
    assert virtual_world.clock() - began == pytest.approx(25.0, abs=0.5)


def test_the_answer_comes_after_the_caller_has_left(virtual_world: VirtualWorld) -> None:
    at = scene(virtual_world, SafetySettings(armed=True, confirmation_timeout=60.0), handset=composing())
    assert at.call("POST", "/tap_text", SEND, timeout=40.0).status == 504
    assert at.record()["decision"] == "timeout"
    virtual_world.pass_time(40.0)
    assert at.phone.count("performed") == 1  # the denial of the phone, at 60 s
    assert list(at.handset.outbox) == []
