"""Servers under a supervisor: the socket that it opened, and what it is told."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runtimes.host import Program
from runtimes.listen import BindError, Listener, adopt, bind
from servers.supervised import given_socket, watcher
from tests.servers.support import ROOT, TIMEOUT, call, environment

LAUNCHER = """
import os, sys
os.dup2(int(sys.argv[1]), 3, inheritable=True)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.executable, [sys.executable, "-m", *sys.argv[2:]])
"""


@pytest.fixture
def supervisor(tmp_path: Path) -> socket.socket:
    """Where news comes to."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(str(tmp_path / "notify"))
    sock.settimeout(TIMEOUT)
    return sock


def test_a_socket_that_was_opened_for_it_and_the_news(tmp_path: Path, supervisor: socket.socket) -> None:
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


def test_sockets_of_others() -> None:
    mine = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "relay"}
    assert given_socket({}, "relay") is None
    assert given_socket(mine, "api") is None
    assert given_socket({**mine, "LISTEN_PID": "1"}, "relay") is None


def test_what_cannot_be_listened_on() -> None:
    a, b = socket.socketpair()
    unbound = socket.socket()
    for sock in (a, b, unbound):
        with pytest.raises(BindError, match="it is none of TCP that listens"):
            adopt(sock)
        assert sock.fileno() == -1


def test_who_is_told(tmp_path: Path, supervisor: socket.socket) -> None:
    def url_of(listener: Listener) -> str:
        return f"http://there:{listener.address.port}"

    with supervisor:
        assert watcher([], url_of, {}) == []
        assert watcher([], url_of, {"NOTIFY_SOCKET": "vsock:2:1"}) == []
        (program,) = watcher([], url_of, {"NOTIFY_SOCKET": str(tmp_path / "gone")})
        assert isinstance(program, Program)
        listener = bind("127.0.0.1", 0)
        listener.sock.close()
