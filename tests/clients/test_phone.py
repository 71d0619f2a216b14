from __future__ import annotations

import json
import os
import re
import select
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self, cast

import pytest

from clients.phone import __main__ as phone
from tests.servers.conftest import Failing
from tests.servers.program_process import ROOT, TIMEOUT, call, environment, running, running_relay, sign_in
from tests.support.forkserver import Popen, python
from tests.support.ports import free_port
from tests.support.scenario_plan import PLAIN

TOKEN = "1c2d3e4f-0000-4000-8000-000000000001"


def test_pair_and_stop(tmp_path: Path) -> None:
    with running_relay(tmp_path) as (_, port):
        code = call(port, "POST", "/pairing").body["code"]
        options = ("--remote", f"ws://127.0.0.1:{port}/ws", "--name", "Kitchen", "--device-id", "kitchen-1")
        with running(tmp_path, "clients.phone", *options, "--code", code.lower()) as client:
            client.line("^paired: session [0-9a-f]{8}…$")
            (session,) = call(port, "GET", "/sessions").body["sessions"]
            assert (session["device_name"], session["device_id"]) == ("Kitchen", "kitchen-1")
            assert session["client_surface"] == "android"
            assert client.stop() == 0


def test_a_token_that_is_refused_falls_back_to_the_code(tmp_path: Path) -> None:
    with running_relay(tmp_path) as (_, port):
        code = call(port, "POST", "/pairing").body["code"]
        env = {"SVC_RELAY_URL": f"ws://127.0.0.1:{port}", "SVC_RELAY_CODE": code, "SVC_RELAY_TOKEN": TOKEN}
        with running(tmp_path, "clients.phone", env=env) as client:
            client.line("^paired: session ")
            assert client.stop() == 0
        del env["SVC_RELAY_CODE"]
        with running(tmp_path, "clients.phone", env=env) as client:
            client.line("^error: the relay refused: .*session token")
            assert client.wait() == 1


def test_a_code_that_is_refused(runtime: str, tmp_path: Path) -> None:
    with running_relay(tmp_path) as (_, port):
        options = ("--remote", f"ws://127.0.0.1:{port}", "--code", "WRONG0")
        with running(tmp_path, "clients.phone", *options, runtime=runtime) as client:
            client.line("^error: the relay refused: .*pairing code.*invalid")
            assert client.wait() == 1


def test_an_unreachable_relay(runtime: str, tmp_path: Path) -> None:
    options = ("--remote", f"ws://127.0.0.1:{free_port()}", "--token", TOKEN)
    with running(tmp_path, "clients.phone", *options, runtime=runtime) as client:
        client.line(r"^offline: next try in 1\.\d s$")
        if runtime == PLAIN:  # the core decides the time
            client.line(r"^offline: next try in 2\.\d s$")
        assert client.stop() == 0


