"""Forms of messages for servers that do not take all of OpenAI's: pure functions over chat-completions messages."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from svc_proto.schema.json_object import JsonObject, as_array, as_text, content_text

__all__ = [
    "alternate_roles",
    "fold_system",
    "has_extras",
    "has_images",
    "shorten_ids",
    "strip_extras",
    "with_reasoning",
    "without_images",
    "without_tool_rows",
]

IMAGE_NOT_TAKEN = "[a picture that the model's server does not take: say so if it matters]"
ID_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
ID_SIZE = 9
MESSAGE_MEMBERS = ("role", "content", "name", "tool_calls", "tool_call_id")
CALL_MEMBERS = ("id", "type", "function")
FUNCTION_MEMBERS = ("name", "arguments")
PARAGRAPH = "\n\n"
EMPTY_USER = "(the conversation goes on)"

Row = Mapping[str, object]


def has_images(rows: Iterable[Row]) -> bool:
    """Report whether any of the messages has an image."""
    return any("image_url" in JsonObject.of(part) for row in rows for part in as_array(row.get("content")) or ())


def without_images(rows: Iterable[Row]) -> list[Row]:
    """Return the messages with a line of text in the place of each image."""
    return [_without_images(row) if has_images([row]) else row for row in rows]


def has_extras(rows: Iterable[Row]) -> bool:
    """Report whether any of the messages, or a call in them, has a member that `strip_extras` removes."""
    return any(strip_extras([row]) != [row] for row in rows)


def strip_extras(rows: Iterable[Row]) -> list[Row]:
    """Return the messages with the members in `MESSAGE_MEMBERS`, `CALL_MEMBERS` and `FUNCTION_MEMBERS` only."""
    return [_strip(row) for row in rows]


def with_reasoning(rows: Iterable[Row], member: str) -> list[Row]:
    """Return the messages, with an empty text as `member` in each assistant message that lacks it."""
    return [{member: "", **row} if row["role"] == "assistant" else row for row in rows]


def without_tool_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the messages with calls and results as text, for a server without tools."""
    shaped: list[Row] = []
    for row in rows:
        calls = JsonObject.of(row).objects("tool_calls")
        if row["role"] == "tool":
            shaped.append({"role": "user", "content": f"[Result of a tool]\n{content_text(row.get('content'))}"})
        elif calls:
            lines = [
                f"[Called the tool {_function(call, 'name')} with {_function(call, 'arguments')}]" for call in calls
            ]
            text = content_text(row.get("content"))
            shaped.append({"role": "assistant", "content": "\n".join([text, *lines] if text else lines)})
        else:
            shaped.append(row)
    return shaped


def shorten_ids(rows: Iterable[Row]) -> list[Row]:
    """Return the messages with the ids of tool calls in nine letters or digits; equal ids stay equal."""
    shaped: list[Row] = []
    for row in rows:
        calls = JsonObject.of(row).objects("tool_calls")
        changed: dict[str, object] = {}
        if calls:
            changed["tool_calls"] = [{**call, "id": short_id(call.text("id"))} for call in calls]
        if row["role"] == "tool":
            changed["tool_call_id"] = short_id(str(row.get("tool_call_id", "")))
        shaped.append({**row, **changed} if changed else row)
    return shaped


def short_id(identity: str) -> str:
    """Return an id of nine letters or digits: the given one if it has this form, else one from its hash."""
    if len(identity) == ID_SIZE and identity.isascii() and identity.isalnum():
        return identity
    return "".join(ID_LETTERS[byte % len(ID_LETTERS)] for byte in hashlib.sha256(identity.encode()).digest()[:ID_SIZE])


def fold_system(rows: Sequence[Row]) -> list[Row]:
    """Return the messages without the role system: its text begins the next message of the user.

    If none follows, the text is a message of the user at the end.
    """
    shaped: list[Row] = []
    system: list[str] = []
    for row in rows:
        if row["role"] == "system":
            system.append(content_text(row.get("content")))
        elif row["role"] == "user" and system:
            shaped.append(_join({"role": "user", "content": PARAGRAPH.join(system)}, row))
            system = []
        else:
            shaped.append(row)
    if system:
        shaped.append({"role": "user", "content": PARAGRAPH.join(system)})
    return shaped


def alternate_roles(rows: Sequence[Row]) -> list[Row]:
    """Return the messages with users and assistants in turns, users first. Results stay behind their calls.

    Neighbours of the role user, or assistant, are joined, unless the first has calls. A system message behind one of
    another role becomes one of the user. A user message is inserted where an assistant's message would be the first.
    """
    shaped: list[Row] = []
    for row in rows:
        last = shaped[-1] if shaped else None
        role = "user" if row["role"] == "system" and last is not None and last["role"] != "system" else row["role"]
        current = row if role == row["role"] else {**row, "role": role}
        if role == "assistant" and (last is None or last["role"] == "system"):
            shaped.append({"role": "user", "content": EMPTY_USER})
        if last is not None and role == last["role"] and role in ("user", "assistant") and "tool_calls" not in last:
            shaped[-1] = _join(last, current)
        else:
            shaped.append(current)
    return shaped


# --- helpers ------------------------------------------------------------------------------------------------------


def _without_images(row: Row) -> Row:
    texts = [
        IMAGE_NOT_TAKEN if "image_url" in JsonObject.of(part) else JsonObject.of(part).text("text")
        for part in as_array(row["content"]) or ()
    ]
    return {**row, "content": "\n".join(texts)}


def _strip(row: Row) -> Row:
    stripped = {name: value for name, value in row.items() if name in MESSAGE_MEMBERS}
    calls = JsonObject.of(row).objects("tool_calls")
    if calls:
        stripped["tool_calls"] = [_strip_call(call) for call in calls]
    return stripped


def _strip_call(call: JsonObject) -> dict[str, object]:
    stripped = {name: value for name, value in call.items() if name in CALL_MEMBERS}
    function = call.object_or_none("function")
    if function is not None:
        stripped["function"] = {name: value for name, value in function.items() if name in FUNCTION_MEMBERS}
    return stripped


def _function(call: JsonObject, name: str) -> str:
    return call.get_object("function").text(name)


def _join(first: Row, second: Row) -> Row:
    """Join the contents of two messages of one role; of other members with equal names the second one's is used."""
    one, two = first.get("content"), second.get("content")
    text, more = as_text(one) if one is not None else "", as_text(two) if two is not None else ""
    if text is not None and more is not None:
        return {**first, **second, "content": PARAGRAPH.join(filter(None, (text, more)))}
    return {**first, **second, "content": [*_parts(one), *_parts(two)]}


def _parts(content: object) -> list[object]:
    text = as_text(content)
    return list(as_array(content) or ()) if text is None else [{"type": "text", "text": text}] if text else []
