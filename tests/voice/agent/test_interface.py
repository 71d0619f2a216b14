"""What a session says of itself."""

from __future__ import annotations

from svc_proto.basics.moment import Moment
from svc_proto.voice.agent.interface import interface_of
from svc_proto.voice.settings import RealtimeSettings


def test_the_interface() -> None:
    interface = interface_of(RealtimeSettings(), "hermes", None, Moment(1.0, 1_790_000_000.9))
    assert interface.pop("chat_session_id") is None
    assert all(isinstance(value, str) and value for value in interface.values())
    assert interface["stable_engine"] == "hermes_voice_output"
    assert interface["profile"] == "default"
    assert interface["current_datetime"] == "2026-09-21T14:13:20+00:00"
    assert (interface["current_date"], interface["current_time"]) == ("2026-09-21", "14:13")
