"""Signals, in a process of their own, on every loop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtimes.support import TIMEOUT

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from svc_proto.commands import Exit, Ready
from svc_proto.facts import Reloading, Started, Stopping
from runtimes.host import Program
from runtimes.listen import bind
from runtimes.run import run
from runtimes.tls import server_context
from runtimes.waker import Handle

class Core:
    def handle(self, fact, now):
        if isinstance(fact, Started):
            return [Ready()]
        if isinstance(fact, Stopping):
            print("stopping", fact.grace, flush=True)
            return [Exit(0)] if sys.argv[2] == "polite" else []
        if isinstance(fact, Reloading):
            print("reloading", flush=True)
        return []

    def next_deadline(self):
        return None

tls = server_context(*sys.argv[3:]) if sys.argv[3:] else None
program = Program(core=Core(), listeners=[bind("127.0.0.1", 0, tls=tls)], on_ready=lambda: print("ready", flush=True))
handle = Handle()
handle.waker.last_words += [lambda: 1 // 0, lambda: print("last words", flush=True)]
code = run(program, sys.argv[1], handle=handle, grace=4.0)
print("over", flush=True)
sys.exit(code)
"""


@contextmanager
def process(runtime: str, manners: str, *files: Path, stdin: int | None = None) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-W", "error", "-c", PROGRAM, runtime, manners, *map(str, files)]
    with subprocess.Popen(command, cwd=ROOT, stdin=stdin, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_the_core(runtime: str, signum: signal.Signals) -> None:
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


def test_a_hangup_is_a_reload_where_there_is_a_certificate(runtime: str, certificate: tuple[Path, Path]) -> None:
    with process(runtime, "polite", *certificate) as child:
        assert child.stdout is not None
        for _ in range(2):
            child.send_signal(signal.SIGHUP)
            assert child.stdout.readline() == "reloading\n"
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=TIMEOUT)
        assert out == "stopping 4.0\nover\n"


def test_a_hangup_is_the_end_where_there_is_nothing_to_reload(runtime: str) -> None:
    with process(runtime, "polite") as child:
        child.send_signal(signal.SIGHUP)
        assert child.wait(TIMEOUT) == -signal.SIGHUP


def test_a_hangup_of_the_own_terminal_is_a_stop(runtime: str, certificate: tuple[Path, Path]) -> None:
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


# When the host is closed the loop ends, and every line of that is a place for a signal, until it is Python's again.
CLOSING = """
import signal, sys
from svc_proto.commands import Exit
from runtimes.host import Host, Program
from runtimes.run import run

class Core:
    def handle(self, fact, now):
        return [Exit(5)]

    def next_deadline(self):
        return None

def trace(frame, event, arg):
    global lines
    if event == "line" and lines is not None and signal.getsignal(signal.SIGINT) is not before:
        lines += 1
        if lines == at:
            signal.raise_signal(signal.SIGINT)
    return trace

def close(self):
    global lines
    closed(self)
    lines = 0

closed, Host.close = Host.close, close
before = signal.getsignal(signal.SIGINT)
at, codes, points = 0, set(), 0
while True:
    at, lines = at + int(sys.argv[2]), None
    sys.settrace(trace)
    code = run(Program(core=Core()), sys.argv[1])
    now, lines = lines, None
    sys.settrace(None)
    codes.add(code)
    assert signal.getsignal(signal.SIGINT) is before
    if now < at:
        break
    points += 1
print(points > 2, codes)
"""


def test_a_signal_while_the_loop_ends_changes_nothing(runtime: str) -> None:
    lines = "3" if runtime == "threads" else "23"  # from one place to the next; a bare selector ends in a few
    command = [sys.executable, "-W", "error", "-c", CLOSING, runtime, lines]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.stdout == "True {5}\n"
    assert done.stderr == "" or runtime == "trio"  # which closes its wake-up socket a moment before it lets signals go
