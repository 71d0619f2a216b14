from __future__ import annotations

import pytest

from svc_proto.agent.turn_consent import TurnConsent
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.schema.effects.command_effects import Effect
from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.screen_tree import ScreenTree
from tests.agent.harness import AgentHarness

GRANTED = Effect(kind=EffectKind.INSTALL, place="store", label="Install", recipient="a")
SEEN = ScreenTree.parse({"packageName": "store", "nodes": [{"nodeId": "w0:0", "text": "Install"}]})


def screen(*labels: str) -> ScreenTree:
    nodes = [{"nodeId": f"w0:{number}", "text": text} for number, text in enumerate(labels)]
    return ScreenTree.parse({"packageName": "store", "nodes": nodes})


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (Effect(kind=EffectKind.INSTALL, place="installer", label="Fortfahren"), True),
        (Effect(kind=EffectKind.CONFIRMATION, place="installer", label="OK"), True),
        (Effect(kind=EffectKind.INSTALL, place="store", label="Install"), False),  # it was there before
        (Effect(kind=EffectKind.INSTALL, place="installer"), False),
        (Effect(kind=EffectKind.PERMISSION, place="installer", label="Allow"), False),
        (Effect(kind=EffectKind.INSTALL, place="installer", label="Go", recipient="b"), False),
    ],
)
def test_an_approval_covers_what_completes_it(effect: Effect, expected: bool) -> None:
    def plan(parts: object, engine: Engine) -> Flow[list[bool]]:
        yield from ()
        turn = TurnConsent.begin(engine)
        assert not turn.is_granted(effect, SEEN)
        turn.grant(GRANTED, SEEN)
        return [turn.is_granted(effect, SEEN) for _ in range(4)]

    found = AgentHarness().run(plan)
    assert found == [*[expected] * 3, False]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("Delete it?", "Cancel", "Install"), True),
        (("Delete it?", "Install"), False),
        (("Close", "Install"), False),  # it was there before
        (("Cancel", "Install", *"abcdefg"), False),
    ],
)
def test_a_dialog_with_a_way_out_may_repeat_the_label(labels: tuple[str, ...], expected: bool) -> None:
    def plan(parts: object, engine: Engine) -> Flow[bool]:
        yield from ()
        turn = TurnConsent.begin(engine)
        turn.grant(GRANTED, screen("Install", "Close"))
        return turn.is_granted(GRANTED, screen(*labels))

    assert AgentHarness().run(plan) is expected


def test_an_allowed_app_completes_no_other_effect() -> None:
    def plan(parts: object, engine: Engine) -> Flow[list[bool]]:
        yield from ()
        turn = TurnConsent.begin(engine)
        order = Effect(kind=EffectKind.PURCHASE, place="shop", label="Order")
        turn.grant(order, SEEN)
        turn.grant(app := Effect(kind=EffectKind.ELSEWHERE, place="mail"), SEEN)
        confirm = Effect(kind=EffectKind.CONFIRMATION, place="shop", label="Yes")
        first = [turn.is_granted(each, SEEN) for each in (app, app, confirm)]
        turn.leave_screen()
        return [*first, turn.is_granted(confirm, SEEN), turn.is_granted(app, SEEN)]

    assert AgentHarness().run(plan) == [True, True, True, False, True]


def test_a_setting_may_be_changed_back() -> None:
    def plan(parts: object, engine: Engine) -> Flow[bool]:
        yield from ()
        turn = TurnConsent.begin(engine)
        setting = Effect(kind=EffectKind.SETTING, place="settings", label="Wi-Fi")
        turn.grant(setting, SEEN)
        return turn.is_granted(setting, SEEN)

    assert AgentHarness().run(plan)


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (Effect(kind=EffectKind.CALL), True),
        (Effect(kind=EffectKind.MESSAGE, recipient="+1 555 0666"), True),
        (Effect(kind=EffectKind.DELETION, place="dialer"), True),
        (Effect(kind=EffectKind.DISCLOSURE, place="dialer", soft=True), False),
        (Effect(kind=EffectKind.DELETION, place="mail", recipient="other"), False),
    ],
)
def test_what_a_denial_covers(effect: Effect, expected: bool) -> None:
    def plan(parts: object, engine: Engine) -> Flow[bool]:
        yield from ()
        turn = TurnConsent.begin(engine)
        turn.deny(Effect(kind=EffectKind.CALL, place="dialer", recipient="5550666"))
        return turn.is_denied(effect)

    assert AgentHarness().run(plan) is expected


@pytest.mark.parametrize(("host", "expected"), [("x.y", True), ("z.y", False)])
def test_a_denied_host_does_not_cover_another(host: str, expected: bool) -> None:
    def plan(parts: object, engine: Engine) -> Flow[bool]:
        yield from ()
        turn = TurnConsent.begin(engine)
        turn.deny(Effect(kind=EffectKind.DISCLOSURE, recipient="x.y"))
        return turn.is_denied(Effect(kind=EffectKind.DISCLOSURE, recipient=host))

    assert AgentHarness().run(plan) is expected
