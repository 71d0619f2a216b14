"""Tests of servers under a supervisor: passed listeners, and readiness notifications."""

import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from runtimes.host.host import Program
from runtimes.net.listener import BindError, Listener, adopt_listener, bind
from servers import supervision
from servers.api_program import read_api_config
from servers.dashboard_program import read_dashboard_config
from servers.launch import CannotStartError, inner_url
from servers.relay_program import read_relay_config
from servers.supervision import inherited_address, inherited_socket, readiness_programs
from svc_proto.cli import readiness_watch
from svc_proto.cli.readiness_watch import ReadinessWatch
from svc_proto.engine.core import Engine
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from tests.servers.program_process import ROOT, TIMEOUT, call, environment

Given = Callable[[str, str], dict[str, str]]

LAUNCHER = """
import os, sys
os.dup2(int(sys.argv[1]), 3, inheritable=True)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.executable, [sys.executable, "-m", *sys.argv[2:]])
"""


@pytest.fixture
def supervisor(tmp_path: Path) -> socket.socket:
    """Return a Unix socket that receives the notifications."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(str(tmp_path / "notify"))
    sock.settimeout(TIMEOUT)
    return sock


def test_a_passed_listener_and_notifications(tmp_path: Path, supervisor: socket.socket) -> None:
    with supervisor, socket.create_server(("127.0.0.1", 0)) as opened:
        fd, port = opened.fileno(), opened.getsockname()[1]
        words = [sys.executable, "-c", LAUNCHER, str(fd), "servers.relay", "--port", "9", "--host", "203.0.113.1"]
        news = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000"}
        env = environment(tmp_path, {**news, "LISTEN_FDS": "1", "LISTEN_FDNAMES": "relay"})
        with subprocess.Popen(words, cwd=ROOT, env=env, pass_fds=(fd,), stderr=subprocess.DEVNULL) as process:
            try:
                assert supervisor.recv(4096) == b"READY=1\nSTATUS=relay: svc status"
                assert supervisor.recv(4096) == b"WATCHDOG=1"
                assert call(port, "GET", "/health").status == 200
            finally:
                process.send_signal(signal.SIGTERM)
            while (said := supervisor.recv(4096)) == b"WATCHDOG=1":
                pass
            assert said.startswith(b"STOPPING=1\n")
            assert process.wait(TIMEOUT) == 0


def test_sockets_of_other_programs_are_ignored() -> None:
    mine = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "relay"}
    assert inherited_socket({}, "relay") is None
    assert inherited_socket(mine, "api") is None
    assert inherited_socket({**mine, "LISTEN_PID": "1"}, "relay") is None


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Given]:
    """Yield a function that returns the environment of a server with a passed listener."""
    opened: list[socket.socket] = []

    def give(role: str, host: str) -> dict[str, str]:
        opened.append(bind(host, 0).sock)
        monkeypatch.setattr(supervision, "SD_LISTEN_FDS_START", opened[-1].fileno())
        mine = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": role}
        return {**mine, "SVC_HOME": str(tmp_path), "SVC_CONFIG": str(tmp_path / "config.yaml")}

    yield give
    for sock in opened:
        sock.close()


@pytest.mark.parametrize("setting", ["127.0.0.1", "203.0.113.1"])
def test_the_configuration_has_the_address_of_a_passed_socket(given: Given, setting: str) -> None:
    assert inherited_address(given("api", "127.0.0.1"), "relay") == {}
    relay = read_relay_config({**given("relay", "127.0.0.1"), "RELAY_HOST": setting}, {"host": setting, "port": 9})
    assert relay.host == "127.0.0.1"
    assert relay.port not in (0, 9)
    api = read_api_config({**given("api", "0.0.0.0"), "API_SERVER_HOST": setting}, {"host": setting})
    assert api.host == "0.0.0.0"


def test_a_short_key_is_refused_on_a_given_socket_too(given: Given) -> None:
    with pytest.raises(CannotStartError, match="at least 16 characters"):
        read_api_config({**given("api", "0.0.0.0"), "API_SERVER_KEY": "short"}, {})
    assert read_api_config({**given("api", "127.0.0.1"), "API_SERVER_KEY": "short"}, {"host": "::"}).key == "short"


@pytest.mark.parametrize("more", [{}, {"API_SERVER_HOST": "127.0.0.1"}])
@pytest.mark.parametrize("options", [{}, {"host": "127.0.0.1"}])
def test_the_api_beside_a_relay_has_a_key_on_a_given_socket_too(
    given: Given, more: Mapping[str, str], options: Mapping[str, str]
) -> None:
    assert read_api_config({**given("api", "127.0.0.1"), **more}, options, beside="0.0.0.0").key == ""
    found = read_api_config({**given("api", "0.0.0.0"), **more}, options, beside="127.0.0.1")
    assert len(found.key) > 30


def test_no_dashboard_without_a_password_on_a_given_socket(given: Given) -> None:
    with pytest.raises(CannotStartError, match="needs a password"):
        read_dashboard_config(given("dashboard", "0.0.0.0"), {"host": "127.0.0.1"})
    assert read_dashboard_config(given("dashboard", "127.0.0.1"), {"host": "::"}).host == "127.0.0.1"


def test_sockets_without_an_address(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    env = given("relay", "127.0.0.1")
    a, b = socket.socketpair()
    with a, b:
        monkeypatch.setattr(supervision, "SD_LISTEN_FDS_START", a.fileno())
        assert inherited_address(env, "relay") == {}
    assert inherited_address(env, "relay") == {}


def test_sockets_that_do_not_listen_are_refused() -> None:
    a, b = socket.socketpair()
    unbound = socket.socket()
    for sock in (a, b, unbound):
        with pytest.raises(BindError, match="it is none of TCP that listens"):
            adopt_listener(sock)
        assert sock.fileno() == -1


def test_readiness_programs(tmp_path: Path, supervisor: socket.socket) -> None:
    def url_of(listener: Listener) -> str:
        return f"http://there:{listener.address.port}"

    with supervisor:
        assert readiness_programs([], url_of, {}) == []
        assert readiness_programs([], url_of, {"NOTIFY_SOCKET": "vsock:2:1"}) == []
        (program,) = readiness_programs([], url_of, {"NOTIFY_SOCKET": str(tmp_path / "gone")})
        assert isinstance(program, Program)


def test_each_server_must_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[tuple[Sequence[str], float | None]] = []

    class RecordedWatch(ReadinessWatch):
        def __init__(self, urls: Sequence[str], watchdog: float | None) -> None:
            watched.append((urls, watchdog))
            super().__init__(urls, watchdog)

    monkeypatch.setattr(readiness_watch, "ReadinessWatch", RecordedWatch)
    opened = [bind("127.0.0.1", 0) for _ in range(4)]
    behind = evolve(opened[0], tls=ssl.create_default_context())
    core = Engine(Relay(RelayConfig()), entropy=os.urandom)
    programs = [Program(core=core, listeners=[behind, *opened[1:3]]), Program(core=core, reserved=opened[3:])]
    assert readiness_programs(programs, inner_url, {"NOTIFY_SOCKET": "@here", "WATCHDOG_USEC": "5000000"})
    assert watched == [([f"http://127.0.0.1:{opened[n].address.port}" for n in (2, 3)], 5.0)]
    for listener in opened:
        listener.sock.close()
