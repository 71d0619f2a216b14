"""Environment for external MCP clients: a relay, the reference phone, and a proxy that cuts connections.

The client is a program. Its last argument is an object of JSON (`ClientInstructions`). It prints its observations as
another object.
"""

import json
import re
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypedDict
from unittest.mock import ANY
from urllib.request import urlopen

from svc_proto.agent.tools.phone_tools import PHONE_TOOLS
from tests.conformance.external_tools import run_json
from tests.servers.program_process import call, running, running_relay, websocket

BACK = re.compile(rb"last-event-id: *[1-9]", re.IGNORECASE)  # 0 is the stream of the server's own messages
WITHIN = 120.0  # s for the whole client
CALLS: dict[str, dict[str, object]] = {
    "phone_diff_screen": {"previous_hash": "0"},
    "phone_find_nodes": {"clickable": True},
    "phone_describe_node": {"nodeId": "w0:0"},
    "phone_tap": {"x": 10, "y": 10},
    "phone_tap_text": {"text": "agent"},
    "phone_long_press": {"x": 10, "y": 10},
    "phone_drag": {"start_x": 10, "start_y": 900, "end_x": 10, "end_y": 300},
    "phone_type": {"text": "bread"},
    "phone_swipe": {"direction": "up"},
    "phone_scroll": {"direction": "down"},
    "phone_press_key": {"key": "home"},
    "phone_wait": {"ms": 10},
    "phone_open_app": {"package": "com.example.mail"},
    "phone_set_bar": {"nodeId": "0", "percent": 50},
    "phone_clipboard_write": {"text": "milk"},
    "phone_media": {"action": "play"},
    "phone_send_intent": {"action": "android.settings.SETTINGS"},
    "phone_broadcast": {"action": "com.example.ASKED"},
    "phone_events_stream": {"enabled": True},
    "phone_search_contacts": {"query": "a"},
    "phone_call": {"number": "112"},
    "phone_send_sms": {"to": "112", "body": "hello"},
    "phone_share_media": {"text": "hello"},
    "phone_send_mms": {"to": "112", "text": "hello"},
}
"""Arguments by tool; others take none."""
WANTED: dict[str, object] = {
    "tools": [f"phone_{row.name}" for row in PHONE_TOOLS],
    "failed": {"phone_set_bar": ANY},  # no app of the reference phone has a bar
    "picture": "image/png",
    "structured": {"package": "com.example.mail"},
    "cancelled": True,
    "resumed": False,
    "came back": True,
    "updated": "phone://notifications",
    "without a token": 401,
    "without a grant": 403,
    "revoked": 401,
    "performed": ["executed", "executed"],
}
"""What is seen. `resumed`: whether a call failed whose stream was cut before its answer; `came back`: whether a stream
of a call was asked for again (`Last-Event-ID`). `performed`: what became of the broadcasts that the relay knows of, the
cancelled one not among them."""


STATELESS: dict[str, object] = {
    "stateless": "2026-07-28",
    "stateless, structured": {"package": "com.example.mail"},
    "stateless, asked": False,
    "listened": [["phone://notifications"], "phone://notifications"],
    "performed": ["executed", "executed", "executed"],
}
"""What is seen besides by a client that speaks the version without sessions, too. `listened`: to what, what changed."""


class ClientInstructions(TypedDict):
    """Instructions for an external MCP client."""

    url: str  # of `/mcp`, through the proxy
    control: str  # GET there: `/cut` cuts open connections, `/notify` posts a notification, `/revoke` revokes the token
    token: str
    ungranted: str  # a token without the grant
    calls: dict[str, dict[str, object]]


