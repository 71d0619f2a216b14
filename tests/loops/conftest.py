"""Fixtures of the environments of a test: with or without a relay, on planned loops or in the simulator."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which

import pytest

from tests.loops.cluster_environment import ClusterEnvironment
from tests.loops.environment import Environment
from tests.loops.live_environment import LiveEnvironment
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.runtimes.conftest import certificate as certificate
from tests.runtimes.redis_server import RedisServer

# The simulator tests these lengths; on a real loop they would only cost time.
PAUSES = ("svc_proto.phone.service.FIRST_PAUSE", "svc_proto.api.routes.runs.EVENT_WAIT")
SHORT = 0.05  # s


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if which("tmux") is None:
        terminalreporter.write_line("tmux is not installed: terminals were tested without it only")


@contextmanager
def open_world(name: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[Environment]:
    def made() -> tuple[Path, Path]:
        files: tuple[Path, Path] = request.getfixturevalue("certificate")
        return files

    with pytest.MonkeyPatch.context() as patch:
        if name == "sim":
            world: Environment = SimulatedEnvironment()
        elif name == "nodes":
            world = ClusterEnvironment()
        else:
            world = LiveEnvironment(name, folder, made)
            for pause in PAUSES:
                patch.setattr(pause, SHORT)
        try:
            yield world
        finally:
            world.close()


@pytest.fixture
def world(any_loop: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Environment]:
    with open_world(any_loop, tmp_path, request) as opened:
        yield opened


@pytest.fixture
def host(runtime: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Environment]:
    """Yield a real environment, where programs can run."""
    with open_world(runtime, tmp_path, request) as opened:
        yield opened


@pytest.fixture
def hermetic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the test a home and tmux servers of its own; the tmux servers are killed at the end."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    for name in ("TMUX", "ENV", "BASH_ENV", "PS1"):
        monkeypatch.delenv(name, raising=False)
    yield
    for place in tmp_path.glob("tmux-*/*"):
        subprocess.run(["tmux", "-S", place, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path, db=1) as server:
        yield server


@pytest.fixture(scope="module")
def served(
    any_loop: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Environment]:
    with open_world(any_loop, tmp_path_factory.mktemp("served"), request) as opened:
        opened.start_relay()
        yield opened


@pytest.fixture
def relayed(world: Environment) -> Environment:
    world.start_relay()
    return world


@pytest.fixture(params=["sim"])
def virtual_world() -> Iterator[SimulatedEnvironment]:
    opened = SimulatedEnvironment()
    opened.start_relay()
    yield opened
    opened.close()
