"""Harness for programs in processes of their own, or a relay in a thread: output, exit codes, HTTP, and WebSockets."""

import http.client
import json
import os
import queue
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from attrs import frozen

from servers.relay_program import read_relay_config, relay_program
from svc_proto.basics.certificate_pins import pin_of
from tests.loops.clients import Declined, HttpClient, WebSocketTestClient
from tests.loops.environment import bearer
from tests.loops.live_environment import LiveConnection
from tests.support.background_program import BackgroundProgram
from tests.support.forkserver import Popen, python, run
from tests.support.restored_logger import restored_logger

ROOT = Path(__file__).parents[2]
TIMEOUT = 60.0  # s for anything that a test waits for; only a busy machine takes long
LOCAL = ("--host", "127.0.0.1", "--port", "0", "--api-port", "0", "--dashboard-port", "0")  # of `servers`
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # directories of system servers
FOREIGN = ("RELAY_", "SVC_", "HERMES_", "API_SERVER_")


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return our environment without settings of the programs, with `home` as the home folder, and with `more`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "HOME": str(home), "SVC_HOME": str(home / "svc"), "PYTHONUNBUFFERED": "1", **(more or {})}


class ProgramProcess:
    """A running program, and the lines that it writes to standard output and standard error."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.seen: list[str] = []
        self._passed_over: list[str] = []
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._readers = [
            threading.Thread(target=self._read, args=(stream,), daemon=True)
            for stream in (process.stdout, process.stderr)
        ]
        for reader in self._readers:
            reader.start()

    def line(self, pattern: str, timeout: float = TIMEOUT) -> re.Match[str]:
        """Return the match in the first line that contains the pattern and was not returned before.

        Skipped lines are searched first, since standard output and standard error are read separately. `seen` has all
        lines that were read. Raise AssertionError if no such line comes within `timeout` seconds.
        """
        for at, line in enumerate(self._passed_over):
            if match := re.search(pattern, line):
                del self._passed_over[at]
                return match
        end = time.monotonic() + timeout
        ends = 0
        while ends < len(self._readers):
            try:
                read = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            if read is None:
                ends += 1
                continue
            self.seen.append(read)
            if match := re.search(pattern, read):
                return match
            self._passed_over.append(read)
        raise AssertionError(f"no line with {pattern!r} among {self.seen}")

    def type(self, line: str | None) -> None:
        """Write a line to standard input, which is a pipe; None closes it."""
        assert self.process.stdin is not None
        if line is None:
            self.process.stdin.close()
        else:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()

    def stop(self, signum: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(signum)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end, and return the exit code; `seen` has all lines then."""
        code = self.process.wait(TIMEOUT)
        for reader in self._readers:
            reader.join(TIMEOUT)
        while not self._lines.empty():
            line = self._lines.get()
            if line is not None:
                self.seen.append(line)
        return code

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


@contextmanager
def running(
    home: Path,
    module: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    runtime: str = "asyncio",
    stdin: int | None = None,
) -> Iterator[ProgramProcess]:
    """Run a module with `--runtime` and `arguments`, and kill it at the end. `module` may end with a command."""
    command = python(*module.split(), "--runtime", runtime, *arguments)
    pipe, known = subprocess.PIPE, environment(home, env)
    with Popen(command, cwd=ROOT, env=known, stdin=stdin, stdout=pipe, stderr=pipe, text=True) as process:
        program = ProgramProcess(process)
        try:
            yield program
        finally:
            process.kill()
            program.wait()


def run_program(
    home: Path, module: str, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a module to its end, and return its exit code and output."""
    known = environment(home, env)
    return run(python(module, *arguments), cwd=ROOT, env=known, capture_output=True, text=True, timeout=TIMEOUT)


def ports_of(servers: ProgramProcess, count: int = 3) -> dict[str, int]:
    """Return the ports of `count` servers in one process by role, from their lines of output."""
    found = [servers.line(r"^(relay|api|dashboard): https?://127\.0\.0\.1:(\d+) ") for _ in range(count)]
    return {match[1]: int(match[2]) for match in found}


@contextmanager
def running_relay(
    home: Path, *arguments: str, env: Mapping[str, str] | None = None, runtime: str = "asyncio", port: int = 0
) -> Iterator[tuple[ProgramProcess, int]]:
    """Run a relay on 127.0.0.1 and yield it with its port, once it accepts connections."""
    options = ("--host", "127.0.0.1", "--port", str(port), *arguments)
    with running(home, "servers.relay", *options, env=env, runtime=runtime) as relay:
        yield relay, int(relay.line(r"^relay: https?://127\.0\.0\.1:(\d+) ")[1])


@contextmanager
def relay_beside(home: Path, env: Mapping[str, str]) -> Iterator[int]:
    """Run a relay in a thread of this process; yield its port once it accepts connections."""
    known = environment(home, env)
    bound: queue.SimpleQueue[int] = queue.SimpleQueue()
    config = read_relay_config(known, {"host": "127.0.0.1", "port": 0})
    program = relay_program(config, on_ready=lambda config: bound.put(config.port))
    with restored_logger("svc"):
        beside = BackgroundProgram(program, "asyncio")
        try:
            yield bound.get(timeout=TIMEOUT)
        finally:
            beside.handle.stop(1.0)
            beside.exit_code()
            if program.services.store is not None:
                program.services.store.close()
            if program.claim is not None:
                program.claim.release()


@frozen
class ProgramResponse:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def body(self) -> Any:
        """The parsed JSON. Raises `ValueError` for other content, such as a proxy's error page."""
        return json.loads(self.data)


def shown_pin(port: int) -> str:
    """Return the pin of the certificate that the server at this port of 127.0.0.1 presents."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as raw, context.wrap_socket(raw) as sock:
        return pin_of(sock.getpeercert(binary_form=True) or b"")


def call(
    port: int,
    method: str,
    path: str,
    body: Mapping[str, object] | None = None,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    source: str = "",
) -> ProgramResponse:
    """Send one request on a connection of its own, with a JSON body unless `body` is None; return the response."""
    if tls is None:
        connection = http.client.HTTPConnection(host, port, TIMEOUT, (source, 0) if source else None)
    else:
        connection = http.client.HTTPSConnection("localhost", port, timeout=TIMEOUT, context=tls)
    fields = {**(headers or {}), **({"authorization": f"Bearer {token}"} if token else {})}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), fields)
        response = connection.getresponse()
        return ProgramResponse(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()


@contextmanager
def websocket(port: int, host: str = "127.0.0.1", path: str = "/ws", token: str = "") -> Iterator[WebSocketTestClient]:
    """Yield an open WebSocket to a server. Raise `Declined` if the server refuses."""
    with socket.create_connection((host, port), timeout=TIMEOUT) as sock:
        client = HttpClient(LiveConnection(sock), f"{host}:{port}", os.urandom)
        yield WebSocketTestClient(client, path=path, headers=bearer(token) if token else None)


def sign_in(port: int, *, host: str = "127.0.0.1", **credentials: str) -> dict[str, Any]:
    """Sign in on a new WebSocket; return the payload of the answer, or the status of a refused handshake."""
    identity = {"device_name": "Test", "device_id": "test", "client_surface": "desktop", **credentials}
    try:
        with websocket(port, host) as ws:
            payload: dict[str, Any] = ws.sign_in(**identity)["payload"]
            return payload
    except Declined as declined:
        return {"status": declined.answer.status}
