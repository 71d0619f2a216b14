import pytest

from svc_proto.commands import Abort, Connect, Notify
from svc_proto.facts import Closed, ReadClosed, Received
from svc_proto.phone.keyboard_control import HELP
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings
from svc_proto.phone.safety.view import ACCESSIBILITY_HINT
from tests.phone.harness import KEYS, PhoneHarness, notes, with_keyboard
from tests.phone.safety.scripted_backend import ScriptedBackend


def say(rig: PhoneHarness, line: str) -> list[str]:
    """Type a line and return the notes to the user."""
    rig.type(line)
    return notes(rig.book.drain_commands())


def test_confirmations_are_answered_by_word() -> None:
    rig = with_keyboard()
    rig.ask("r1")
    rig.book >> Received(KEYS, b"y")
    rig.book >> Received(KEYS, b"\r\n")
    commands = rig.book.drain_commands()
    assert notes(commands) == ["c1 allowed"]
    assert [call.path for call in rig.backend.asked] == ["/tap_text"]
    rig.ask("r2")
    assert say(rig, "n") == ["c2 denied"]
    assert len(rig.backend.asked) == 1
    rig.ask("r3")
    assert say(rig, "a") == ["c3 allowed, not to be asked again"]
    rig.command("/tap_text", "r4", body={"text": "send"})
    assert rig.book.drain_commands()[0] == Notify("performed", {"method": "POST", "path": "/tap_text", "status": 200})
    assert len(rig.backend.asked) == 3
    rig = with_keyboard()
    assert say(rig, "y") == ["there is no question open"]
    assert say(rig, "y c9") == ["there is no question c9"]
    assert say(rig, "what?") == [HELP]
    assert say(rig, "") == []
    rig = with_keyboard()
    first, second = rig.ask("r1"), rig.ask("r2")
    assert say(rig, "y") == [f"several questions are open: say for example y {first}"]
    assert rig.backend.asked == []
    assert say(rig, f"y {second}") == [f"{second} allowed"]
    assert [call.request_id for call in rig.backend.asked] == ["r2"]
    assert say(rig, "n") == [f"{first} denied"]


def test_a_yes_for_a_confirmation_that_has_just_lapsed() -> None:
    rig = with_keyboard()
    first = rig.ask("r1")
    rig.book.after(24.99) << []
    rig.book.after(0.01)
    ((request, status, result),) = rig.responses()
    assert (request, status, result["reason"]) == ("r1", 403, "confirmation_denied_or_timeout")
    second = rig.ask("r2")
    rig.book.after(1.9).drain_commands()
    assert say(rig, "y") == [f"the question before this one has just lapsed: say y {second} if you mean this one"]
    assert rig.backend.asked == []
    assert say(rig, f"y {first}") == [f"there is no question {first}"]
    rig.book.after(0.1).drain_commands()
    assert say(rig, "y") == [f"{second} allowed"]
    rig = with_keyboard()
    first = rig.ask("r1")
    rig.vanish()
    assert say(rig, "y") == ["there is no question open"]
    assert say(rig, f"y {first}") == [f"there is no question {first}"]
    assert rig.backend.asked == []
    rig.online(connect=rig.next_connect())
    second = rig.ask("r2")
    assert say(rig, "y") == [f"the question before this one has just lapsed: say y {second} if you mean this one"]
    rig.book.now = rig.book.now.at(rig.book.now.mono + 26.0)  # the loop was suspended
    rig.type(f"y {second}")
    assert [status for _, status, _ in rig.responses()] == [403]
    assert rig.backend.asked == []


def test_switches() -> None:
    rig = with_keyboard(SafetySettings())
    gate = rig.phone.gate
    assert (say(rig, "on"), gate.is_armed) == (["master on"], True)
    for line in ("unattended on", "chip on", "capture off", "overlay off", "accessibility off"):
        assert say(rig, line) == [line]
    assert gate.unattended
    consents = rig.backend.consents
    assert (consents.accessibility, consents.screen_capture, consents.overlay) == (False, False, False)
    assert say(rig, "off") == ["master off"]
    assert (say(rig, "on"), gate.is_armed) == ([ACCESSIBILITY_HINT], False)
    rig = with_keyboard(SafetySettings(), backend=ScriptedBackend("googlePlay"))
    assert say(rig, "on") == ["this build has no Device Control"]
    rig = with_keyboard()
    rig.ask("r1")
    rig.book >> Received(KEYS, b"off\n")
    rig.book.drain_commands()
    assert [tell.fields.get("status") for tell in rig.new_notifications() if tell.event == "performed"] == [403]
    assert rig.backend.asked == []


@pytest.mark.parametrize("end", [ReadClosed(KEYS), Closed(KEYS, "hang-up"), Received(KEYS, b"y" * 4097)])
def test_no_keyboard_denies_confirmations(end: ReadClosed | Closed | Received) -> None:
    rig = with_keyboard()
    rig.ask("r1")
    rig.book >> end
    assert (Abort(KEYS) in rig.book.drain_commands()) is not isinstance(end, Closed)
    rig.command("/tap_text", "r2", body={"text": "Send"})
    rig.book.drain_commands()
    assert [tell.fields["status"] for tell in rig.new_notifications() if tell.event == "performed"] == [403, 403]
    assert rig.backend.asked == []
    if not isinstance(end, Closed):
        rig.book >> Closed(KEYS) << []


def test_trusted_action_needs_no_keyboard() -> None:
    rig = with_keyboard(SafetySettings(armed=True, answers=ConfirmationPolicy.ALLOW))
    rig.book >> ReadClosed(KEYS) << [Abort(KEYS)]
    rig.command("/tap_text", "r2", body={"text": "Send"})
    assert rig.responses() == [("r2", 200, {"ok": True, "confirmed": True})]


def test_attachments_and_the_network() -> None:
    rig = with_keyboard()
    assert say(rig, "show nothing in it") == ["there is no media marker in that"]
    rig.type("show MEDIA:svc-relay://aBc")
    rig.book.order(Connect)
    assert say(rig, "tap 1") == ["there is nothing to fetch under 1"]
    rig = with_keyboard()
    assert say(rig, "cellular") == ["the network is cellular now"]
    rig.type("show MEDIA:svc-relay://aBc")
    assert [type(command) for command in rig.book.drain_commands()] == [Notify]
    rig.type("wifi")
    rig.book.order(Connect)
