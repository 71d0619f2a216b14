"""Tests of the ends of children, and of spawns that fail."""

import errno
import os
import re
import signal
import sys
import threading
from pathlib import Path

import pytest

from runtimes.host.host import Services
from runtimes.processes import child_channel as child_module
from runtimes.processes import child_output, controlling_terminal, reaper
from runtimes.processes.spawn import SpawnedProcess, start_process
from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    OpenFile,
    ResizeTerminal,
    Send,
    SendFile,
    Signal,
    SignalName,
    Spawn,
)
from svc_proto.facts import ChannelId, Closed, Done, Fact, Failed, FailureKind, OperationId
from tests.runtimes.processes.spawned_child import CH, ERR, OP, SIZE, SpawnedChild, children, spawned, wait_gone
from tests.runtimes.scripted_core import TIMEOUT, new_op, running
from tests.runtimes.test_operations import refusal

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.mark.parametrize("terminal", [False, True])
def test_a_grandchild_does_not_hold_the_end_back(runtime: str, terminal: bool) -> None:
    with spawned(runtime, shell="trap '' HUP; sleep 1000 & echo $! bye; exit 4", terminal=terminal) as (_, child):
        assert child.closed().exit == 4
        assert b"bye" in child.data
        pid = int(child.data.split()[0])
        os.kill(pid, signal.SIGKILL)
        wait_gone(pid)


def test_a_grandchild_that_goes_on_writing(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_output, "MAX_AFTER_EXIT", 100_000)
    with spawned(runtime, shell="yes & echo $! bye; exit 4") as (_, child):
        assert child.closed().exit == 4
        assert b"bye" in child.data
        pid = int(re.search(rb"(\d+) bye", child.data)[1])  # type: ignore[index]
        wait_gone(pid)  # by SIGPIPE


@pytest.mark.parametrize("terminal", [False, True])
def test_abort_detaches_without_signal_or_zombie(runtime: str, terminal: bool) -> None:
    with spawned(runtime, "cat", terminal=terminal, stderr=None if terminal else ERR) as (live, child):
        live.order(Abort(CH), Send(CH, b"x"), Signal(CH, SignalName.KILL), Abort(CH))
        assert child.closed() == Closed(CH, "aborted", None)
        if not terminal:
            assert Closed(ERR, "aborted") in child.facts
        wait_gone(child.pid)
        while any(line.startswith(f"{child.pid} ") for line in children()):
            live.accept()[0].close()  # another round of the loop
            live.seen.clear()


def test_100_quick_spawns_and_aborts(runtime: str) -> None:
    def react(fact: Fact) -> list[Command]:
        if isinstance(fact, Done):
            return [Abort(ChannelId(fact.op * 2 + 1))]
        return []

    with running(runtime, react) as live:
        for op in range(1, 101):
            live.order(Spawn(OperationId(op), ChannelId(op * 2 + 1), ("cat",), terminal=SIZE if op % 4 == 0 else None))
        for _ in range(100):
            assert live.expect(Closed) is not None
        assert sum(isinstance(fact, Done) for fact in live.seen) == 100


@pytest.mark.parametrize("terminal", [False, True])
def test_exit_ends_running_children(runtime: str, terminal: bool) -> None:
    with spawned(runtime, shell="echo ready; sleep 1000", terminal=terminal) as (_, child):
        child.until(b"ready")
    wait_gone(child.pid)


def test_exit_with_a_child_that_does_not_end(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaper, "HANGUP_TIMEOUT", 0.1)
    with spawned(runtime, shell="trap '' HUP; echo ready; while :; do :; done", terminal=True) as (_, child):
        child.until(b"ready")
    wait_gone(child.pid)


def test_a_cancelled_spawn_leaves_nothing(runtime: str) -> None:
    with running(runtime) as live:
        for op in range(1, 21):
            live.order(Spawn(OperationId(op), ChannelId(op * 2 + 1), ("sleep", "1000")), Cancel(OperationId(op)))
            assert isinstance(live.answer(op), Failed)
        assert isinstance(live.run_operation(Spawn(OperationId(99), CH, ("true",))), Done)


