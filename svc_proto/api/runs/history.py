"""The rows of a session as the messages that a model is given, mended where a turn was cut off, and bounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from svc_proto.api.chat.records import Message
from svc_proto.basics import strict_json
from svc_proto.schema.json_object import JsonObject, as_array, content_text

__all__ = ["MAX_IMAGES", "MAX_ROWS", "MAX_TEXT", "Row", "build_history"]

MAX_ROWS = 1_000  # newest rows of a session that a model is given
MAX_TEXT = 400_000  # characters of them, some 100,000 tokens; older messages are left out, whole turns at a time
MAX_IMAGES = 8 * 1024 * 1024  # characters of the images in them; an older image is named only
INTERRUPTED = "interrupted: this call was cut off, and nothing is known of its result"
IMAGE_GONE = "[an image that was sent earlier]"

Row: TypeAlias = Mapping[str, object]


def build_history(rows: Sequence[Message]) -> tuple[Row, ...]:
    """Messages in the chat-completions form, oldest first.

    Every call has exactly one result right behind its message: one that was never stored is made up, and a result
    without its call is left out, as are answers that say nothing. Models refuse anything else.
    """
    messages: list[Row] = []
    results: dict[str, str] | None = None  # of the calls made last: what is stored of them
    for row in rows:
        if row.role == "tool":
            if results is not None and row.tool_call_id in results and isinstance(row.content, str):
                results[row.tool_call_id] = row.content
            continue
        messages += _answers(results)
        results = None
        if row.role == "assistant":
            if row.tool_calls:
                results = dict.fromkeys(map(_call_id, row.tool_calls), INTERRUPTED)
                messages.append({"role": "assistant", "content": row.content, "tool_calls": list(row.tool_calls)})
            elif row.content:
                messages.append({"role": "assistant", "content": row.content})
        else:
            content = row.content if isinstance(row.content, str) else list(row.content)
            messages.append({"role": row.role, "content": content})
    messages += _answers(results)
    return _newest(messages)


def _newest(messages: list[Row]) -> tuple[Row, ...]:
    """As many whole turns as fit, from the end; images while they fit."""
    kept: list[Row] = []
    fitting = 0  # messages of `kept` that make whole turns
    text, images = MAX_TEXT, MAX_IMAGES
    for message in reversed(messages):
        content = message["content"]
        if parts := as_array(content):
            size = sum(map(_image_size, parts))
            if size > images:
                content = [part if not _image_size(part) else {"type": "text", "text": IMAGE_GONE} for part in parts]
            else:
                images -= size
        calls = message.get("tool_calls")
        text -= len(content_text(content)) + (len(strict_json.dumps(calls)) if calls else 0)
        if text < 0:
            break
        kept.append({**message, "content": content})
        if message["role"] == "user":
            fitting = len(kept)
    else:
        fitting = len(kept)
    return tuple(reversed(kept[:fitting]))


def _image_size(part: object) -> int:
    return len(JsonObject.of(part).get_object("image_url").text("url"))


def _answers(results: Mapping[str, str] | None) -> Iterable[Row]:
    return [
        {"role": "tool", "tool_call_id": call_id, "content": content} for call_id, content in (results or {}).items()
    ]


def _call_id(call: Mapping[str, object]) -> str:
    return str(call.get("id", ""))
