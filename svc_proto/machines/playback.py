"""Waiting until a client has played what it was sent, at most 2.5 s (wire terminal-voice 6.4, 6.5).

`playback.drained` for any call ends the wait: a client that mixes calls up has played all of it.
"""

from __future__ import annotations

from attrs import frozen

from svc_proto.machines.broker_orders import Emit, Note

__all__ = ["DRAIN_WITHIN", "FORCED", "RESULT", "Drain"]

DRAIN_WITHIN = 2.5  # s, wire terminal-voice 9 "drain wait"
RESULT = "tool_result_summary"  # the reason of a wait before what a function answered is spoken
FORCED = "forced_summary"  # the same before the answer of a run in the background


@frozen(kw_only=True)
class Drain:
    """One wait. `reason` is `pre_<word>_ack`, `tool_result_summary` or `forced_summary`."""

    call_id: str | None
    tool_name: str | None
    reason: str
    until: float  # monotonic seconds

    @property
    def requested(self) -> Emit:
        """What asks for it."""
        fields = {
            "call_id": self.call_id,
            "tool_name": self.tool_name,
            "reason": self.reason,
            "timeout_ms": round(DRAIN_WITHIN * 1000),
        }
        return Emit("voice.playback_drain.requested", fields)

    @property
    def completed(self) -> Note:
        """The client said so."""
        return Note("voice.playback_drain.completed", {"call_id": self.call_id, "reason": self.reason})

    @property
    def timed_out(self) -> Emit:
        """The client has not said in time that it played to the end."""
        fields = {"call_id": self.call_id, "reason": self.reason, "timeout_ms": round(DRAIN_WITHIN * 1000)}
        return Emit("voice.playback_drain.timeout", fields)
