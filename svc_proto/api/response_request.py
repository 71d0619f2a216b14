"""A body of `/v1/responses` in the form of chat completions, so that both routes have one implementation of options."""

import re
from collections.abc import Iterable

from svc_proto.api.errors import invalid_request
from svc_proto.basics.errors import Refused
from svc_proto.schema.json_object import JsonObject, as_array, as_text, content_text

__all__ = ["as_completion_body", "as_completion_messages", "as_response_error", "item_reference", "response_of_item"]

# Members with a meaning of their own for this route, and those that change no answer.
OWN = (
    "input", "instructions", "previous_response_id", "conversation", "conversation_history", "truncation", "include",
    "text", "reasoning", "max_output_tokens", "tools", "tool_choice", "background", "prompt",
    "max_tool_calls", "context_management", "stream_options",
)  # fmt: skip
REFUSED = {
    "background": "background must be false: a response is made while its client waits",
    "prompt": "prompt templates cannot be used here",
    "max_tool_calls": "max_tool_calls cannot be honoured here",
}
NO_EFFECT = (None, False, 0)
# Names in chat completions, and here.
NAMES = {"max_tokens": "max_output_tokens", "response_format": "text.format", "reasoning_effort": "reasoning.effort"}
MAX_KIND = 40  # characters of an item's type in an error
ITEM_ID = re.compile(r"[a-z]+_[0-9]+_([0-9a-f]+)")  # of output items; the digits are those of the response
MESSAGE_MEMBERS = ("role", "content")
FORMAT_MEMBERS = ("name", "schema", "strict", "description")


def as_completion_body(body: JsonObject) -> JsonObject:
    """Return the options of a body as members of chat completions. Raises `Refused` 400 with the member's name."""
    for name, why in REFUSED.items():
        if body.get(name) not in NO_EFFECT:
            raise invalid_request(why, param=name)
    found = JsonObject({name: value for name, value in body.items() if name not in OWN})
    text, reasoning = body.get_object("text"), body.get_object("reasoning")
    given = {
        "max_tokens": body.get("max_output_tokens"),
        "response_format": _response_format(text),
        "verbosity": text.get("verbosity"),
        "reasoning_effort": reasoning.get("effort"),
        "tools": _tools(body.get("tools")),
        "tool_choice": _choice(body.get("tool_choice")),
    }
    found.update((name, value) for name, value in given.items() if value is not None)
    return found


def as_response_error(refused: Refused) -> Refused:
    """Return a refusal in which names of members of chat completions are replaced by those of `/v1/responses`."""
    field = as_text(refused.extra.get("field")) or ""
    name = NAMES.get(field, field.replace(".function", ""))
    message = refused.message.replace(field, name) if field in NAMES else refused.message
    return Refused(refused.status, refused.code, message, extra={**refused.extra, "field": name})


def as_completion_messages(entries: Iterable[object]) -> tuple[list[object], list[int]]:
    """Return items of `input` as messages, and for each message the index of its item.

    A call is added to the assistant message right before it, or becomes one itself; reasoning is added to the next
    assistant message. Calls of the agent's own tools (`mcp_call`) are left out. Raises `Refused` 400 for an item of an
    unsupported type.
    """
    messages: list[object] = []
    places: list[int] = []
    reasoning = ""
    for place, entry in enumerate(entries):
        reasoning = _add_item(messages, entry, place, reasoning)
        places += [place] * (len(messages) - len(places))
    return messages, places


def item_reference(entry: object) -> str | None:
    """Return the id of the output item to which an item of `input` refers, or None."""
    item = JsonObject.of(entry)
    return item.text("id") if item.get("type") == "item_reference" else None


def response_of_item(item_id: str) -> str:
    """Return the id of the response that has this output item; empty if no response can have the item."""
    found = ITEM_ID.fullmatch(item_id)
    return "" if found is None else f"resp_{found[1]}"


# --- helpers ------------------------------------------------------------------------------------------------------


def _add_item(messages: list[object], entry: object, place: int, reasoning: str) -> str:
    """Add an item of `input` to `messages`, with `reasoning` if it is an assistant message; skip an `mcp_call`.

    Returns the reasoning for the next assistant message. Raises `Refused` 400 for an unsupported type.
    """
    item = JsonObject.of(entry)
    kind = item.get("type", "message")
    if as_text(entry) is not None:
        messages.append({"role": "user", "content": entry})
    elif kind == "function_call":
        return _add_call(messages, item, reasoning)
    elif kind == "function_call_output":
        messages.append({"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")})
    elif kind == "mcp_call":  # of one of our own tools, which the client sends back
        return reasoning
    elif kind == "reasoning":
        return content_text(item.array("content") or item.array("summary"))
    elif "role" in item:
        message = {name: value for name, value in item.items() if name in MESSAGE_MEMBERS}
        if reasoning and item["role"] == "assistant":
            messages.append({**message, "reasoning_content": reasoning})
            return ""
        messages.append(message)
    elif kind == "message":
        messages.append(entry)
    else:
        text = f"items of the type {str(kind)[:MAX_KIND]} cannot be used here"
        raise invalid_request(text, param=f"input[{place}].type")
    return reasoning


def _add_call(messages: list[object], item: JsonObject, reasoning: str) -> str:
    """Add a call to the last message if that is the assistant's, else as a new assistant message with `reasoning`.

    Returns the reasoning that is left for the next assistant message.
    """
    call = {
        "id": item.get("call_id"),
        "type": "function",
        "function": {"name": item.get("name"), "arguments": item.get("arguments")},
    }
    last = JsonObject.of(messages[-1]) if messages else JsonObject()
    if last.get("role") == "assistant":
        messages[-1] = {**last, "tool_calls": [*last.array("tool_calls"), call]}
        return reasoning
    answer: dict[str, object] = {"role": "assistant", "content": None, "tool_calls": [call]}
    messages.append({**answer, "reasoning_content": reasoning} if reasoning else answer)
    return ""


def _response_format(text: JsonObject) -> object:
    wanted = text.get("format")
    members = JsonObject.of(wanted)
    if members.get("type") == "json_schema" and "json_schema" not in members:
        schema = {name: members[name] for name in FORMAT_MEMBERS if name in members}
        return {"type": "json_schema", "json_schema": schema}
    return None if members.get("type") == "text" else wanted


def _tools(value: object) -> object:
    tools = as_array(value)
    return value if tools is None else [_tool(tool) for tool in tools]


def _tool(tool: object) -> object:
    members = JsonObject.of_or_none(tool)
    if members is None or members.get("type") != "function" or "function" in members:
        return tool
    return {"type": "function", "function": {name: value for name, value in members.items() if name != "type"}}


def _choice(value: object) -> object:
    members = JsonObject.of(value)
    if members.get("type") == "function" and "function" not in members:
        return {"type": "function", "function": {"name": members.get("name")}}
    return value
