"""Three API servers as nodes of one service, with a store, a Redis, a scripted model, and a proxy before them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from tests.servers.program_process import ProgramResponse, call, running
from tests.servers.relay_cluster import RelayCluster

KEY = "sk-nodes-4f0b81-77aa"


class _Model(BaseHTTPRequestHandler):
    """Model server that repeats the last message."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        choice = {"index": 0, "delta": {"content": asked["messages"][-1]["content"]}, "finish_reason": "stop"}
        with suppress(OSError):
            self.wfile.write(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\ndata: [DONE]\n\n")

    def log_message(self, *about: object) -> None:
        pass


class ApiCluster(RelayCluster):
    """Three API servers, each in its own home, with a scripted model, and store, Redis and nginx of `RelayCluster`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._models = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
        threading.Thread(target=self._models.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        super().__enter__()
        self._stack.callback(self._models.server_close)
        self._stack.callback(self._models.shutdown)
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
