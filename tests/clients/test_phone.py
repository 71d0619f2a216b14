from __future__ import annotations

import socket
from pathlib import Path

import pytest

from clients.phone import __main__ as phone
from svc_proto.commands import Tell
from tests.servers.conftest import Failing
from tests.servers.support import call, running, running_relay, sign_in

TOKEN = "1c2d3e4f-0000-4000-8000-000000000001"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


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


def test_a_relay_that_is_not_there(runtime: str, tmp_path: Path) -> None:
    options = ("--remote", f"ws://127.0.0.1:{free_port()}", "--token", TOKEN)
    with running(tmp_path, "clients.phone", *options, runtime=runtime) as client:
        client.line(r"^offline: next try in 1\.\d s$")
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
        (["--code", "ABC123"], "--remote"),
        (["--remote", "ws://h"], "--code or --token"),
        (["--remote", "ws://h", "--code", ""], "--code or --token"),
        (["--remote", "http://h", "--code", "ABC123"], "ws:// or wss://"),
        (["--remote", "h:8767", "--code", "ABC123"], "--remote"),
        (["--remote", "ws://u:secret@h", "--code", "ABC123"], "--remote"),
        (["--remote", "ws://h", "--code", "ABC123", "--brand", "acme"], "--brand"),
        (["--remote", "ws://h", "--code", "ABC123", "--runtime", "twisted"], "--runtime"),
    ],
)
def test_bad_options(failing: Failing, arguments: list[str], said: str) -> None:
    code, line = failing(phone.main, *arguments)
    assert code == 2
    assert said in line
    assert "secret" not in line


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        phone.main.main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "Examples:" in text
    assert "--print-token" in text


@pytest.mark.parametrize(
    ("news", "line"),
    [
        (Tell("paired", {"token": TOKEN}), "paired: session 1c2d3e4f…"),
        (Tell("offline", {"retry_in": 1.25}), "offline: next try in 1.2 s"),
        (Tell("performed", {"method": "GET", "path": "/ping", "status": 200}), "GET /ping -> 200"),
        (Tell("performed", {"method": "GET", "path": "/\x1b[2J", "status": 404}), "'GET /\\x1b[2J' -> 404"),
    ],
)
def test_news(capsys: pytest.CaptureFixture[str], news: Tell, line: str) -> None:
    phone._show(news, print_token=False)
    assert capsys.readouterr().out == f"{line}\n"
