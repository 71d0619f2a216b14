"""Validation of user input: text or content parts, attachments of older phones, lists of messages.

The result has the chat-completions form: text, or parts of the types `text` and `image_url`.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from svc_proto.agent.thought_tags import without_thoughts
from svc_proto.api.chat.records import Content
from svc_proto.api.errors import invalid_request
from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.schema.effects.task_apps import MAX_APPS, MAX_PACKAGE
from svc_proto.schema.json_object import JsonObject, as_array, as_text, content_text

__all__ = [
    "MAX_MESSAGES",
    "MAX_PARTS",
    "MessageList",
    "parse_apps",
    "parse_conversation",
    "parse_history",
    "parse_prompt",
    "parse_text",
]

MAX_PARTS = 1_000  # content parts of one message, wire api 2.5, and its attachments; more are refused
MAX_MESSAGES = 10_000  # of a conversation in a body; more are refused
MAX_URL = 8_192  # characters of an image's address; a data URL may be as long as a body
TEXT_TYPES = ("text", "input_text", "output_text")
# Members of an answer with a meaning of their own, and output that does not go back.
ANSWER_MEMBERS = ("role", "content", "tool_calls", "function_call", "refusal", "audio", "annotations", "name")
IMAGE_TYPES = ("image_url", "input_image")
_DATA_URL = re.compile(r"data:image/[A-Za-z0-9.+-]{1,64}(?:;[A-Za-z0-9=.+-]{1,64}){0,4},", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://[!-~]+", re.IGNORECASE)
_IMAGE_TYPE = re.compile(r"image/[A-Za-z0-9.+-]{1,64}", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@fast_frozen(kw_only=True)
class MessageList:
    """Parsed list of messages. A list that ends with tool `results` has no prompt; they are part of `history`."""

    system: str
    history: tuple[Mapping[str, object], ...]
    prompt: Content
    results: tuple[Mapping[str, object], ...] = ()


def parse_prompt(body: Mapping[str, object], *, names: Sequence[str] = ("message", "input")) -> Content:
    """Parse message and `attachments` of a chat body (wire api 4.1). The first of `names` with a value is the message.

    Raises `Refused` 400: `missing_message` if there is neither visible text nor an image, else for an invalid part.
    """
    name = next((name for name in names if body.get(name) is not None), names[0])
    value = body.get(name)
    parts = _parts(value, name) if value is not None else []
    parts += _attached(body.get("attachments"))
    content = _content(parts)
    if not _is_visible(content):
        raise invalid_request("the message has no visible text and no image", code="missing_message", param=name)
    return content


def parse_text(body: Mapping[str, object], names: Sequence[str], *, code: str | None = None) -> str:
    """Return the text of the first of these names with a value, stripped; empty if absent.

    Raises `Refused` 400 with `code` if the value is no text.
    """
    name = next((name for name in names if body.get(name) is not None), "")
    text = as_text(body.get(name, ""))
    if text is None:
        raise invalid_request(f"{name} must be a string", code=code, param=name)
    return text.strip()


def parse_apps(body: Mapping[str, object]) -> tuple[str, ...]:
    """Return the packages in the member `apps` of a body; empty if it is absent. Raises `Refused` 400 if invalid."""
    if body.get("apps") is None:
        return ()
    apps = as_array(body["apps"]) or []
    if not 1 <= len(apps) <= MAX_APPS or not all(0 < len(as_text(each) or "") <= MAX_PACKAGE for each in apps):
        raise invalid_request(f"apps must be a list of 1 to {MAX_APPS} packages", param="apps")
    return tuple(map(str, apps))


def parse_conversation(
    value: object, name: str, *, whole: bool = False, places: Sequence[int] | None = None
) -> MessageList:
    """Parse `messages` of chat completions (wire api 5.3): the last entry of user or assistant is the prompt.

    Earlier entries without visible text, image or calls are left out. If there are instructions alone, they are the
    prompt. `whole`: tool calls and their results are kept, since they are the client's; a list may then end with
    results and have no prompt. `places`: the index of each entry in the client's list, if it differs. Raises `Refused`
    400.
    """
    entries = as_array(value)
    if not entries:
        raise invalid_request(f"{name} must be a list of messages", param=name)
    system: list[str] = []
    kept: list[tuple[str, Content, Mapping[str, object]]] = []
    for place, entry in _entries(entries, name, places):
        role, content = _entry(entry, place)
        if role in ("system", "developer"):
            system.append(content_text(content))
        elif role in ("user", "assistant"):
            own = _own_members(entry, place) if whole and role == "assistant" else {}
            kept.append((place, content, {**own, **_message(role, content)}))
        elif role == "tool" and whole:
            kept.append((place, "", _result(entry, place)))
        elif role not in ("tool", "function") or whole:
            raise invalid_request("the role is none that is known", param=f"{place}.role")
    if not kept and any(system):  # instructions alone are the question
        text = "\n".join(filter(None, system))
        kept, system = [(f"{name}[0]", text, _message("user", text))], []
    if not kept:
        raise invalid_request("there is no message of the user", param=name)
    place, prompt, last = kept[-1]
    results = tuple(takewhile(_is_result, (row for _, _, row in reversed(kept))))[::-1]
    if not results:
        kept.pop()
        if "tool_calls" in last:
            raise invalid_request("the results of these calls are missing", param=f"{place}.tool_calls")
        if not _is_visible(prompt):
            raise invalid_request("the last message has no visible text and no image", param=f"{place}.content")
    history = tuple(row for _, content, row in kept if _is_visible(content) or "tool_calls" in row or _is_result(row))
    return MessageList(system="\n".join(filter(None, system)), history=history, prompt=prompt, results=results)


def parse_history(value: object, name: str) -> tuple[Mapping[str, object], ...]:
    """Parse `conversation_history` (wire api 6.1); messages without visible text or image are left out.

    Raises `Refused` 400 for a malformed entry.
    """
    entries = as_array(value)
    if entries is None:
        raise invalid_request(f"{name} must be a list of messages", param=name)
    messages: list[Mapping[str, object]] = []
    for place, entry in _entries(entries, name):
        role, content = _entry(entry, place)
        if role not in ("user", "assistant", "system"):
            raise invalid_request("the role must be user, assistant or system", param=f"{place}.role")
        if role != "assistant" and JsonObject.of(entry).get("content") is None:
            raise invalid_request("a message must have a content", param=f"{place}.content")
        if _is_visible(content):
            messages.append(_message(role, content))
    return tuple(messages)


# --- helpers ------------------------------------------------------------------------------------------------------


def _entries(value: Sequence[object], name: str, places: Sequence[int] | None = None) -> list[tuple[str, object]]:
    if len(value) > MAX_MESSAGES:
        raise invalid_request(f"a conversation may have at most {MAX_MESSAGES} messages", param=name)
    return [(f"{name}[{index}]", entry) for index, entry in zip(places or range(len(value)), value, strict=True)]


def _entry(entry: object, place: str) -> tuple[str, Content]:
    members = JsonObject.of_or_none(entry)
    if members is None:
        raise invalid_request("a message must be an object", param=place)
    role, content = members.string("role"), members.get("content")
    if role is None:
        raise invalid_request("a message must have a role", param=f"{place}.role")
    if role in ("tool", "function") or content is None:  # dropped, or a message that only calls tools
        return role, ""
    found = _content(_parts(content, f"{place}.content"))
    # pydantic-ai sends the reasoning of earlier answers as text between tags.
    return role, without_thoughts(found) if role == "assistant" and isinstance(found, str) else found


def _own_members(entry: object, place: str) -> Mapping[str, object]:
    """Return the tool calls and unknown members of an assistant message, which the model's server may need again."""
    extra = {name: value for name, value in JsonObject.of(entry).items() if name not in ANSWER_MEMBERS}
    return {**{name: value for name, value in extra.items() if value is not None}, **_calls(entry, place)}


