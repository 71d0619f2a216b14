"""The phone's app on the API server and on the relay of its pairing, replayed in turn by `app_suite`."""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.conformance.app_requests import REQUESTS, AppRequest, matches
from tests.conformance.result import Result
from tests.loops.clients import HttpClient, WebSocketTestClient
from tests.loops.live_environment import LiveConnection
from tests.support.http_codec import Response

__all__ = ["REFUSED", "AppServer", "check_api", "check_relay", "check_row"]

STATUS = {
    "screen_on": True,
    "battery": 80,
    "current_app": "launcher",
    "accessibility_enabled": True,
    "device": {"name": "Phone"},
    "bridge": {"accessibility_granted": True, "master_enabled": True},
}
REFUSED = "the service does not offer it: the app switches the feature off"


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


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def check_api(result: Result, port: int, key: str) -> str:
    """Send each request of the app to the API server, and record the answers; return the id of their chat."""
    server = AppServer(port, _bearer(key))
    chat = server.request("POST", "/api/sessions", {}).json["session"]["id"]
    fork = server.request("POST", f"/api/sessions/{chat}/fork", {}).json["session"]["id"]
    run = server.request("POST", "/v1/runs", {"input": "/count 1000"}).json["run_id"]
    for row in REQUESTS["api"]:
        check_row(result, "api", server, row, {"id": chat, "fork": fork, "run": run})
    return str(chat)


def check_relay(result: Result, port: int, home: Path, chat: str) -> None:
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
        check_row(result, "relay", server, row, names)
    again = WebSocketTestClient(server.client(), path="/ws").sign_in(session_token=phone.token, device_name="Phone")
    result.note("relay auth again", None if again["type"] == "auth.ok" else f"{again!r:.300}")


def check_row(result: Result, name: str, server: AppServer, row: AppRequest, names: Mapping[str, str]) -> None:
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
    payload = {"request_id": command["request_id"], "status": 200, "result": {"pong": True}}
    phone.send_envelope("bridge", "bridge.response", payload)
    answer = pending.finish()
    result.note("relay bridge.status, bridge.command", None if answer.status == 200 else f"{answer}")
