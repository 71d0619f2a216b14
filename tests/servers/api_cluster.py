"""Three API servers as nodes of one service, with a store, a Redis, a scripted model, and a proxy before them."""

import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from tests.loops.live_environment import LiveConnection
from tests.loops.raw_event_stream import UnreadStream
from tests.servers.program_process import TIMEOUT, ProgramResponse, call, running
from tests.servers.relay_cluster import RelayCluster

KEY = "sk-nodes-4f0b81-77aa"


class _Model(BaseHTTPRequestHandler):
    """Model server that repeats the last message, or answers `slow` with text until the connection or server ends."""

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
            else:
                self._send_delta({"content": last["content"]})
            self._send_delta({}, "stop")
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


class Stream(UnreadStream):
    """Event stream of a turn at a node, which may break off; `run` is the id of its run."""

    def __init__(self, port: int, path: str, message: str) -> None:
        super().__init__(LiveConnection(socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)))
        body = json.dumps({"message": message})
        fields = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {len(body)}"
        self.wire.send(f"POST {path} HTTP/1.1\r\n{fields}\r\n\r\n{body}".encode())
        self.run = dict(self.open(TIMEOUT).head).get("x-svc-run-id", "")

    def names(self) -> list[str]:
        """Read to the end of the stream, regular or not; return the names of the events that are not consumed."""
        names = []
        with suppress(EOFError, ConnectionError):
            while (told := self.event(TIMEOUT)) is not None:
                names.append(told.name)
        self.close()
        return names


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
            body = answer.body
        except (OSError, ValueError, HTTPException):  # the node is gone, or the proxy's error page is HTML
            return 0, ""
        return answer.status, str(body["message"]["content"] if answer.status == 200 else body["error"]["code"])

    def rows(self, n: int, session: str) -> list[tuple[str, str]]:
        """Return role and content of the stored messages of a session, as a node shows them."""
        answer = self.request(n, "GET", f"/api/sessions/{session}/messages")
        assert answer.status == 200, answer
        return [(row["role"], row["content"]) for row in answer.body["messages"]]