def test_a_relay_that_has_blocked_us(tmp_path: Path) -> None:
    with running_relay(tmp_path) as (_, port):
        for _ in range(5):
            sign_in(port, pairing_code="WRONG0")
        with running(tmp_path, "clients.phone", "--remote", f"ws://127.0.0.1:{port}", "--token", TOKEN) as client:
            client.line(r"^offline: next try in (30\d|29\d)\.\d s$")
            assert client.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--code", "ABC123"], "--remote, --api or --pair-qr"),
        (["--pair-qr", "nonsense"], "--pair-qr cannot be used"),
        (["--pair-qr", '{"relay":{"url":"ws://h","code":"ABC123"}}'], "--allow-plain"),
        (["--remote", "ws://h"], "--code or --token"),
        (["--remote", "ws://h", "--code", ""], "--code or --token"),
        (["--remote", "ftp://h", "--code", "ABC123"], "--remote must be an address such as ws://"),
        (["--remote", "h:8767", "--code", "ABC123"], "--remote"),
        (["--remote", "ws://u:secret@h", "--code", "ABC123"], "--remote"),
        (["--remote", "ws://h", "--code", "ABC123", "--brand", "acme"], "--brand"),
        (["--api", "ws://h", "--code", "ABC123"], "--api cannot be used"),
        (["--dashboard", "h:9119"], "--dashboard cannot be used"),
        (["--dashboard", "ws://h:9119"], "--dashboard must be an address such as http://"),
        (["--remote", "ws://h", "--code", "ABC123", "--pin", "sha256/x"], "--pin must be"),
        (["--remote", "ws://h", "--code", "ABC123", "--ttl", "soon"], "--ttl must be"),
        (["--remote", "ws://h", "--code", "ABC123", "--media-cache-mb", "49"], "--media-cache-mb"),
        (["--remote", "ws://h", "--code", "ABC123", "--auto-fetch-mb", "51"], "--auto-fetch-mb"),
        (["--remote", "ws://h", "--code", "ABC123", "--runtime", "twisted"], "--runtime"),
        (["--remote", "ws://h", "--code", "ABC123", "--idle-minutes", "4"], "--idle-minutes"),
        (["--remote", "ws://h", "--code", "ABC123", "--confirm-within", "61"], "--confirm-within"),
        (["--remote", "ws://h", "--code", "ABC123", "--without", "courage"], "--without"),
    ],
)
def test_bad_options(failing: Failing, arguments: list[str], said: str) -> None:
    code, line = failing(phone.main, *arguments)
    assert code == 2
    assert said in line
    assert "secret" not in line


# --- routes and attachments ---------------------------------------------------------------------------------------


