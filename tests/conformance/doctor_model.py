"""Model server of the `doctor` suite: the first part of a path selects what is wrong with it."""

import json
import sys
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = 11434  # in the network namespace of a host
HOUR = 3600.0  # s


class ModelHandler(BaseHTTPRequestHandler):
    """Handler of a model server; the first part of the path names how it behaves, such as `locked` or `small`."""

    def do_GET(self) -> None:
        """Answer `v1/models` with a list of models, or with the error of the kind; other paths with 404."""
        kind, _, rest = self.path.lstrip("/").partition("/")
        if rest != "v1/models":
            self._send(404, {})
        elif kind in ("locked", "odd"):
            self._send(401 if kind == "locked" else 500, {"error": {"message": kind}})
        else:
            size = 4096 if kind == "small" else 32_768
            names = ["llama3.2", "qwen3"] if kind == "two" else ["llama3.2"]
            self._send(200, {"data": [{"id": name, "context_length": size} for name in names]})

    def do_POST(self) -> None:
        """Answer `v1/chat/completions` with a tool call, or for `no-tools` with 400; other paths with 404."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        kind, _, rest = self.path.lstrip("/").partition("/")
        if rest != "v1/chat/completions":
            self._send(404, {})
        elif kind == "no-tools":
            self._send(400, {"error": {"message": "llama3.2 does not support tools"}})
        else:
            call = {"id": "1", "type": "function", "function": {"name": "report_ready", "arguments": "{}"}}
            self._send(200, {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]})

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return the value of the field `Date`, an hour behind for `late`."""
        late = self.path.startswith("/late/")
        return formatdate((timestamp or time.time()) - (HOUR if late else 0.0), usegmt=True)

    def log_message(self, *args: object) -> None:
        pass

    def _send(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", PORT), ModelHandler)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    server.serve_forever()
