from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from attrs import define, field

from svc_proto.agent.phone_consent import ConsentingPhoneControl
from svc_proto.agent.turn_consent import TurnConsent
from svc_proto.basics.errors import ToolError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.schema.effects.command_effects import Effect
from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.screen_tree import ScreenTree
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.phone_control import PhoneResponse
from tests.agent.harness import AgentHarness
from tests.support.playbook import make_flow

BOUNDS = {"left": 0, "top": 0, "right": 100, "bottom": 100}


def screen(package: str, text: str, **members: object) -> dict[str, object]:
    node = {"nodeId": "w0:0", "text": text, "className": "android.widget.Button", "clickable": True, **members}
    return {"packageName": package, "rootBounds": BOUNDS, "nodes": [{**node, "bounds": BOUNDS}]}


DONE = PhoneResponse(200, {"ok": True})


@define
class Link:
    """Scripted phone control with one screen, one answer to all other commands, and a reported `safety`."""

    body: Mapping[str, object]
    safety: Mapping[str, object] = field(factory=dict)
    answer: PhoneResponse = DONE
    screen_status: int = 200
    sent: list[str] = field(factory=list)
    seen: list[object] = field(factory=list)  # phones whose screens were read
    engine: Engine = field(init=False)  # set by `play`

    def call(self, method: str, path: str, arguments: Mapping[str, object]) -> Flow[PhoneResponse]:
        self.sent.append(path)
        self.seen += [arguments.get("device")] * (path == "/screen")
        return make_flow(PhoneResponse(self.screen_status, self.body) if path == "/screen" else self.answer)

    def media(self, token: str) -> Flow[bytes]:
        return make_flow(token.encode())

    def gate_bound_arguments(self, arguments: Mapping[str, object]) -> Flow[Mapping[str, object] | None]:
        return make_flow(arguments)

    def activity(self) -> Flow[list[JsonObject]]:
        return make_flow([])

    def phone_status(self, arguments: Mapping[str, object]) -> Flow[JsonObject]:
        return make_flow(JsonObject(safety=dict(self.safety), device={"application_id": "org.client"}))


@define
class Consent:
    """Consent for one call whose owner denies every request."""

    turn: TurnConsent
    asked: list[Effect] = field(factory=list)
    session_id: str = "chat"

    def request(self, effect: Effect, tree: ScreenTree) -> Flow[None]:
        yield from ()
        self.asked.append(effect)
        self.turn.deny(effect)
        raise ToolError("denied")

    def ask(self, question: str) -> Flow[str | None]:
        return make_flow(None)


def play(
    link: Link, *commands: tuple[str, dict[str, Any]], private: bool = False, apps: tuple[str, ...] = ()
) -> tuple[Consent, list[str]]:
    """Send commands in one tool call; return the consent, and the paths of the commands that reached the phone."""

    def plan(parts: object, engine: Engine) -> Flow[Consent]:
        consent, link.engine = Consent(TurnConsent.begin(engine, apps=apps)), engine
        consent.turn.private.was_read = private
        control = ConsentingPhoneControl(link, consent)
        assert (yield from control.media("x")) == b"x"
        assert (yield from control.gate_bound_arguments({"a": 1})) == {"a": 1}
        assert (yield from control.activity()) == []
        assert control.engine is engine
        for path, body in commands:
            with suppress(ToolError):
                yield from control.call("GET" if path in ("/screen", "/screenshot") else "POST", path, body)
        return consent

    return AgentHarness().run(plan), link.sent


CALL = ("/tap_text", {"text": "Anrufen"})
DIALER = screen("com.android.dialer", "Anrufen")


def test_a_task_that_names_its_apps() -> None:
    start = ("/tap_text", {"text": "Start"})
    for apps, kinds in (((), []), (("org.x",), []), (("org.y",), [EffectKind.ELSEWHERE])):
        consent, _ = play(Link(screen("org.x", "Start")), start, start, apps=apps)
        assert [effect.kind for effect in consent.asked] == kinds
    consent, _ = play(Link(DIALER), CALL, apps=("org.y",))
    assert [effect.kind for effect in consent.asked] == [EffectKind.CALL]  # one question, for what it does


def test_the_screen_is_read_once_for_each_act() -> None:
    consent, sent = play(Link(DIALER), ("/screen", {}), CALL)
    assert sent == ["/screen"]
    assert [effect.kind for effect in consent.asked] == [EffectKind.CALL]
    assert consent.turn.source == "com.android.dialer"
    _, sent = play(Link(screen("org.x", "Start")), ("/tap_text", {"text": "Start"}), ("/tap_text", {"text": "Start"}))
    assert sent == ["/screen", "/tap_text"] * 2
    play(link := Link(DIALER), ("/tap_text", {"text": "x", "device": "b"}))
    assert link.seen == ["b"]  # that of the phone which the command goes to
    consent, sent = play(Link(DIALER, screen_status=400), CALL)
    assert (consent.asked, sent) == ([], ["/screen", "/tap_text"])
    consent, sent = play(Link(DIALER), CALL, CALL)
    assert (len(consent.asked), sent) == (1, ["/screen"])


