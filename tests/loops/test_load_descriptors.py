"""Tests of a relay with few free file descriptors."""

import os
import re
import resource
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from tests.loops.clients import PATIENCE
from tests.loops.live_environment import ROOT, LiveConnection
from tests.loops.raw_http import read_response
from tests.support.forkserver import Popen, python

DESCRIPTORS = 64
FEW = (DESCRIPTORS, DESCRIPTORS)
PLACES = DESCRIPTORS // 2  # for connections; the other half is for files and shells
CROWD = 100  # connections: more than the relay can have
WATCHED = 0.4  # s; time for four attempts
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
ONLY_LINUX = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits a running process")


class Scarce:
    """`python -m servers.relay` with a low limit of descriptors from its start or later, or with the usual limit."""

    def __init__(self, loop: str, home: Path, *, at_start: bool = False, few: bool = True) -> None:
        self._log = home / "relay.log"
        # Coverage measurement needs descriptors of its own.
        env = {key: value for key, value in os.environ.items() if not key.startswith(("COVERAGE_", "COV_CORE_"))}
        with self._log.open("wb") as log:
            self.process = Popen(
                python("servers.relay", "--host", "127.0.0.1", "--port", "0", "--runtime", loop),
                cwd=ROOT,
                env={**env, "SVC_HOME": str(home)},
                stderr=log,
                preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, FEW)) if at_start else None,
            )
        self.port = self._announced()
        if few:
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, FEW)

    def _announced(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            found = re.search(r"relay: http://127\.0\.0\.1:(\d+) ", self.log())
            if found is not None:
                return int(found[1])
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.01)
        raise AssertionError(f"the relay did not start: {self.log()}")

    def log(self) -> str:
        return self._log.read_text()

    def connect(self) -> LiveConnection:
        return LiveConnection(socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE))

    def cpu(self) -> float:
        return sum(psutil.Process(self.process.pid).cpu_times()[:2])

    def descriptors(self) -> int:
        return psutil.Process(self.process.pid).num_fds()


@pytest.fixture
def scarce(runtime: str, tmp_path: Path) -> Iterator[Scarce]:
    relay = Scarce(runtime, tmp_path)
    yield relay
    relay.process.kill()
    relay.process.wait()


def healthy(wire: LiveConnection) -> bool:
    wire.send(HEALTH)
    return read_response(wire)[0] == 200


@ONLY_LINUX
def test_descriptors_run_out_and_come_back(scarce: Scarce) -> None:
    with ExitStack() as stack:
        first = scarce.connect()
        stack.callback(first.close)
        assert healthy(first)
        before = scarce.descriptors()
        crowd = [scarce.connect() for _ in range(CROWD)]  # the kernel accepts connections that the relay cannot
        for wire in crowd:
            stack.callback(wire.close)
            wire.send(HEALTH)
        deadline = time.monotonic() + PATIENCE
        while scarce.descriptors() < DESCRIPTORS:
            assert time.monotonic() < deadline, scarce.log()

        assert healthy(first)  # the earlier connections are answered
        cpu = scarce.cpu()
        with pytest.raises(subprocess.TimeoutExpired):
            scarce.process.wait(WATCHED)
        assert scarce.cpu() - cpu < WATCHED / 3, "it spins"
        assert healthy(first)
        assert scarce.log().count("accept.exhausted") == 1

        served = 0
        for wire in crowd:  # each closed connection frees a descriptor for a waiting one
            assert read_response(wire)[0] == 200
            served += 1
            wire.close()
        assert served == CROWD
        assert healthy(first)
        fresh = scarce.connect()
        stack.callback(fresh.close)
        assert healthy(fresh)
        while scarce.descriptors() > before + 1:
            assert time.monotonic() < deadline + PATIENCE, scarce.log()

    scarce.process.terminate()
    assert scarce.process.wait(PATIENCE) == 0
    assert scarce.log().count("accept.exhausted") == 1
    assert " ERROR " not in scarce.log()


@ONLY_LINUX
def test_connections_leave_descriptors_to_files_and_shells(tmp_path: Path) -> None:
    relay = Scarce("anyio", tmp_path, at_start=True)
    try:
        with ExitStack() as stack:
            crowd = [relay.connect() for _ in range(PLACES)]
            for wire in crowd:
                stack.callback(wire.close)
                assert healthy(wire)
            with suppress(ConnectionResetError):  # before `connect` has returned
                late = relay.connect()
                stack.callback(late.close)
                assert late.read_all() == b""
            assert relay.descriptors() < DESCRIPTORS - 8
            crowd.pop().close()
            assert all(healthy(wire) for wire in crowd)
        assert "too many connections" in relay.log()
        assert "accept.exhausted" not in relay.log()
    finally:
        relay.process.kill()
        relay.process.wait()
