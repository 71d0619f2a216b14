"""Fixtures of the runtimes: a certificate, a FIFO for children, and a check for leftover children and descriptors."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtimes.certificates import make_certificate
from tests.runtimes.processes.spawned_child import children
from tests.runtimes.scripted_core import Files, running


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Return the files of a self-signed certificate for localhost and 127.0.0.1, and of its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def files(request: pytest.FixtureRequest, certificate: Files) -> Files | None:
    """Run the test over plain TCP, with None, and over TLS, with the files of a certificate."""
    return certificate if request.param else None


@pytest.fixture
def nothing_is_left(runtime: str) -> Iterator[None]:
    """Check that there are the same child processes after the test as before it, and no more open descriptors."""
    with running(runtime):
        pass  # the first run of a loop opens lasting descriptors
    before = children()
    fds = len(os.listdir("/proc/self/fd"))
    yield
    assert children() == before
    assert len(os.listdir("/proc/self/fd")) <= fds


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Return a new FIFO, at which a child can wait for a line from the test."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path
