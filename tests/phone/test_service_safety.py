from typing import Any

import pytest

from svc_proto.commands import Notify
from svc_proto.facts import FailureKind, Stopping
from svc_proto.phone.safety.activity_log import ActivityStatus
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings
from svc_proto.phone.safety.view import SafetyView
from svc_proto.phone.service import PhoneState
from tests.phone.harness import TOKEN, PhoneHarness, with_keyboard

OK = {"ok": True}
ALLOWED = {"ok": True, "confirmed": True}
SEND = {"text": "Send it"}


def allow(rig: PhoneHarness, key: str, *, remember: bool = False) -> list[tuple[str, int, dict[str, Any]]]:
    """Allow a command at its confirmation and return the responses that follow."""
    rig.type(f"{'a' if remember else 'y'} {key}")
    return rig.responses()


def performed(rig: PhoneHarness) -> list[str]:
    return [command.request_id for command in rig.backend.asked]


def test_confirmation_request() -> None:
    rig = with_keyboard()
    rig.command("/tap_text", body=SEND)
    question = {"confirmation": "c1", "action": "tap_text", "verb": "send", "text": "Send it", "seconds": 25.0}
    rig.book << [Notify("asked", question)]
    rig.command("/send_sms", "r2", body={"to": "+1555", "body": "Hello"})
    question = {"confirmation": "c2", "action": "send_sms", "verb": None, "text": "+1555\nHello", "seconds": 25.0}
    rig.book << [Notify("asked", question)]
    assert performed(rig) == []


@pytest.mark.parametrize(("answers", "status"), [(ConfirmationPolicy.ALLOW, 200), (ConfirmationPolicy.DENY, 403)])
def test_remembered_answer(answers: ConfirmationPolicy, status: int) -> None:
    rig = with_keyboard(SafetySettings(armed=True, answers=answers))
    rig.command("/call", body={"number": "112233"})
    assert [found for _, found, _ in rig.responses()] == [status]
    assert [tell.event for tell in rig.new_notifications()] == ["performed"]
    assert rig.phone.gate.confirmations() == []


def test_a_bug_after_an_allow_is_the_answer() -> None:
    rig = with_keyboard()
    rig.backend.answers["/tap_text"] = RuntimeError("secret")
    assert allow(rig, rig.ask()) == [("r1", 500, {"error": "internal error, reference bug-1"})]
    assert rig.phone.gate.log.entries()[0].status is ActivityStatus.FAILED


def test_gates_outlive_the_connection_and_end_with_the_process() -> None:
    rig = with_keyboard()
    allow(rig, rig.ask(), remember=True)
    lost = rig.ask("r0", text="Delete it")
    rig.vanish()
    assert not rig.phone.controls.decide(lost, allow=True)
    rig.online(connect=rig.next_connect())
    rig.command("/tap_text", "r2", body=SEND)
    assert rig.responses() == [("r2", 200, OK)]
    rig = with_keyboard()
    rig.ask()
    rig.book >> Stopping(5.0)
    rig.book.drain_commands()
    assert not rig.phone.gate.is_armed
    assert not rig.backend.consents.screen_capture
    assert rig.phone.gate.confirmations() == []


def test_master_is_off_by_default() -> None:
    rig = with_keyboard(SafetySettings())
    rig.command("/tap", body={"x": 1, "y": 2})
    ((_, status, result),) = rig.responses()
    assert (status, result["error_code"]) == (403, "bridge_disabled")
    rig.type("on")
    (said,) = rig.sent_envelopes()  # wire bridge 1.3: a status at once, for this toggle and for the next
    assert said.payload["bridge"]["master_enabled"] is True
    rig.command("/tap", "r2")
    assert rig.responses() == [("r2", 200, OK)]
    rig.type("unattended on")
    (said,) = rig.sent_envelopes()
    assert said.payload["unattended"]["enabled"] is True
    rig.type("chip on")
    assert rig.sent_envelopes() == []
    rig.backend.usable = False
    rig.command("/tap", "r3")
    assert [(status, result["error_code"]) for _, status, result in rig.responses()] == [(423, "keyguard_blocked")]


def test_idle_for_too_long() -> None:
    rig = with_keyboard(SafetySettings(armed=True, idle_minutes=5))
    rig.delivered()
    rig.book.after(10.0)
    rig.command("/ping", "r0")
    rig.responses()
    rig.delivered()
    masters = []
    for seconds in (20.0, *(30.0,) * 9, 10.0):  # the ticker's times, and then five minutes after the command
        rig.book.after(seconds)
        (status,) = rig.sent_envelopes()
        masters.append(status.payload["bridge"]["master_enabled"])
        rig.delivered()
    assert masters == [True] * 10 + [False]
    rig.command("/tap")
    assert [(status, result["error_code"]) for _, status, result in rig.responses()] == [(403, "bridge_disabled")]
    assert performed(rig) == ["r0"]


def test_idle_while_the_relay_is_away() -> None:
    rig = with_keyboard(SafetySettings(armed=True, idle_minutes=5))
    rig.vanish()
    while rig.phone.gate.is_armed:
        rig.book.fail(rig.next_connect(), FailureKind.UNREACHABLE).drain_commands()
    assert not rig.is_in(PhoneState.ONLINE)


def test_program_receives_notifications() -> None:
    rig = PhoneHarness(token=TOKEN, safety=SafetySettings(armed=True, unattended=True, chip=True), watched=True)
    rig.online()
    (first,) = views(rig)
    assert (first.banner, first.unattended, first.chip.value) == (True, True, "forced")
    rig.command("/tap_text", body=SEND)
    rig.book.drain_commands()
    (asked,) = views(rig)
    assert [overlay.text for overlay in asked.overlays] == ["Send it"]
    rig.open_keyboard()
    rig.type("n")
    rig.book.drain_commands()
    (denied,) = views(rig)
    assert denied.overlays == ()
    assert denied.activity[0].status is ActivityStatus.BLOCKED
    rig.type("chip on")  # without effect
    rig.book.drain_commands()
    assert views(rig) == []


def views(rig: PhoneHarness) -> list[SafetyView]:
    found = [tell.fields["view"] for tell in rig.new_notifications() if tell.event == "safety"]
    return [view for view in found if isinstance(view, SafetyView)]


def test_program_may_decide_on_notification() -> None:
    rig = with_keyboard()

    class Eager(list[Notify]):
        def append(self, news: Notify) -> None:
            if news.event == "asked":
                rig.phone.controls.decide(str(news.fields["confirmation"]), allow=True)

    rig.phone._on_notify = Eager().append
    rig.command("/tap_text", body=SEND)
    assert rig.responses() == [("r1", 200, ALLOWED)]
    assert performed(rig) == ["r1"]
