"""Orders are values: comparable, and without sound in what is logged of them."""

from __future__ import annotations

from svc_proto.voice.realtime.orders import Emit, EmitAudio, Note


def test_orders_are_values() -> None:
    assert Emit("x") == Emit("x", {})
    assert Note("x", {"a": 1}) != Note("x")
    audio = EmitAudio(response_id="r", data=b"\1\2\3\4")
    assert audio == EmitAudio(response_id="r", data=b"\1\2\3\4")
    assert "\\x01" not in repr(audio)