def test_children_that_have_ended_or_not_begun_make_room(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaper, "MAX_CHILDREN", 1)
    with running(runtime) as live:
        for program in ("true", "no-such-program-anywhere", "true"):
            answer = live.run_operation(Spawn(new_op(), CH, (program,)))
            if program == "true":
                assert isinstance(answer, Done)
                live.closed(CH)
            else:
                assert isinstance(answer, Failed)
                assert answer.error.kind is FailureKind.NOT_FOUND


def test_a_spawn_that_is_cancelled_while_it_starts(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = threading.Event(), threading.Event()
    started: list[SpawnedProcess] = []

    def slow(command: Spawn) -> SpawnedProcess:
        started.append(start_process(command))
        begun.set()
        go.wait(TIMEOUT)
        return started[0]

    monkeypatch.setattr(child_module, "start_process", slow)
    with running(runtime) as live:
        live.order(Spawn(OP, CH, ("sleep", "1000"), stderr=ERR))
        assert begun.wait(TIMEOUT)
        live.order(Cancel(OP))
        assert isinstance(live.answer(OP), Failed)
        go.set()
        wait_gone(started[0].pid)
    assert started[0].popen.returncode == -signal.SIGKILL


def test_becoming_another_program(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: str, arguments: list[str]) -> None:
        raise PermissionError(errno.EACCES, f"{file} {arguments}")

    monkeypatch.setattr(os, "login_tty", lambda fd: None)
    monkeypatch.setattr(os, "execvp", refuse)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    reading, writing = os.pipe()
    assert controlling_terminal.main(["terminal_exec.py", str(writing), "prog"]) == 127
    assert int(os.read(reading, 16)) == errno.EACCES
    os.close(reading)
    os.close(writing)


def test_without_pidfd_a_thread_waits(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pidfd_open = os.pidfd_open
    monkeypatch.delattr(os, "pidfd_open")
    with spawned(runtime, shell="cat; exit 9", terminal=True) as (live, child):
        live.order(CloseWrite(CH))
        assert child.closed().exit == 9
    monkeypatch.setattr(os, "pidfd_open", pidfd_open, raising=False)


@pytest.mark.parametrize("terminal", [False, True])
def test_programs_that_cannot_be_run(runtime: str, tmp_path: Path, terminal: bool) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    data = tmp_path / "data"
    data.write_bytes(b"\x00\x01\x02")
    data.chmod(0o700)
    size = SIZE if terminal else None
    cases: list[tuple[tuple[str, ...], str | None, FailureKind]] = [
        *(((program,), None, FailureKind.NOT_FOUND) for program in ("no-such-program-anywhere", f"{tmp_path}/none")),
        *(((str(program),), None, FailureKind.DENIED) for program in (plain, tmp_path)),
        *((("true",), folder, FailureKind.NOT_FOUND) for folder in (f"{tmp_path}/none", str(plain))),
        (("true", "x" * 4_000_000), None, FailureKind.TOO_LARGE),
        *((words, None, FailureKind.INVALID) for words in (("true\0",), (), ("",), (str(data),))),
    ]
    with running(runtime) as live:
        for number, (argv, cwd, kind) in enumerate(cases, 1):
            answer = live.run_operation(
                Spawn(OperationId(number), ChannelId(number * 2 + 1), argv, cwd=cwd, terminal=size)
            )
            assert isinstance(answer, Failed), argv
            assert answer.error.kind is kind, (argv, answer)


def test_odd_orders(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    with running(runtime, services=Services()) as live:
        child = SpawnedChild(live, "cat")
        assert (
            refusal(live, Spawn(new_op(), ChannelId(7), ("cat",), terminal=SIZE, stderr=ChannelId(9)))
            is FailureKind.INVALID
        )
        handle = live.done(OpenFile(new_op(), str(path))).handle
        assert refusal(live, SendFile(new_op(), CH, handle, 0, 1)) is FailureKind.UNSUPPORTED
        live.order(ResizeTerminal(CH, SIZE), ResizeTerminal(ChannelId(2), SIZE), Signal(ChannelId(2), SignalName.KILL))
        with monkeypatch.context() as patched:
            patched.setattr(reaper, "MAX_CHILDREN", 1)
            assert refusal(live, Spawn(new_op(), ChannelId(7), ("cat",))) is FailureKind.TOO_LARGE
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", "")
            assert refusal(live, Spawn(new_op(), ChannelId(7), ("cat",), terminal=SIZE)) is FailureKind.UNSUPPORTED
        live.order(CloseWrite(CH))
        assert child.closed().exit == 0
