"""Conversion of API sessions and messages into those of the TUI channel (wire api 3, wire terminal 2.4)."""

from __future__ import annotations

from svc_proto.schema.json_object import JsonObject, content_text

__all__ = ["session_row", "toolset_row", "message_row"]


def session_row(row: JsonObject) -> dict[str, object]:
    """Build a row of `session.list`."""
    return {
        "id": str(row.get("id", "")),
        "title": row.text("title"),
        "preview": row.text("preview"),
        "started_at": row.number("started_at") or 0,
        "message_count": row.integer("message_count") or 0,
        "source": row.text("source") or "api_server",
    }


def toolset_row(row: JsonObject) -> dict[str, object]:
    """Build a row of `tools.list`. Only this project's servers describe the tools (`descriptions`)."""
    names, words = row.texts("tools"), row.get_object("descriptions")
    return {
        "name": row.text("name"),
        "description": row.text("description"),
        "tool_count": len(names),
        "enabled": row.get("enabled") is not False,
        "tools": [{"name": name, "description": words.text(name)} for name in names],
    }


def message_row(row: JsonObject) -> dict[str, object] | None:
    """Build a message of `session.resume`; None for one that is not shown."""
    text = content_text(row.get("content"))
    match row.get("role"):
        case "user" | "assistant" as role if text:
            return {"role": role, "text": text}
        case "tool":
            return {"role": "tool", "name": row.text("tool_name") or "tool", "context": text[:200]}
    return None
