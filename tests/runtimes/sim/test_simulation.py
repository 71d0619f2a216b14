"""Tests of the simulation: clocks, timers, process lifetimes, logs, determinism."""

import pytest

from runtimes.sim.contract import ContractError
from runtimes.sim.cost import HandleCost
from runtimes.sim.faults import Faults
from runtimes.sim.process import KILLED
from runtimes.sim.raw_peer import ConnectFailed
from runtimes.sim.simulation import Simulation, SimulationLimitError
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Compute, Exit, Level, Log, Operation, Query, Send
from svc_proto.facts import Accepted, Fact, Failure, FailureKind, Received, Started, Stopping
from svc_proto.store_requests import SaveSession
from tests.runtimes.sim.toy_cores import ToyCore, ToyNetwork, echo


@pytest.mark.parametrize(("rate", "seconds"), [(1.0, 30.0), (0.5, 60.0)])
def test_a_timer_of_30_s_fires_at_30_s_of_its_hosts_clock(rate: float, seconds: float) -> None:
    def react(toy: ToyCore, fact: Fact | None) -> None:
        if isinstance(fact, Started):
            toy.deadline = toy.now.mono + 30.0

    world = Simulation()
    bench = ToyNetwork(world, react)
    bench.relay.run_clock(rate)
    world.run_for(seconds - 0.01)
    assert bench.toy.facts == [Started()]
    world.run_for(0.02)
    assert bench.toy.facts == [Started(), None]
    assert [moment.mono for moment in bench.toy.times] == pytest.approx([1000.0, 1030.0])
    assert bench.toy.times[1].wall - bench.toy.times[0].wall == pytest.approx(seconds)


def test_an_earlier_deadline_replaces_a_later_one() -> None:
    world = Simulation()
    bench = ToyNetwork(world, lambda toy, fact: setattr(toy, "deadline", 1050.0) if isinstance(fact, Started) else None)
    bench.toy.deadline = 1010.0
    bench.process.nudge()
    world.run_for(20.0)
    assert bench.toy.times[-1].mono == 1010.0
    bench.toy.deadline = 1060.0
    bench.process.nudge()
    world.run_for(39.0)  # the wake-up at 1050 is void
    assert len(bench.toy.facts) == 2
    world.run_for(2.0)
    assert bench.toy.times[-1].mono == 1060.0


def test_a_deadline_that_never_moves_is_an_error() -> None:
    class Stuck(ToyCore):
        def next_deadline(self) -> float | None:
            return 1000.0

    world = Simulation()
    world.host("relay").start(Stuck)
    with pytest.raises(ContractError, match="stays at"):
        world.run_for(1.0)


def test_a_core_that_raises_is_named() -> None:
    class Broken(ToyCore):
        def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
            raise KeyError("x")

    world = Simulation()
    world.host("relay").start(Broken)
    with pytest.raises(KeyError) as caught:
        world.run_idle()
    assert "relay#1" in caught.value.__notes__[0]


def test_the_limit_error_shows_the_last_events() -> None:
    world = Simulation(seed=3)
    ToyNetwork(world)
    with pytest.raises(SimulationLimitError, match=r"seed 3(.|\n)*relay#1: Ready\(\)"):
        world.run_until(lambda: False, limit=2.0)
    assert world.now == 1002.0
    assert not world.step()


def test_a_world_that_stands_still_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtimes.sim.simulation.MAX_EVENTS", 100)
    world = Simulation()

    def again() -> None:
        world.after(0.0, again)

    again()
    with pytest.raises(SimulationLimitError, match="stands still"):
        world.run_for(1.0)


def test_stop_sends_stopping_and_closes_the_port() -> None:
    world = Simulation()
    bench = ToyNetwork(world)
    bench.process.stop(grace=3.0)
    world.run_idle()
    assert bench.toy.facts[-1] == Stopping(3.0)
    assert repr(bench.process) == "<process relay#1 runs>"
    with pytest.raises(ConnectFailed, match="refused"):
        world.connect(bench.phone, "relay", 80)
    bench.order(Exit(0, "bye"), Log(Level.INFO, "last", {}))
    assert (bench.process.exit_code, bench.process.exit_reason) == (0, "bye")
    assert repr(bench.process) == "<process relay#1 exited 0>"
    assert [line.event for line in bench.process.logs] == ["last"]
    for late in (bench.process.stop, bench.process.kill, bench.process.nudge):
        late()
    assert bench.process.exit_code == 0


