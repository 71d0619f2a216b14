"""Tests of child processes: terminals and pipes, signals, backpressure."""

import errno
import json
import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from runtimes.net import outbox
from runtimes.processes import child_output
from svc_proto import commands
from svc_proto.facts import ChannelId, Closed, Fact, ReadClosed, Received, Sent
from tests.runtimes.processes.spawned_child import CH, ERR, SIZE, SpawnedChild, spawned, wait_gone
from tests.runtimes.scripted_core import running

pytestmark = pytest.mark.usefixtures("nothing_is_left")


# --- pipes ---------------------------------------------------------------------------------------------------------


def test_echo_through_cat_and_the_end_of_its_input(runtime: str) -> None:
    with spawned(runtime, "cat") as (live, child):
        child.send(b"hello")
        child.until(b"hello")
        live.order(
            commands.Send(CH, b" world"), commands.CloseWrite(CH), commands.CloseWrite(CH), commands.Send(CH, b"never")
        )
        assert child.closed() == Closed(CH, "exit status 0", 0)
        assert child.data == b"hello world"
        assert sum(fact.n for fact in child.facts if isinstance(fact, Sent)) == 11
        assert [type(fact) for fact in child.facts][-2:] == [ReadClosed, Closed]


@pytest.mark.parametrize(("shell", "status"), [("exit 7", 7), ("kill -KILL $$", -9), ("kill -TERM $$", -15)])
@pytest.mark.parametrize("terminal", [False, True])
def test_exit_statuses(runtime: str, shell: str, status: int, terminal: bool) -> None:
    with spawned(runtime, shell=f"echo last; {shell}", terminal=terminal) as (_, child):
        assert child.closed().exit == status
        assert child.data.strip() == b"last"


def test_standard_error_is_a_separate_channel(runtime: str) -> None:
    with spawned(runtime, shell="echo out; echo err >&2; exit 3", stderr=ERR) as (live, child):
        live.order(commands.Send(ERR, b"x"), commands.CloseWrite(ERR))
        assert child.closed() == Closed(CH, "exit status 3", 3)
        assert (child.data, child.errors) == (b"out\n", b"err\n")
        assert next(fact for fact in child.facts if isinstance(fact, Closed)) == Closed(ERR, "exit status 3")


def test_standard_error_can_be_aborted(runtime: str) -> None:
    with spawned(runtime, shell="trap '' PIPE; read go; echo err >&2; echo out", stderr=ERR) as (live, child):
        live.order(commands.Abort(ERR), commands.Abort(ERR))
        assert child.closed(ERR) == Closed(ERR, "aborted")
        child.send(b"go\n")
        assert child.closed() == Closed(CH, "exit status 0", 0)
        assert child.data == b"out\n"
    with spawned(runtime, shell="echo err >&2; echo out") as (_, child):
        assert child.closed().exit == 0
        assert child.data == b"out\n"


def test_standard_error_can_be_paused_and_ends_with_the_child(runtime: str) -> None:
    with spawned(runtime, shell="read line; echo err >&2", stderr=ERR) as (live, child):
        live.order(commands.PauseReading(ERR))
        child.send(b"go\n")
        while not any(isinstance(fact, ReadClosed) for fact in child.facts):
            child.step()
        wait_gone(child.pid)
        live.order(commands.Abort(ERR))
        assert child.closed().exit == 0
        assert child.errors == b""


def test_environment_and_folder(runtime: str, tmp_path: Path) -> None:
    place, shell = str(tmp_path), 'echo "$A-$HOME"; pwd'
    with spawned(runtime, shell=shell, env=(("A", "é"),), cwd=place, inherited_env=("HOME",)) as (_, child):
        child.closed()
        assert child.data.decode() == f"é-{os.environ['HOME']}\n{tmp_path}\n"
    with spawned(runtime, shell='echo "$A"; pwd; tty', env=(("A", "b"),), cwd=place, terminal=True) as (_, child):
        child.closed()
        assert child.data.decode().split()[:2] == ["b", str(tmp_path)]
        assert b"/dev/pts/" in child.data


