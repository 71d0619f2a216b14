"""JSON views of sessions and messages (wire api 3.1, 3.7), and events for approvals and changed notes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, cast

from svc_proto.agent.interface import ApprovalRequested, ApprovalResolved, MemoryChanged, ToolCall
from svc_proto.agent.message_extras import call_row
from svc_proto.api.chat.records import ChatSession, Content, Message, Usage
from svc_proto.basics.brand import Brand
from svc_proto.schema.chat_events import ApprovalRequest, ApprovalResponded, MemoryUpdated
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    from svc_proto.schema import api_types as types

__all__ = [
    "approval_response_event",
    "call_members",
    "content_view",
    "function_call",
    "iso",
    "message_view",
    "memory_event",
    "approval_request_event",
    "session_answer",
    "session_view",
    "usage_view",
]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(seconds: float) -> str:
    """Format Unix seconds as ISO 8601 in UTC, whole seconds: `2031-02-03T04:05:06Z`."""
    return (EPOCH + timedelta(seconds=int(seconds))).strftime("%Y-%m-%dT%H:%M:%SZ")


def function_call(call: ToolCall) -> types.ToolCallJson:
    """Return a tool call as `{id, type: "function", function: {name, arguments}}`, OpenAI's form."""
    return cast("types.ToolCallJson", call_row(call, call.arguments))


def session_view(chat: ChatSession, brand: Brand) -> types.SessionJson:
    """Return the JSON view of a session, without its system prompt."""
    return {
        "object": f"{brand.name}.session",
        "id": chat.id,
        "title": chat.title,
        "created_at": iso(chat.started_at),
        "updated_at": iso(chat.updated_at),
        "message_count": chat.message_count,
        "started_at": chat.started_at,
        "ended_at": chat.ended_at,
        "end_reason": chat.end_reason,
        "last_active": chat.last_active,
        "source": chat.source,
        "model": chat.model,
        "preview": chat.preview,
        "tool_call_count": chat.tool_call_count,
        "input_tokens": chat.input_tokens,
        "output_tokens": chat.output_tokens,
        "parent_session_id": chat.parent_id,
        "has_system_prompt": chat.system_prompt is not None,
        "pinned": chat.pinned,
        "archived": chat.archived,
    }


def session_answer(chat: ChatSession, brand: Brand) -> types.SessionAnswerJson:
    """Return the view of a session, with a second copy of it as the member `session` for phones (wire api 3.3)."""
    view = session_view(chat, brand)
    return {**view, "session": view}


def message_view(message: Message) -> types.MessageJson:
    """Return the JSON view of a message; most members without a value are omitted."""
    view: types.MessageJson = {
        "id": message.id,
        "session_id": message.session_id,
        "role": cast('Literal["user", "assistant", "tool", "system"]', message.role),
        "content": content_view(message.content),
        "created_at": iso(message.timestamp),
        "timestamp": message.timestamp,
    }
    if message.run_id is not None:
        view["run_id"] = message.run_id
    if message.tool_calls:
        view["tool_calls"] = cast("list[types.ToolCallJson]", [dict(call) for call in message.tool_calls])
    if message.tool_call_id is not None:
        view["tool_call_id"] = message.tool_call_id
    if message.tool_name is not None:
        view["tool_name"] = message.tool_name
    if message.finish_reason is not None:
        view["finish_reason"] = message.finish_reason
    if message.reasoning is not None:
        view["reasoning"] = message.reasoning
    if message.usage is not None:
        view["usage"] = usage_view(message.usage)
    return view


def content_view(content: Content) -> str | list[types.ContentPartJson]:
    """Return the content of a message for JSON: text, or a list of content parts."""
    return (
        content if isinstance(content, str) else cast("list[types.ContentPartJson]", [dict(part) for part in content])
    )


def usage_view(usage: Usage) -> types.UsageJson:
    """Return the counts of input tokens, output tokens and both together (wire api 4.3)."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }


def call_members(call: ToolCall) -> dict[str, Any]:
    """Return the members that describe a tool call in events: name, id (twice) and arguments (wire api 4.3)."""
    return {"tool_name": call.name, "call_id": call.id, "tool_call_id": call.id, "args": JsonObject(call.args)}


def approval_request_event(event: ApprovalRequested) -> ApprovalRequest:
    """Return the event for a pending approval with its choices (wire api 6.3 `approval.request`)."""
    return ApprovalRequest(
        tool=event.call.name,
        **call_members(event.call),
        command=event.command,
        description=event.description,
        pattern_key=event.pattern,
        pattern_keys=[event.pattern],
        allow_permanent="always" in event.choices,
        choices=list(event.choices),
        expires_at=event.expires_at,
    )


def approval_response_event(given: ApprovalResolved) -> ApprovalResponded:
    """Return the event for an approval request that was answered or has expired (wire api 6.3 `approval.responded`)."""
    identity = given.call.id
    return ApprovalResponded(call_id=identity, tool_call_id=identity, choice=given.choice, resolved=given.resolved)


def memory_event(event: MemoryChanged) -> MemoryUpdated:
    """Return the event for a changed note, with the call of `/api/memory` that undoes it (wire api 4.3, 8.3)."""
    change = event.change
    body = JsonObject(target=change.target)
    if change.added is not None:
        body["old_text"] = change.added
    if change.removed is not None:
        body["content"] = change.removed
    method = "DELETE" if change.removed is None else "POST" if change.added is None else "PATCH"
    return MemoryUpdated(
        **call_members(event.call),
        target=change.target,
        entry_count=change.count,
        added=change.added,
        removed=change.removed,
        undo=JsonObject(method=method, body=body),
    )