def test_exit_sends_buffered_bytes_and_a_fin() -> None:
    world = Simulation()

    def react(toy: ToyCore, fact: Fact | None) -> None:
        if isinstance(fact, Received):
            toy.emit(Send(fact.ch, b"bye"), Exit(1))

    bench = ToyNetwork(world, react)
    wire = world.connect(bench.phone, "relay", 80)
    wire.send(b"x")
    assert wire.read_all() == b"bye"
    assert (wire.eof, wire.closed) == (True, False)
    wire.send(b"hello?")
    world.run_until(lambda: wire.closed)
    assert wire.why == "reset by the peer"


def test_a_killed_process_resets_its_peers_and_can_be_started_again() -> None:
    world = Simulation()
    bench = ToyNetwork(world, echo)
    wire = world.connect(bench.phone, "relay", 80)
    wire.send(b"one")
    assert wire.read_exactly(3) == b"one"
    bench.toy.deadline = 1005.0
    bench.process.nudge()
    bench.process.kill()
    assert bench.process.exit_code == KILLED
    world.run_for(10.0)
    assert wire.closed
    assert wire.why == "reset by the peer"
    assert bench.process.channel_count == 0
    process = bench.process.restart()
    world.run_idle()
    assert process.name == "relay#2"
    assert len(bench.toys) == 2
    wire = world.connect(bench.phone, "relay", 80)
    wire.send(b"two")
    assert wire.read_until(b"o") == b"two"
    again = process.restart()  # which kills it
    assert not process.alive
    assert again.alive


def test_entropy_is_a_processs_own_and_repeats() -> None:
    def draw(seed: int) -> list[bytes]:
        world = Simulation(seed)
        bench = ToyNetwork(world)
        bench.process.restart()
        return [toy.entropy(8) for toy in bench.toys]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert len(set(draw(1))) == 2


def story(seed: int, faults: Faults = Faults.NONE, cost: HandleCost = HandleCost.NONE) -> Simulation:
    """Run a fixed mix of connections, timers and store requests; return the simulation, to compare it with others."""
    world = Simulation(seed, faults=faults, cost=cost)

    def react(toy: ToyCore, fact: Fact | None) -> None:
        echo(toy, fact)
        if isinstance(fact, Accepted):
            toy.deadline = toy.now.mono + 1.0
            toy.emit(
                Query(toy.new_op(), SaveSession(str(fact.ch), {"n": 1})), Compute(toy.new_op(), "yaml.load", ("a: 1",))
            )

    bench = ToyNetwork(world, react)
    wires = [world.connect(bench.phone, "relay", 80) for _ in range(5)]
    for round_ in range(20):
        for wire in wires:
            wire.send(b"%d" % round_ * 50)
        world.run_for(0.5)
    bench.process.kill()
    world.run_for(5.0)
    return world


def test_the_same_seed_gives_the_same_run() -> None:
    assert story(5).trace_digest() == story(5).trace_digest()
    assert story(5).trace_digest() != story(6).trace_digest()
    stormy = story(5, Faults.some()).trace_digest()
    assert stormy == story(5, Faults.some()).trace_digest()


def test_a_late_wake_up_is_at_most_50_ms_late() -> None:
    world = Simulation(faults=Faults(late_wake=1.0, clock_step=1.0))
    bench = ToyNetwork(world, lambda toy, fact: setattr(toy, "deadline", 1010.0) if isinstance(fact, Started) else None)
    world.run_for(20.0)
    (when,) = [moment.mono for moment in bench.toy.times if moment.mono > 1005.0]
    assert 1010.0 < when <= 1010.05
    assert bench.relay.clock_offset


def test_unknown_operations_are_unsupported() -> None:
    class Juggle(Operation[int]):
        answer = int

    world = Simulation()
    bench = ToyNetwork(world)
    failure = bench.run_operation(lambda op: Juggle(op))
    assert failure == Failure(FailureKind.UNSUPPORTED, "this runtime has no Juggle")
