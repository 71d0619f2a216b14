from svc_proto.voice.realtime.actions import AppendInput, Emit, EmitAudio, LogEvent, Transcribe


def test_actions_are_values() -> None:
    assert Emit("x") == Emit("x", {})
    assert LogEvent("x", {"a": 1}) != LogEvent("x")
    assert EmitAudio(response_id="r", data=b"\1") == EmitAudio(response_id="r", data=b"\1")
    for order in (EmitAudio(response_id="r", data=b"\1"), Transcribe(sound=b"\1", rate=8_000), AppendInput(b"\1")):
        assert "\\x01" not in repr(order)
