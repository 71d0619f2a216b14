"""Tests of the host: timers, stopping, exits, several cores, bugs, a shortage of descriptors."""

import errno
import logging
import socket
import threading
import time
from typing import Any

import pytest

from runtimes.host import host as host_module
from runtimes.host.host import Program
from runtimes.host.pump import BUG_EXIT
from runtimes.loops.loop import Source
from runtimes.net.listener import Acceptor, Listener, bind
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Exit, Level, Log, Ready, Send
from svc_proto.facts import Accepted, Address, Closed, Fact, Received, Started, Stopping
from tests.runtimes.scripted_core import TIMEOUT, ScriptCore, read_exactly, running
from tests.support.background_program import BackgroundProgram


class TimerCore:
    """Core with a deadline in an hour, 50 ms after a connection, 20 ms after each deadline; it exits at the fifth."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.when: float | None = None

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        if isinstance(fact, Started):
            self.when = now.mono + 3600.0
        elif isinstance(fact, Accepted):
            self.when = now.mono + 0.05
        elif fact is None:
            assert self.when is not None
            assert now.mono >= self.when
            self.times.append(now.mono)
            self.when = now.mono + 0.02
        if len(self.times) == 5:
            return [Exit(0)]
        return [Ready()] if isinstance(fact, Started) else []

    def next_deadline(self) -> float | None:
        return self.when


def test_an_earlier_deadline_replaces_a_later_one(runtime: str) -> None:
    core = TimerCore()
    listener = bind("127.0.0.1", 0)
    ready = threading.Event()
    beside = BackgroundProgram(Program(core=core, listeners=[listener], on_ready=ready.set), runtime)
    assert ready.wait(TIMEOUT)
    begin = time.monotonic()
    with socket.create_connection((listener.address.host, listener.address.port)):
        assert beside.exit_code() == 0
    assert len(core.times) == 5
    assert core.times[0] - begin >= 0.04
    assert core.times[-1] - core.times[0] >= 0.08


def test_a_deadline_moved_later_and_one_taken_back(runtime: str) -> None:
    core = ScriptCore()
    react_to: list[str] = []

    def react(fact: Fact) -> list[Command]:
        if isinstance(fact, Accepted) and fact.ch > 2:
            core.deadline = time.monotonic() + 0.05
            react_to.append("set")
        if isinstance(fact, Closed):
            core.deadline = None if core.deadline is None else time.monotonic() + 0.1
        return []

    core.react = react
    listener = bind("127.0.0.1", 0)
    beside = BackgroundProgram(Program(core=core, listeners=[listener]), runtime)
    address = (listener.address.host, listener.address.port)
    with socket.create_connection(address), socket.create_connection(address):
        core.ticks.get(timeout=TIMEOUT)
    beside.handle.stop(0.0)
    assert beside.exit_code() == 0
    assert react_to


def test_stop_closes_the_port_and_sends_stopping(runtime: str) -> None:
    grace: list[float] = []

    def react(fact: Fact) -> list[Command]:
        if isinstance(fact, Stopping):
            grace.append(fact.grace)
        return []

    with running(runtime, react) as live:
        address = (live.listener.address.host, live.listener.address.port)
        live.handle.stop(1.5)
        live.handle.stop(2.5)
        live.expect(Stopping)
        with pytest.raises(ConnectionError):
            socket.create_connection(address, timeout=TIMEOUT)
    assert grace == [1.5]
    live.handle.stop()  # the loop has ended


def test_several_cores_on_one_loop(runtime: str) -> None:
    outcomes: list[Exit] = []
    programs = []
    addresses = []
    cores = []
    for _ in range(2):
        listener = bind("127.0.0.1", 0)
        addresses.append((listener.address.host, listener.address.port))
        core = ScriptCore()
        cores.append(core)
        programs.append(Program(core=core, listeners=[listener], on_exit=outcomes.append))
    beside = BackgroundProgram(programs, runtime)
    socks = [socket.create_connection(address, timeout=TIMEOUT) for address in addresses]
    for core in cores:
        assert core.facts.get(timeout=TIMEOUT) == Started()
        accepted = core.facts.get(timeout=TIMEOUT)
        assert isinstance(accepted, Accepted)
        assert accepted.ch == 2
    beside.handle.stop(0.0)
    assert beside.exit_code() == 0
    assert outcomes == [Exit(0, "stopped")] * 2
    for sock in socks:
        sock.close()


def test_a_core_that_fails_stops_the_others(runtime: str) -> None:
    class Failing(ScriptCore):
        def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
            return [Exit(3, "no state folder"), Exit(4)]

    healthy = ScriptCore()
    outcomes: list[Exit] = []
    programs = [Program(core=healthy), Program(core=Failing(), on_exit=outcomes.append)]
    assert BackgroundProgram(programs, runtime).exit_code() == 3
    assert outcomes == [Exit(3, "no state folder")]
    assert healthy.facts.get(timeout=TIMEOUT) == Started()
    assert isinstance(healthy.facts.get(timeout=TIMEOUT), Stopping)


def test_a_bug_in_a_core_ends_loudly(runtime: str, caplog: pytest.LogCaptureFixture) -> None:
    def react(fact: Fact) -> list[Command]:
        raise ZeroDivisionError

    outcomes: list[Exit] = []
    assert BackgroundProgram(Program(core=ScriptCore(react), on_exit=outcomes.append), runtime).exit_code() == BUG_EXIT
    assert outcomes == [Exit(BUG_EXIT, "internal error: ZeroDivisionError")]
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("command", ["Ready", Started()])
def test_returning_anything_but_commands_is_a_bug(runtime: str, command: Any) -> None:
    assert BackgroundProgram(Program(core=ScriptCore(lambda fact: [command])), runtime).exit_code() == BUG_EXIT


def test_a_bug_in_the_runtime_is_not_swallowed(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Source) -> None:
        raise ZeroDivisionError

    class Broken(Acceptor):
        on_readable = broken

    monkeypatch.setattr(host_module, "Acceptor", Broken)
    listener = bind("127.0.0.1", 0)
    beside = BackgroundProgram(Program(core=ScriptCore(), listeners=[listener]), runtime)
    address = (listener.address.host, listener.address.port)
    with socket.create_connection(address), pytest.raises(BaseException) as caught:  # noqa: PT011  # any
        beside.exit_code()
    error = caught.value
    if isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, ZeroDivisionError)


def test_log_commands(runtime: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "svc")

    def react(fact: Fact) -> list[Command]:
        return [Log(Level.INFO, "core.began", {"n": 1}), Log(Level.DEBUG, "hidden", {})]

    with running(runtime, react):
        pass
    assert "core.began n=1" in caplog.messages
    assert "hidden" not in caplog.messages


class Scarce(socket.socket):
    """Listening socket whose `accept` raises an OSError with each of `errors`, the last one first, and then works."""

    errors: list[int]

    def accept(self) -> tuple[socket.socket, Any]:
        if self.errors:
            raise OSError(self.errors.pop(), "as ordered")
        return super().accept()


def scarce_listener(*errors: int) -> Listener:
    sock = Scarce(socket.AF_INET, socket.SOCK_STREAM)
    sock.errors = [*errors]
    sock.bind(("127.0.0.1", 0))
    sock.listen(16)
    sock.setblocking(False)
    return Listener(sock, Address(*sock.getsockname()))


def test_running_out_of_descriptors(runtime: str, caplog: pytest.LogCaptureFixture) -> None:
    listener = scarce_listener(errno.ENFILE, errno.ECONNABORTED, errno.EMFILE, errno.EINTR)
    with running(runtime, listener=listener) as live:
        other, ch = live.accept()
        other.sendall(b"here")
        assert live.expect(Received) == Received(ch, b"here")
        other.close()
    assert caplog.text.count("accept.exhausted") == 1  # and not ten times a second
    assert not listener.sock.errors  # type: ignore[attr-defined]  # of `Scarce`


def test_lasting_descriptor_shortage_is_logged_again(
    runtime: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtimes.net.listener.LOG_INTERVAL", 0.0)
    with running(runtime, listener=scarce_listener(errno.ENOBUFS, errno.ENOMEM)) as live:
        live.accept()[0].close()
    assert caplog.text.count("accept.exhausted") == 2


def test_nothing_to_run(runtime: str) -> None:
    assert BackgroundProgram([], runtime).exit_code() == 0


def test_exit_with_much_unsent(runtime: str) -> None:
    with running(runtime) as live:
        sock, ch = live.accept()
        live.order(Send(ch, b"z" * 16_000_000))
        read_exactly(sock, 10)
    sock.close()


def test_a_deadline_in_the_far_future(runtime: str) -> None:
    with running(runtime) as live:
        live.core.deadline = time.monotonic() + 1e12
        sock, ch = live.accept()
        sock.sendall(b"still there")
        assert live.expect(Received) == Received(ch, b"still there")
        sock.close()