def _calls(entry: object, place: str) -> Mapping[str, object]:
    """Return the member `tool_calls` of an assistant message, or {} without calls.

    Raises `Refused` 400 for calls of an invalid form.
    """
    members = JsonObject.of(entry)
    if not members.get("tool_calls"):
        return {}
    calls = members.array_or_none("tool_calls")
    if calls is None or not all(map(_is_call, calls)):
        raise invalid_request("calls must have an id, and a function with its arguments", param=f"{place}.tool_calls")
    return {"tool_calls": calls}


def _is_call(call: object) -> bool:
    members = JsonObject.of(call)
    function = members.get_object("function")
    return None not in (members.string("id"), function.string("name"), function.string("arguments"))


def _result(entry: object, place: str) -> Mapping[str, object]:
    members = JsonObject.of(entry)
    identity = members.text("tool_call_id")
    if not identity:
        raise invalid_request("a result must say whose it is", param=f"{place}.tool_call_id")
    content = content_text(_content(_parts(members.get("content"), f"{place}.content")))
    return {"role": "tool", "tool_call_id": identity, "content": content}


def _is_result(row: Mapping[str, object]) -> bool:
    return row["role"] == "tool"


def _message(role: str, content: Content) -> Mapping[str, object]:
    return {"role": role, "content": content if isinstance(content, str) else list(content)}


