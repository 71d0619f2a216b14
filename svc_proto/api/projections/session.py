"""The thirteen events of a session's chat stream (SPEC.md "Chat stream", wire api 4.2 to 4.4), notes that the agent
keeps (`memory.updated`), and the questions of a turn (`approval.request`, `approval.responded`, as in wire api 6.3).

A type that a phone does not expect makes it drop the event without a word, so the types are exact: `ts` a number,
`args` an object, everything that is shown a string. All tool events carry `call_id` and `tool_call_id`, equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from svc_proto.agent.contract import (
    ApprovalAsked,
    ApprovalGiven,
    NoteChanged,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolPending,
    ToolStarted,
)
from svc_proto.api.projections.story import Stamp, StoryEvent, TurnBegun, TurnEnded
from svc_proto.api.views import answer_view, call_view, note_view, question_view, usage_view
from svc_proto.basics import strict_json
from svc_proto.basics.moment import Moment

__all__ = ["SessionProjection"]

MAX_ECHO = 128 * 1024  # characters said back of a message: readers bound their lines, and have the whole of it
THINKING = "_thinking"  # wire api 4.3: the tool name of a reasoning chunk


class SessionProjection:
    """Told to whoever posted to `/api/sessions/{id}/chat/stream`."""

    __slots__ = ("_by_type", "_delta", "_head", "_message_id", "_pending", "_seq", "_stamp", "_thought")

    def __init__(self, *, session_id: str, run_id: str, message_id: str) -> None:
        self._message_id = message_id
        self._seq = 0
        self._stamp = Stamp()
        self._pending: set[str] = set()  # calls that were told to wait: asked about, never iterated
        self._head = f'data: {{"session_id":{_quoted(session_id)},"run_id":{_quoted(run_id)},"seq":'
        tail = f',"message_id":{_quoted(message_id)},'
        self._delta = f"event: assistant.delta\n{self._head}", f'{tail}"delta":'
        self._thought = f"event: tool.progress\n{self._head}", f'{tail}"tool_name":"{THINKING}","delta":'
        self._by_type: Mapping[type, Callable[[Any, str], str]] = {
            TurnBegun: self._begun,
            ToolPending: self._waits,
            ApprovalAsked: self._asked,
            ApprovalGiven: self._given,
            ToolStarted: self._started,
            ToolFinished: self._finished,
            NoteChanged: self._noted,
            TurnEnded: self._ended,
        }

    def encode(self, event: StoryEvent, now: Moment) -> str:
        """See `Projection`."""
        if isinstance(event, TextDelta):
            return self._piece(self._delta, event.text, now)
        if isinstance(event, ReasoningDelta):
            return self._piece(self._thought, event.text, now)
        tell = self._by_type.get(type(event))
        return "" if tell is None else tell(event, self._stamp.at(now))

    def _piece(self, around: tuple[str, str], text: str, now: Moment) -> str:
        self._seq += 1
        return f'{around[0]}{self._seq},"ts":{self._stamp.at(now)}{around[1]}{_quoted(text)}}}\n\n'

    def _frame(self, event: str, ts: str, members: dict[str, object]) -> str:
        self._seq += 1
        return f'event: {event}\n{self._head}{self._seq},"ts":{ts},{strict_json.dumps(members)[1:]}\n\n'

    def _begun(self, event: TurnBegun, ts: str) -> str:
        user = {"id": event.user_id, "role": "user", "content": _echo(event.user_text)}
        message = {"id": self._message_id, "role": "assistant"}
        return (
            self._frame("session.created", ts, {"title": event.title, "model": event.model})
            + self._frame("run.started", ts, {"user_message": user})
            + self._frame("message.started", ts, {"message": message})
        )

    def _waits(self, event: ToolPending | ApprovalAsked, ts: str) -> str:
        if event.call.id in self._pending:
            return ""  # a phone draws a card for each
        self._pending.add(event.call.id)
        return self._frame("tool.pending", ts, {**call_view(event.call, "tool_name"), "preview": event.call.preview})

    def _asked(self, event: ApprovalAsked, ts: str) -> str:
        return self._waits(event, ts) + self._frame("approval.request", ts, question_view(event))

    def _given(self, event: ApprovalGiven, ts: str) -> str:
        return self._frame("approval.responded", ts, answer_view(event))

    def _started(self, event: ToolStarted, ts: str) -> str:
        return self._frame("tool.started", ts, {**call_view(event.call, "tool_name"), "preview": event.call.preview})

    def _finished(self, event: ToolFinished, ts: str) -> str:
        members: dict[str, object] = {**call_view(event.call, "tool_name"), "duration": round(event.seconds, 3)}
        if event.error is not None:
            return self._frame("tool.failed", ts, {**members, "error": event.error, "success": False})
        return self._frame("tool.completed", ts, {**members, "result_preview": event.preview, "success": True})

    def _noted(self, event: NoteChanged, ts: str) -> str:
        return self._frame("memory.updated", ts, note_view(event))

    def _ended(self, event: TurnEnded, ts: str) -> str:
        done = {"state": "final"}
        if event.error is not None:
            error: dict[str, object] = {"message": event.error, "error": event.code}
            return self._frame("error", ts, error) + self._frame("done", ts, dict(done))
        flags: dict[str, object] = {
            "message_id": self._message_id,
            "completed": event.completed,
            "partial": event.partial,
            "interrupted": event.interrupted,
            "usage": usage_view(event.usage),
        }
        return (
            self._frame("assistant.completed", ts, {**flags, "content": event.content})
            + self._frame("run.completed", ts, {**flags, "api_calls": event.api_calls})
            + self._frame("done", ts, dict(done))
        )


def _echo(text: str) -> str:
    if len(text) <= MAX_ECHO:
        return text
    return f"{text[:MAX_ECHO]}\n[{len(text) - MAX_ECHO} more characters, which are in the session]"


_quoted = strict_json.dumps
