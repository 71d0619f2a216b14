"""The phone's app on its standard connection, replayed against the servers in their own process."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import define, field

from tests.conformance.app_requests import CALLS, REQUESTS, AppCall, AppRequest
from tests.conformance.result import Result
from tests.loops.clients import HttpClient, WebSocketTestClient
from tests.loops.live_environment import LiveConnection
from tests.servers.program_process import running
from tests.support.http_client import Response
from tests.support.ports import free_port

__all__ = ["app"]

PASSWORD = "correct horse"
KEY = "sk-conformance-0123456789"
TURN = ["message.start", "message.delta", "message.complete", "session.info"]


def app(runtime: str) -> Result:
    """Sign in, chat, and send every request of the table."""
    result = Result(f"the app's standard connection on {runtime}")
    with TemporaryDirectory() as home, _dashboard(Path(home), runtime) as port:
        phone = AppConnection(port)
        for row in (row for row in REQUESTS if not row.signed_in):
            _check_request(result, phone, row)
        phone.sign_in()
        phone.open()
        chat = phone.call("session.create", {"cols": 80, "source": "webui"})["result"]["session_id"]
        phone.call("prompt.submit", {"session_id": chat, "text": "/echo hello"})
        result.compare("an ordinary turn", phone.turn(chat), TURN)
        for call in CALLS:
            _check_call(result, phone, call, chat)
        for row in (row for row in REQUESTS if row.signed_in):
            _check_request(result, phone, row, chat)
    return result


@define
class AppConnection:
    """A phone's cookie and WebSocket."""

    port: int
    cookie: str = ""
    calls: int = 0
    events: list[dict[str, Any]] = field(factory=list)
    socket: WebSocketTestClient | None = None

    def request(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Response:
        """Send a request on a connection of its own."""
        headers = {"cookie": self.cookie} if self.cookie else {}
        return self._client().ask_once(method, path, body, headers=headers)

    def sign_in(self) -> None:
        """Sign in with the password."""
        body = {"provider": "basic", "username": "me", "password": PASSWORD, "next": "/"}
        answer = self.request("POST", "/auth/password-login", body)
        self.cookie = (answer.headers.get(b"set-cookie") or b"").decode().partition(";")[0]

    def open(self) -> None:
        """Open the WebSocket with a ticket."""
        ticket = self.request("POST", "/api/auth/ws-ticket").json["ticket"]
        self.socket = WebSocketTestClient(self._client(), path=f"/api/ws?ticket={ticket}")

    def call(self, method: str, params: Mapping[str, object]) -> dict[str, Any]:
        """Send a call and return its answer; events are kept."""
        assert self.socket is not None
        self.calls += 1
        message = {"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}
        self.socket.send_text(json.dumps(message))
        while (answer := self.socket.receive_message()).get("id") != self.calls:
            self.events.append(answer["params"])
        return answer

    def turn(self, session: str) -> list[str]:
        """Return the types of the events of a turn, each once, until its end."""
        assert self.socket is not None
        while not any(event["type"] == "session.info" for event in self.events):
            self.events.append(self.socket.receive_message()["params"])
        mine = [event["type"] for event in self.events if event.get("session_id") == session]
        return list(dict.fromkeys(mine))

    def _client(self) -> HttpClient:
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=10.0)
        return HttpClient(LiveConnection(sock), f"127.0.0.1:{self.port}", os.urandom)


def _check_request(result: Result, phone: AppConnection, row: AppRequest, chat: str = "") -> None:
    answer = phone.request(row.method, row.path.replace("{id}", chat), row.body)
    case = f"{row.method} {row.path}"
    if row.check is None:
        result.note(case, None if answer.status in (404, 405) else f"status {answer.status}")
        return
    value = json.loads(answer.body) if answer.body else {}
    good = answer.status == row.status and row.check(value)
    result.note(case, None if good else f"status {answer.status}: {answer.body[:300]!r}")


def _check_call(result: Result, phone: AppConnection, row: AppCall, chat: str) -> None:
    params = {name: chat if value == "{live}" else value for name, value in row.params.items()}
    answer = phone.call(row.method, params)
    if row.check is None:
        good = answer.get("error", {}).get("code") == -32601
    else:
        good = "result" in answer and row.check(answer["result"])
    result.note(f"{row.method} {params}", None if good else f"{answer!r:.300}")


@contextmanager
def _dashboard(home: Path, runtime: str) -> Iterator[int]:
    """Run all servers; yield the port of the dashboard."""
    relay, api, board = free_port(), free_port(), free_port()
    ports = ("--port", str(relay), "--api-port", str(api), "--dashboard-port", str(board))
    env = {"API_SERVER_KEY": KEY, "SVC_DASHBOARD_PASSWORD": PASSWORD, "SVC_BRAND": "hermes"}
    with running(home, "servers", "--host", "127.0.0.1", *ports, "--no-qr", env=env, runtime=runtime) as servers:
        servers.line(rf"^dashboard: http://127\.0\.0\.1:{board} ")
        yield board