@pytest.mark.parametrize("terminal", [False, True])
def test_a_child_gets_only_named_variables(runtime: str, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_SERVER_KEY", "SVC_ODD", "SVC_ODDER", "PATH2"):
        monkeypatch.setenv(name, f"is-{name}")
    inherited = ("SVC_ODD*", "PATH", "ABSENT")
    with spawned(runtime, "/usr/bin/env", terminal=terminal, inherited_env=inherited, env=(("A", "b"),)) as (_, child):
        child.closed()
    named = {line.partition("=")[0] for line in child.data.decode().splitlines()}
    assert named - {"LC_CTYPE"} == {"SVC_ODD", "SVC_ODDER", "PATH", "A"}  # which Python sets where it sees no locale


@pytest.mark.parametrize(("terminal", "line"), [(False, b"%d\n"), (True, b"%d\r\n")])
def test_20_000_lines_in_order(runtime: str, terminal: bool, line: bytes) -> None:
    with spawned(runtime, "seq", "20000", terminal=terminal) as (_, child):
        assert child.closed().exit == 0
        assert child.data == b"".join(line % n for n in range(1, 20_001))


@pytest.mark.parametrize("terminal", [True, False])
def test_output_escaped_for_json(runtime: str, tmp_path: Path, terminal: bool) -> None:
    said = 'Grüße "from" C:\\ \t\x1b[1m\n' * 2000
    (tmp_path / "said").write_text(said)
    with spawned(runtime, "cat", str(tmp_path / "said"), terminal=terminal, detached=True) as (_, child):
        assert child.closed().exit == 0
    shown = said.replace("\n", "\r\n") if terminal else said
    assert child.data.decode() == json.dumps(shown, ensure_ascii=False)[1:-1]


@pytest.mark.parametrize("error", [errno.EIO, errno.EAGAIN])
def test_the_end_of_a_terminal_is_read_twice(runtime: str, error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output that comes after a first report of the terminal's end is received.

    The kernel may report an end, or nothing to read, while its worker still moves the last output.
    """
    errors, read = [OSError(error, "too early")], os.read

    def reading(fd: int, n: int) -> bytes:
        if os.isatty(fd) and exited and errors:
            raise errors.pop()
        return read(fd, n)

    exited = False
    monkeypatch.setattr(os, "read", reading)
    with spawned(runtime, shell="read go; echo late", terminal=True) as (live, child):
        live.order(commands.PauseReading(CH))
        child.send(b"\n")
        live.expect(Sent)
        wait_gone(child.pid)
        exited = True
        live.order(commands.ResumeReading(CH))
        assert child.closed().exit == 0
        assert child.data == b"\r\nlate\r\n"
        assert not errors


def test_terminal_reads_have_the_full_size(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, read = set[int](), os.read

    def reading(fd: int, n: int) -> bytes:
        asked.update([n] if os.isatty(fd) else [])
        return read(fd, n)

    monkeypatch.setattr(os, "read", reading)
    with spawned(runtime, shell="read go; seq 20000", terminal=True) as (live, child):
        live.order(commands.PauseReading(CH))
        child.send(b"\n")
        live.expect(Sent)
        live.order(commands.ResumeReading(CH))
        child.until(b"20000\r\n")
        live.order(commands.Abort(CH))
        child.closed()
    assert child_output.CHUNK_SIZE <= min(asked) < max(asked) == 64 * 1024
    assert max(len(fact.data) for fact in child.facts if isinstance(fact, Received)) <= 64 * 1024


@pytest.mark.parametrize("terminal", [False, True])
def test_a_big_write_to_a_slow_reader(runtime: str, terminal: bool) -> None:
    size = 1_000_000
    raw = "stty raw -echo; " if terminal else ""
    shell = f"{raw}echo ready; read go; head -c {size} | cksum"
    with spawned(runtime, shell=shell, terminal=terminal) as (live, child):
        child.until(b"ready")
        body = bytes(range(65, 85)) * (size // 20)
        child.send(body[: size // 2])
        child.send(body[size // 2 :])  # queued after the first
        first = live.expect(Sent)
        assert 0 < first.n < size
        live.order(commands.Abort(CH))
        assert child.closed() == Closed(CH, "aborted", None)
        wait_gone(child.pid)
    shell = f"{raw}echo ready; read go; echo went; head -c {size} | wc -c"
    with spawned(runtime, shell=shell, terminal=terminal) as (live, child):
        child.until(b"ready")
        live.order(commands.Send(CH, b"go\n"), *[commands.Send(CH, body[:100_000])] * 10)
        assert child.closed().exit == 0
        assert str(size).encode() in child.data
        assert sum(fact.n for fact in child.facts if isinstance(fact, Sent)) == size + 3


def test_end_of_input_follows_the_queued_bytes(runtime: str, gate: Path) -> None:
    with spawned(runtime, shell=f"echo ready; read go <{gate}; wc -c") as (live, child):
        child.until(b"ready")
        live.order(commands.Send(CH, b"x" * 1_000_000), commands.CloseWrite(CH))
        gate.write_text("go\n")
        assert child.closed().exit == 0
        assert b"1000000" in child.data


def test_input_after_the_child_closed_it_is_discarded(runtime: str, gate: Path) -> None:
    with spawned(runtime, shell=f"exec 0<&-; echo closed; read go <{gate}; echo on") as (live, child):
        child.until(b"closed")
        child.send(b"x" * 300_000)
        assert live.expect(Sent) == Sent(CH, 300_000)
        child.send(b"y")
        assert live.expect(Sent) == Sent(CH, 1)
        live.order(commands.CloseWrite(CH))
        gate.write_text("go\n")
        assert child.closed().exit == 0
        assert child.data == b"closed\non\n"


def test_the_outbox_is_limited(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "OUTBOX_LIMIT", 1000)
    with spawned(runtime, shell="kill -STOP $$") as (_, child):
        child.send(b"z" * 400_000)
        assert "unsent" in child.closed().why


# --- terminals -----------------------------------------------------------------------------------------------------


def test_a_shell_in_a_terminal(runtime: str) -> None:
    with spawned(runtime, "/bin/sh", terminal=True, env=(("PS1", "ready> "), ("ENV", ""))) as (live, child):
        child.until(b"ready> ")
        child.send(b"stty size; echo pid=$$ group=$(ps -o tpgid= -p $$ 2>/dev/null || echo $$)\n")
        child.until(b"24 80")
        live.order(commands.ResizeTerminal(CH, commands.TerminalSize(132, 50)))
        child.send(b"stty size\n")
        child.until(b"50 132")
        live.order(commands.ResizeTerminal(CH, commands.TerminalSize(0, 100_000)))
        child.send(b"stty size\n")
        child.until(b"65535 1\r")
        child.send(b"tty; exit 5\n")
        assert child.closed() == Closed(CH, "exit status 5", 5)
        live.order(commands.ResizeTerminal(CH, SIZE), commands.Signal(CH, commands.SignalName.KILL))


def test_control_c_through_the_terminal(runtime: str) -> None:
    with spawned(runtime, shell="echo ready; exec cat", terminal=True) as (_, child):
        child.until(b"ready")
        child.send(b"\x03")
        assert child.closed() == Closed(CH, "ended by SIGINT", -2)


def test_the_end_of_a_terminals_input(runtime: str) -> None:
    with spawned(runtime, shell="echo ready; cat", terminal=True) as (live, child):
        child.until(b"ready")
        live.order(commands.Send(CH, b"a line that has begun"), commands.CloseWrite(CH), commands.Send(CH, b"never"))
        assert child.closed().exit == 0
        assert child.data.count(b"a line that has begun") == 2
    with spawned(runtime, shell="stty raw; echo ready; head -c 3", terminal=True) as (live, child):
        child.until(b"ready")
        live.order(commands.Send(CH, b"abc"), commands.CloseWrite(CH))
        assert child.closed().exit == 0


def test_a_terminal_that_its_child_has_closed(runtime: str, gate: Path) -> None:
    shell = f"trap '' HUP; exec </dev/null >/dev/null 2>&1; read go <{gate}"
    with spawned(runtime, shell=shell, terminal=True) as (live, child):
        while not isinstance(child.step(), ReadClosed):
            pass
        live.order(
            commands.PauseReading(CH), commands.ResumeReading(CH), commands.Send(CH, b"absent"), commands.CloseWrite(CH)
        )
        assert live.expect(Sent).n == 6
        gate.write_text("go\n")
        assert child.closed().exit == 0


# --- signals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", commands.SignalName)
def test_signals_go_to_the_group(runtime: str, name: commands.SignalName) -> None:
    with spawned(runtime, shell="sleep 1000 & echo $! ready; wait") as (live, child):
        child.until(b"ready")
        live.order(commands.Signal(CH, name))
        closed = child.closed()
        assert closed.exit is not None
        assert closed.exit < 0
        pid = int(child.data.split()[0])
        if name is commands.SignalName.INTERRUPT:  # a shell without job control makes its background jobs ignore this
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_gone(pid)


# --- backpressure --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [False, True])
def test_a_pause_stops_yes(runtime: str, terminal: bool) -> None:
    def react(fact: Fact) -> list[commands.Command]:
        return [commands.PauseReading(CH)] if isinstance(fact, Received) else []

    with running(runtime, react) as live:
        SpawnedChild(live, "yes", terminal=terminal)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(40):
            assert isinstance(live.fact(), Received)
            live.order(commands.PauseReading(ChannelId(9999)))
            assert live.core.facts.empty()
            live.order(commands.ResumeReading(CH))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 8 * 1024, f"{grown} KiB more"
        live.order(commands.Signal(CH, commands.SignalName.KILL), commands.ResumeReading(CH))
        while not isinstance(fact := live.fact(), Closed):
            live.order(commands.ResumeReading(CH))
        assert fact.exit == -9


@pytest.mark.parametrize("terminal", [False, True])
def test_output_before_the_exit_waits_for_a_paused_reader(runtime: str, terminal: bool) -> None:
    with spawned(runtime, shell="read go; echo the last words", terminal=terminal) as (live, child):
        live.order(commands.PauseReading(CH), commands.PauseReading(CH))
        child.send(b"\n")
        live.expect(Sent)
        wait_gone(child.pid)
        sock, _ = live.accept()  # the loop has had another round
        assert not any(isinstance(fact, Received | Closed) and fact.ch == CH for fact in live.seen)
        live.order(commands.ResumeReading(CH), commands.ResumeReading(CH))
        assert child.closed().exit == 0
        assert b"the last words" in child.data
        sock.close()
