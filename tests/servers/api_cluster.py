"""Three API servers as nodes of one service, with a store, a Redis, a scripted model, and a proxy before them."""

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from svc_proto.wire.sse import EventStreamDecoder
from tests.servers.program_process import TIMEOUT, ProgramResponse, call, running
from tests.servers.relay_cluster import RelayCluster

KEY = "sk-nodes-4f0b81-77aa"


class _Model(BaseHTTPRequestHandler):
    """Model server that repeats the last message, or answers `done` to a tool's result.

    The message `slow` gets text until the connection or server ends; `ask` gets a call of a tool that needs approval.
    """

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = asked["messages"][-1]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        with suppress(OSError):
            if last["content"] == "slow":
                while not self.server.over.wait(0.05):  # type: ignore[attr-defined]  # it is a `_Models`
                    self._send_delta({"content": "and "})
            elif last["content"] == "ask":
                function = {"name": "phone_broadcast", "arguments": json.dumps({"action": "x.y.Z"})}
                self._send_delta(
                    {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}
                )
            else:
                self._send_delta({"content": "done" if last["role"] == "tool" else last["content"]})
            self._send_delta({}, "tool_calls" if last["content"] == "ask" else "stop")
            self.wfile.write(b"data: [DONE]\n\n")

    def _send_delta(self, delta: object, finish: str | None = None) -> None:
        chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def log_message(self, *about: object) -> None:
        pass


class _Models(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), _Model)


class Stream:
    """Client of an event stream, which is read in pieces until it ends or breaks off."""

    def __init__(self, port: int, method: str, path: str, body: object = None) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        fields = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body), fields)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.run = self._answer.getheader("X-Svc-Run-Id") or ""
        self.broken = False
        self._decoder = EventStreamDecoder()
        self.told: list[tuple[str, dict[str, Any]]] = []

    def until(self, name: str) -> dict[str, Any]:
        """Return the data of the next event of this name; events before it are discarded."""
        while True:
            for n, (told, data) in enumerate(self.told):
                if told == name:
                    del self.told[: n + 1]
                    return data
            assert self._more(), f"no {name}: {self.told}"

    def rest(self) -> list[str]:
        """Read to the end of the stream, regular or not; return the names of the events that are not consumed."""
        while self._more():
            pass
        self._answer.close()
        self._connection.close()
        return [name for name, _ in self.told]

    def _more(self) -> bool:
        try:
            data = self._answer.read1()
        except (OSError, HTTPException):
            data = b""
        if not data:
            self.broken = not self._answer.isclosed()
            return False
        for event in self._decoder.receive_data(data):
            found = json.loads(event.data)
            self.told.append((event.event if event.event != "message" else str(found.get("event")), found))
        return True


class ApiCluster(RelayCluster):
    """Three API servers, each in its own home, with a scripted model, and store, Redis and nginx of `RelayCluster`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._models = _Models()
        threading.Thread(target=self._models.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        super().__enter__()
        self._stack.callback(self._models.server_close)
        self._stack.callback(self._models.shutdown)
        self._stack.callback(self._models.over.set)
        return self

    def start_node(self, n: int) -> None:
        env = {
            "SVC_CLUSTER_URL": self.redis.url, "SVC_DATABASE_URL": self._database, "API_SERVER_KEY": KEY,
            "API_SERVER_NODE_URL": f"http://127.0.0.1:{self.ports[n]}", "SVC_MODEL": "m", "SVC_MODEL_API_KEY": "k",
            "SVC_MODEL_BASE_URL": f"http://127.0.0.1:{self._models.server_port}/v1",
        }  # fmt: skip
        options = ("--host", "127.0.0.1", "--port", str(self.ports[n]))
        node = self._lives[n].enter_context(running(self.folder / f"api-{n}", "servers.api", *options, env=env))
        node.line(r"^api: http://127\.0\.0\.1:\d+ ")
        self.nodes[n] = node

    def request(self, n: int, method: str, path: str, body: Mapping[str, object] | None = None) -> ProgramResponse:
        return call(self.ports[n], method, path, body, token=KEY)

    def session(self) -> str:
        answer = self.request(0, "POST", "/api/sessions", {})
        assert answer.status == 201, answer
        return str(answer.body["id"])

    def chat(self, port: int, session: str, message: str) -> tuple[int, str]:
        """Run a turn to its end; return 200 and the answer's text, another status and the error's code, or 0 and ""."""
        try:
            answer = call(port, "POST", f"/api/sessions/{session}/chat", {"message": message}, token=KEY)
        except (OSError, ValueError, HTTPException):  # the node is gone, or the proxy's error page is HTML
            return 0, ""
        if answer.status == 200:
            return 200, str(answer.body["message"]["content"])
        return answer.status, str(answer.body["error"]["code"])

    def rows(self, n: int, session: str) -> list[tuple[str, str]]:
        """Return role and content of the stored messages of a session, as a node shows them."""
        answer = self.request(n, "GET", f"/api/sessions/{session}/messages")
        assert answer.status == 200, answer
        return [(row["role"], row["content"]) for row in answer.body["messages"]]
