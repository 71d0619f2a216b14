from __future__ import annotations

import os
import shutil
import signal
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.clients.commands.command_process import CommandHome, finish, module, paired
from tests.runtimes.processes.spawned_child import wait_gone
from tests.servers.program_process import ROOT, TIMEOUT, call, running_relay
from tests.servers.relay_cluster import until

PROMPT = "[$#] "
HAS_TMUX = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[CommandHome]:
    """Yield a home that is paired with a relay that uses tmux; its commands get the relay's process id as $RELAY."""
    env = {"RELAY_TERMINAL_SHELL": "/bin/sh", "TMUX_TMPDIR": str(tmp_path)}
    with running_relay(tmp_path, env=env) as (relay, port):
        linked = CommandHome(tmp_path, port, more={"RELAY": str(relay.process.pid)})
        paired(linked)
        yield linked
    subprocess.run(
        ["tmux", "-L", "svc-relay", "kill-server"], env={**os.environ, **env}, capture_output=True, check=False
    )


def wait_no_sessions(tmux: CommandHome) -> None:
    """Wait until `svc-relay sessions` lists none: tmux ends a session some time after the program in it."""
    until(lambda: tmux.run("svc-relay", "sessions", "--json").json == [], "the session ends")


def test_at_a_terminal(home: CommandHome, runtime: str) -> None:
    home.runtime = runtime
    terminal = home.spawn("svc-relay", "shell")
    before = termios.tcgetattr(terminal.child_fd)
    terminal.expect(PROMPT)
    assert termios.tcgetattr(terminal.child_fd) != before
    terminal.sendline("echo $((40 + 2)); stty size")
    terminal.expect("42\r\n")
    terminal.expect("24 100")
    terminal.expect(PROMPT)
    terminal.setwinsize(30, 120)
    # The new size travels separately from input: poll until it has arrived.
    terminal.sendline("until [ \"$(stty size)\" = '30 120' ]; do :; done; echo res''ized")
    terminal.expect("resized")
    terminal.sendline("cat")
    terminal.sendline("meow")
    terminal.expect("meow\r\n.*meow\r\n")  # the echoed input, and the output of cat: it runs
    terminal.sendintr()
    terminal.expect(PROMPT)
    terminal.sendline("echo still-$((1 + 1))")
    terminal.expect("still-2")
    terminal.sendline("exit")
    terminal.expect_exact("[the shell has ended]")
    assert termios.tcgetattr(terminal.child_fd) == before
    assert finish(terminal)[0] == 0


def test_no_sessions(home: CommandHome) -> None:
    assert home.run("svc-relay", "sessions").out.startswith("No terminal sessions: svc-relay shell opens one")


def test_detaching_from_a_bare_shell(home: CommandHome) -> None:
    terminal = home.spawn("svc-relay", "shell", "--session", "work", "--escape", "^\\")
    terminal.expect(PROMPT)
    terminal.send("\x1d")  # is not the key now
    terminal.send("\x1c")
    terminal.expect_exact("[detached from work; svc-relay shell --session work comes back to it]")
    assert finish(terminal)[0] == 0


@HAS_TMUX
def test_detach_and_reattach(tmux: CommandHome) -> None:
    terminal = tmux.spawn("svc-relay", "shell")
    terminal.expect(PROMPT)
    terminal.sendline("echo left-$((1 + 1))")
    terminal.expect("left-2")
    terminal.send("\x1d")
    terminal.expect_exact("[detached from default")
    assert finish(terminal)[0] == 0
    (row,) = tmux.run("svc-relay", "sessions", "--json").json
    assert (row["name"], row["live"]) == ("default", False)
    assert tmux.run("svc-relay", "sessions").out.splitlines()[1].split()[:3] == ["default", "waiting", "0"]
    terminal = tmux.spawn("svc-relay", "shell")
    terminal.expect("left-2")
    terminal.send("\x1d")
    assert finish(terminal)[0] == 0
    assert tmux.run("svc-relay", "sessions", "kill", "default").out == "Ended default.\n"
    assert tmux.run("svc-relay", "sessions", "--json").json == []
    assert "there is no such session" in tmux.run("svc-relay", "sessions", "kill", "default").problem


@HAS_TMUX
def test_one_command_under_tmux(tmux: CommandHome) -> None:
    done = tmux.run("svc-relay", "shell", "--exec", "seq 1 5000; exit 7")
    assert (done.code, done.out) == (7, "".join(f"{n}\n" for n in range(1, 5001)))


@HAS_TMUX
def test_one_command_under_tmux_with_a_slow_relay(tmux: CommandHome) -> None:
    """A command's output arrives complete, though tmux discards what a stopped relay has not read (TCOFLUSH)."""
    stopped = f"kill -STOP {tmux.more['RELAY']}; (sleep 0.5; kill -CONT {tmux.more['RELAY']}) >/dev/null 2>&1 &"
    done = tmux.run("svc-relay", "shell", "--exec", f"{stopped} echo last words; exit 7")
    assert (done.code, done.out) == (7, "last words\n")


