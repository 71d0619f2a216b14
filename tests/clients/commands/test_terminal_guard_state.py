"""Tests of the terminal's modes and blocking flags after a command has ended in several ways."""

from __future__ import annotations

import os
import re
import signal
import sys
import termios
from collections.abc import Callable

import pexpect
import pytest

from tests.clients.commands.command_process import CommandHome, finish, module
from tests.clients.commands.test_shell import PROMPT
from tests.servers.program_process import ROOT, TIMEOUT
from tests.support.forkserver import ForkedTerminal, python, run


def around(linked: CommandHome, words: list[str]) -> tuple[pexpect.spawn[str], int]:
    """Start a command on a terminal, under `terminal_observer`; return the terminal and the command's process id."""
    command, *arguments = python("tests.support.terminal_observer", *words)
    terminal = ForkedTerminal(command, arguments, cwd=str(ROOT), env=linked.env, encoding="utf-8", timeout=TIMEOUT)
    terminal.logfile_read = sys.stdout  # shown when the test fails
    terminal.expect(r"<pid (\d+)>")
    assert isinstance(terminal.match, re.Match)
    return terminal, int(terminal.match[1])


def shell(linked: CommandHome) -> tuple[pexpect.spawn[str], int]:
    """Open a remote shell by `svc-relay shell`; return the terminal and the command's process id."""
    terminal, pid = around(linked, [*module("svc-relay"), "shell"])
    terminal.expect(PROMPT)
    assert not termios.tcgetattr(terminal.child_fd)[3] & termios.ICANON
    return terminal, pid


def outcome(terminal: pexpect.spawn[str]) -> int:
    """Wait for the command's end, and return its status; assert that the terminal is restored."""
    terminal.expect(r"<status (-?\d+), ([^>]+)>")
    assert isinstance(terminal.match, re.Match)
    assert terminal.match[2] == "restored"
    status = int(terminal.match[1])
    assert finish(terminal)[0] == 0
    return status


@pytest.mark.parametrize(("keys", "shown", "status"), [("exit 7\r", "ended with status 7]", 7), ("\x1d", "", 0)])
def test_the_shell_ends_or_is_left(home: CommandHome, keys: str, shown: str, status: int) -> None:
    terminal, _ = shell(home)
    terminal.send(keys)
    terminal.expect_exact(shown)
    assert outcome(terminal) == status


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_one_signal(home: CommandHome, signum: signal.Signals) -> None:
    terminal, pid = shell(home)
    os.kill(pid, signum)
    assert outcome(terminal) == 130


def test_two_signals(home: CommandHome, runtime: str) -> None:
    home.runtime = runtime
    home.more = {"SVC_DEBUG": "1"}
    terminal, pid = shell(home)
    # both are pending at the same instant
    for signum in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
        os.kill(pid, signum)
    assert outcome(terminal) in (130, 143)


@pytest.mark.parametrize("signum", [signal.SIGHUP, signal.SIGQUIT])
def test_signals_that_kill(home: CommandHome, signum: signal.Signals) -> None:
    terminal, pid = shell(home)
    os.kill(pid, signum)
    assert outcome(terminal) == -signum


CRASH = """
import sys
from clients.commands import terminal_guard
from svc_proto.cli import shell
def crash(*args):
    raise RuntimeError("a secret")
{line}
from clients.commands.svc_relay import main
main(args=["shell"], prog_name="svc-relay")
"""


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("shell.ShellService.typed = crash", 1),  # in the core: that channel is closed
        (
            "raw = terminal_guard.TerminalGuard.raw; terminal_guard.TerminalGuard.raw = lambda self: crash(raw(self))",
            70,
        ),
        ("shell.ShellService._ended = crash", 70),
    ],
)
def test_a_crash(home: CommandHome, line: str, status: int) -> None:
    terminal, _ = around(home, [sys.executable, "-c", CRASH.format(line=line)])
    terminal.sendline("exit")
    terminal.expect("error: ")
    assert "a secret" not in str(terminal.before)
    assert "Traceback" not in str(terminal.before)
    assert outcome(terminal) == status


# --- the other commands -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stop", "status"), [(pexpect.spawn.sendintr, 130), (pexpect.spawn.sendeof, 2)], ids=["Ctrl-C", "Ctrl-D"]
)
def test_at_a_prompt(linked: CommandHome, stop: Callable[[pexpect.spawn[str]], None], status: int) -> None:
    terminal, pid = around(linked, [*module("svc-relay"), "pair", "--remote", linked.url])
    terminal.expect_exact("Pairing code: ")
    while is_awake(pid):  # a signal just before Python's `read` is handled only when that has returned
        pass
    stop(terminal)
    assert outcome(terminal) == status


def is_awake(pid: int) -> bool:
    """Report whether a process is gone, or in another state than `S`, interruptible sleep."""
    state: str = run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return state != "S"


def test_standard_input_stays_blocking_for_the_next_command(home: CommandHome) -> None:
    """After a command, a shell script can read on: its standard input is in blocking mode again."""
    words = " ".join(module("svc-relay"))
    script = f'{words} shell; IFS= read -r line && echo "got=$line"'
    terminal = pexpect.spawn("/bin/sh", ["-c", script], cwd=str(ROOT), env=home.env, encoding="utf-8", timeout=TIMEOUT)
    terminal.expect(PROMPT)
    terminal.send("\x1d")
    terminal.expect_exact("[detached from default")
    terminal.sendline("more")
    terminal.expect_exact("got=more")
    assert finish(terminal)[0] == 0


def test_without_a_terminal_the_input_is_typed(home: CommandHome) -> None:
    done = home.run("svc-relay", "shell", text="echo typed-$((2 + 2))\nexit 5\n")
    assert (done.code, done.err) == (5, "")
    assert "typed-4" in done.out
