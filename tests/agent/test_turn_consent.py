import pytest

from svc_proto.agent.turn_consent import TurnConsent
from svc_proto.schema.effects.command_effects import Effect
from svc_proto.schema.effects.effect_kinds import EffectKind
from svc_proto.schema.effects.screen_tree import ScreenTree
from tests.engine.toy_service import open_book

GRANTED = Effect(kind=EffectKind.INSTALL, place="store", label="Install", recipient="a")
SEEN = ScreenTree.parse({"packageName": "store", "nodes": [{"nodeId": "w0:0", "text": "Install"}]})


@pytest.fixture
def consent() -> TurnConsent:
    return TurnConsent.begin(open_book().engine)


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
def test_an_approval_covers_what_completes_it(consent: TurnConsent, effect: Effect, expected: bool) -> None:
    assert not consent.is_granted(effect, SEEN)
    consent.grant(GRANTED, SEEN)
    assert [consent.is_granted(effect, SEEN) for _ in range(4)] == [*[expected] * 3, False]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("Delete it?", "Cancel", "Install"), True),
        (("Delete it?", "Install"), False),
        (("Close", "Install"), False),  # it was there before
        (("Cancel", "Install", *"abcd"), True),
        (("Cancel", "Install", *"abcde"), False),
    ],
)
def test_a_dialog_with_a_way_out_may_repeat_the_label(
    consent: TurnConsent, labels: tuple[str, ...], expected: bool
) -> None:
    consent.grant(GRANTED, screen("Install", "Close"))
    assert consent.is_granted(GRANTED, screen(*labels)) is expected


def test_an_allowed_app_completes_no_other_effect(consent: TurnConsent) -> None:
    consent.grant(Effect(kind=EffectKind.PURCHASE, place="shop", label="Order"), SEEN)
    consent.grant(app := Effect(kind=EffectKind.ELSEWHERE, place="mail"), SEEN)
    confirm = Effect(kind=EffectKind.CONFIRMATION, place="shop", label="Yes")
    assert [consent.is_granted(each, SEEN) for each in (app, app, confirm)] == [True, True, True]
    consent.leave_screen()
    assert (consent.is_granted(confirm, SEEN), consent.is_granted(app, SEEN)) == (False, True)


def test_a_setting_may_be_changed_back(consent: TurnConsent) -> None:
    setting = Effect(kind=EffectKind.SETTING, place="settings", label="Wi-Fi")
    consent.grant(setting, SEEN)
    assert consent.is_granted(setting, SEEN)


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
def test_what_a_denial_covers(consent: TurnConsent, effect: Effect, expected: bool) -> None:
    consent.deny(Effect(kind=EffectKind.CALL, place="dialer", recipient="5550666"))
    assert consent.is_denied(effect) is expected


def test_after_three_denials_nothing_is_asked_and_what_was_read_is_not_forgotten(consent: TurnConsent) -> None:
    for number in range(3):
        assert not consent.is_denied(GRANTED)
        consent.deny(Effect(kind=EffectKind.DISCLOSURE, recipient=f"{number}.example"))
    assert consent.is_denied(GRANTED)
    assert not consent.has_read
    for reads in (False, True, False):
        consent.taint(reads)
    assert consent.has_read


def test_each_screen_of_a_completion_counts_as_seen(consent: TurnConsent) -> None:
    consent.grant(GRANTED, screen("Install"))
    step = Effect(kind=EffectKind.CONFIRMATION, place="installer", label="Continue")
    assert consent.is_granted(step, screen("Continue", "Pay"))
    assert not consent.is_granted(Effect(kind=EffectKind.CONFIRMATION, label="Pay"), screen("Pay"))


@pytest.mark.parametrize(("host", "expected"), [("x.y", True), ("z.y", False)])
def test_a_denied_host_does_not_cover_another(consent: TurnConsent, host: str, expected: bool) -> None:
    consent.deny(Effect(kind=EffectKind.DISCLOSURE, recipient="x.y"))
    assert consent.is_denied(Effect(kind=EffectKind.DISCLOSURE, recipient=host)) is expected
