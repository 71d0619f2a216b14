"""Tests of the cost model: simulated time passes while a core computes."""

from collections.abc import Iterator
from itertools import islice, pairwise

import pytest

from runtimes.sim.cost import HandleCost
from runtimes.sim.process import KILLED
from runtimes.sim.simulation import START_MONO, Simulation
from svc_proto.commands import AppendFile, Command, Query, Ready, Send
from svc_proto.facts import Accepted, ChannelId, Done, Fact, OperationId, Received, Started
from svc_proto.store_requests import CheckStore, LoadSessions
from tests.runtimes.sim.test_simulation import story
from tests.runtimes.sim.toy_cores import ToyCore, ToyNetwork, echo

SECOND = HandleCost(per_call=1.0)
CHANNEL, OPERATION = ChannelId(2), OperationId(1)


def times(toy: ToyCore) -> list[float]:
    """Return the times of the toy core's calls, in seconds since the start of the simulation."""
    return [round(moment.mono - START_MONO, 9) for moment in toy.times]


def test_commands_take_effect_at_the_end_of_the_computation() -> None:
    world = Simulation(cost=SECOND, trace=True)
    ToyNetwork(world)
    assert [(record.when - START_MONO, record.what) for record in world.records[1:]] == [
        (0.0, Started()),
        (1.0, Ready()),
    ]


def test_facts_wait_until_the_computation_ends() -> None:
    world = Simulation(latency=0.1, cost=SECOND)
    bench = ToyNetwork(world, echo)
    wire = world.connect(bench.phone, "relay", 80)
    wire.send(b"one")
    world.run_for(0.5)
    assert [type(fact) for fact in bench.toy.facts] == [Started, Accepted]
    wire.send(b"two")
    assert wire.read_until(b"two") == b"onetwo"
    began = times(bench.toy)
    assert began[:3] == pytest.approx([0.0, began[1], began[1] + 1.0])
    assert all(later - earlier >= 0.999 for earlier, later in pairwise(began))


def test_a_timer_that_is_due_during_a_computation_is_late() -> None:
    def react(toy: ToyCore, fact: Fact | None) -> None:
        if isinstance(fact, Started):
            toy.deadline = toy.now.mono + 0.25

    world = Simulation(cost=SECOND)
    bench = ToyNetwork(world, react)
    bench.toy.deadline = 1000.5
    bench.process.nudge()  # the core is still computing
    world.run_for(5.0)
    assert times(bench.toy) == [0.0, 1.0]


def test_other_programs_run_during_a_computation() -> None:
    world = Simulation(cost=SECOND)
    bench = ToyNetwork(world, echo)
    bench.phone.cost = HandleCost.NONE
    idle = bench.phone.start(lambda entropy: ToyCore(entropy, echo), [81])
    neighbour = bench.relay.start(lambda entropy: ToyCore(entropy, echo), [82])
    world.run_for(1.0)
    assert idle.ready
    assert neighbour.ready
    world.connect(bench.phone, "relay", 80)
    wire = world.connect(bench.relay, "phone", 81)
    before = world.now
    wire.send(b"there?")
    assert wire.read_exactly(6) == b"there?"
    assert world.now - before < 0.1
    assert bench.process.ready


def test_computation_of_a_killed_program_has_no_effect() -> None:
    world = Simulation(cost=SECOND)
    relay = world.host("relay")
    process = relay.start(ToyCore, [80])
    world.run_for(0.5)
    process.kill()
    world.run_idle()
    assert process.exit_code == KILLED
    assert not process.ready
    assert process.restart().alive


def test_rows_cost_time_when_the_core_reads_them() -> None:
    """A core that reads a long answer in several calls has a part of its cost in each call."""
    rows: list[Iterator[object]] = []

    def react(toy: ToyCore, fact: Fact | None) -> None:
        if isinstance(fact, Done):
            assert isinstance(fact.result, tuple)
            rows.append(iter(fact.result))
        taken = [*islice(rows[0], 5)] if rows else []
        toy.deadline = toy.now.mono if taken else None

    world = Simulation(cost=HandleCost(per_record=1.0))
    bench = ToyNetwork(world, react)
    bench.relay.store.sessions = {f"{n}": {"token_hash": f"{n}"} for n in range(10)}
    bench.order(Query(bench.toy.new_op(), LoadSessions()))
    world.run_for(60.0)
    _, query, answer, *later = times(bench.toy)
    assert answer - query > 1.0
    assert later == pytest.approx([answer + 5.0, answer + 10.0])


@pytest.mark.parametrize(
    ("fact", "commands", "rows", "seconds"),
    [
        (None, [], 0, 1.0),
        (Received(CHANNEL, b"four"), [], 0, 1.4),
        (Done(OPERATION, b"four"), [], 0, 1.4),
        (Done(OPERATION, (b"four",)), [], 3, 31.0),
        (None, [Send(CHANNEL, b"four"), AppendFile(OPERATION, "log", b"six!")], 0, 1.8),
        (None, [Query(OPERATION, CheckStore())], 0, 11.0),
    ],
)
def test_calls_records_and_bytes_are_added_up(
    fact: Fact | None, commands: list[Command], rows: int, seconds: float
) -> None:
    cost = HandleCost(per_call=1.0, per_record=10.0, per_byte=0.1)
    assert cost.of(fact, commands, rows) == pytest.approx(seconds)
    assert cost.times(2.0).of(fact, commands, rows) == pytest.approx(2 * seconds)


def test_a_cost_of_zero_is_free() -> None:
    assert HandleCost.NONE.of(Received(CHANNEL, b"x"), [Query(OPERATION, CheckStore())], 5) == 0.0
    free = story(5).trace_digest()
    assert story(5, cost=HandleCost()).trace_digest() == free
    assert story(5, cost=HandleCost.MEASURED).trace_digest() != free


def test_costs_are_drawn_for_some_worlds_and_differ_between_hosts() -> None:
    drawn = [HandleCost.draw(seed, "home") for seed in range(300)]
    slow = [cost.per_call / HandleCost.MEASURED.per_call for cost in drawn if cost is not HandleCost.NONE]
    assert 70 < len(slow) < 130
    assert (min(slow) < 2.0, max(slow) > 15.0, max(slow) <= 20.0) == (True, True, True)
    assert drawn == [HandleCost.draw(seed, "home") for seed in range(300)]
    seed = next(seed for seed, cost in enumerate(drawn) if cost is not HandleCost.NONE)
    assert HandleCost.draw(seed, "other") != drawn[seed]