class McpPhoneEnvironment:
    """Surroundings of a client at the relay on `port`: two paired tokens, a proxy, and a control server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.token = self._pair("agent")
        self.ungranted = self._pair("absent")
        grants = {"grants": {"bridge": 0.001}}
        assert call(port, "PATCH", f"/sessions/{self.ungranted[:8]}", grants, token=self.ungranted).status == 200
        self.cutter = CuttableProxy(port)
        handlers = {"/cut": self.cutter.cut, "/notify": self._notify, "/revoke": self._revoke}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                handlers[self.path]()
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the library
                pass

        self._control = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._control.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def client_flow(self) -> ClientInstructions:
        return {
            "url": f"http://127.0.0.1:{self.cutter.port}/mcp",
            "control": f"http://127.0.0.1:{self._control.server_port}",
            "token": self.token,
            "ungranted": self.ungranted,
            "calls": CALLS,
        }

    @property
    def performed(self) -> list[str]:
        """Return the decision of the relay's activity log for each broadcast."""
        records = call(self.port, "GET", "/bridge/activity").body["activity"]
        return [record["decision"] for record in records if record["path"] == "/broadcast"]

    def allow(self, address: str) -> None:
        """Open an authorization address as a browser, allow the request as the owner, and follow the redirect."""
        with urlopen(address, timeout=WITHIN) as page:
            word = re.search(r'class="word">(\w+)<', page.read().decode())
            again = page.url
        assert word is not None
        asked = call(self.port, "GET", f"/mcp/questions/{word[1]}").body
        answer = {"ballot": asked["ballot"], "allow": True, "scope": "bridge"}
        assert call(self.port, "POST", f"/mcp/questions/{word[1]}", answer).status == 200
        with urlopen(again, timeout=WITHIN):  # follows the redirect to the client
            pass

    def close(self) -> None:
        self._control.shutdown()
        self._control.server_close()
        self.cutter.close()

    def _pair(self, name: str) -> str:
        code = call(self.port, "POST", "/pairing").body["code"]
        with websocket(self.port) as client:
            answer = client.sign_in(pairing_code=code, device_name=name, device_id=name, client_surface="cli")
        return str(answer["payload"]["session_token"])

    def _notify(self) -> None:
        with websocket(self.port) as client:
            client.sign_in(session_token=self.token)
            client.send_envelope("notifications", "notification.posted", {"title": "Mail"})
            client.pong()

    def _revoke(self) -> None:
        call(self.port, "DELETE", f"/sessions/{self.token[:8]}", token=self.token)


class CuttableProxy:
    """Proxy to a port of this host; `cut` shuts down all its connections at once, in both directions."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self.came_back = False  # a client has requested the rest of the events of a request
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        ends, self._open = self._open, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._open += [near, far]
                threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        with near, far:
            back = threading.Thread(target=self._pass, args=(far, near), daemon=True)
            back.start()
            self._pass(near, far)
            back.join()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                self.came_back = self.came_back or BACK.search(data) is not None
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def in_a_world(runtime: str) -> Iterator[McpPhoneEnvironment]:
    """Run a relay with the reference phone, the relay on the named loop; yield the environment."""
    with tempfile.TemporaryDirectory() as home, running_relay(Path(home), runtime=runtime) as (_, port):
        code = call(port, "POST", "/pairing").body["code"]
        ways = ("--remote", f"ws://127.0.0.1:{port}", "--code", code, "--master", "on", "--allow")
        with running(Path(home), "clients.phone", *ways) as phone:
            phone.line("^paired: session ")
            world = McpPhoneEnvironment(port)
            try:
                yield world
            finally:
                world.close()


def carried_out(runtime: str, command: Sequence[str], env: dict[str, str] | None = None) -> dict[str, Any]:
    """Run an external client, with its instructions as the last argument; return its observations, and ours.

    Ours are whether the proxy saw the client resume a stream, and the decisions of the relay on broadcasts.
    """
    with in_a_world(runtime) as world:
        seen = run_json((*command, json.dumps(world.client_flow)), within=WITHIN, env=env)
        return {**seen, "came back": world.cutter.came_back, "performed": world.performed}
