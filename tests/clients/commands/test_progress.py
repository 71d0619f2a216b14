"""Tests of the progress line of slow operations, and of Ctrl-C during them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import Request, Response, StreamedResponse, json_response
from svc_proto.wire.events import Headers
from tests.clients.commands.command_process import CommandHome, finish, module
from tests.clients.commands.test_terminal_guard_state import around, outcome
from tests.support.background_program import running_service
from tests.support.servers.scripted_service import ScriptedService, row

FILE = bytes(3000)
TURN = b'event: run.started\ndata: {"run_id": "run_7"}\n\nevent: assistant.delta\ndata: {"delta": "Let me see"}\n\n'


class SlowService(ScriptedService):
    """Service whose file and whose turn stop in the middle until `go` is set, by the test or by a stop of the turn."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.stopped: list[str] = []
        super().__init__(
            [
                row("GET", "/health", lambda request: json_response(200, {"status": "ok", "version": "1"})),
                row("GET", "/media/{token}", lambda request: self._pieces(FILE[:1500], FILE[1500:])),
                row("POST", "/api/sessions", lambda request: json_response(201, {"id": "s-1"})),
                row("POST", "/api/sessions/{id}/chat/stream", lambda request: self._pieces(TURN)),
                row("POST", "/v1/runs/{id}/stop", self._stop),
            ]
        )

    def _pieces(self, first: bytes, second: bytes = b"") -> StreamedResponse:
        def write(writer: ResponseWriter) -> Flow[None]:
            writer.write(first)
            while not self.go.is_set():
                yield from sleep(self.engine, 0.02)
            writer.write(second)

        length = (b"content-length", b"%d" % len(first + second))
        return StreamedResponse(200, Headers([length if second else (b"content-type", b"text/event-stream")]), write)

    def _stop(self, request: Request) -> Response:
        self.stopped.append(request.params["id"])
        self.go.set()
        return json_response(200, {"status": "stopping"})


@contextmanager
def slow() -> Iterator[tuple[SlowService, str]]:
    """Run a slow service; yield it, and its host and port as text."""
    service = SlowService()
    with running_service(service) as url:
        yield service, url.removeprefix("http://")
        service.go.set()


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
    assert target.read_bytes() == FILE


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
        assert server.stopped == ["run_7"]
