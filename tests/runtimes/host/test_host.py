"""Tests of the host: timers, stopping, exits, several cores, bugs, a shortage of descriptors."""

import errno
import logging
import socket
import time
from typing import Any

import pytest

from runtimes.host import host as host_module
from runtimes.host.host import Program
from runtimes.host.pump import BUG_EXIT
from runtimes.loops.loop import Source
from runtimes.net.listener import Acceptor, Listener, bind
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Exit, Level, Log, Send
from svc_proto.facts import Accepted, Address, Fact, Received, Started, Stopping
from tests.runtimes.scripted_core import CONTROL, TIMEOUT, ScriptCore, read_exactly, running
from tests.support.background_program import BackgroundProgram


def test_the_last_deadline_counts(runtime: str) -> None:
    """A core is called at its deadline of the last call; `ScriptCore` checks that it is never called before."""
    plan = [1e12, 3600.0, 0.3, 0.02, 0.05]  # s from each connection: earlier, and at last later

    def react(fact: Fact) -> list[Command]:
        if isinstance(fact, Accepted) and fact.ch != CONTROL:
            live.core.deadline = time.monotonic() + plan.pop(0)
        return []

    with running(runtime, react) as live:
        while plan:
            live.accept()[0].close()
        live.core.ticks.get(timeout=TIMEOUT)


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
