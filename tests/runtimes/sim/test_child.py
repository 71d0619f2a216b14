"""Tests of scripted child processes in virtual time: output, timers, backpressure, signals, hangups and release."""

from collections.abc import Callable

import pytest

from runtimes.sim.child import WINDOW, ScriptedProgram, SimChild
from runtimes.sim.simulation import Simulation
from svc_proto import commands
from svc_proto.facts import ChannelId, Closed, Failure, FailureKind, Received, Sent
from tests.runtimes.sim.toy_cores import ToyNetwork

CH, ERR = ChannelId(101), ChannelId(103)
SIZE = commands.TerminalSize(80, 24)


class Cat(ScriptedProgram):
    def on_input(self, data: bytes) -> None:
        self.child.emit(data)


class Shell(ScriptedProgram):
    """Scripted shell with a prompt and an error at its start that prints a changed size; only HUP and KILL end it."""

    def on_start(self) -> None:
        self.child.emit(b"$ ")
        self.child.emit_error(b"warned")

    def on_resize(self, size: commands.TerminalSize) -> None:
        self.child.emit(b"%dx%d" % (size.cols, size.rows))

    def on_signal(self, signal: commands.SignalName) -> None:
        if signal is commands.SignalName.HANGUP:
            super().on_signal(signal)


