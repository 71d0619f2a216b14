"""Waiting for playback: what is told of it."""

from __future__ import annotations

from svc_proto.machines.broker_orders import Emit, Note
from svc_proto.machines.playback import RESULT, Drain


def test_what_is_told() -> None:
    drain = Drain(call_id="k1", tool_name="svc_run_task", reason=RESULT, until=5.0)
    fields = {"call_id": "k1", "tool_name": "svc_run_task", "reason": "tool_result_summary", "timeout_ms": 2500}
    assert drain.requested == Emit("voice.playback_drain.requested", fields)
    over = {"call_id": "k1", "reason": "tool_result_summary", "timeout_ms": 2500}
    assert drain.timed_out == Emit("voice.playback_drain.timeout", over)
    assert drain.completed == Note("voice.playback_drain.completed", {"call_id": "k1", "reason": RESULT})
