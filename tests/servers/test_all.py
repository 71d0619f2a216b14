from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from runtimes.tls import client_context
from servers import __main__ as everything
from svc_proto.commands import Tell
from tests.servers.conftest import Failing
from tests.servers.support import call, running, sign_in

CODE = "([A-Z0-9]{6})"
ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
LOCAL = ("--host", "127.0.0.1", "--port", "0")


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_a_code_is_shown_and_works(runtime: str, tmp_path: Path) -> None:
    with running(tmp_path, "servers", *LOCAL, runtime=runtime) as servers:
        port = int(servers.line(r"^relay: http://127\.0\.0\.1:(\d+) ")[1])
        shown = servers.line(rf"enter the code {CODE} at ws://127\.0\.0\.1:(\d+) within 10 minutes\.$")
        assert int(shown[2]) == port
        servers.line(r"^Invite URL \(holds credentials\): svc-relay://pair\?payload=\S+$")
        assert "session_token" in sign_in(port, pairing_code=shown[1])
        assert servers.stop() == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::1", "localhost"])
def test_every_address_that_loopback_is_part_of(tmp_path: Path, host: str) -> None:
    if ":" in host and not has_ipv6():
        pytest.skip("no IPv6 here")
    with running(tmp_path, "servers", "--host", host, "--port", "0") as servers:
        servers.line(rf"enter the code {CODE} at ws://")
        assert servers.stop() == 0


def test_over_tls_too(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    env = {"RELAY_SSL_CERT": str(certificate[0]), "RELAY_SSL_KEY": str(certificate[1])}
    with running(tmp_path, "servers", *LOCAL, env=env) as servers:
        shown = servers.line(rf"enter the code {CODE} at wss://127\.0\.0\.1:(\d+) ")
        assert call(int(shown[2]), "GET", "/health", tls=client_context(certificate[0])).status == 200
        assert servers.stop() == 0


@ONLY_LINUX
def test_an_address_without_loopback(tmp_path: Path) -> None:
    with running(tmp_path, "servers", "--host", "127.0.0.2", "--port", "0") as servers:
        shown = servers.line(rf"^Enter the code {CODE} at ws://127\.0\.0\.2:(\d+) within 10 minutes\.$")
        servers.line("--host 127.0.0.2 .*Use --host 0.0.0.0")
        assert "session_token" in sign_in(int(shown[2]), host="127.0.0.2", pairing_code=shown[1])
        assert servers.stop() == 0


@ONLY_LINUX
def test_the_operators_own_code_is_kept(tmp_path: Path) -> None:
    env = {"RELAY_PAIRING_CODE": "ABC123"}
    with running(tmp_path, "servers", "--host", "127.0.0.2", "--port", "0", env=env) as servers:
        assert servers.line(f"^Enter the code {CODE} at ")[1] == "ABC123"


def test_no_qr(tmp_path: Path) -> None:
    with running(tmp_path, "servers", *LOCAL, "--no-qr") as servers:
        servers.line("^relay: ")
        assert servers.stop() == 0
        assert not [line for line in servers.seen if "code" in line]


def test_a_qr_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    invite = {"qr_payload": "payload", "code": "ABC123", "relay_url": "ws://h:1", "pairing_url": "svc-relay://pair"}
    everything._show(Tell("invite", invite))
    plain = capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    everything._show(Tell("invite", invite))
    drawn = capsys.readouterr().out
    assert drawn.endswith(plain)
    assert "\u2588" in drawn


@pytest.mark.parametrize("why", ["it answered 403", "unreachable"])
def test_no_invite(capsys: pytest.CaptureFixture[str], why: str) -> None:
    everything._show(Tell("no invite", {"why": why}))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"No pairing code: the relay could not be asked ({why}).\n"


def test_errors_are_one_line(failing: Failing) -> None:
    assert failing(everything.main, "--nope")[0] == 2
    code, line = failing(everything.main, "--host", "203.0.113.7", "--port", "0")
    assert code == 2
    assert "203.0.113.7" in line


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        everything.main.main(["-h"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "--no-qr" in text
    assert "Examples:" in text
