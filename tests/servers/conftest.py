"""Fixtures: a certificate, and a run of a program that cannot start; and a report of proxies that are not installed."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which

import pytest

from servers.options import ProgramCommand
from tests.runtimes.conftest import certificate
from tests.servers.program_process import FOREIGN, SYSTEM_PATH
from tests.support.restored_logger import restored_logger

__all__ = ["certificate", "failing"]

MISSING = [program for program in ("nginx", "caddy") if which(program, path=SYSTEM_PATH) is None]

Failing = Callable[..., tuple[int, str]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for program in MISSING:
        terminalreporter.write_line(f"{program} is not installed: the servers were not tested behind it")


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Failing]:
    """Yield a function that runs a program which cannot start, in this process.

    It returns the exit code, and the program's only line without `error: `.
    """
    for name in list(os.environ):
        if name.startswith(FOREIGN):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "svc"))

    def run(command: ProgramCommand, *arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as caught:
            command.main(list(arguments))
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert isinstance(caught.value.code, int)
        return caught.value.code, err.removeprefix("error: ").rstrip("\n")

    with restored_logger("svc"):
        yield run
