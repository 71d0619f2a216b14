"""Fixtures for the commands: homes with and without a relay, and a certificate."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.commands.command_process import CommandHome, paired
from tests.runtimes.conftest import certificate
from tests.servers.program_process import relay_beside

__all__ = ["certificate", "home", "linked", "lonely", "other"]


@pytest.fixture
def lonely(tmp_path: Path) -> CommandHome:
    return CommandHome(tmp_path)


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[CommandHome]:
    """Yield a home with a relay on this host; the relay's terminals are bare shells."""
    env = {"RELAY_TERMINAL_SHELL": "/bin/sh", "RELAY_TERMINAL_TMUX": "0"}
    with relay_beside(tmp_path, env) as port:
        yield CommandHome(tmp_path, port)


@pytest.fixture
def home(linked: CommandHome) -> CommandHome:
    """Return a home whose desktop is paired."""
    paired(linked)
    return linked


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the files of a second certificate for the same names, with another key."""
    make: Callable[[pytest.TempPathFactory], tuple[Path, Path]] = inspect.unwrap(certificate)  # the function itself
    return make(tmp_path_factory)