def test_the_routes_of_a_qr_and_an_attachment(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG")
    with running_relay(tmp_path, env={"RELAY_MEDIA_ALLOWED_ROOTS": str(tmp_path)}) as (_, port):
        code = call(port, "POST", "/pairing").body["code"]
        relay = {"url": f"ws://127.0.0.1:{port}", "code": code}
        dead = {"role": "lan", "priority": 0, "relay": {"url": f"ws://127.0.0.1:{free_port()}"}}
        alive = {"role": "mesh", "priority": 1, "relay": relay}
        invite = json.dumps(
            {"svc": 3, "host": "h", "port": 8642, "key": "", "relay": relay, "endpoints": [dead, alive]}
        )
        options = (
            "--pair-qr",
            invite,
            "--allow-plain",
            "--fetch",
            f"MEDIA:{picture}",
            "--fetch",
            "MEDIA:/no/such/file",
        )
        with running(tmp_path, "clients.phone", *options) as client:
            client.line(rf"^route: mesh \(ws://127\.0\.0\.1:{port}\)$")
            client.line("^paired: session ")
            client.line(r"^attachment \d: READY, 4 bytes of image/png")
            client.line(r"^attachment \d: unavailable card \(")
            assert client.stop() == 0


def test_the_standard_connection_of_the_app(tmp_path: Path) -> None:
    port, api, board = free_port(), free_port(), free_port()
    ports = ("--port", str(port), "--api-port", str(api), "--dashboard-port", str(board), "--no-qr")
    env = {"SVC_DASHBOARD_PASSWORD": "correct horse"}
    with running(tmp_path, "servers", "--host", "127.0.0.1", *ports, env=env) as servers:
        servers.line(rf"^dashboard: http://127\.0\.0\.1:{board} ")
        options = ("--dashboard", f"http://127.0.0.1:{board}/", "--password", "correct horse")
        with Client(tmp_path, *options) as client:
            client.line(rf"connected: http://127\.0\.0\.1:{board}\n")
            client.type("chat /echo hello there\n")
            client.line(r"hello there")
            client.process.terminate()
            assert client.process.wait(TIMEOUT) == 0
        with running(tmp_path, "clients.phone", *options[:3], "wrong password") as refused:
            refused.line("^error: the dashboard refused the password")
            assert refused.wait() == 1


# --- the person ---------------------------------------------------------------------------------------------------

SEND = {"number": "112233"}


@contextmanager
def paired(home: Path, *options: str, **streams: Any) -> Iterator[tuple[Client, Callable[..., int]]]:
    """Run a relay and a phone with `options`; yield the phone, and a function that sends it `POST /call`.

    The function returns the status.
    """
    with running_relay(home, env={"RELAY_TERMINAL_TMUX": "0"}) as (_, port):  # no shell process is left
        code = call(port, "POST", "/pairing").body["code"]
        where = ("--remote", f"ws://127.0.0.1:{port}", "--code", code, "--print-token", "--master", "on")
        with Client(home, *where, *options, **streams) as client:
            token = client.line(r"paired: session ([0-9a-f]{64})")[1]
            yield client, lambda: call(port, "POST", "/call", SEND, token=token).status


class Client:
    """The phone program as a process, with a terminal or pipes for input and output."""

    def __init__(self, home: Path, *options: str, terminal: bool = False) -> None:
        command = python("clients.phone", *options)
        self._keys, self._screen = os.openpty() if terminal else (-1, subprocess.PIPE)
        streams = self._screen if terminal else subprocess.PIPE
        self.process = Popen(command, cwd=ROOT, env=environment(home), stdin=streams, stdout=streams, stderr=streams)
        self.seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        if self._keys >= 0:
            os.close(self._keys)
            os.close(self._screen)

    def line(self, pattern: str) -> re.Match[str]:
        """Wait until the output after the last match contains the pattern; return the match."""
        out = self._keys if self._keys >= 0 else cast("IO[bytes]", self.process.stdout).fileno()
        while (match := re.search(pattern, self.seen)) is None:
            ready, _, _ = select.select([out], [], [], TIMEOUT)
            assert ready, f"no {pattern!r} in {self.seen!r}"
            data = os.read(out, 65_536).decode("utf-8", "replace")
            assert data, self.seen
            self.seen += data
        self.seen = self.seen[match.end() :]
        return match

    def type(self, text: str) -> None:
        """Send input to the program."""
        keys = self._keys if self._keys >= 0 else cast("IO[bytes]", self.process.stdin).fileno()
        os.write(keys, text.encode())


def test_confirmation_at_a_terminal(tmp_path: Path) -> None:
    with paired(tmp_path, terminal=True) as (client, phone_call), ThreadPoolExecutor() as callers:
        calling = callers.submit(phone_call)
        client.line(r"\? c1: allow call\?")
        client.line("112233")
        client.type("n\n")
        client.line("Blocked.* call")
        client.line("c1 denied")
        assert calling.result(TIMEOUT) == 403
        calling = callers.submit(phone_call)
        client.line(r"\? c2: allow call\?")
        client.type("a\n")
        assert calling.result(TIMEOUT) == 200
        client.line("not asked about: call")
        assert phone_call() == 200
        client.type("off\n")
        client.line(r"Device Control is off \(turn off\)")
        assert phone_call() == 403
        client.process.terminate()
        assert client.process.wait(TIMEOUT) == 0


def test_confirmation_through_a_pipe(tmp_path: Path) -> None:
    with paired(tmp_path, "--ask", "--no-view") as (client, phone_call), ThreadPoolExecutor() as callers:
        calling = callers.submit(phone_call)
        client.line(r"\? c1: allow call\?")
        client.type("y\n")
        assert calling.result(TIMEOUT) == 200
        client.line("POST /call -> 200")
        client.type("shell echo $((40 + 2))\n")
        client.line(r"\n42\n")
        client.type("leave\n")
        client.line("- shell: left")
        cast("IO[bytes]", client.process.stdin).close()
        assert phone_call() == 403


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ((), 403),
        (("--deny",), 403),
        (("--allow",), 200),
        (("--allow", "--master", "off"), 403),
        (("--allow", "--store-build"), 403),
        (("--allow", "--without", "accessibility"), 403),
        (("--allow", "--without", "overlay"), 403),
        (("--allow", "--block", "com.example.launcher"), 403),
        (("--allow", "--block", "com.example.launcher", "--unblock", "com.example.launcher"), 200),
    ],
)
def test_calls_without_a_user(tmp_path: Path, options: tuple[str, ...], status: int) -> None:
    with paired(tmp_path, *options) as (client, phone_call):
        assert phone_call() == status
        client.line(f"POST /call -> {status}")