def _parts(value: object, place: str) -> list[Mapping[str, object]]:
    text, parts = as_text(value), as_array(value)
    if text is not None:
        return [_text_part(text)]
    if parts is None:
        raise invalid_request("the content must be text or a list of parts", code="invalid_content_part", param=place)
    _check_count(parts, place)
    return [_part(part, f"{place}[{index}]") for index, part in enumerate(parts)]


def _check_count(parts: Sequence[object], place: str) -> None:
    if len(parts) > MAX_PARTS:
        raise invalid_request(f"a message may have at most {MAX_PARTS} parts", code="invalid_content_part", param=place)


def _part(part: object, place: str) -> Mapping[str, object]:
    text, members = as_text(part), JsonObject.of_or_none(part)
    if text is not None:
        return _text_part(text)
    if members is None:
        raise invalid_request("a content part must be text or an object", code="invalid_content_part", param=place)
    kind = members.string("type")
    if kind in TEXT_TYPES:
        text = members.string("text")
        if text is None:
            raise invalid_request("a text part must have a text", code="invalid_content_part", param=f"{place}.text")
        return _text_part(text)
    if kind == "refusal":  # of an earlier answer
        return _text_part(members.text("refusal"))
    if kind in IMAGE_TYPES:
        return _image_part(members.get("image_url"), f"{place}.image_url")
    if kind is None:
        raise invalid_request("a content part must have a type", code="invalid_content_part", param=f"{place}.type")
    message = "only text and images can be sent"
    raise invalid_request(message, code="unsupported_content_type", param=f"{place}.type")


def _text_part(text: str) -> Mapping[str, object]:
    return {"type": "text", "text": text.replace("\x00", "")}  # a NUL is no valid text in a database


def _image_part(value: object, place: str) -> Mapping[str, object]:
    found: dict[str, object] = {}
    members = JsonObject.of_or_none(value)
    if members is not None:
        value, detail = members.get("url"), members.string("detail")
        if detail is not None:
            found["detail"] = detail[:16]
    url = (as_text(value) or "").strip()
    if not (_DATA_URL.match(url) or (len(url) <= MAX_URL and _WEB_URL.fullmatch(url))):
        raise _bad_image(place)
    return {"type": "image_url", "image_url": {"url": url, **found}}


def _bad_image(place: str) -> Refused:
    message = "an image must be an http or https address, or a data:image/ URL"
    return invalid_request(message, code="invalid_image_url", param=place)


def _attached(value: object) -> list[Mapping[str, object]]:
    """Parse `{contentType, content: base64}` of older phones to image parts (wire api 4.1); skip other media types.

    Raises `Refused` 400 if an image's content is no base64, and for too many attachments.
    """
    found: list[Mapping[str, object]] = []
    entries = as_array(value) or []
    _check_count(entries, "attachments")
    for index, entry in enumerate(entries):
        members = JsonObject.of(entry)
        kind, packed = members.text("contentType"), "".join(members.text("content").split())
        if not _IMAGE_TYPE.fullmatch(kind):
            continue
        if not _BASE64.fullmatch(packed):
            message = "the content of an attachment must be base64"
            raise invalid_request(message, code="invalid_image_url", param=f"attachments[{index}].content")
        found.append({"type": "image_url", "image_url": {"url": f"data:{kind};base64,{packed}"}})
    return found


def _content(parts: Sequence[Mapping[str, object]]) -> Content:
    """Return the texts joined by line ends if all parts are text, else the parts as a tuple."""
    texts = [str(part["text"]) for part in parts if part["type"] == "text"]
    return "\n".join(texts) if len(texts) == len(parts) else tuple(parts)


def _is_visible(content: Content) -> bool:
    if not isinstance(content, str):
        return True  # parts remain only if there is an image
    return any(letter.isprintable() and not letter.isspace() for letter in content)
