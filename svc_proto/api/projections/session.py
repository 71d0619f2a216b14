"""A turn as the events of a session's chat stream (`svc_proto/schema/chat_events.py`)."""

from collections.abc import Callable, Iterable, Mapping
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
from svc_proto.schema import chat_events as events
from svc_proto.schema.chat_events import THINKING, AssistantDelta, ChatEvent, ToolProgress
from svc_proto.schema.json_object import JsonObject

__all__ = ["SessionProjection"]

MAX_ECHO = 128 * 1024  # characters of the user's message in its echo: readers limit the line length


class SessionProjection:
    """Projection for a client that posted to `/api/sessions/{id}/chat/stream`."""

    __slots__ = ("_builders", "_delta", "_head", "_message_id", "_pending", "_seq", "_stamp", "_thought")

    def __init__(self, *, session_id: str, run_id: str, message_id: str) -> None:
        self._message_id = message_id
        self._seq = 0
        self._stamp = TimestampCache()
        self._pending: set[str] = set()  # ids of announced calls; never iterated
        self._head = f'{{"session_id":{_quoted(session_id)},"run_id":{_quoted(run_id)},"seq":'
        self._delta = AssistantDelta(message_id=message_id).around(self._head)
        self._thought = ToolProgress(message_id=message_id, tool_name=THINKING).around(self._head)
        self._builders: Mapping[type, Callable[[Any], Iterable[ChatEvent]]] = {
            TurnStarted: self._on_started,
            interface.ToolCallPending: self._on_pending,
            interface.ApprovalRequested: lambda event: (*self._on_pending(event), approval_request_event(event)),
            interface.ApprovalResolved: lambda event: (approval_response_event(event),),
            interface.ToolCallStarted: lambda event: (
                events.ToolStarted(**call_members(event.call), preview=event.call.preview),
            ),
            interface.ToolCallFinished: _on_finished,
            interface.MemoryChanged: lambda event: (memory_event(event),),
            TurnEnded: self._on_ended,
        }

    def encode(self, event: TurnStreamEvent, now: Moment) -> str:
        """Return the session events for an event of the turn, with their numbers; empty for an event without any."""
        if isinstance(event, interface.TextDelta):  # as `_piece`, without its call: most events are these
            self._seq += 1
            before, after = self._delta
            return f'{before}{self._seq},"ts":{self._stamp.at(now)}{after}{_quoted(event.text)}}}\n\n'
        if isinstance(event, interface.ReasoningDelta):
            return self._piece(self._thought, event.text, now)
        build = self._builders.get(type(event))
        return "" if build is None else "".join([self._frame(chat_event, now) for chat_event in build(event)])

    def _piece(self, around: tuple[str, str], text: str, now: Moment) -> str:
        self._seq += 1
        return f'{around[0]}{self._seq},"ts":{self._stamp.at(now)}{around[1]}{_quoted(text)}}}\n\n'

    def _frame(self, event: ChatEvent, now: Moment) -> str:
        self._seq += 1
        return event.write(self._head, self._seq, self._stamp.at(now))

    def _on_started(self, event: TurnStarted) -> Iterable[ChatEvent]:
        user = JsonObject(id=event.user_id, role="user", content=_echo(event.user_text))
        return (
            events.SessionCreated(title=event.title, model=event.model),
            events.RunStarted(user_message=user),
            events.MessageStarted(message=JsonObject(id=self._message_id, role="assistant")),
        )

    def _on_pending(self, event: interface.ToolCallPending | interface.ApprovalRequested) -> Iterable[ChatEvent]:
        if event.call.id in self._pending:
            return ()  # a phone draws a card for each event
        self._pending.add(event.call.id)
        return (events.ToolPending(**call_members(event.call), preview=event.call.preview),)

    def _on_ended(self, event: TurnEnded) -> Iterable[ChatEvent]:
        if event.error is not None:
            return (events.Error(message=event.error, error=event.code), events.Done())
        flags: dict[str, Any] = {
            "message_id": self._message_id,
            "completed": event.completed,
            "partial": event.partial,
            "interrupted": event.interrupted,
            "usage": JsonObject(usage_view(event.usage)),
        }
        return (
            events.AssistantCompleted(**flags, content=event.content),
            events.RunCompleted(**flags, api_calls=event.api_calls, reason=event.reason, unfinished=event.unfinished),
            events.Done(),
        )


def _on_finished(event: interface.ToolCallFinished) -> Iterable[ChatEvent]:
    call: dict[str, Any] = {**call_members(event.call), "duration": round(event.seconds, 3)}
    if event.error is not None:
        return (events.ToolFailed(**call, error=event.error),)
    return (events.ToolCompleted(**call, result_preview=event.preview),)


def _echo(text: str) -> str:
    if len(text) <= MAX_ECHO:
        return text
    return f"{text[:MAX_ECHO]}\n[{len(text) - MAX_ECHO} more characters, which are in the session]"


_quoted = strict_json.quoted
