"""Events of the API server's chat stream, as the broker takes them (wire terminal-voice 6.7). Pure.

A foreign server may leave members out or write them otherwise: what makes no sense is passed over, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

from attrs import frozen

from svc_proto.basics.brand import BRANDS
from svc_proto.machines.confirmations import Question
from svc_proto.machines.run_story import (
    AnswerComplete,
    AnswerDelta,
    ApprovalAsked,
    MessageBegan,
    RunBegan,
    RunEvent,
    ThoughtDelta,
    ToolBegan,
    ToolFailed,
    ToolSaid,
    ToolSucceeded,
    ToolWaits,
)

__all__ = ["Over", "Trouble", "map_event"]

THINKING = "_thinking"  # the tool name of reasoning, wire api 4.3
QUESTIONS = ("confirmation.requested", "approval.requested", "approval.request")
CHANGES = {  # what a forked server tells besides: each is a tool that is done
    "memory.updated": ("memory", "target"),
    "skill.loaded": ("skill", "name"),
    "artifact.created": ("artifact", "path"),
}
MAX_ID = 200  # characters of an id that comes from the API server
MAX_MESSAGE = 500  # characters of what went wrong
MAX_QUESTION = 10_000  # characters: an API server of ours asks with all of what is to be allowed


@frozen
class Over:
    """The run has ended well."""


@frozen
class Trouble:
    """It has not."""

    message: str


Mapped: TypeAlias = RunEvent | Over | Trouble


def map_event(kind: str, data: Mapping[str, object], word: str) -> tuple[Mapped, ...]:  # noqa: C901 - one row for each event
    """What an event means, perhaps nothing. `word` stands for the tool that a delta does not name."""
    for brand in BRANDS.values():
        kind = kind.removeprefix(brand.event_prefix)
    match kind:
        case "assistant.delta":
            return (AnswerDelta(delta),) if (delta := _text(data, "delta")) else ()
        case "run.started":
            return (RunBegan(_text(data, "run_id")[:MAX_ID]),)
        case "message.started":
            message = data.get("message")
            identity = _text(cast("dict[str, object]", message), "id") if isinstance(message, dict) else ""
            return (MessageBegan((identity or _text(data, "message_id"))[:MAX_ID]),)
        case "tool.progress":
            return _progress(data, word)
        case "tool.pending" | "tool.started":
            begun = ToolWaits if kind == "tool.pending" else ToolBegan
            name = _tool(data, word)
            preview = _text(data, "preview") or None
            return (begun(call_id=_call_id(data, name), name=name, arguments=_arguments(data), preview=preview),)
        case "tool.completed":
            name = _tool(data, word)
            preview = _text(data, "result_preview", "preview", "result") or None
            success = data.get("success") is not False
            return (ToolSucceeded(call_id=_call_id(data, name), name=name, preview=preview, success=success),)
        case "tool.failed":
            name = _tool(data, word)
            error = _text(data, "error", "message") or "no reason given"
            return (ToolFailed(call_id=_call_id(data, name), name=name, error=error),)
        case "memory.updated" if _text(data, "call_id"):
            return ()  # that call has an end of its own
        case "memory.updated" | "skill.loaded" | "artifact.created":
            name, member = CHANGES[kind]
            return (ToolSucceeded(call_id=_call_id(data, name), name=name, preview=_text(data, member) or None),)
        case _ if kind in QUESTIONS:
            identity = _text(data, "confirmation_id", "approval_id", "call_id", "tool_call_id", "id") or kind
            words = _text(data, "message") or " ".join(
                filter(None, (_text(data, "description"), _text(data, "command")))
            )
            return (ApprovalAsked(Question(identity[:MAX_ID], words[:MAX_QUESTION] or "May I go on?")),)
        case "assistant.completed":
            return (AnswerComplete(_text(data, "content"), data.get("interrupted") is True),)
        case "run.completed" | "done":
            return (AnswerComplete("", interrupted=True), Over()) if data.get("interrupted") is True else (Over(),)
        case "error":
            return (Trouble(_text(data, "message", "error")[:MAX_MESSAGE] or "the agent failed"),)
        case _:
            return ()


def _progress(data: Mapping[str, object], word: str) -> tuple[Mapped, ...]:
    delta = _text(data, "delta")
    name = _tool(data, word)
    if not delta:
        return ()
    if name == THINKING:
        return (ThoughtDelta(delta),)
    return (ToolSaid(call_id=_call_id(data, name), name=name, delta=delta),)


def _tool(data: Mapping[str, object], word: str) -> str:
    return (_text(data, "tool_name", "tool", "name") or word)[:MAX_ID]


def _call_id(data: Mapping[str, object], name: str) -> str:
    return (_text(data, "call_id", "tool_call_id", "id") or name)[:MAX_ID]


def _arguments(data: Mapping[str, object]) -> Mapping[str, object] | None:
    value = data.get("args", data.get("arguments"))
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _text(data: Mapping[str, object], *names: str) -> str:
    for name in names:
        value = data.get(name)
        if isinstance(value, str) and value:
            return value
    return ""
