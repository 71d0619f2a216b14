"""The phone's app on its standard connection and its pairing, replayed against the servers of one process."""

import json
import os
import socket
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
from tests.conformance.app_requests import REQUESTS, AppRequest, matches
from tests.conformance.result import Result
from tests.loops.clients import HttpClient, WebSocketTestClient
from tests.loops.live_environment import LiveConnection
from tests.servers.program_process import LOCAL, ports_of, running
from tests.support.http_codec import Response
from tests.support.pdf_file import one_page_pdf

__all__ = ["app"]

PASSWORD = "correct horse"
KEY = "sk-conformance-0123456789"
PDF = b64encode(one_page_pdf("buy tea")).decode()
TURN = ["message.start", "message.delta", "message.complete", "session.info"]

STATUS = {
    "screen_on": True,
    "battery": 80,
    "current_app": "launcher",
    "accessibility_enabled": True,
    "device": {"name": "Phone"},
    "bridge": {"accessibility_granted": True, "master_enabled": True},
}
REFUSED = "the service does not offer it: the app switches the feature off"


def app(runtime: str) -> Result:
    """Replay the app against the servers on `runtime`: sign in, chat, and send every request of the tables."""
    result = Result(f"the app's standard connection on {runtime}")
    with TemporaryDirectory() as home, _servers(Path(home), runtime) as ports:
        phone = AppConnection(ports["dashboard"])
        for row in (row for row in REQUESTS["dashboard"] if row.open):
            _check_row(result, "dashboard", phone, row, {})
        phone.sign_in()
        phone.open()
        chat = phone.call("session.create", {"cols": 80, "source": "webui"})["result"]["session_id"]
        phone.call("prompt.submit", {"session_id": chat, "text": "/echo hello"})
        result.compare("an ordinary turn", phone.turn(chat), TURN)
        for call in REQUESTS["calls"]:
            _check_call(result, phone, call, chat)
        for row in (row for row in REQUESTS["dashboard"] if not row.open):
            _check_row(result, "dashboard", phone, row, {"id": chat})
        _check_speech(result, phone)
        chat = _check_api(result, ports["api"], KEY)
        _check_relay(result, ports["relay"], Path(home), chat)
    return result


@define
class AppServer:
    """A server on this host, and the header fields of requests that are signed in."""

    port: int
    headers: dict[str, str] = field(factory=dict)

    def client(self) -> HttpClient:
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=10.0)
        return HttpClient(LiveConnection(sock), f"127.0.0.1:{self.port}", os.urandom)

    def request(self, method: str, path: str, body: object = None, *, signed_in: bool = True) -> Response:
        return self.client().ask_once(method, path, body, headers=self.headers if signed_in else {})


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


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _check_api(result: Result, port: int, key: str) -> str:
    """Send each request of the app to the API server, and record the answers; return the id of their chat."""
    server = AppServer(port, _bearer(key))
    chat = server.request("POST", "/api/sessions", {}).json["session"]["id"]
    fork = server.request("POST", f"/api/sessions/{chat}/fork", {}).json["session"]["id"]
    run = server.request("POST", "/v1/runs", {"input": "/count 1000"}).json["run_id"]
    for row in REQUESTS["api"]:
        _check_row(result, "api", server, row, {"id": chat, "fork": fork, "run": run})
    return str(chat)


def _check_relay(result: Result, port: int, home: Path, chat: str) -> None:
    """Pair a phone; send the requests and messages of the app to the relay, and record the answers.

    `chat`: id of a chat of the API server, in which no tool has taken a picture.
    """
    server = AppServer(port)
    code = server.request("POST", "/pairing").json["code"]
    phone = WebSocketTestClient(server.client(), path="/ws")
    signed = phone.sign_in(pairing_code=code, device_name="Phone", device_id="phone-1")
    result.note("relay auth", None if signed["type"] == "auth.ok" else f"{signed!r:.300}")
    picture = home / "svc" / "workspace" / "a.txt"
    picture.parent.mkdir(exist_ok=True)
    picture.write_text("a picture")
    media = server.request("POST", "/media/register", {"path": str(picture), "content_type": "text/plain"})
    server.headers = _bearer(phone.token)
    prefix = server.request("GET", "/sessions").json["sessions"][0]["token_prefix"]
    for message in REQUESTS["messages"]:
        _check_message(result, phone, message)
    _check_command(result, phone, server)
    for row in REQUESTS["relay"]:
        names = {"prefix": prefix, "media": media.json.get("token", "none"), "id": chat}
        _check_row(result, "relay", server, row, names)
    again = WebSocketTestClient(server.client(), path="/ws").sign_in(session_token=phone.token, device_name="Phone")
    result.note("relay auth again", None if again["type"] == "auth.ok" else f"{again!r:.300}")


def _check_row(result: Result, name: str, server: AppServer, row: AppRequest, names: Mapping[str, str]) -> None:
    """Send a request, with `names` for the names in its path, and record whether it is answered as its row requires.

    Where the row has no answer, the server must refuse with 404 or 405; that case is left out.
    """
    method, _, path = row.do.partition(" ")
    for word, put in names.items():
        path = path.replace(f"{{{word}}}", put)
    case = f"{name} {row.do} {row.send or ''}".strip()
    answer = server.request(method, path, row.send, signed_in=not row.open)
    if row.answer is None:
        if answer.status in (404, 405):
            result.leave_out(case, REFUSED)
        else:
            result.note(case, f"status {answer.status}, not refused")
        return
    try:
        value: Any = json.loads(answer.body) if answer.body else {}
    except ValueError:
        value = answer.body.decode("utf-8", "replace")
    good = answer.status == row.status and matches(value, row.answer)
    result.note(case, None if good else f"status {answer.status}: {answer.body[:300]!r}")


def _check_message(result: Result, phone: WebSocketTestClient, message: AppRequest) -> None:
    channel, _, kind = message.do.partition(" ")
    phone.send_envelope(channel, kind, message.send)
    if message.answer is None:
        phone.send_envelope("system", "ping", {"ts": 1}, "last")
    kinds: list[str] = []
    while message.answer not in kinds and (answer := phone.receive_message()).get("id") != "last":
        kinds.append(answer["type"])
    good = "error" not in kinds if message.answer is None else message.answer in kinds
    result.note(f"relay {message.do}", None if good else f"{kinds}")


def _check_command(result: Result, phone: WebSocketTestClient, server: AppServer) -> None:
    phone.send_envelope("bridge", "bridge.status", STATUS)
    pending = server.client().begin("GET", "/ping", headers=server.headers)
    command = phone.command()
    phone.respond(command["request_id"], {"pong": True})
    answer = pending.finish()
    result.note("relay bridge.status, bridge.command", None if answer.status == 200 else f"{answer}")


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
