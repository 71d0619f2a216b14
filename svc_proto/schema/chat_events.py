"""Events of a chat session's stream (SPEC.md "Chat stream", wire api 4.2 to 4.4), with memory and approval events.

Each is a class whose fields are the members on the wire, in their order; approvals are wire api 6.3. Every event has a
head before them: `session_id`, `run_id`, `seq`, `ts`. A phone silently drops an event with an unexpected type, so the
types are exact. Other servers may leave members out or write them differently: a field then has the value of another
name in use, else it is empty, None, 0 or its default.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from attrs import fields

from svc_proto.basics import strict_json
from svc_proto.basics.brand import BRANDS
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.schema.json_object import JsonObject

__all__ = [
    "THINKING",
    "ChatEvent",
    "EVENTS",
    "ApprovalRequest",
    "ApprovalResponded",
    "AssistantCompleted",
    "AssistantDelta",
    "Done",
    "Error",
    "MemoryUpdated",
    "MessageStarted",
    "RunCompleted",
    "RunStarted",
    "SessionCreated",
    "ToolCompleted",
    "ToolFailed",
    "ToolPending",
    "ToolProgress",
    "ToolStarted",
    "parse_event",
    "parse_delta_text",
    "delta_text",
]

THINKING = "_thinking"  # wire api 4.3: the tool name of a reasoning chunk
NOTHING = JsonObject()
EMPTY = '""}'  # end of the members of an empty delta


@fast_frozen
class ChatEvent:
    """Base of all events. The class name is the event's name: `AssistantDelta` is `assistant.delta`."""

    def members(self) -> dict[str, object]:
        """Return the members on the wire after the head, in their order."""
        return {name: getattr(self, name) for name in _READERS[type(self)]}

    def write(self, head: str, seq: int, ts: str) -> str:
        """Return the server-sent event.

        `head`: its JSON up to the value of `seq`; `ts`: Unix seconds as a JSON number.
        """
        members = strict_json.dumps(self.members())
        return f'event: {_KINDS[type(self)]}\ndata: {head}{seq},"ts":{ts},{members[1:]}\n\n'

    def around(self, head: str) -> tuple[str, str]:
        """Return the constant pieces of a delta event: up to the value of `seq`, and from the end of `ts` to the text.

        `head` is as for `write`. This event is a delta with an empty text; the caller adds the quoted text and the end.
        """
        members = strict_json.dumps(self.members())
        return f"event: {_KINDS[type(self)]}\ndata: {head}", f",{members[1:].removesuffix(EMPTY)}"


def parse_event(kind: str, data: JsonObject) -> ChatEvent | None:
    """Return the event with this name, of any brand, from its data; None for an unknown name."""
    known = _KNOWN.get(kind)
    return None if known is None else known(*[read(data) for read in _READERS[known].values()])


def delta_text(data: Mapping[str, object]) -> str:
    """Return the text in the data of an `assistant.delta`; empty if there is none."""
    found = data.get("delta")
    return found if type(found) is str else ""


def parse_delta_text(text: str) -> str:
    """Return the text of an `assistant.delta` from its JSON; empty if there is none."""
    try:
        data = strict_json.loads(text)
    except strict_json.JsonError:
        return ""
    found = data.get("delta") if isinstance(data, dict) else None
    return found if type(found) is str else ""


@fast_frozen
class SessionCreated(ChatEvent):
    """Event at the beginning of a turn: the title and the model of its chat session."""

    title: str | None = None
    model: str = ""


@fast_frozen
class RunStarted(ChatEvent):
    """The user's message is stored: `{id, role, content}`."""

    user_message: JsonObject = NOTHING


@fast_frozen
class MessageStarted(ChatEvent):
    """The answer begins: `{id, role}`."""

    message: JsonObject = NOTHING


@fast_frozen
class AssistantDelta(ChatEvent):
    """A piece of the answer."""

    message_id: str = ""
    delta: str = ""


@fast_frozen
class ToolProgress(ChatEvent):
    """A piece of the output of a tool; for the tool `THINKING`, a piece of reasoning."""

    message_id: str = ""
    tool_name: str = ""
    delta: str = ""


@fast_frozen
class _ToolCallEvent(ChatEvent):
    tool_name: str = ""
    call_id: str = ""
    tool_call_id: str = ""
    args: JsonObject | None = None


@fast_frozen
class ToolPending(_ToolCallEvent):
    """A tool call has not started yet; this server sends the event if the call needs approval."""

    preview: str | None = None


@fast_frozen
class ToolStarted(_ToolCallEvent):
    """A tool call has started, or has failed before it could run."""

    preview: str | None = None