@pytest.mark.parametrize(
    ("command", "code", "out"),
    [
        ("echo 'a b'; exit 3", 3, "a b\n"),
        ("printf noeol", 0, "noeol"),
        ("true", 0, ""),
        ("seq 1 20000 | tail -1", 0, "20000\n"),
        ("cat; exit 5", 5, ""),  # it reads, and there is no input
    ],
)
def test_one_command(home: CommandHome, command: str, code: int, out: str) -> None:
    done = home.run("svc-relay", "shell", "--exec", command)
    assert (done.code, done.out, done.err) == (code, out, "")


def test_one_command_at_a_terminal(home: CommandHome) -> None:
    terminal = home.spawn("svc-relay", "shell", "--exec", "read line; echo got-$line; exit 4")
    terminal.sendline("this")
    terminal.expect("got-this\r\n")
    assert finish(terminal)[0] == 4


LASTS = """sh -c 'echo rea""dy; exec sleep 60'; echo done"""  # the printed text means that the sleep can be interrupted


def interrupted(terminal: pexpect.spawn[str]) -> None:
    """Interrupt the command with Ctrl-C; check that it does not print `done`, and that the client exits with 130."""
    terminal.expect_exact("ready")
    terminal.sendintr()
    status, shown = finish(terminal)
    assert (status, "done" in shown) == (130, False)


def test_ctrl_c_ends_a_command(home: CommandHome) -> None:
    interrupted(home.spawn("svc-relay", "shell", "--exec", LASTS))


@HAS_TMUX
def test_ctrl_c_ends_a_command_and_its_session_under_tmux(tmux: CommandHome) -> None:
    interrupted(tmux.spawn("svc-relay", "shell", "--exec", LASTS))
    wait_no_sessions(tmux)
    terminal = tmux.spawn("svc-relay", "shell", "--exec", "trap '' INT; echo rea''dy; sleep 60")
    terminal.expect_exact("ready")
    terminal.sendintr()
    terminal.sendintr()  # the program ignores it: ended by the client
    assert finish(terminal)[0] == 130
    wait_no_sessions(tmux)


@HAS_TMUX
def test_an_interrupted_client_ends_its_command_and_session(tmux: CommandHome) -> None:
    command = subprocess.Popen(
        [*module("svc-relay"), "shell", "--exec", "echo $$; sleep 60; true"],
        cwd=ROOT, env=tmux.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    with command:
        assert command.stdout is not None
        pid = int(command.stdout.readline())
        command.send_signal(signal.SIGINT)
        assert command.wait(TIMEOUT) == 130
    wait_no_sessions(tmux)
    wait_gone(pid)


@HAS_TMUX
def test_standard_input_is_typed_under_tmux(tmux: CommandHome, tmp_path: Path) -> None:
    """Standard input that is no terminal is typed into the shell, and the tmux session ends with it.

    What a program prints just before it ends may be missing in the output: tmux does not draw it any more.
    """
    typed = tmp_path / "typed"
    assert tmux.run("svc-relay", "shell", text=f"echo typed-$((2 + 2)) >{typed}\n").code == 0
    assert typed.read_text() == "typed-4\n"
    assert tmux.run("svc-relay", "shell", text="").code == 0
    wait_no_sessions(tmux)


def test_the_relay_restarts(tmp_path: Path) -> None:
    env = {"RELAY_TERMINAL_SHELL": "/bin/sh", "RELAY_TERMINAL_TMUX": "0"}
    linked = CommandHome(tmp_path)
    with running_relay(tmp_path, env=env) as (_, linked.port):
        paired(linked)
        terminal = linked.spawn("svc-relay", "shell")
        terminal.expect(PROMPT)
    terminal.expect("trying again in 1 s")
    with running_relay(tmp_path, env=env, port=linked.port):
        terminal.expect_exact("[the old shell is gone: this is a new one]")
        terminal.expect(PROMPT)
        terminal.sendline("echo again-$((1 + 1))")
        terminal.expect("again-2")
    terminal.expect("trying again in 1 s")
    terminal.sendintr()
    assert finish(terminal)[0] == 130


def test_a_revoked_session(home: CommandHome) -> None:
    terminal = home.spawn("svc-relay", "shell")
    before = termios.tcgetattr(terminal.child_fd)
    terminal.expect(PROMPT)
    (record,) = call(home.port, "GET", "/sessions").body["sessions"]
    call(home.port, "DELETE", f"/sessions/{record['token_prefix']}")
    terminal.expect("error: the relay refuses: .*; pair again: svc-relay pair")
    assert termios.tcgetattr(terminal.child_fd) == before
    assert finish(terminal)[0] == 1