class Yes(ScriptedProgram):
    written = 0

    def on_start(self) -> None:
        self.on_room()

    def on_input_closed(self) -> None:
        pass

    def on_room(self) -> None:
        self.written += WINDOW
        self.child.emit(b"y\n" * (WINDOW // 2))


def scene(
    factory: Callable[[SimChild], ScriptedProgram] = ScriptedProgram, *, terminal: bool = False, errors: bool = False
) -> ToyNetwork:
    bench = ToyNetwork(Simulation(3))
    bench.relay.programs["/bin/it"] = factory
    size = SIZE if terminal else None
    answer = bench.run_operation(
        lambda op: commands.Spawn(op, CH, ("it", "-x"), terminal=size, stderr=ERR if errors else None)
    )
    assert isinstance(answer, commands.Spawned)
    (child,) = bench.relay.children
    assert (child.pid, child.argv, child.size) == (answer.pid, ("it", "-x"), size)
    bench.world.run_idle()
    return bench


def test_a_terminal() -> None:
    bench = scene(Shell, terminal=True)
    (child,) = bench.relay.children
    assert "runs" in repr(child)
    bench.run(
        commands.ResizeTerminal(CH, commands.TerminalSize(132, 50)), commands.Signal(CH, commands.SignalName.INTERRUPT)
    )
    assert bench.toy.received(CH) == b"$ warned132x50"
    assert child.signals == [commands.SignalName.INTERRUPT]
    assert child.alive
    bench.run(commands.Signal(CH, commands.SignalName.TERMINATE), commands.Signal(CH, commands.SignalName.KILL))
    assert bench.toy.of(Closed) == [Closed(CH, "ended by signal 9", -9)]
    assert "exited -9" in repr(child)
    child.exit(0)  # it has exited before
    bench.order(commands.Signal(CH, commands.SignalName.KILL), commands.ResizeTerminal(CH, SIZE))


def test_error_output() -> None:
    bench = scene(Shell, errors=True)
    assert (bench.toy.received(CH), bench.toy.received(ERR)) == (b"$ ", b"warned")
    bench.relay.children[0].exit(3)
    bench.world.run_idle()
    assert bench.toy.of(Closed) == [Closed(ERR, "exit status 3"), Closed(CH, "exit status 3", 3)]
    bench = scene(Shell, errors=True)
    bench.run(commands.Abort(ERR))
    bench.relay.children[0].emit_error(b"lost")
    bench.relay.children[0].exit(3)
    bench.world.run_idle()
    assert bench.toy.of(Closed) == [Closed(ERR, "aborted"), Closed(CH, "exit status 3", 3)]


def test_last_words_wait_for_a_paused_reader() -> None:
    bench = scene()
    bench.order(commands.PauseReading(CH))
    bench.relay.children[0].emit(b"last words")
    bench.relay.children[0].exit(0)
    bench.world.run_idle()
    assert bench.toy.of(Closed) == []
    assert bench.toy.received(CH) == b""
    bench.run(commands.ResumeReading(CH))
    assert bench.toy.received(CH) == b"last words"
    assert bench.toy.of(Closed) == [Closed(CH, "exit status 0", 0)]


def test_a_pause_stops_yes() -> None:
    scripts: list[Yes] = []

    def factory(child: SimChild) -> ScriptedProgram:
        scripts.append(Yes(child))
        return scripts[-1]

    bench = ToyNetwork(Simulation())
    bench.relay.programs["/bin/yes"] = factory
    bench.toy.react = lambda toy, fact: toy.emit(commands.PauseReading(CH)) if isinstance(fact, Received) else None
    bench.run_operation(lambda op: commands.Spawn(op, CH, ("/bin/yes",)))
    bench.world.run_for(10.0)
    assert scripts[0].written <= 2 * WINDOW
    assert scripts[0].child.room < WINDOW
    before = scripts[0].written
    bench.order(commands.ResumeReading(CH))
    bench.world.run_for(10.0)
    bench.order(commands.ResumeReading(CH))
    bench.world.run_for(10.0)
    assert scripts[0].written > before
    bench.run(commands.Abort(CH))
    assert bench.relay.children == []  # by SIGPIPE
    assert scripts[0].child.status == -13


def test_input_that_is_not_read() -> None:
    bench = scene(Cat)
    (child,) = bench.relay.children
    child.stop_reading()
    bench.run(commands.Send(CH, bytes(3 * WINDOW)))
    assert sum(fact.n for fact in bench.toy.of(Sent)) == WINDOW
    child.read_on()
    bench.world.run_idle()
    assert sum(fact.n for fact in bench.toy.of(Sent)) == 3 * WINDOW
    assert len(bench.toy.received(CH)) == 3 * WINDOW
    child.stop_reading()
    bench.run(commands.Send(CH, bytes(3 * WINDOW)))
    child.exit(0)
    bench.world.run_idle()
    assert sum(fact.n for fact in bench.toy.of(Sent)) == 6 * WINDOW
    assert bench.toy.of(Closed)


@pytest.mark.parametrize("terminal", [False, True])
def test_abort_detaches_the_child(terminal: bool) -> None:
    bench = scene(Cat, terminal=terminal)
    (child,) = bench.relay.children
    before = bench.world.now
    bench.order(commands.Abort(CH), commands.Signal(CH, commands.SignalName.KILL))
    bench.world.run_until(lambda: bench.toy.of(Closed) == [Closed(CH, "aborted")])
    assert bench.world.now == before
    bench.world.run_idle()
    assert child.signals == ([commands.SignalName.HANGUP] if terminal else [])
    assert child.status == (-1 if terminal else 0)
    assert len(bench.toy.of(Closed)) == 1


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("killed", [False, True])
def test_the_process_ends(terminal: bool, killed: bool) -> None:
    bench = scene(Shell, terminal=terminal, errors=not terminal)
    (child,) = bench.relay.children
    if killed:
        bench.process.kill()
    else:
        bench.order(commands.Exit(0))
    bench.world.run_idle()
    assert bench.relay.children == []
    assert child.status == (-1 if terminal else 0 if killed else -9)


def test_timers_of_a_script() -> None:
    fired: list[int] = []
    bench = scene()
    (child,) = bench.relay.children
    child.after(1.0, lambda: fired.append(1))
    child.after(2.0, lambda: child.exit(0))
    child.after(3.0, lambda: fired.append(3))
    bench.world.run_for(5.0)
    assert fired == [1]
    child.emit(b"nothing")
    child.emit_error(b"nothing")
    assert bench.toy.received(CH) == b""


def test_programs_that_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = scene()
    bench.relay.disk.put("/file", b"x")

    def refusal(*argv: str, cwd: str | None = None, errors: ChannelId | None = None) -> FailureKind:
        ch = ChannelId(1001 + 4 * bench.toy.ops)
        terminal = SIZE if errors is not None else None
        answer = bench.run_operation(lambda op: commands.Spawn(op, ch, argv, cwd=cwd, terminal=terminal, stderr=errors))
        assert isinstance(answer, Failure)
        return answer.kind

    assert refusal("none") is FailureKind.NOT_FOUND
    assert refusal("/bin/none") is FailureKind.NOT_FOUND
    assert refusal("it", cwd="/none") is FailureKind.NOT_FOUND
    assert refusal("it", cwd="/file") is FailureKind.NOT_FOUND
    assert refusal() is FailureKind.INVALID
    assert refusal("it", errors=ChannelId(3)) is FailureKind.INVALID
    assert bench.run_operation(lambda op: commands.Compute(op, "which", ("it",))) == "/bin/it"
    assert bench.run_operation(lambda op: commands.Compute(op, "executable", ("/bin/it",))) is True
    assert bench.run_operation(lambda op: commands.Compute(op, "executable", ("/file",))) is False
    handle = bench.run_operation(lambda op: commands.OpenFile(op, "/file")).handle
    assert bench.run_operation(lambda op: commands.SendFile(op, CH, handle, 0, 1)).kind is FailureKind.UNSUPPORTED
    monkeypatch.setattr("runtimes.sim.operations.MAX_CHILDREN", 1)
    assert refusal("it", cwd="/home") is FailureKind.TOO_LARGE
