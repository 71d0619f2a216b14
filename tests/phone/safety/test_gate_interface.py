from clients.phone.emulator import EmulatedPhone
from svc_proto.phone.backend import CommandReply, PhoneCommand
from svc_proto.phone.safety.gate import SafetyGate
from tests.phone.safety.scripted_backend import NOW, OK, ScriptedBackend, check_gate, command, gate_of


def test_backend_that_names_pressed_texts() -> None:
    class Naming(ScriptedBackend):
        def texts_pressed(self, command: PhoneCommand) -> list[str]:
            return [self.texts[str(command.body["text"])]]

    backend = Naming(texts={"en": "Send", "ne": "Next"})
    gate = gate_of(backend)
    assert gate.execute(command("/tap_text", text="ne"), NOW) == OK
    key = check_gate(gate, command("/tap_text", text="en"))
    backend.texts["en"] = "Send it all"
    answer = gate.decide(key, allow=True, now=NOW)
    assert answer is not None
    assert isinstance(answer[1], CommandReply)
    assert answer[1].result["error_code"] == "screen_changed"


def test_emulator_can_be_guarded() -> None:
    backend = EmulatedPhone()
    gate = SafetyGate(backend, flavor=backend.build, wake=backend.device.wake)
    gate.set_accessibility(True)
    gate.set_overlay_permission(True, NOW)
    assert gate.set_master(True, NOW)
    gate.set_unattended(True)
    backend.device.locked = True
    assert isinstance(gate.execute(command("/open_app", package="com.example.messages"), NOW), CommandReply)
    assert not backend.device.locked
    backend.device.locked = backend.device.credential_lock = True
    reply = gate.execute(command("/tap", x=1, y=2), NOW)
    assert isinstance(reply, CommandReply)
    assert reply.status == 423
    assert not backend.gestures
    unattended = gate.status(NOW)["unattended"]
    assert unattended == {"supported": True, "enabled": True, "credential_lock_detected": True}
