"""Requests of the phone's app on the API server and on the relay of its pairing ("Advanced" in the app).

A request without a check must be refused with 404 or 405.
"""

from typing import Any

from attrs import frozen

from tests.conformance.app_requests import CHAT, AppRequest, Members, has, is_object, rows

__all__ = ["API_REQUESTS", "RELAY_MESSAGES", "RELAY_REQUESTS", "AppMessage"]


@frozen
class AppMessage:
    """Message on the relay's WebSocket; `answer` is the type of its answer; if it is empty, no error may follow."""

    channel: str
    kind: str
    payload: Members
    answer: str


def _stream(answer: Any) -> bool:
    return "event: done" in answer or "data: [DONE]" in answer


def _written(answer: Any) -> bool:
    return answer["ok"] is True and answer["profile"] == "default" and answer["bytes_written"] > 0


def _context(answer: Any) -> bool:
    return isinstance(answer["enabled"], bool) and answer["blocks"][0]["text"] == "Be kind."


def _no_pictures(answer: Any) -> bool:
    return bool(answer["session_id"]) and answer["profile"] == "default" and answer["activities"] == []


def _notes(answer: Any) -> bool:
    files = {each["filename"]: each["content"].strip() for each in answer["entries"]}
    return files["MEMORY.md"] == "Likes tea" and rows("entries", path=str, size_bytes=int)(answer)


MESSAGE = {"message": "/echo hello"}
COMPLETION = {"model": "agent", "stream": True, "messages": [{"role": "user", "content": "/echo hello"}]}
CHATS = {name: kind for name, kind in CHAT.items() if name != "is_active"}
API_REQUESTS: tuple[AppRequest, ...] = (
    AppRequest("GET", "/health", has("status", str), signed_in=False),
    AppRequest("GET", "/v1/capabilities", has("features", dict)),
    AppRequest("GET", "/v1/models", rows("data", id=str)),
    AppRequest("GET", "/api/sessions?limit=1", rows("sessions", **CHATS)),
    AppRequest("POST", "/api/sessions", has("session", dict), {"title": "A chat"}, status=201),
    AppRequest("GET", "/api/sessions/{id}", has("session", dict)),
    AppRequest("PATCH", "/api/sessions/{id}", has("session", dict), {"title": "Another name"}),
    AppRequest("GET", "/api/sessions/{id}/messages", rows("messages", role=str)),
    AppRequest("POST", "/api/sessions/{id}/fork", has("session", dict), {}, status=201),
    AppRequest("HEAD", "/api/sessions/probe/chat/stream", is_object),
    AppRequest("POST", "/api/sessions/{id}/chat/stream", _stream, MESSAGE),
    AppRequest("HEAD", "/v1/chat/completions", is_object),
    AppRequest("POST", "/v1/chat/completions", _stream, COMPLETION),
    AppRequest("HEAD", "/v1/runs", is_object),
    AppRequest("POST", "/v1/runs", has("run_id", str), {"input": "/echo hello"}, status=202),
    AppRequest("POST", "/v1/runs/{run}/stop", is_object, {}),
    AppRequest("POST", "/v1/runs/{run}/approval", is_object, {"choice": "once"}, status=409),  # none is open
    AppRequest("GET", "/api/skills", rows("skills", name=str)),
    AppRequest("GET", "/api/config", has("config", dict)),
    AppRequest("GET", "/api/model/options", rows("providers", slug=str, models=list)),
    AppRequest("POST", "/api/sessions/{id}/model", None, {"model": "agent"}),
    AppRequest("DELETE", "/api/sessions/{fork}", is_object, status=204),
)

VOICES = (("output", "stub"), ("realtime", "xai"), ("realtime-agent", "stub"))
RELAY_REQUESTS: tuple[AppRequest, ...] = (
    AppRequest("GET", "/health", has("version", str), signed_in=False),
    AppRequest("GET", "/sessions", rows("sessions", token_prefix=str)),
    AppRequest("PATCH", "/sessions/{prefix}", is_object, {"device_name": "Renamed"}),
    AppRequest("PATCH", "/sessions/{prefix}", has("expires_at", float), {"ttl_seconds": 86_400}),
    AppRequest(
        "PATCH", "/sessions/{prefix}", has("grants", dict), {"ttl_seconds": 172_800, "grants": {"bridge": 7_200}}
    ),
    AppRequest("DELETE", "/sessions/00000000", is_object, status=404),  # of another device, which is gone
    AppRequest("GET", "/media/{media}", lambda answer: answer == "a picture"),
    AppRequest("GET", "/media/by-path?path=%2Fnowhere%2Fa.png", is_object, status=403),
    AppRequest("GET", "/phone/threads", rows("threads")),
    AppRequest("GET", "/voice/config", is_object),
    AppRequest("POST", "/voice/transcribe", is_object, {}, status=400),  # no sound: the refusal shows the route
    AppRequest("POST", "/voice/synthesize", lambda answer: bool(answer), {"text": "hello"}),
    *(
        AppRequest(method, f"/voice/{voice}/{path}", is_object, body)
        for voice, provider in VOICES
        for method, path, body in (
            ("GET", "config", None),
            ("PATCH", "config", {"enabled": True}),
            ("GET", f"providers/{provider}/options", None),
            ("POST", f"providers/{provider}/validate", {}),
            ("POST", "session", {}),
        )
    ),
    AppRequest("GET", "/relay/info", lambda answer: "terminal" in answer["capabilities"] and bool(answer["version"])),
    AppRequest("POST", "/relay/model-capabilities", None, {}),
    AppRequest("GET", "/relay/update-check", None),
    AppRequest("GET", "/chat/image-activity?profile=default&session_id={id}&since=0", _no_pictures),
    AppRequest("PUT", "/api/profiles/default/soul", _written, {"content": "Be kind."}),
    AppRequest("PUT", "/api/profiles/default/memory/MEMORY.md", _written, {"content": "Likes tea"}),
    AppRequest("GET", "/context/injected", _context),
    AppRequest("GET", "/api/profiles/default/config", has("config", dict)),
    AppRequest("GET", "/api/profiles/default/skills", rows("skills", name=str, path=str, enabled=bool)),
    AppRequest("GET", "/api/profiles/default/soul", lambda answer: answer["content"] == "Be kind."),
    AppRequest("GET", "/api/profiles/default/memory", _notes),
    AppRequest("GET", "/api/profiles/default/avatar", lambda answer: answer.startswith("\ufffdPNG")),
)
RELAY_MESSAGES: tuple[AppMessage, ...] = (
    AppMessage("system", "ping", {}, "pong"),
    AppMessage("terminal", "terminal.attach", {"session_name": "probe", "cols": 80, "rows": 24}, "terminal.attached"),
    AppMessage("terminal", "terminal.list", {}, "terminal.sessions"),
    AppMessage("bridge", "bridge.status", {"battery": 80, "bridge": {"master_enabled": True}}, ""),
    AppMessage("notifications", "notification.posted", {"package": "a.b", "title": "Hi", "text": "x"}, ""),
    AppMessage("proactive", "proactive.subscribe", {}, "proactive.subscribed"),
    AppMessage("proactive", "proactive.reply", {"text": "Yes", "client_msg_id": "c-1"}, "proactive.reply.ack"),
)
