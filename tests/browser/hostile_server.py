"""Scripted relay and API server with markup and script in their texts."""

from typing import Any

from svc_proto.basics.errors import Refused
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.wire.events import Headers, RequestHead
from svc_proto.wire.sse import encode_event
from tests.support.servers.scripted_service import ScriptedService, row

EVIL = """<img src=x onerror="alert(1)"><script>alert(2)</script><b>"'&lt;"""
LATER = 4_000_000_000


SESSION: dict[str, Any] = {
    "token_prefix": EVIL, "device_name": EVIL, "device_model": EVIL, "device_platform": EVIL, "client_surface": EVIL,
    "created_at": EVIL, "last_seen": EVIL, "expires_at": LATER, "grants": {EVIL: LATER, "bridge": None},
    "transport_hint": EVIL, "is_current": True
}  # fmt: skip
RECORD: dict[str, Any] = {
    "request_id": EVIL,
    "sent_at": 1,
    "method": EVIL,
    "path": f"/{EVIL}",
    "params": {EVIL: EVIL},
    "decision": EVIL,
    "response_status": EVIL,
    "result_summary": EVIL,
    "error": EVIL,
    "device_name": EVIL,
    "asked_by": EVIL,
}
PHONE = {
    "device": {"device_id": EVIL, "name": EVIL, "battery_percent": EVIL},
    "bridge": {"master_enabled": EVIL},
    "active": True,
    "last_seen_seconds_ago": EVIL,
}
NOTE = {"key": EVIL, "package_name": EVIL, "title": EVIL, "text": EVIL, "posted_at": EVIL}
MODELS = {"models": [EVIL, "javascript:alert(4)"], "problem": EVIL}
HOST = {
    "settings": [
        {"name": name, "value": EVIL, "variable": EVIL, "is_set": True, "in_environment": True}
        for name in ("public_url", "brand", "metrics_token")
    ]
}
ENTRY: dict[str, Any] = {
    "token": EVIL, "file_name": EVIL, "content_type": EVIL, "size": 1, "created_at": 1, "last_accessed": 2,
    "expires_at": LATER, "is_expired": False
}  # fmt: skip
INFO = {"version": EVIL, "health": EVIL, "uptime_seconds": 1, "session_count": EVIL, "pending_commands": EVIL}
INVITE = {
    "ok": True,
    "code": EVIL,
    "qr_payload": EVIL,
    "pairing_url": EVIL,
    "expires_at": LATER,
    "endpoints": [{"role": EVIL, "priority": EVIL, "api": {"host": EVIL, "port": EVIL}}],
}
EVENT = {"at": EVIL, "event": EVIL, "principal": EVIL, "address": EVIL, "about": {EVIL: EVIL}}
APPROVAL = {"pattern": EVIL, "session_id": EVIL, "principal": EVIL, "at": EVIL}
SERVER = {
    **dict.fromkeys(("name", "transport", "state", "problem"), EVIL),
    "tools": [{"name": EVIL, "asks": EVIL}],
    "left_out": EVIL,
}
CHAT = {"id": "c-1", "title": EVIL, "updated_at": EVIL}
ROWS = [
    {"role": "user", "content": EVIL},
    {
        "role": "assistant",
        "content": f"{EVIL}\n\n- {EVIL}\n\n```\n{EVIL}\n```\nMEDIA:{EVIL.replace(' ', '')}\n[x](javascript:alert(3))",
        "reasoning": EVIL,
        "tool_calls": [{"id": "t", "function": {"name": EVIL, "arguments": f'{{"a": {EVIL!r}}}'}}],
    },
    {"role": "tool", "tool_call_id": "t", "content": EVIL},
]
TURN = [
    ("run.started", '{"run_id": "r"}'),
    ("tool.started", '{"tool_name": "<b>x</b>", "call_id": "t", "args": {"<i>": "<img src=x onerror=alert(1)>"}}'),
    ("tool.failed", '{"tool_name": "<b>x</b>", "call_id": "t", "error": "<img src=x onerror=alert(1)>"}'),
    ("assistant.delta", '{"delta": "<img src=x onerror=alert(1)> **<b>bold</b>** https://a.example/<b>"}'),
    ("error", '{"message": "<img src=x onerror=alert(1)>"}'),
    ("done", "{}"),
]


class HostileServer(ScriptedService):
    """Scripted relay and API server in one, with markup and script in their texts."""

    def __init__(self) -> None:
        answers: list[tuple[str, str, Any]] = [
            ("GET", "/relay/info", INFO),
            ("GET", "/sessions", {"sessions": [SESSION]}),
            ("GET", "/audit", {"events": [EVENT]}),
            ("GET", "/api/approvals", {"approvals": [APPROVAL]}),
            ("GET", "/bridge/activity", {"activity": [RECORD]}),
            ("GET", "/bridge/devices", {"devices": [PHONE]}),
            ("GET", "/notifications/recent", {"notifications": [NOTE]}),
            ("GET", "/media/inspect", {"media": [ENTRY]}),
            ("POST", "/pairing/mint", INVITE),
            ("GET", "/api/config", {"model": EVIL}),
            ("GET", "/api/host", HOST),
            ("POST", "/api/model/probe", MODELS),
            ("GET", "/api/mcp-servers", {"servers": [SERVER]}),
            ("GET", "/api/sessions", {"sessions": [CHAT]}),
            ("GET", "/api/sessions/{id}/messages", {"messages": ROWS}),
        ]
        turn = row("POST", "/api/sessions/{id}/chat/stream", self._turn)
        super().__init__([turn, *(row(method, path, self._saying(body)) for method, path, body in answers)])

    @staticmethod
    def _saying(body: Any) -> Any:
        return lambda request: json_response(200, body)

    def _turn(self, request: Request) -> Response:
        fields = Headers([(b"content-type", b"text/event-stream")])
        return Response(200, fields, b"".join(encode_event(data, event=name) for name, data in TURN))

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        return json_response(refused.status, {"error": EVIL})
