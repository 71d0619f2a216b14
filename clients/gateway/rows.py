"""Sessions and messages of the API server as a desktop shows them (wire api 3, wire terminal 2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

__all__ = ["listed_session", "listed_toolset", "shown_message"]


def listed_session(row: Mapping[str, object]) -> dict[str, object]:
    """A row of `session.list`."""
    started, count = row.get("started_at"), row.get("message_count")
    return {
        "id": str(row.get("id", "")),
        "title": _text(row.get("title")),
        "preview": _text(row.get("preview")),
        "started_at": started if isinstance(started, int | float) else 0,
        "message_count": count if isinstance(count, int) else 0,
        "source": _text(row.get("source")) or "api_server",
    }


def listed_toolset(row: Mapping[str, object]) -> dict[str, object]:
    """A row of `tools.list`. What its tools do is told by servers of ours (`descriptions`)."""
    listed, told = row.get("tools"), row.get("descriptions")
    names = [name for name in cast("list[object]", listed) if isinstance(name, str)] if isinstance(listed, list) else []
    words = cast("dict[str, object]", told) if isinstance(told, dict) else {}
    return {
        "name": _text(row.get("name")),
        "description": _text(row.get("description")),
        "tool_count": len(names),
        "enabled": row.get("enabled") is not False,
        "tools": [{"name": name, "description": _text(words.get(name))} for name in names],
    }


def shown_message(row: Mapping[str, object]) -> dict[str, object] | None:
    """A message of `session.resume`; None for what is not shown."""
    text = _content(row.get("content"))
    match row.get("role"):
        case "user" | "assistant" as role if text:
            return {"role": role, "text": text}
        case "tool":
            return {"role": "tool", "name": _text(row.get("tool_name")) or "tool", "context": text[:200]}
    return None


def _content(content: object) -> str:
    """The text of a message, which may come in parts."""
    if not isinstance(content, list):
        return _text(content)
    parts = [cast("dict[str, object]", part) for part in cast("list[object]", content) if isinstance(part, dict)]
    return "\n".join(text for part in parts if (text := _text(part.get("text"))))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
