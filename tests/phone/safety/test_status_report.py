from typing import Any

from svc_proto.phone.safety.permissions import SystemPermissions
from tests.phone.safety.scripted_backend import NOW, OK, ScriptedBackend, command, gate_of, later


def test_status() -> None:
    bridge = {"notification_listener_granted": True, "master_enabled": True}
    unattended = {"credential_lock_detected": True, "enabled": True}
    base = {"device": {"name": "x"}, "bridge": bridge, "unattended": unattended, "ts": 5}
    status: Any = gate_of(ScriptedBackend(base_status=base)).status(later(60))
    assert (status["device"], status["ts"], status["accessibility_enabled"]) == ({"name": "x"}, 5, True)
    granted = ("notification_listener", "accessibility", "screen_capture", "overlay")
    switches = ("device_control_supported", "master_enabled", *(f"{name}_granted" for name in granted))
    assert status["bridge"] == dict.fromkeys(switches, True)
    counts = {"blocklist_count": 32, "destructive_verbs_count": 12}
    assert status["safety"] == {**counts, "auto_disable_minutes": 30, "auto_disable_at_ms": 1_800_001_800_000}
    assert status["unattended"] == {"credential_lock_detected": True, "supported": True, "enabled": False}


def test_status_without_accessibility() -> None:
    backend = ScriptedBackend(base_status={"device": {"name": "x", "current_app": "com.a"}, "current_app": "com.a"})
    gate = gate_of(backend, consents=SystemPermissions(notification_listener=True))
    assert gate.status(NOW)["current_app"] == "com.a"
    gate.set_accessibility(False)
    status: Any = gate.status(NOW)
    assert (status["device"], status["current_app"]) == ({"name": "x", "current_app": "unknown"}, "unknown")
    assert status["bridge"]["notification_listener_granted"] is True
    assert backend.base_status["current_app"] == "com.a"  # the backend's own value is unchanged
    backend.base_status = {"current_app": 5, "device": {"name": "x"}, "bridge": None}
    assert gate.status(NOW)["device"] == {"name": "x"}
    gate = gate_of(ScriptedBackend())
    gate.set_accessibility(False)
    status = gate.status(NOW)
    assert status["bridge"]["master_enabled"] is False
    gate.set_accessibility(True)
    assert gate.execute(command("/screen"), NOW) == OK


def test_status_of_a_store_build() -> None:
    gate = gate_of(ScriptedBackend(), flavor="googlePlay")
    gate.set_unattended(True)
    status: Any = gate.status(NOW)
    for part in ("bridge", "safety", "unattended"):
        assert not any(status[part].values()), part
