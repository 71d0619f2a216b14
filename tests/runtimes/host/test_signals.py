import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtimes.scripted_core import TIMEOUT
from tests.support.forkserver import Popen, python, run

ROOT = Path(__file__).parents[3]


@contextmanager
def process(runtime: str, manners: str, *files: Path, stdin: int | None = None) -> Iterator[Popen]:
    command = python("tests.runtimes.host.signalled_program", runtime, manners, *map(str, files))
    with Popen(command, cwd=ROOT, stdin=stdin, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_stops_the_core(runtime: str, signum: signal.Signals) -> None:
    with process(runtime, "polite") as child:
        child.send_signal(signum)
        out, _ = child.communicate(timeout=TIMEOUT)
        assert out == "stopping 4.0\nover\n"
        assert child.returncode == 0


def test_the_second_signal_ends_at_once(runtime: str) -> None:
    with process(runtime, "stubborn") as child:
        child.send_signal(signal.SIGTERM)
        assert child.stdout is not None
        assert child.stdout.readline() == "stopping 4.0\n"
        child.send_signal(signal.SIGTERM)
        assert child.stdout.readline() == "last words\n"
        assert child.wait(TIMEOUT) == 128 + signal.SIGTERM


def test_hangup_reloads_with_a_certificate(runtime: str, certificate: tuple[Path, Path]) -> None:
    with process(runtime, "polite", *certificate) as child:
        assert child.stdout is not None
        for _ in range(2):
            child.send_signal(signal.SIGHUP)
            assert child.stdout.readline() == "reloading\n"
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=TIMEOUT)
        assert out == "stopping 4.0\nover\n"


def test_hangup_ends_the_process_without_a_certificate(runtime: str) -> None:
    with process(runtime, "polite") as child:
        child.send_signal(signal.SIGHUP)
        assert child.wait(TIMEOUT) == -signal.SIGHUP


def test_hangup_of_the_controlling_terminal_stops(runtime: str, certificate: tuple[Path, Path]) -> None:
    ours, theirs = os.openpty()
    try:
        with process(runtime, "polite", *certificate, stdin=theirs) as child:
            os.close(theirs)
            child.send_signal(signal.SIGHUP)
            assert child.stdout is not None
            assert child.stdout.readline() == "reloading\n"
            os.close(ours)
            ours = -1
            child.send_signal(signal.SIGHUP)  # as the kernel does where it is the controlling one
            out, _ = child.communicate(timeout=TIMEOUT)
            assert out == "stopping 4.0\nover\n"
            assert child.returncode == 0
    finally:
        if ours >= 0:
            os.close(ours)


def test_a_signal_while_the_loop_ends_changes_nothing(runtime: str) -> None:
    # from one place to the next; our own loop's shutdown has few
    lines = "3" if runtime in ("threads", "trio") else "23"
    command = python("tests.runtimes.host.interrupted_program", runtime, lines)
    done = run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stdout == "True {5}\n"
    assert done.stderr == ""
