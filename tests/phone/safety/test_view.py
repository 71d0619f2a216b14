import pytest

from svc_proto.phone.safety.gate import SafetyGate
from svc_proto.phone.safety.master_toggle import MasterState, MasterTrigger
from svc_proto.phone.safety.permissions import SystemPermissions
from svc_proto.phone.safety.view import ACCESSIBILITY_HINT, NOTIFICATION, ConfirmationView, SafetyView, StatusChip
from tests.phone.safety.scripted_backend import NOW, ScriptedBackend, check_gate, command, gate_of, later


@pytest.mark.parametrize("master", [False, True])
@pytest.mark.parametrize("unattended", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("in_background", [False, True])
def test_notification_chip_and_banner(master: bool, unattended: bool, wanted: bool, in_background: bool) -> None:
    gate = gate_of(ScriptedBackend(), master=master)
    gate.set_unattended(unattended)
    gate.set_status_overlay(wanted)
    assert gate.is_armed is master
    assert gate.banner is (master and unattended)
    assert gate.chip(in_background=in_background) is (master and in_background and (wanted or unattended))
    view = gate.view(NOW, in_background=in_background)
    forced = StatusChip.FORCED if unattended else StatusChip.SHOWN if wanted else StatusChip.HIDDEN
    assert view.chip is (forced if master and in_background else StatusChip.HIDDEN)
    assert view.notification == (NOTIFICATION if master else None)
    assert view.banner is (master and unattended)
    assert (NOTIFICATION.dismissible, "Disable" in NOTIFICATION.actions) == (False, True)


def test_the_view() -> None:
    gate = gate_of(ScriptedBackend(), consents=SystemPermissions(notification_listener=False))
    gate.blocklist.remove("com.venmo")
    gate.verbs.add("call")
    gate.decide(check_gate(gate, command("/call", "r0")), allow=True, remember=True, now=NOW)
    gate.decide(check_gate(gate, command("/tap_text", "r0", text="pay")), allow=True, remember=True, now=NOW)
    check_gate(gate, command("/tap_text", text="Send it"))
    view = gate.view(later(5))
    assert view == SafetyView(
        flavor="sideload",
        master=MasterState.ARMED,
        turned_off_by=None,
        hint=None,
        auto_disable_minutes=30,
        auto_disable_at_ms=1_800_001_800_000,
        accessibility_granted=True,
        screen_capture_granted=True,
        overlay_granted=True,
        notification_listener_granted=False,
        unattended=False,
        notification=NOTIFICATION,
        chip=StatusChip.HIDDEN,
        banner=False,
        confirmation_timeout=25.0,
        blocklist=gate.blocklist.packages,
        verbs=gate.verbs.verbs,
        trusted_verbs=("pay",),
        trusted_actions=("call",),
        overlays=(
            ConfirmationView(
                confirmation_id="c3",
                request_id="r1",
                method="POST",
                path="/tap_text",
                verb="send",
                text="Send it",
                seconds_left=20.0,
            ),
        ),
        activity=tuple(gate.log.entries()),
    )
    assert (len(view.blocklist), len(view.verbs)) == (31, 13)
    gate.view(later(25))
    assert gate.view(later(25)).overlays == ()


def test_view_explains_why_the_master_is_off() -> None:
    gate = gate_of(ScriptedBackend())
    assert gate.view(later(1800)).turned_off_by is MasterTrigger.IDLE
    gate.set_master(True, later(1800))
    assert gate.view(later(1800)).turned_off_by is None
    gate.set_master(False, later(1800))
    assert gate.view(later(1800)).turned_off_by is MasterTrigger.TURN_OFF
    gate.set_accessibility(False)
    assert not gate.set_master(True, later(1800))
    view = gate.view(later(1800))
    assert (view.hint, view.auto_disable_at_ms) == (ACCESSIBILITY_HINT, None)
    assert SafetyGate(ScriptedBackend(), flavor="googlePlay").view(NOW).hint is None
