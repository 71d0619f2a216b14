from __future__ import annotations

from collections.abc import Callable

import pytest

from runtimes.sim.child import ScriptedProgram, SimChild
from runtimes.sim.process import SimProcess
from runtimes.sim.simulation import Simulation
from svc_proto.cli.worker_supervisor import (
    LONGEST,
    MAX_PAUSE,
    PAUSE,
    READY_TIMEOUT,
    STABLE_AFTER,
    TERM_TIMEOUT,
    ParentWatch,
    WorkerSpec,
    WorkerSupervisor,
)
from svc_proto.commands import Abort, Exit, Level, Log, Notify, Ready, SignalName, Spawn
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, Address, Fact, ReadClosed, Received, Started, Stopping
from tests.support.playbook import CH, Playbook, counting_entropy

STDIO = Address("stdio", 0)
SOON = 0.125  # seconds, for immediate effects
REDIS = WorkerSpec(name="redis", argv=("/bin/redis",), ready="accept")


def worker(n: int) -> WorkerSpec:
    first, env = (("FIRST", "1"),) if n == 1 else (), (("N", str(n)),)
    return WorkerSpec(name=f"worker {n}", argv=("/bin/worker", str(n)), env=env, first=first, ready="ready")


class Program(ScriptedProgram):
    """Supervised program of a `Yard`: it starts by `on_start`, and exits on TERMINATE unless it is in `deaf`."""

    def __init__(self, child: SimChild, yard: Yard) -> None:
        super().__init__(child)
        self.yard = yard
        self.name = " ".join(child.argv).removeprefix("/bin/")
        yard.running[self.name] = child
        yard.told.append(f"start {self.name}")

    def on_start(self) -> None:
        self.yard.on_start(self.child)

    def on_signal(self, signal: SignalName) -> None:
        self.yard.told.append(f"{signal.value} {self.name}")
        if signal is SignalName.TERMINATE and self.name not in self.yard.deaf:
            self.child.exit(0)


class Yard:
    """Simulated host with a worker supervisor; `on_start` and `deaf` define how its programs behave."""

    def __init__(
        self, workers: int = 2, needed: WorkerSpec | None = REDIS, on_start: Callable[[SimChild], object] | None = None
    ):
        self.running: dict[str, SimChild] = {}
        self.told: list[str] = []
        self.deaf: set[str] = set()
        self.on_start = on_start or (lambda child: child.emit(b"hello\nready to accept\n"))
        self.world = Simulation(trace=True)
        host = self.world.host("home", "10.0.0.1")
        for name in ("/bin/redis", "/bin/worker"):
            host.programs[name] = lambda child: Program(child, self)
        supervisor = WorkerSupervisor(needed, [worker(n + 1) for n in range(workers)])
        self.process: SimProcess = host.start(lambda entropy: Engine(supervisor, entropy=entropy), name="crew")
        self.world.run_for(SOON)

    def take(self) -> list[str]:
        told, self.told = self.told, []
        return told

    def after(self, seconds: float) -> list[str]:
        self.world.run_for(seconds)
        return self.take()

    @property
    def is_ready(self) -> bool:
        return any(isinstance(command, Ready) for command in self.process.commands)

    @property
    def end(self) -> tuple[int, str] | None:
        last = self.process.commands[-1]
        return (last.code, last.reason) if isinstance(last, Exit) else None

    def spawned(self, name: str) -> list[dict[str, str]]:
        spawns = [command for command in self.process.commands if isinstance(command, Spawn)]
        return [dict(spawn.env) for spawn in spawns if " ".join(spawn.argv) == f"/bin/{name}"]

    def logged(self, event: str) -> list[dict[str, object]]:
        logs = [command for command in self.process.commands if isinstance(command, Log)]
        return [dict(log.fields) for log in logs if log.event == event and log.level is Level.WARNING]


def test_start_order_and_stop_order() -> None:
    yard = Yard(3)
    told = yard.take()
    assert told[:2] == ["start redis", "start worker 1"]
    assert sorted(told[2:]) == ["start worker 2", "start worker 3"]
    assert yard.is_ready
    assert yard.spawned("worker 1") == [{"N": "1", "FIRST": "1"}]
    assert yard.spawned("worker 2") == [{"N": "2"}]
    yard.process.stop()
    told = yard.after(SOON)
    assert sorted(told[:3]) == ["SIGTERM worker 1", "SIGTERM worker 2", "SIGTERM worker 3"]
    assert told[3:] == ["SIGTERM redis"]
    assert yard.end == (0, "")


def test_each_process_waits_for_the_previous_one() -> None:
    yard = Yard(3, on_start=lambda child: None)
    assert yard.take() == ["start redis"]
    yard.running["redis"].emit(b"about to acc")
    assert yard.after(SOON) == []
    yard.running["redis"].emit(b"ept\n")
    assert yard.after(SOON) == ["start worker 1"]
    yard.running["worker 1"].emit(b"ready\n")
    assert sorted(yard.after(SOON)) == ["start worker 2", "start worker 3"]
    yard.running["worker 3"].emit(b"ready\n")
    yard.after(SOON)
    assert not yard.is_ready
    yard.running["worker 2"].emit(b"ready\n")
    yard.after(SOON)
    assert yard.is_ready


