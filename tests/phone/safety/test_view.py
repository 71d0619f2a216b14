import pytest

from svc_proto.phone.safety.gate import SafetyGate
from svc_proto.phone.safety.master_toggle import MasterState, MasterTrigger
from svc_proto.phone.safety.permissions import SystemPermissions
from svc_proto.phone.safety.view import ACCESSIBILITY_HINT, NOTIFICATION, StatusChip
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
    assert (view.flavor, view.master, view.turned_off_by, view.hint) == ("sideload", MasterState.ARMED, None, None)
    assert (view.auto_disable_minutes, view.auto_disable_at_ms) == (30, 1_800_001_800_000)
    permissions = (view.accessibility_granted, view.screen_capture_granted, view.overlay_granted)
    assert (permissions, view.notification_listener_granted, view.unattended) == ((True,) * 3, False, False)
    assert (view.blocklist, view.verbs) == (gate.blocklist.packages, gate.verbs.verbs)
    assert (len(view.blocklist), len(view.verbs)) == (31, 13)
    assert (view.trusted_verbs, view.trusted_actions, view.confirmation_timeout) == (("pay",), ("call",), 25.0)
    assert view.activity == tuple(gate.log.entries())
    (overlay,) = view.overlays
    assert (overlay.confirmation_id, overlay.request_id) == ("c3", "r1")
    assert (overlay.method, overlay.path) == ("POST", "/tap_text")
    assert (overlay.verb, overlay.text, overlay.seconds_left) == ("send", "Send it", 20.0)
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
