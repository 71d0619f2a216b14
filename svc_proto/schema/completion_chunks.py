"""Readers of the text in a chunk of a chat-completions stream: `{choices: [{delta: {content}}]}`."""

from collections.abc import Mapping

from svc_proto.schema.json_object import JsonObject, as_array, as_text

__all__ = ["chunk_text_fast", "content_as_text"]


def chunk_text_fast(chunk: Mapping[str, object]) -> str:
    """Return the text of a chunk whose first choice has only text, the usual case; empty for any other chunk."""
    if chunk.get("error") or chunk.get("usage"):
        return ""
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or choice.get("finish_reason") or choice.get("message") is not None:
        return ""
    delta = choice.get("delta")
    if not isinstance(delta, dict) or len(delta) != 1:
        return ""
    text = delta.get("content")
    return text if isinstance(text, str) else ""


def content_as_text(value: object) -> str:
    """Return text, or the joined texts of the parts of a content list; empty for any other value."""
    parts = as_array(value)
    return (
        as_text(value) or ""
        if parts is None
        else "".join(content_as_text(JsonObject.of(part).get("text")) for part in parts)
    )
