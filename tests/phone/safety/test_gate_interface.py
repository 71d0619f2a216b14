"""Handsets that a gate can guard: the simulated one, and one that names what is pressed."""

from __future__ import annotations

from clients.phone.emulator import SimulatedHandset
from svc_proto.phone.backend import HandsetCommand, Reply
from svc_proto.phone.safety.gate import SafetyGate
from svc_proto.phone.safety.gate_interface import GuardedHandset, NamesTargets
from tests.phone.safety.scripted_backend import (
    NOW,
    OK,
    ScriptedHandset,
    ask,
    command,
    gate_of,
)


def test_a_handset_that_names_what_is_pressed() -> None:
    class Naming(ScriptedHandset):
        def texts_pressed(self, command: HandsetCommand) -> list[str]:
            return [self.texts[str(command.body["text"])]]

    handset = Naming(texts={"en": "Send", "ne": "Next"})
    gate = gate_of(handset)
    assert gate.perform(command("/tap_text", text="ne"), NOW) == OK
    key = ask(gate, command("/tap_text", text="en"))
    handset.texts["en"] = "Send it all"
    answer = gate.decide(key, allow=True, now=NOW)
    assert answer is not None
    assert isinstance(answer[1], Reply)
    assert answer[1].result["error_code"] == "screen_changed"


def test_the_simulated_handset_can_be_guarded() -> None:
    handset = SimulatedHandset()
    gate = SafetyGate(handset, flavor=handset.build, wake=handset.device.wake)
    gate.set_accessibility(True)
    gate.set_overlay_permission(True, NOW)
    assert gate.set_master(True, NOW)
    gate.set_unattended(True)
    handset.device.locked = True
    assert isinstance(gate.perform(command("/open_app", package="com.example.messages"), NOW), Reply)
    assert not handset.device.locked
    handset.device.locked = handset.device.credential_lock = True
    reply = gate.perform(command("/tap", x=1, y=2), NOW)
    assert isinstance(reply, Reply)
    assert reply.status == 423
    assert not handset.gestures
    unattended = gate.status(NOW)["unattended"]
    assert unattended == {"supported": True, "enabled": True, "credential_lock_detected": True}


def test_a_handset_that_does_not_name_what_is_pressed() -> None:
    handset: GuardedHandset = ScriptedHandset()
    assert not isinstance(handset, NamesTargets)
