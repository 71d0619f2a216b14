from svc_proto.phone.backend import CommandReply
from svc_proto.phone.safety.gate import SafetyGate
from svc_proto.phone.safety.permissions import SystemPermissions
from tests.phone.safety.scripted_backend import DENIED, NOW, OK, ScriptedBackend, check_gate, command, refused


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
    assert DENIED.items() <= refused(gate, backend, command("/call", "r2")).result.items()
    assert gate.confirmations() == []
