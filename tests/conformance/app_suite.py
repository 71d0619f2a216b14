"""The phone's app on its standard connection and its pairing, replayed against the servers of one process."""

import json
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import define, field

from svc_proto.schema.gateway_rpc import NOT_SUPPORTED
from svc_proto.schema.json_rpc import METHOD_NOT_FOUND
from svc_proto.wire.events import TextMessage, WebSocketClosed
from tests.conformance.app_paired_suite import REFUSED, AppServer, check_api, check_relay, check_row
from tests.conformance.app_requests import REQUESTS, AppRequest, matches
from tests.conformance.result import Result
from tests.loops.clients import WebSocketTestClient
from tests.servers.program_process import LOCAL, ports_of, running
from tests.support.pdf_file import one_page_pdf

__all__ = ["app"]

PASSWORD = "correct horse"
KEY = "sk-conformance-0123456789"
PDF = b64encode(one_page_pdf("buy tea")).decode()
TURN = ["message.start", "message.delta", "message.complete", "session.info"]


def app(runtime: str) -> Result:
    """Replay the app against the servers on `runtime`: sign in, chat, and send every request of the tables."""
    result = Result(f"the app's standard connection on {runtime}")
    with TemporaryDirectory() as home, _servers(Path(home), runtime) as ports:
        phone = AppConnection(ports["dashboard"])
        for row in (row for row in REQUESTS["dashboard"] if row.open):
            check_row(result, "dashboard", phone, row, {})
        phone.sign_in()
        phone.open()
        chat = phone.call("session.create", {"cols": 80, "source": "webui"})["result"]["session_id"]
        phone.call("prompt.submit", {"session_id": chat, "text": "/echo hello"})
        result.compare("an ordinary turn", phone.turn(chat), TURN)
        for call in REQUESTS["calls"]:
            _check_call(result, phone, call, chat)
        for row in (row for row in REQUESTS["dashboard"] if not row.open):
            check_row(result, "dashboard", phone, row, {"id": chat})
        _check_speech(result, phone)
        chat = check_api(result, ports["api"], KEY)
        check_relay(result, ports["relay"], Path(home), chat)
    return result


@define
class AppConnection(AppServer):
    """The app's connection to the dashboard: its cookie, its WebSocket and the received events."""

    calls: int = 0
    events: list[dict[str, Any]] = field(factory=list)
    socket: WebSocketTestClient | None = None

    def sign_in(self) -> None:
        """Sign in with the password, and keep the session cookie."""
        body = {"provider": "basic", "username": "me", "password": PASSWORD, "next": "/"}
        answer = self.request("POST", "/auth/password-login", body)
        self.headers = {"cookie": (answer.headers.get(b"set-cookie") or b"").decode().partition(";")[0]}

    def open(self) -> None:
        self.socket = self.open_socket("/api/ws")

    def open_socket(self, path: str) -> WebSocketTestClient:
        """Request a ticket and open a WebSocket with it."""
        ticket = self.request("POST", "/api/auth/ws-ticket").json["ticket"]
        return WebSocketTestClient(self.client(), path=f"{path}?ticket={ticket}")

    def call(self, method: str, params: Mapping[str, object]) -> dict[str, Any]:
        """Send a JSON-RPC call and return its answer; events that arrive before it are kept."""
        assert self.socket is not None
        self.calls += 1
        message = {"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}
        self.socket.send_text(json.dumps(message))
        while (answer := self.socket.receive_message()).get("id") != self.calls:
            self.events.append(answer["params"])
        return answer

    def turn(self, session: str) -> list[str]:
        """Wait for an event `session.info`; return the types of the chat's events so far, each once."""
        assert self.socket is not None
        while not any(event["type"] == "session.info" for event in self.events):
            self.events.append(self.socket.receive_message()["params"])
        mine = [event["type"] for event in self.events if event.get("session_id") == session]
        return list(dict.fromkeys(mine))


def _check_call(result: Result, phone: AppConnection, row: AppRequest, chat: str) -> None:
    params = {name: PDF if value == "{pdf}" else value for name, value in (row.send or {}).items()}
    answer = phone.call(row.do, {**params, "session_id": chat} if row.live else params)
    case = f"{row.do} {row.send or ''}"
    if row.answer is None and answer.get("error", {}).get("code") in (METHOD_NOT_FOUND, NOT_SUPPORTED):
        result.leave_out(case, REFUSED)
        return
    good = "result" in answer and row.answer is not None and matches(answer["result"], row.answer)
    result.note(case, None if good else f"{answer!r:.300}")


def _check_speech(result: Result, phone: AppConnection) -> None:
    """Stream a sentence in pieces, and record whether start, sound and end come back."""
    stream = phone.open_socket("/api/audio/speak-stream")
    for message in ({"text": "Hello "}, {"text": "there."}, {"done": True}):
        stream.send_text(json.dumps(message))
    types: list[str] = []
    while not isinstance(event := stream.receive(), WebSocketClosed):
        types.append(json.loads(event.text)["type"] if isinstance(event, TextMessage) else "sound")
    result.compare("GET /api/audio/speak-stream", list(dict.fromkeys(types)), ["start", "sound", "end"])


@contextmanager
def _servers(home: Path, runtime: str) -> Iterator[dict[str, int]]:
    server = json.dumps({"command": sys.executable, "args": ["-m", "clients.commands.svc", "mcp"]})
    (home / "svc").mkdir()
    (home / "svc" / "config.yaml").write_text(f"mcp_servers: {{shop: {server}}}\n")
    env = {"API_SERVER_KEY": KEY, "SVC_DASHBOARD_PASSWORD": PASSWORD, "SVC_BRAND": "hermes"}
    env |= {"RELAY_TERMINAL_TMUX": "0"}  # a tmux server would outlive the relay
    env |= {"RELAY_VOICE_OUTPUT_PROVIDER": "stub", "RELAY_REALTIME_VOICE_PROVIDER": "stub"}
    with running(home, "servers", *LOCAL, "--no-qr", env=env, runtime=runtime) as servers:
        yield ports_of(servers)
