import pytest

from svc_proto.phone.backend import CommandReply
from svc_proto.phone.safety.confirmation import AwaitingConfirmation
from svc_proto.phone.safety.gate import SafetyGate
from svc_proto.phone.safety.unattended import UnattendedAccess
from tests.phone.safety.scripted_backend import (
    ACTING,
    ALL_ROUTES,
    BANK,
    NOW,
    OK,
    ScriptedBackend,
    command,
    gate_of,
    refused,
)


@pytest.mark.parametrize("path", ALL_ROUTES)
def test_unattended_access_and_a_locked_phone(path: str) -> None:
    backend = ScriptedBackend(usable=False)
    gate = gate_of(backend)
    gate.set_unattended(True)
    if path not in ACTING:
        assert gate.execute(command(path), NOW) == OK
        assert backend.woken == 0
        return
    reply = refused(gate, backend, command(path))
    assert (reply.status, reply.result["error_code"], reply.result["final"]) == (423, "keyguard_blocked", True)
    backend.usable = True
    assert gate.execute(command(path), NOW) in (OK, AwaitingConfirmation("c1"))
    gate.set_unattended(False)
    gate.execute(command(path, "r2"), NOW)
    assert backend.woken == 2


def test_unattended_access_without_wake_is_left_to_the_backend() -> None:
    gate = SafetyGate(ScriptedBackend())
    gate.set_accessibility(True)
    gate.set_master(True, NOW)
    gate.set_unattended(True)
    assert gate.execute(command("/tap", x=1, y=2), NOW) == OK
    assert UnattendedAccess(ScriptedBackend(usable=False).wake).make_ready(NOW)  # while it is off


def test_the_app_behind_a_dismissed_lock_is_checked() -> None:
    backend = ScriptedBackend(behind=BANK)
    gate = gate_of(backend)
    gate.set_unattended(True)
    assert refused(gate, backend, command("/tap", x=1, y=2)) == CommandReply(403, {"error": f"blocked package {BANK}"})
    assert backend.woken == 1