def test_reads_need_no_consent() -> None:
    link = Link(DIALER, answer=PhoneResponse(400, {}))
    consent, sent = play(link, ("/search_contacts", {"query": "a"}), ("/screenshot", {}))
    assert (consent.asked, sent, consent.turn.private.was_read) == ([], ["/search_contacts", "/screenshot"], False)
    link.answer = PhoneResponse(200, {"contacts": []})
    assert play(link, ("/search_contacts", {"query": "a"}))[0].turn.private.was_read


@pytest.mark.parametrize(
    ("safety", "text", "asked"),
    [
        ({}, "Send", 1),
        ({"destructive_verbs_count": 0}, "Send", 1),
        ({"destructive_verbs_count": 12}, "Send", 0),  # the phone confirms
        ({"destructive_verbs_count": 12}, "Senden", 1),
    ],
)
def test_a_phone_with_verbs_asks_about_its_verbs(safety: dict[str, object], text: str, asked: int) -> None:
    consent, _ = play(Link(screen("org.x", text), safety), ("/tap_text", {"text": text}))
    assert len(consent.asked) == asked


@pytest.mark.parametrize(
    ("safety", "private", "asked"), [({}, False, 0), ({}, True, 1), ({"destructive_verbs_count": 12}, True, 0)]
)
def test_a_share_asks_once_private_data_was_read(safety: dict[str, object], private: bool, asked: int) -> None:
    consent, _ = play(Link(DIALER, safety), ("/share_media", {"text": "x"}), private=private)
    assert len(consent.asked) == asked


def test_power_keys_and_private_values_are_asked_about() -> None:
    consent, _ = play(Link(DIALER, {"destructive_verbs_count": 12}), ("/press_key", {"key": "lock_screen"}))
    assert [effect.kind for effect in consent.asked] == [EffectKind.POWER]
    body = screen("org.x.reader", "+15550100", editable=True)
    link = Link(body, answer=PhoneResponse(200, {"contacts": [{"number": "+15550100"}]}))
    consent, _ = play(link, ("/search_contacts", {"query": "a"}), ("/press_key", {"key": "enter"}))
    assert [effect.kind for effect in consent.asked] == [EffectKind.DISCLOSURE]


@pytest.mark.parametrize(
    ("package", "text", "private", "asked"),
    [
        ("com.android.chrome", "collector.invalid/?d=QWRh", True, 1),
        ("com.android.chrome", "collector.invalid/?d=QWRh", False, 0),
        ("org.x.reader", "boats", True, 0),
        ("org.x.reader", "collector.invalid", True, 1),
    ],
)
def test_what_is_submitted_after_private_data(package: str, text: str, private: bool, asked: int) -> None:
    body = screen(package, text, editable=True)
    consent, _ = play(Link(body), ("/press_key", {"key": "enter"}), private=private)
    assert len(consent.asked) == asked


def test_the_phones_answers_are_remembered_for_the_turn() -> None:
    denied = PhoneResponse(403, {"error_code": "user_denied"})
    consent, _ = play(Link(DIALER, answer=denied), ("/call", {"number": "+15550666"}))
    effect = Effect(kind=EffectKind.MESSAGE, recipient="(555) 0666")
    assert consent.turn.is_denied(effect)
    allowed = PhoneResponse(200, {"confirmed": True})
    consent, _ = play(Link(DIALER, answer=allowed), ("/call", {"number": "+15550666"}))
    assert not consent.turn.is_denied(effect)
    again = Effect(kind=EffectKind.CALL, label="Weiter", recipient="5550666")
    assert consent.turn.is_granted(again, ScreenTree())


@pytest.mark.parametrize(
    ("command", "expected"), [(("/wait", {"ms": 1}), True), (("/open_app", {"package": "other"}), False)]
)
def test_an_approval_ends_where_another_app_is_opened(command: tuple[str, dict[str, Any]], expected: bool) -> None:
    allowed = PhoneResponse(200, {"confirmed": True})
    consent, _ = play(Link(DIALER, answer=allowed), ("/call", {"number": "+15550666"}), command)
    assert consent.turn.is_granted(Effect(kind=EffectKind.CALL, label="Weiter"), ScreenTree()) is expected