def test_ended_worker_restarts_after_rising_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtimes.sim.child.DELAY", 0.0)  # for exact times
    yard = Yard(2, needed=None)
    assert yard.take() == ["start worker 1", "start worker 2"]
    for pause in (PAUSE, 2.0, 4.0, 8.0, 16.0, MAX_PAUSE, MAX_PAUSE):
        yard.running["worker 1"].exit(3)
        assert yard.after(pause - SOON) == []
        assert yard.after(2 * SOON) == ["start worker 1"]
        assert yard.logged("worker ended")[-1] == {"name": "worker 1", "why": "has ended with 3", "again_in": pause}
    assert yard.spawned("worker 1") == [{"N": "1", "FIRST": "1"}] + 7 * [{"N": "1"}]
    yard.after(STABLE_AFTER - SOON)
    yard.running["worker 1"].die(SignalName.KILL)
    assert yard.after(PAUSE + SOON) == ["start worker 1"]
    yard.running["worker 1"].exit(3)
    yard.after(SOON)
    yard.process.stop()  # during the pause
    assert yard.after(SOON) == ["SIGTERM worker 2"]
    assert yard.end == (0, "")


def test_early_exit_ends_all() -> None:
    def start(child: SimChild) -> None:
        if child.argv[-1] == "2":
            child.exit(2)
        else:
            child.emit(b"ready to accept\n")

    yard = Yard(3, on_start=start)
    assert yard.end == (2, "worker 2 has ended with 2")
    assert yard.take()[-1] == "SIGTERM redis"

    def die(child: SimChild) -> None:
        child.emit(b"a\nno room\n")
        child.die(SignalName.KILL)

    yard = Yard(1, on_start=die)
    assert yard.end == (1, "redis has ended with -9: no room")
    assert yard.take() == ["start redis"]
    yard = Yard(1, on_start=lambda child: child.exit(0))
    assert yard.end == (1, "redis has ended with 0")


def test_failed_start_ends_all() -> None:
    yard = Yard(1, needed=WorkerSpec(name="redis", argv=("/bin/none",), ready=""))
    assert yard.take() == []
    assert yard.end is not None
    assert yard.end[0] == 1
    assert yard.end[1].startswith("redis cannot be started: ")


def test_ready_timeout_ends_all() -> None:
    yard = Yard(1, on_start=lambda child: None)
    assert yard.after(READY_TIMEOUT - 2 * SOON) == ["start redis"]
    assert yard.after(3 * SOON) == ["SIGTERM redis"]
    assert yard.end == (1, "redis was not ready within 60 s")
    yard = Yard(2, on_start=lambda child: None if child.argv[-1] == "2" else child.emit(b"ready to accept\n"))
    assert not yard.is_ready
    yard.take()
    assert sorted(yard.after(READY_TIMEOUT + SOON)) == ["SIGTERM redis", "SIGTERM worker 1", "SIGTERM worker 2"]
    assert yard.end == (1, "worker 2 was not ready within 60 s")
    assert not yard.is_ready


def test_remaining_worker_is_killed() -> None:
    yard = Yard(2)
    yard.deaf.add("worker 2")
    yard.take()
    yard.process.stop(grace=100.0)
    assert sorted(yard.after(TERM_TIMEOUT - SOON)) == ["SIGTERM worker 1", "SIGTERM worker 2"]
    assert yard.after(2 * SOON) == ["SIGTERM redis"]
    assert yard.logged("worker killed") == [{"name": "worker 2"}]
    assert yard.end == (0, "")


def test_stop_during_the_start() -> None:
    yard = Yard(2, on_start=lambda child: child.emit(b"accept\n"))
    assert yard.take() == ["start redis", "start worker 1"]
    yard.process.stop()
    assert yard.after(SOON) == ["SIGTERM worker 1", "SIGTERM redis"]
    assert yard.end == (0, "")


def test_first_exit_counts() -> None:
    yard = Yard(1, on_start=lambda child: None)
    yard.process.stop()
    yard.running["redis"].exit(7)
    yard.after(SOON)
    assert yard.end == (0, "")
    yard = Yard(1, on_start=lambda child: child.emit(b"accept\n"))
    yard.deaf.add("redis")
    yard.running["worker 1"].exit(7)
    yard.after(SOON)
    yard.process.stop(grace=100.0)
    yard.after(2 * TERM_TIMEOUT)
    assert yard.end == (7, "worker 1 has ended with 7: accept")


def test_supervisor_accepts_no_connection() -> None:
    book = Playbook(Engine(WorkerSupervisor(None, [worker(1)]), entropy=counting_entropy()))
    book >> Started()
    assert len(book.drain_commands()) == 1
    book >> Accepted(CH, STDIO, STDIO) << [Abort(CH)]


def test_a_reload_is_passed_on() -> None:
    yard = Yard(2)
    yard.running["worker 1"].exit(0)
    yard.after(SOON)
    yard.take()
    yard.process.reload()
    assert yard.after(SOON) == ["SIGHUP worker 2"]


def test_worker_output_is_passed_on_line_by_line() -> None:
    yard = Yard(1)
    child = yard.running["worker 1"]
    for data in (b"one\ntw", b"o\n", b"x" * (LONGEST + 1), b"\xff\n"):
        child.emit_error(data)
        yard.after(SOON)
    told = [command.fields["text"] for command in yard.process.commands if isinstance(command, Notify)]
    assert told == ["one", "two", f"a line has more than {LONGEST} bytes", "\ufffd"]


@pytest.mark.parametrize(("last", "code"), [(ReadClosed(CH), 1), (Stopping(10.0), 0)])
def test_end_of_input_or_the_stop_ends_the_lifeline(last: Fact, code: int) -> None:
    book = Playbook(Engine(ParentWatch(), entropy=counting_entropy()))
    book >> Started() << [Ready()]
    book >> Accepted(CH, STDIO, STDIO) << []
    book >> Received(CH, b"so\n") << []
    book >> last << [Exit(code)]
