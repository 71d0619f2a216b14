"""Requests of the phone's app on its standard connection, with what its parsers need of each answer.

What this service does not offer is answered with 404 or 405 over HTTP, and with -32601 or 4002 on the socket.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

from tests.support.pdf_file import one_page_pdf

__all__ = ["CALLS", "REQUESTS", "AppCall", "AppRequest"]

Check: TypeAlias = Callable[[Any], bool]
Members: TypeAlias = Mapping[str, object]


@frozen
class AppRequest:
    """A request over HTTP; names in braces, as in `{id}`, are replaced. `check` is None for what is not offered."""

    method: str
    path: str
    check: Check | None
    body: Members | None = None
    signed_in: bool = field(default=True, kw_only=True)
    status: int = field(default=200, kw_only=True)


@frozen
class AppCall:
    """A call on the socket; `{live}` is a live session. `check` is None for what this service does not offer."""

    method: str
    params: Members
    check: Check | None


def is_object(answer: Any) -> bool:
    return isinstance(answer, dict)


def has(name: str, kind: type | tuple[type, ...] = (str, list, dict, int, float, bool)) -> Check:
    """Return a check that an answer is an object whose member `name` has the type `kind`."""
    return lambda answer: is_object(answer) and isinstance(answer.get(name), kind)


def rows(array: str, /, **kinds: Any) -> Check:
    """Return a check for an array of objects with members of the types `kinds`; without them any array passes.

    The array is the member `array` of an object, or the answer itself.
    """

    def check(answer: Any) -> bool:
        found = answer.get(array) if isinstance(answer, dict) else answer
        return isinstance(found, list) and all(
            isinstance(row.get(member), kind) for row in found for member, kind in kinds.items()
        )

    return check


NUMBER = (int, float)
CHAT = {
    "id": str,
    "title": (str, type(None)),
    "started_at": NUMBER,
    "last_active": NUMBER,
    "message_count": int,
    "tool_call_count": int,
    "input_tokens": int,
    "is_active": bool,
    "pinned": bool,
    "archived": bool,
}
ROW = {"role": str, "content": (str, list), "row_id": int, "timestamp": NUMBER}


def _status(answer: Any) -> bool:
    (provider,) = answer["auth_providers"]
    return answer["auth_required"] is True and provider["name"] == "basic" and provider["supports_password"] is True


def _history(answer: Any) -> bool:
    page = answer["pagination"]
    return rows("messages", **ROW)(answer) and page["returned"] == len(answer["messages"]) and "order" in page


def _options(answer: Any) -> bool:
    return rows("providers", slug=str, models=list, is_current=bool)(answer) and has("model", str)(answer)


OPEN: dict[str, Any] = {"signed_in": False}
REQUESTS: tuple[AppRequest, ...] = (
    AppRequest("GET", "/api/status", _status, **OPEN),
    AppRequest("GET", "/api/auth/providers", rows("providers", name=str), **OPEN),
    AppRequest("GET", "/api/auth/me", is_object, signed_in=False, status=401),
    AppRequest("POST", "/auth/password-login", is_object, {"password": "wrong"}, signed_in=False, status=401),
    AppRequest("GET", "/api/auth/me", lambda answer: bool(answer["user_id"] and answer["expires_at"])),
    AppRequest("POST", "/api/auth/ws-ticket", lambda answer: bool(answer["ticket"]) and answer["ttl_seconds"] == 30),
    AppRequest("GET", "/auth/login?provider=basic&next=%2F", None),
    AppRequest("POST", "/auth/native/token", None, {"code": "x"}),
    AppRequest("POST", "/auth/native/refresh", None, {"refresh_token": "x"}),
    AppRequest("GET", "/api/sessions?limit=100&offset=0&order=recent&min_messages=1", rows("sessions", **CHAT)),
    AppRequest("GET", "/api/sessions?limit=100&offset=0&archived=only", rows("sessions", **CHAT)),
    AppRequest("GET", "/api/profiles/sessions?profile=all&limit=100", rows("sessions", **CHAT, profile=str)),
    AppRequest("GET", "/api/sessions/{id}", has("id", str)),
    AppRequest("GET", "/api/sessions/{id}/messages?limit=500&offset=0&order=latest", _history),
    AppRequest("GET", "/api/sessions/{id}/messages?limit=500&offset=0&order=oldest", _history),
    AppRequest("PATCH", "/api/sessions/{id}", is_object, {"title": "Renamed", "profile": "default"}),
    AppRequest("PATCH", "/api/sessions/{id}", is_object, {"pinned": True}),
    AppRequest("PATCH", "/api/sessions/{id}", is_object, {"archived": False}),
    AppRequest("GET", "/api/sessions/search?q=hello", has("results", list)),
    AppRequest("GET", "/api/sessions/{id}/export", is_object),
    AppRequest("POST", "/api/sessions/prune", has("matched", int), {"dry_run": True, "older_than_days": 30}),
    AppRequest("POST", "/api/sessions/prune", has("removed", int), {"dry_run": False, "older_than_days": 30}),
    AppRequest("POST", "/api/profiles/sessions/pull-requests", None, {}),
    AppRequest("POST", "/api/git/review/pr-list", None, {}),
    AppRequest("GET", "/api/config", is_object),
    AppRequest("GET", "/api/config/schema", has("fields", dict)),
    AppRequest("PUT", "/api/config", None, {"config": {}}),
    AppRequest("GET", "/api/profiles", rows("profiles", name=str, is_default=bool, skill_count=int)),
    AppRequest("GET", "/api/profiles/active", has("active", str)),
    AppRequest("POST", "/api/profiles/active", is_object, {"name": "default"}),
    AppRequest("GET", "/api/model/info", is_object),
    AppRequest("GET", "/api/model/options", _options),
    AppRequest("GET", "/api/skills", rows("skills", name=str, enabled=bool)),
    AppRequest("POST", "/api/model/set", is_object, {"scope": "main", "model": "nowhere"}, status=400),
    AppRequest("PUT", "/api/skills/toggle", None, {"name": "x", "enabled": False}),
    AppRequest("GET", "/api/mcp/servers", rows("servers", name=str, transport=str, enabled=bool)),
    AppRequest("POST", "/api/mcp/servers/shop/test", lambda answer: answer["ok"] is True and bool(answer["tools"])),
    AppRequest("PUT", "/api/mcp/servers/shop/enabled", has("ok", bool), {"enabled": False}),
    AppRequest("DELETE", "/api/mcp/servers/x", None),
    AppRequest("GET", "/api/memory", has("providers", list)),
    AppRequest("GET", "/api/dashboard/plugins", lambda answer: isinstance(answer, list)),
    AppRequest("GET", "/api/plugins/x/mobile/manifest", None),
    AppRequest("PUT", "/api/env", None, {"key": "X", "value": "x"}),
    AppRequest("DELETE", "/api/env", None, {"key": "X"}),
    AppRequest("POST", "/api/env/reveal", None, {"key": "X"}),
    *(AppRequest("POST", f"/api/cron/jobs/x/{act}", None) for act in ("pause", "resume", "trigger")),
    AppRequest("GET", "/api/cron/jobs/x/runs", None),
    AppRequest("DELETE", "/api/cron/jobs/x", None),
    *(
        AppRequest("GET", path, None)
        for path in (
            *("/api/cron/jobs", "/api/env", "/api/mcp/catalog", "/api/providers/custom-endpoints"),
            *("/api/learning/graph", "/api/messaging/platforms", "/api/skills/hub/search", "/api/ops/backups"),
            "/api/files/download",
        )
    ),
    AppRequest("HEAD", "/api/audio/transcribe", lambda answer: True, status=405),  # anything but 404: there is a voice
    AppRequest("HEAD", "/api/audio/speak", lambda answer: True, status=405),
    AppRequest("POST", "/api/audio/transcribe", is_object, {"data_url": "data:,"}, status=400),  # no sound
    AppRequest("POST", "/api/audio/speak", has("data_url", str), {"text": "hello"}),
    AppRequest("GET", "/api/audio/elevenlabs/voices", has("voices", list)),
    AppRequest("DELETE", "/api/sessions/{id}", is_object),
)

PNG = "iVBORw0KGgo="
PDF = b64encode(one_page_pdf("buy tea")).decode()
NOTE = "data:text/plain;base64,YnV5IHRlYQ=="
LIVE = {"session_id": "{live}"}
CALLS: tuple[AppCall, ...] = (
    AppCall("session.create", {"cols": 80, "source": "webui", "profile": "default"}, has("session_id", str)),
    AppCall("session.resume", {**LIVE, "cols": 80, "source": "webui"}, has("running", bool)),
    AppCall("session.activate", LIVE, has("session_id", str)),
    AppCall("session.interrupt", LIVE, is_object),
    AppCall("session.redirect", {**LIVE, "text": "left"}, has("status", str)),
    AppCall("session.steer", {**LIVE, "text": "left"}, has("status", str)),
    AppCall("session.compress", LIVE, has("status", str)),
    AppCall("session.title", LIVE, has("title", str)),
    AppCall("image.attach_bytes", {**LIVE, "content_base64": PNG, "filename": "a.png"}, has("path", str)),
    AppCall("image.detach", {**LIVE, "path": "a.png"}, is_object),
    AppCall("pdf.attach", {**LIVE, "content_base64": PDF}, rows("pages", path=str)),
    AppCall("file.attach", {**LIVE, "data_url": NOTE, "name": "note.txt"}, has("ref_text", str)),
    AppCall("approval.respond", {**LIVE, "choice": "once", "all": False}, lambda answer: answer["resolved"] == 0),
    AppCall("clarify.respond", {"request_id": "r", "answer": "x"}, has("status", str)),
    AppCall("sudo.respond", {"request_id": "r", "password": ""}, has("status", str)),
    AppCall("secret.respond", {"request_id": "r", "value": ""}, has("status", str)),
    AppCall("config.get", {"key": "personality"}, has("value", str)),
    AppCall("config.get", {"key": "reasoning"}, has("value", str)),
    AppCall("config.get", {"key": "approvals.mode"}, has("value", str)),
    AppCall("config.set", {"key": "reasoning", "value": "low", **LIVE}, has("value", str)),
    AppCall("config.set", {"key": "personality", "value": "none", **LIVE}, has("value", str)),
    AppCall("config.set", {"key": "approvals.mode", "value": "manual", **LIVE}, has("value", str)),
    AppCall("config.set", {"key": "fast", "value": "fast", **LIVE}, None),
    AppCall("config.set", {"key": "yolo", "value": "1", "scope": "session", **LIVE}, None),
    AppCall("complete.slash", {"text": "/personality "}, rows("items", text=str)),
    AppCall("model.options", {**LIVE, "refresh": False}, _options),
    AppCall("commands.catalog", {}, lambda answer: all(len(pair) == 2 for pair in answer["pairs"])),
    AppCall("slash.exec", {**LIVE, "command": "/help"}, has("output", str)),
    AppCall("process.list", LIVE, rows("processes")),
    AppCall("profiles.list", {"include_sessions": False}, rows("profiles", name=str, is_default=bool)),
    AppCall("profiles.describe", {"name": "default"}, lambda answer: answer["name"] == "default"),
    AppCall("profiles.get_asset", {"name": "default", "asset": "avatar"}, has("found", bool)),
    AppCall("profiles.set_asset", {"name": "default", "asset": "avatar", "data": PNG}, has("ok", bool)),
    AppCall("profiles.configure", {"name": "default", "soul": "x"}, lambda answer: answer["applied"]["soul"] is True),
    AppCall("terminal.read.respond", {"request_id": "r", "text": ""}, has("status", str)),
    AppCall("pet.disable", {}, lambda answer: answer["enabled"] is False),
    AppCall("pet.info", {}, lambda answer: answer["enabled"] is False),
    AppCall("pet.gallery", {}, lambda answer: answer["enabled"] is False),
    AppCall("command.dispatch", {**LIVE, "name": "phone", "arg": "ping"}, lambda answer: answer["type"] == "send"),
    *(
        AppCall(method, LIVE, None)
        for method in ("cron.manage", "message.react", "subagent.steer", "profiles.create", "pet.thumb", "pet.select")
    ),
)
