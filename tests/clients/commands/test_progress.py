"""Tests of the progress line of slow operations, and of Ctrl-C during them."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.clients.commands.command_process import CommandHome, finish, module
from tests.clients.commands.test_terminal_guard_state import around, outcome
from tests.servers.program_process import TIMEOUT


class Slow(BaseHTTPRequestHandler):
    """Handler of a server whose files and streamed turns stop in the middle until `go` is set."""

    protocol_version = "HTTP/1.1"
    go: threading.Event
    seen: list[str]
    body = bytes(3000)

    def do_GET(self) -> None:
        """Send `/health`, or for any other path a file, whose second half waits for `go`."""
        self.seen.append(self.path)
        if self.path == "/health":
            self._json(200, {"status": "ok", "version": "1"})
            return
        self.send_response(200)
        self.send_header("content-length", str(len(self.body)))
        self.send_header("content-disposition", 'attachment; filename="a.bin"')
        self.end_headers()
        self.wfile.write(self.body[:1500])
        self.wfile.flush()
        self.go.wait(TIMEOUT)
        self.wfile.write(self.body[1500:])

    def do_POST(self) -> None:
        """Create a session, set `go` to stop a turn, or stream the beginning of a turn and end it once `go` is set."""
        self.seen.append(self.path)
        self.rfile.read(int(self.headers.get("content-length", "0")))
        if self.path.endswith("/stop"):
            self._json(200, {"status": "stopping"})
            self.go.set()
            return
        if not self.path.endswith("/stream"):
            self._json(201, {"id": "s-1"})
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event, data in (("run.started", {"run_id": "run_7"}), ("assistant.delta", {"delta": "Let me see"})):
            self.wfile.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()
        self.go.wait(TIMEOUT)
        self.close_connection = True

    def log_request(self, code: object = "-", size: object = "-") -> None: ...

    def _json(self, status: int, value: object) -> None:
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@contextmanager
def slow() -> Iterator[tuple[type[Slow], str]]:
    """Run a slow server; yield its handler class, and its host and port as text."""

    class Handler(Slow):
        go, seen = threading.Event(), []

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Handler, f"127.0.0.1:{server.server_address[1]}"
    finally:
        Handler.go.set()
        server.shutdown()
        server.server_close()
        thread.join()


def fetch(where: str, target: Path) -> list[str]:
    """Return the arguments of `svc-relay` that fetch a file from a slow server."""
    return ["media", "get", "abcdefgh", "-o", str(target), "--remote", f"ws://{where}", "--token", "t"]


def test_progress_of_a_slow_file(lonely: CommandHome) -> None:
    target = lonely.home / "b.bin"
    with slow() as (server, where):
        terminal = lonely.spawn("svc-relay", *fetch(where, target))
        terminal.expect_exact("fetching /media/abcdefgh: 0 bytes so far … 1 s")
        server.go.set()
        terminal.expect_exact("\r\x1b[K")
        status, shown = finish(terminal)
    assert (status, shown) == (0, f"{target}: 3000 bytes, application/octet-stream\r\n")
    assert target.read_bytes() == Slow.body


def test_ctrl_c_leaves_no_partial_file(lonely: CommandHome) -> None:
    target = lonely.home / "b.bin"
    with slow() as (_, where):
        terminal, _ = around(lonely, [*module("svc-relay"), *fetch(where, target)])
        terminal.expect_exact("… 1 s")
        terminal.sendintr()
        assert outcome(terminal) == 130
    assert not [path for path in lonely.home.iterdir() if "b.bin" in path.name]


def test_no_progress_without_a_terminal(lonely: CommandHome) -> None:
    """Without a terminal, a slow operation writes no progress to standard error."""
    with slow() as (server, where):
        timer = threading.Timer(1.5, server.go.set)
        timer.start()
        done = lonely.run("svc-relay", *fetch(where, lonely.home / "b"))
        timer.join()
    assert (done.code, done.err) == (0, "")


def test_ctrl_c_stops_the_agent(lonely: CommandHome, runtime: str) -> None:
    lonely.runtime = runtime
    with slow() as (server, where):
        terminal, _ = around(lonely, [*module("svc-relay"), "chat", "hello", "--api-url", f"http://{where}"])
        terminal.expect_exact("Let me see")
        terminal.sendintr()
        terminal.expect_exact("[stopped]")
        assert outcome(terminal) == 130
        assert server.seen[-1] == "/v1/runs/run_7/stop"
