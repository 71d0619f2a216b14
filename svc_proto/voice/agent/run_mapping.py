"""Events of the API server's chat stream, as the broker takes them (wire terminal-voice 6.7). Pure.

A foreign server may leave members out or write them otherwise: what makes no sense is passed over, never an error.
"""

from __future__ import annotations

from attrs import evolve

from svc_proto.machines.confirmations import Question
from svc_proto.schema import chat_events as events
from svc_proto.schema.members import Members
from svc_proto.voice.realtime import story

__all__ = ["DELTA", "RunTrouble", "map_event"]

CHANGES = {  # what a forked server tells besides, as it does notes: each is a tool that is done
    "skill.loaded": ("skill", "name"),
    "artifact.created": ("artifact", "path"),
}
DELTA = "assistant.delta"
APPROVAL = "approval.request"  # stands for the id of a question without one
MAX_ID = 200  # characters of an id that comes from the API server
MAX_MESSAGE = 500  # characters of what went wrong
MAX_QUESTION = 10_000  # characters: an API server of ours asks with all of what is to be allowed


class RunTrouble(Exception):  # noqa: N818 - what is wrong is not ours
    """The run failed, as the API server tells it."""


def map_event(kind: str, data: Members, word: str) -> story.RunEvent | None:  # noqa: C901 - one row for each event
    """What an event means, if anything; `RunTrouble` when the run has not ended well. `word` stands for the tool that
    a delta does not name."""
    if kind == DELTA and (words := events.words_of(data)):  # as most are
        return events.AssistantDelta(delta=words)
    match event := events.read_event(kind, data):
        case events.AssistantDelta(delta=delta):
            return event if delta else None
        case events.RunStarted():
            return story.RunBegan(data.text("run_id")[:MAX_ID])
        case events.MessageStarted(message=message):
            return events.MessageStarted(Members(id=(message.text("id") or data.text("message_id"))[:MAX_ID]))
        case events.ToolProgress(delta=delta, tool_name=name):
            return None if not delta else event if name == events.THINKING else _told(data, name or word, event)
        case events.ToolPending() | events.ToolStarted() | events.ToolCompleted():
            return _told(data, event.tool_name or word, event)
        case events.ToolFailed(tool_name=name, error=error):
            return _told(data, name or word, event if error else evolve(event, error="no reason given"))
        case events.MemoryUpdated() if not data.text("call_id"):  # with one that call has an end of its own
            return _changed(data, "memory", "target")
        case events.ApprovalRequest(call_id=call_id, description=description, command=command):
            identity = data.text("confirmation_id", "approval_id") or call_id or APPROVAL
            words = data.text("message") or " ".join(filter(None, (description, command)))
            return Question(identity[:MAX_ID], words[:MAX_QUESTION] or "May I go on?")
        case events.AssistantCompleted():
            return event
        case events.RunCompleted() | events.Done():
            return events.RunCompleted(interrupted=data.get("interrupted") is True)
        case events.Error(message=message):
            raise RunTrouble(message[:MAX_MESSAGE] or "the agent failed")
        case _:
            name, member = next((found for end, found in CHANGES.items() if kind.endswith(end)), ("", ""))
            return _changed(data, name, member) if name else None


def _changed(data: Members, name: str, member: str) -> story.ToolTold:
    return _told(data, name, events.ToolCompleted(result_preview=data.text(member) or None))


def _told(data: Members, name: str, event: story.ToolEvent) -> story.ToolTold:
    call_id = data.text("call_id", "tool_call_id", "id") or name
    return story.ToolTold(call_id[:MAX_ID], name[:MAX_ID], event)
