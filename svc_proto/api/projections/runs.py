"""Events of a run (wire api 6.3): the name is a member `event`, and an `event:` line as well."""

from collections.abc import Callable, Mapping
from typing import Any

from svc_proto.agent import interface
from svc_proto.api.chat.views import (
    approval_request_event,
    approval_response_event,
    call_members,
    memory_event,
    usage_view,
)
from svc_proto.api.projections.turn_events import TimestampCache, TurnEnded, TurnStarted, TurnStreamEvent
from svc_proto.basics import strict_json
from svc_proto.basics.moment import Moment

__all__ = ["RunProjection"]

CLOSED = ": stream closed\n\n"  # wire api 6.3: at the end, a comment


class RunProjection:
    """Projection for the client that reads the events of a run of `/v1/runs`."""

    __slots__ = ("_delta", "_encoders", "_run_id", "_session_id", "_stamp")

    def __init__(self, *, session_id: str, run_id: str) -> None:
        self._run_id = run_id
        self._session_id = session_id
        self._stamp = TimestampCache()
        self._delta = (
            'event: message.delta\ndata: {"event":"message.delta",'
            f'"run_id":{strict_json.dumps(run_id)},"session_id":{strict_json.dumps(session_id)},"timestamp":'
        )
        self._encoders: Mapping[type, Callable[[Any, str], str]] = {
            TurnStarted: self._begun,
            interface.ReasoningDelta: self._reasoned,
            interface.TurnNotice: self._reasoned,
            interface.ToolCallStarted: self._started,
            interface.ToolCallFinished: self._finished,
            interface.MemoryChanged: self._noted,
            interface.ApprovalRequested: self._on_approval_requested,
            interface.ApprovalResolved: self._on_approval_resolved,
            TurnEnded: self._ended,
        }

    def encode(self, event: TurnStreamEvent, now: Moment) -> str:
        """Return the run event for an event of the turn; empty for an event without one."""
        if isinstance(event, interface.TextDelta):
            return f'{self._delta}{self._stamp.at(now)},"delta":{strict_json.dumps(event.text)}}}\n\n'
        encode = self._encoders.get(type(event))
        return "" if encode is None else encode(event, self._stamp.at(now))

    def _frame(self, event: str, ts: str, members: dict[str, object]) -> str:
        head = {"event": event, "run_id": self._run_id, "session_id": self._session_id}
        start = f'event: {event}\ndata: {strict_json.dumps(head)[:-1]},"timestamp":{ts}'
        rest = strict_json.dumps(members)[1:]
        return f"{start},{rest}\n\n" if members else f"{start}{rest}\n\n"

    def _begun(self, event: TurnStarted, ts: str) -> str:
        return self._frame("run.started", ts, {})

    def _reasoned(self, event: interface.ReasoningDelta, ts: str) -> str:
        return self._frame("reasoning.available", ts, {"text": event.text})

    def _started(self, event: interface.ToolCallStarted, ts: str) -> str:
        return self._frame("tool.started", ts, {**_call(event.call), "preview": event.call.preview})

    def _finished(self, event: interface.ToolCallFinished, ts: str) -> str:
        members = {
            **_call(event.call),
            "duration": round(event.seconds, 3),
            "error": event.error is not None,
            "result_preview": event.preview if event.error is None else event.error,
        }
        return self._frame("tool.completed", ts, members)

    def _noted(self, event: interface.MemoryChanged, ts: str) -> str:
        return self._frame("memory.updated", ts, {"tool": event.call.name, **memory_event(event).members()})

    def _on_approval_requested(self, event: interface.ApprovalRequested, ts: str) -> str:
        return self._frame("approval.request", ts, approval_request_event(event).members())

    def _on_approval_resolved(self, event: interface.ApprovalResolved, ts: str) -> str:
        return self._frame("approval.responded", ts, approval_response_event(event).members())

    def _ended(self, event: TurnEnded, ts: str) -> str:
        if event.interrupted:
            return self._frame("run.cancelled", ts, {}) + CLOSED
        if event.error is not None:
            return self._frame("run.failed", ts, {"error": event.error}) + CLOSED
        members: dict[str, object] = {
            "output": event.content,
            "usage": usage_view(event.usage),
            "reason": event.reason,
            "unfinished": event.unfinished,
        }
        return self._frame("run.completed", ts, members) + CLOSED


def _call(call: interface.ToolCall) -> dict[str, object]:
    """Return the members of a tool call as in a chat's events, except that the tool's name is `tool`."""
    return {"tool": call.name} | {name: value for name, value in call_members(call).items() if name != "tool_name"}
