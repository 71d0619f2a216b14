"""Scripted API server for tests: sessions, messages, and turns as event streams (wire api 3, 4)."""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow, sleep, wait
from svc_proto.engine.message import Request, Response, StreamedResponse, json_response
from svc_proto.facts import OperationId
from svc_proto.wire.events import Headers, RequestHead
from svc_proto.wire.sse import encode_event
from tests.support.servers.scripted_service import ScriptedService, row

SSE = Headers([(b"content-type", b"text/event-stream; charset=utf-8")])
Event = tuple[str, Mapping[str, object]]


def hello(text: str = "Hello", *, run: str = "run_1") -> list[Event]:
    """Return the events of a turn without tools that answers `text` letter by letter."""
    events: list[Event] = [("session.created", {"title": None}), ("run.started", {"run_id": run})]
    events.append(("message.started", {"message": {"id": "m", "role": "assistant"}}))
    events += [("assistant.delta", {"delta": letter}) for letter in text]
    events.append(("assistant.completed", {"content": text, "completed": True, "interrupted": False}))
    events.append(("run.completed", {"completed": True, "usage": {"input_tokens": 1, "output_tokens": 2}}))
    return [*events, ("done", {"state": "final"})]


class ScriptedApi(ScriptedService):
    """Scripted API service.

    `turns` are the events of the next chats, `hello()` those of later ones. `seen` are the handled requests, without
    reads of one session or its messages. With `held`, a chat waits for `release`, at most `held_for` seconds. Responses
    in `fixed` and `problem` replace the usual ones. A chat's stream ends `ends_after` seconds after its events.
    """

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.sessions: dict[str, list[dict[str, object]]] = {}
        self.turns: list[list[Event]] = []
        self.seen: list[tuple[str, str, Any]] = []
        self.withheld: list[bytes | None] = []  # what the requests renounce
        self.problem: tuple[int, bytes] | None = None  # response to every request
        self.held = False
        self.held_for = 60.0  # s at most
        self.ends_after = 0.0  # s
        self.run_status = "running"
        self.fixed: dict[str, tuple[int, object]] = {}  # responses by the end of the path, instead of the usual ones
        self._ticket = OperationId(0)
        routes: list[tuple[str, str, Any]] = [
            ("POST", "/api/sessions", self._create),
            ("GET", "/api/sessions", self._list),
            ("GET", "/api/sessions/{id}", self._session),
            ("GET", "/api/sessions/{id}/messages", self._messages),
            ("POST", "/api/sessions/{id}/chat/stream", self._chat),
            ("GET", "/v1/toolsets", self._toolsets),
            ("GET", "/v1/runs/{id}", self._run),
            ("POST", "/v1/runs/{id}/stop", self._stop),
            ("POST", "/v1/runs/{id}/approval", self._approve),
        ]
        super().__init__(row(*route) for route in routes)

    def release(self) -> None:
        self.engine.resume(self._ticket, None)

    # --- HttpApp ---

    def authorize(self, access: Enum, request: Request) -> object:
        self.withheld.append(request.headers.get(b"x-svc-withheld"))
        if self.key and request.headers.get(b"authorization") != b"Bearer " + self.key.encode():
            raise Refused(401, "invalid_api_key", "wrong key")
        return "a client"

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        error = {"message": refused.message, "type": "invalid_request_error", "param": None, "code": refused.code}
        return json_response(refused.status, {"error": error})

    # --- routes ---

    def _note(self, request: Request) -> Any:
        body = json.loads(request.body) if request.body else None
        self.seen.append((request.method, request.path, body))
        return body

    def _fixed(self) -> Response | None:
        for end, (status, value) in self.fixed.items():
            if self.seen and self.seen[-1][1].endswith(end):
                return json_response(status, value)
        if self.problem is None:
            return None
        status, body = self.problem
        return Response(status, Headers([(b"content-type", b"application/json")]), body)

    def _create(self, request: Request) -> Response:
        self._note(request)
        identity = f"s-{len(self.sessions) + 1}"
        self.sessions[identity] = []
        return self._fixed() or json_response(201, {"id": identity, "session": {"id": identity}})

    def _list(self, request: Request) -> Response:
        self._note(request)
        rows = [{"id": name, "title": None, "message_count": len(kept)} for name, kept in self.sessions.items()]
        return self._fixed() or json_response(200, {"sessions": rows})

    def _session(self, request: Request) -> Response:
        self._find(request)
        return self._fixed() or json_response(200, {"session": {"id": request.params["id"], "model": "svc-agent"}})

    def _messages(self, request: Request) -> Response:
        return self._fixed() or json_response(200, {"messages": self._find(request)})

    def _chat(self, request: Request) -> Flow[Response | StreamedResponse]:
        kept, body = self._find(request), self._note(request)
        kept.append({"role": "user", "content": body["message"]})
        if self.held:
            self._ticket = self.engine.new_op()
            yield from wait(self._ticket, self.engine.now.mono + self.held_for)
        fixed = self._fixed()
        if fixed is not None:
            return fixed
        events = self.turns.pop(0) if self.turns else hello()
        kept.append({"role": "assistant", "content": "".join(str(data.get("delta", "")) for _, data in events)})
        text = b"".join(encode_event(json.dumps(data), event=kind) for kind, data in events)

        def write(writer: Any) -> Flow[None]:
            writer.write(text)
            yield from sleep(self.engine, self.ends_after)

        return StreamedResponse(200, SSE, write) if self.ends_after else Response(200, SSE, text)

    def _toolsets(self, request: Request) -> Response:
        self._note(request)
        row = {"name": "memory", "label": "Memory", "description": "Notes", "enabled": True, "tools": ["memory", 7]}
        return self._fixed() or json_response(200, {"data": [{**row, "descriptions": {"memory": "Keep notes."}}, {}]})

    def _run(self, request: Request) -> Response:
        self._note(request)
        return self._fixed() or json_response(200, {"run_id": request.params["id"], "status": self.run_status})

    def _stop(self, request: Request) -> Response:
        self._note(request)
        return self._fixed() or json_response(200, {"run_id": request.params["id"], "status": "stopping"})

    def _approve(self, request: Request) -> Response:
        self._note(request)
        return self._fixed() or json_response(200, {"resolved": 1})

    def _find(self, request: Request) -> list[dict[str, object]]:
        kept = self.sessions.get(request.params["id"])
        if kept is None:
            raise Refused(404, "session_not_found", "No such session")
        return kept
