"""Scripted relay and API server with markup and script in their texts."""

import json
from pathlib import Path
from typing import Any

import yaml

from svc_proto.basics.errors import Refused
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.wire.events import Headers, RequestHead
from svc_proto.wire.sse import encode_event
from tests.support.servers.scripted_service import ScriptedService, row

EVIL = """<img src=x onerror="alert(1)"><script>alert(2)</script><b>"'&lt;"""
IMAGE = "<img src=x onerror=alert(1)>"
CALL = {"tool_name": "<b>x</b>", "call_id": "t"}
TURN: list[tuple[str, dict[str, object]]] = [
    ("run.started", {"run_id": "r"}),
    ("tool.started", {**CALL, "args": {"<i>": IMAGE}}),
    ("tool.failed", {**CALL, "error": IMAGE}),
    ("assistant.delta", {"delta": f"{IMAGE} **<b>bold</b>** https://a.example/<b>"}),
    ("error", {"message": IMAGE}),
    ("done", {}),
]


def evil(value: Any) -> Any:
    """Return the value with markup and script in its texts and names of members."""
    if isinstance(value, dict):
        return {evil(name): evil(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [evil(inner) for inner in value]
    return value.replace("EVIL", EVIL).replace("COMPACT", EVIL.replace(" ", "")) if isinstance(value, str) else value


class HostileServer(ScriptedService):
    """Scripted relay and API server in one, with the answers of `hostile_answers.yaml`."""

    def __init__(self) -> None:
        answers = yaml.safe_load(Path(__file__).with_name("hostile_answers.yaml").read_text())
        rows = [row("POST", "/api/sessions/{id}/chat/stream", self._turn)]
        for place, body in answers.items():
            method, _, path = place.partition(" ")
            rows.append(row(method, path, self._saying(evil(body))))
        super().__init__(rows)

    @staticmethod
    def _saying(body: Any) -> Any:
        return lambda request: json_response(200, body)

    def _turn(self, request: Request) -> Response:
        fields = Headers([(b"content-type", b"text/event-stream")])
        return Response(200, fields, b"".join(encode_event(json.dumps(data), event=name) for name, data in TURN))

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        return json_response(refused.status, {"error": EVIL})
