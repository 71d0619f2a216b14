from svc_proto.phone.backend import CommandReply, PhoneCommand
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
