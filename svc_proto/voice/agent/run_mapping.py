"""Events of the API server's chat stream, as the broker takes them (wire terminal-voice 6.7). Pure.

A foreign server may leave members out or write them otherwise: what makes no sense is passed over, never an error.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from attrs import frozen

from svc_proto.machines.confirmations import Question
from svc_proto.schema import chat_events as events
from svc_proto.schema.members import Members
from svc_proto.voice.realtime import story

__all__ = ["DELTA", "Over", "Trouble", "map_event"]

CHANGES = {  # what a forked server tells besides, as it does notes: each is a tool that is done
    "skill.loaded": ("skill", "name"),
    "artifact.created": ("artifact", "path"),
}
DELTA = "assistant.delta"
APPROVAL = "approval.request"  # stands for the id of a question without one
MAX_ID = 200  # characters of an id that comes from the API server
MAX_MESSAGE = 500  # characters of what went wrong
MAX_QUESTION = 10_000  # characters: an API server of ours asks with all of what is to be allowed


@frozen
class Over:
    """The run has ended well."""


@frozen
class Trouble:
    """The run has not ended well; what is known of why."""

    message: str


Mapped: TypeAlias = story.RunEvent | Over | Trouble


def map_event(kind: str, data: Members, word: str) -> tuple[Mapped, ...]:  # noqa: C901 - one row for each event
    """What an event means, perhaps nothing. `word` stands for the tool that a delta does not name."""
    if kind == DELTA and (words := events.words_of(data)):  # as most are
        return (story.AnswerDelta(words),)
    match events.read_event(kind, data):
        case events.AssistantDelta(delta=delta) if delta:
            return (story.AnswerDelta(delta),)
        case events.RunStarted():
            return (story.RunBegan(data.text("run_id")[:MAX_ID]),)
        case events.MessageStarted(message=message):
            return (story.MessageBegan((message.text("id") or data.text("message_id"))[:MAX_ID]),)
        case events.ToolProgress(delta=delta, tool_name=name) if delta:
            if name == events.THINKING:
                return (story.ThoughtDelta(delta),)
            return (story.ToolSaid(**_call(data, name or word), delta=delta),)
        case events.ToolPending() | events.ToolStarted() as call:
            begun = story.ToolWaits if isinstance(call, events.ToolPending) else story.ToolBegan
            return (begun(**_call(data, call.tool_name or word), arguments=call.args, preview=call.preview),)
        case events.ToolCompleted(tool_name=name, result_preview=preview, success=success):
            return (story.ToolSucceeded(**_call(data, name or word), preview=preview, success=success),)
        case events.ToolFailed(tool_name=name, error=error):
            return (story.ToolFailed(**_call(data, name or word), error=error or "no reason given"),)
        case events.MemoryUpdated() if not data.text("call_id"):  # with one that call has an end of its own
            return _changed(data, "memory", "target")
        case events.ApprovalRequest(call_id=call_id, description=description, command=command):
            identity = data.text("confirmation_id", "approval_id") or call_id or APPROVAL
            words = data.text("message") or " ".join(filter(None, (description, command)))
            return (story.ApprovalAsked(Question(identity[:MAX_ID], words[:MAX_QUESTION] or "May I go on?")),)
        case events.AssistantCompleted(content=content, interrupted=interrupted):
            return (story.AnswerComplete(content, interrupted),)
        case events.RunCompleted() | events.Done():
            return (
                (story.AnswerComplete("", interrupted=True), Over()) if data.get("interrupted") is True else (Over(),)
            )
        case events.Error(message=message):
            return (Trouble(message[:MAX_MESSAGE] or "the agent failed"),)
        case _:
            name, member = next((found for end, found in CHANGES.items() if kind.endswith(end)), ("", ""))
            return _changed(data, name, member) if name else ()


def _changed(data: Members, name: str, member: str) -> tuple[Mapped, ...]:
    return (story.ToolSucceeded(**_call(data, name), preview=data.text(member) or None),)


def _call(data: Members, name: str) -> dict[str, Any]:
    return {"call_id": (data.text("call_id", "tool_call_id", "id") or name)[:MAX_ID], "name": name[:MAX_ID]}
