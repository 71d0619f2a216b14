"""Test of how connections to a model's server end, as the server sees it."""

import json
import re
import socket
import threading
from pathlib import Path

from tests.servers.program_process import TIMEOUT, call, running

KEY = "sk-model-connections-1"
EVENTS = b"".join(
    b"data: %s\n\n" % data
    for data in (
        json.dumps({"choices": [{"delta": {"content": "Hello"}, "finish_reason": "stop"}]}).encode(),
        b"[DONE]",
    )
)
ANSWERS = {
    b"POST": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + EVENTS,  # its end is not sent
    b"GET": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
}


class WatchedModel:
    """Model's server for one request per connection; `ends` has each method, and `FIN`, `reset` or `data`."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self.ends: list[tuple[str, str]] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Close the listener, so that no further connection is accepted."""
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(TIMEOUT)
                data = b""
                while b"\r\n\r\n" not in data:
                    data += connection.recv(65_536)
                head, _, body = data.partition(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head)
                while len(body) < int(length[1] if length else 0):
                    body += connection.recv(65_536)
                method = head.partition(b" ")[0]
                connection.sendall(ANSWERS[method])
                try:
                    end = "data" if connection.recv(1) else "FIN"
                except ConnectionResetError:
                    end = "reset"
                self.ends.append((method.decode(), end))


def test_connection_ends_with_a_fin_after_a_complete_answer(tmp_path: Path) -> None:
    model = WatchedModel()
    env = {"API_SERVER_KEY": KEY, "SVC_MODEL_BASE_URL": model.url, "SVC_MODEL": "m"}
    try:
        with running(tmp_path, "servers.api", "--port", "0", env=env) as api:
            port = int(api.line(r"^api: http://127\.0\.0\.1:(\d+) ")[1])
            asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
            answer = call(port, "POST", "/v1/chat/completions", asked, token=KEY)
        assert answer.body["choices"][0]["message"]["content"] == "Hello"
        assert ("POST", "FIN") in model.ends
        assert {end for _, end in model.ends} == {"FIN"}
    finally:
        model.close()
