import pytest

from svc_proto.phone.backend import CommandReply
from svc_proto.phone.safety.gate import SafetyGate
from svc_proto.phone.safety.permissions import SystemPermissions
from tests.phone.safety.scripted_backend import NOW, OK, ScriptedBackend, check_gate, command, gated, later, refused


def test_a_screenshot_needs_consent() -> None:
    backend, gate = gated()
    gate.set_capture_consent(False)
    told = {"error": "screen capture has not been allowed on the phone"}
    assert refused(gate, backend, command("/screenshot")) == CommandReply(500, told)
    gate.set_capture_consent(True)
    assert gate.execute(command("/screenshot"), NOW) == OK


def test_gates_use_the_system_permissions() -> None:
    consents = SystemPermissions(accessibility=True, screen_capture=True, overlay=True, notification_listener=True)
    consents.end_capture_session()
    assert consents == SystemPermissions(accessibility=True, overlay=True, notification_listener=True)
    backend = ScriptedBackend()
    system = SystemPermissions(accessibility=True, overlay=True)
    gate = SafetyGate(backend, consents=system)
    assert gate.set_master(True, NOW)
    assert gate.execute(command("/tap"), NOW) == OK
    system.accessibility = False
    reply = gate.execute(command("/tap"), NOW)
    assert isinstance(reply, CommandReply)
    assert reply.status == 503
    gate.set_capture_consent(True)
    assert system.screen_capture
    gate.process_died()
    assert system == SystemPermissions(overlay=True)


@pytest.mark.parametrize("how", ["user", "idle", "process"])
def test_every_way_of_turning_off_ends_capture_consent(how: str) -> None:
    backend, gate = gated()
    now = NOW
    match how:
        case "user":
            gate.set_master(False, now)
        case "idle":
            now = later(1800)
            gate.advance(now)
        case "process":
            gate.process_died()
    gate.set_master(True, now)
    reply = gate.execute(command("/screenshot"), now)
    assert isinstance(reply, CommandReply)
    assert (reply.status, backend.asked) == (500, [])


def test_overlay_permission_revoked_by_the_system() -> None:
    backend = ScriptedBackend()
    system = SystemPermissions(accessibility=True, overlay=True)
    gate = SafetyGate(backend, consents=system)
    gate.set_master(True, NOW)
    key = check_gate(gate, command("/call", number="112"))
    system.overlay = False
    assert gate.decide(key, allow=True, now=NOW) is None
    ((request_id, reply),) = gate.advance(NOW)
    assert request_id == "r1"
    assert isinstance(reply, CommandReply)
    assert reply.result["error_code"] == "user_denied"
    assert backend.asked == []