@fast_frozen
class ToolCompleted(_ToolCallEvent):
    """A tool call has a result. `duration` is in seconds."""

    duration: float | None = None
    result_preview: str | None = None
    success: bool = True


@fast_frozen
class ToolFailed(_ToolCallEvent):
    """A tool call has failed. `duration` is in seconds."""

    duration: float | None = None
    error: str = ""
    success: bool = False


@fast_frozen
class ApprovalRequest(ChatEvent):
    """A tool call waits for approval."""

    tool: str = ""
    tool_name: str = ""
    call_id: str = ""
    tool_call_id: str = ""
    args: JsonObject | None = None
    command: str = ""
    description: str = ""
    pattern_key: str = ""
    pattern_keys: Sequence[str] = ()
    allow_permanent: bool = False
    choices: Sequence[str] | None = None
    expires_at: float | None = None  # epoch seconds; no answer until then is a denial


@fast_frozen
class ApprovalResponded(ChatEvent):
    """An approval request was answered or has expired."""

    call_id: str = ""
    tool_call_id: str = ""
    choice: str = ""
    resolved: int = 0


@fast_frozen
class MemoryUpdated(_ToolCallEvent):
    """A note was added, removed or replaced; `undo`: the request to `/api/memory` that undoes it, `{method, body}`."""

    target: str = ""
    entry_count: int = 0
    added: str | None = None
    removed: str | None = None
    undo: JsonObject = NOTHING


@fast_frozen
class _CompletionEvent(ChatEvent):
    message_id: str = ""
    completed: bool = True
    partial: bool = False
    interrupted: bool = False
    usage: JsonObject = NOTHING


@fast_frozen
class AssistantCompleted(_CompletionEvent):
    """End of the answer, with its text; `completed` is false if the answer was cut or stopped."""

    content: str = ""


@fast_frozen
class RunCompleted(_CompletionEvent):
    """The turn has ended, with its result."""

    api_calls: int = 0
    reason: str | None = None  # for people: why the turn was ended early
    unfinished: Sequence[str] = ()  # for people: acts without success, and what was left open


@fast_frozen
class Error(ChatEvent):
    """The turn has failed, with a text for people and a code."""

    message: str = ""
    error: str = ""


@fast_frozen
class Done(ChatEvent):
    """Last event of the stream; its only member is constant."""

    state: str = "final"


# --- readers of fields -------------------------------------------------------------------------------------------

Reader: TypeAlias = Callable[[JsonObject], object]
ALTERNATIVE_NAMES = {  # other names in use
    "tool_name": ("tool", "name"),
    "call_id": ("tool_call_id", "id"),
    "args": ("arguments",),
    "result_preview": ("preview", "result"),
    "message": ("error",),
    "error": ("message",),
}


def _reader(name: str, kind: object, default: object) -> Reader:
    others = ALTERNATIVE_NAMES.get(name, ())
    names = (name, *others)
    if kind is str:  # for each delta: usually without a further call
        return lambda data: found if type(found := data.get(name)) is str and found else data.text(*others)
    if kind == str | None:
        return lambda data: data.text(*names) or None
    if kind is bool:
        return lambda data: found if isinstance(found := data.get(name), bool) else default
    if kind is int:
        return lambda data: data.integer(name) or 0
    if kind == float | None:
        return lambda data: data.number(name)
    if kind in (Sequence[str], Sequence[str] | None):
        return lambda data: data.texts(name) if isinstance(data.get(name), list) else default
    if kind is JsonObject:
        return lambda data: data.get_object(name)
    assert kind == JsonObject | None, kind
    return lambda data: next((data.get_object(each) for each in names if isinstance(data.get(each), dict)), None)


_EVENTS = [each for each in globals().values() if isinstance(each, type) and issubclass(each, ChatEvent)]
_READERS = {each: {one.name: _reader(one.name, one.type, one.default) for one in fields(each)} for each in _EVENTS}
_PREFIXES = ("", *(brand.event_prefix for brand in BRANDS.values()))
_KINDS = {each: re.sub("(?<=.)(?=[A-Z])", ".", each.__name__).lower() for each in _EVENTS}
EVENTS = {kind: each for each, kind in _KINDS.items() if each.__name__ in __all__ and each is not ChatEvent}
"""Event classes by name."""
_OTHER_NAMES = dict.fromkeys(("confirmation.requested", "approval.requested"), ApprovalRequest)  # of other servers
_KNOWN = {prefix + kind: each for prefix in _PREFIXES for kind, each in (EVENTS | _OTHER_NAMES).items()}
