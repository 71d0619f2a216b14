"""Tests of the end of a process: its exit code, and Ctrl-C while the interpreter closes."""

import signal
import subprocess
import sys
import threading

import pytest

from runtimes.host.exit_process import exit_process
from tests.servers.program_process import ROOT

# A thread that Python waits for during its shutdown, and that prints a line then.
LEAVES = """
import signal, sys, threading
from runtimes.host.exit_process import exit_process

def linger():
    threading.main_thread().join()
    print("leaving", flush=True)
    sys.stdin.read()

threading.Thread(target=linger).start()
{before}
exit_process(7)
"""


def run(before: str = "") -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", LEAVES.format(before=before)]
    process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "leaving\n"
    return process


def test_an_interrupt_ends_the_process_silently() -> None:
    process = run()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == -signal.SIGINT
    assert process.communicate() == ("", "")


def test_the_code_after_an_ignored_interrupt() -> None:
    process = run("signal.signal(signal.SIGINT, signal.SIG_IGN)")
    process.send_signal(signal.SIGINT)
    assert process.communicate("", timeout=30) == ("", "")
    assert process.returncode == 7


def test_signals_are_unchanged_in_other_threads() -> None:
    before, codes = signal.getsignal(signal.SIGINT), []

    def end() -> None:
        with pytest.raises(SystemExit) as caught:
            exit_process(3)
        codes.append(caught.value.code)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert codes == [3]
    assert signal.getsignal(signal.SIGINT) is before
