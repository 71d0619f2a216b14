from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pexpect
import pytest

from clients.phone import __main__ as phone
from tests.clients.commands.command_process import bad_input, finish
from tests.servers.conftest import Failing
from tests.servers.program_process import LOCAL, ROOT, TIMEOUT, call, environment, ports_of, running, running_relay
from tests.support.forkserver import ForkedTerminal, python
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


@pytest.mark.parametrize(("line", "code", "says"), bad_input("clients.phone"))
def test_bad_options(failing: Failing, line: str, code: int, says: str) -> None:
    found, problem = failing(phone.main, *shlex.split(line)[1:])
    assert found == code
    assert says in problem
    assert "secret" not in problem


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
        fetched = ("--fetch", f"MEDIA:{picture}", "--fetch", "MEDIA:/no/such/file")
        with running(tmp_path, "clients.phone", "--pair-qr", invite, "--allow-plain", *fetched) as client:
            client.line(rf"^route: mesh \(ws://127\.0\.0\.1:{port}\)$")
            client.line("^paired: session ")
            client.line(r"^attachment \d: READY, 4 bytes of image/png")
            client.line(r"^attachment \d: unavailable card \(")
            assert client.stop() == 0


def test_the_standard_connection_of_the_app(tmp_path: Path) -> None:
    env = {"SVC_DASHBOARD_PASSWORD": "correct horse"}
    with running(tmp_path, "servers", *LOCAL, "--no-qr", env=env) as servers:
        board = ports_of(servers)["dashboard"]
        options = ("--dashboard", f"http://127.0.0.1:{board}/", "--password", "correct horse")
        with running(tmp_path, "clients.phone", *options, stdin=subprocess.PIPE) as client:
            client.line(rf"connected: http://127\.0\.0\.1:{board}$")
            client.type("chat /echo hello there")
            client.line("hello there")
            assert client.stop() == 0
        with running(tmp_path, "clients.phone", *options[:3], "wrong password") as refused:
            refused.line("^error: the dashboard refused the password")
            assert refused.wait() == 1


# --- the person ---------------------------------------------------------------------------------------------------

CALL = {"number": "112233"}
PAIRED = r"paired: session ([0-9a-f]{64})"


@contextmanager
def relay_for_a_phone(home: Path) -> Iterator[tuple[tuple[str, ...], Callable[[re.Match[str]], int]]]:
    """Run a relay; yield the options of a phone that pairs with it, and a function that sends the phone `POST /call`.

    The function takes the match of the phone's output with `PAIRED`, and returns the status.
    """
    with running_relay(home, env={"RELAY_TERMINAL_TMUX": "0"}) as (_, port):  # no shell process is left
        code = call(port, "POST", "/pairing").body["code"]
        options = ("--remote", f"ws://127.0.0.1:{port}", "--code", code, "--print-token", "--master", "on")
        yield options, lambda paired: call(port, "POST", "/call", CALL, token=paired[1]).status


def on_a_terminal(home: Path, *options: str) -> pexpect.spawn[str]:
    """Start the phone program on a terminal of its own."""
    program, *words = python("clients.phone", *options)
    return ForkedTerminal(program, words, cwd=str(ROOT), env=environment(home), encoding="utf-8", timeout=TIMEOUT)


def test_confirmation_at_a_terminal(tmp_path: Path) -> None:
    with relay_for_a_phone(tmp_path) as (options, phone_call), ThreadPoolExecutor() as callers:
        client = on_a_terminal(tmp_path, *options)
        client.expect(PAIRED)
        assert isinstance(client.match, re.Match)
        token = client.match
        calling = callers.submit(phone_call, token)
        client.expect(r"\? c1: allow call\?")
        client.expect("112233")
        client.sendline("n")
        client.expect("Blocked.* call")
        client.expect("c1 denied")
        assert calling.result(TIMEOUT) == 403
        calling = callers.submit(phone_call, token)
        client.expect(r"\? c2: allow call\?")
        client.sendline("a")
        assert calling.result(TIMEOUT) == 200
        client.expect("not asked about: call")
        assert phone_call(token) == 200
        client.sendline("off")
        client.expect(r"Device Control is off \(turn off\)")
        assert phone_call(token) == 403
        client.kill(signal.SIGTERM)
        assert finish(client)[0] == 0


def test_confirmation_through_a_pipe(tmp_path: Path) -> None:
    with (
        relay_for_a_phone(tmp_path) as (options, phone_call),
        ThreadPoolExecutor() as callers,
        running(tmp_path, "clients.phone", *options, "--ask", "--no-view", stdin=subprocess.PIPE) as client,
    ):
        paired = client.line(PAIRED)
        calling = callers.submit(phone_call, paired)
        client.line(r"\? c1: allow call\?")
        client.type("y")
        assert calling.result(TIMEOUT) == 200
        client.line("POST /call -> 200")
        client.type("shell echo $((40 + 2))")
        client.line("^42$")
        client.type("leave")
        client.line("- shell: left")
        client.type(None)
        assert phone_call(paired) == 403


@pytest.mark.parametrize(
    ("options", "status"),
    [
        *((options.split(), 403) for options in ("", "--deny", "--allow --master off", "--allow --store-build")),
        *((["--allow", "--without", sense], 403) for sense in ("accessibility", "overlay")),
        (["--allow", "--block", "com.example.launcher"], 403),
        (["--allow", "--block", "com.example.launcher", "--unblock", "com.example.launcher"], 200),
        (["--allow"], 200),
    ],
)
def test_calls_without_a_user(tmp_path: Path, options: list[str], status: int) -> None:
    with (
        relay_for_a_phone(tmp_path) as (where, phone_call),
        running(tmp_path, "clients.phone", *where, *options) as client,
    ):
        assert phone_call(client.line(PAIRED)) == status
        client.line(f"POST /call -> {status}")
