"""Tests of simulated connections under faults: cuts, silence, partitions, lost segments, a killed process."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtimes.sim.faults import Faults
from runtimes.sim.network import SimNetwork
from runtimes.sim.raw_peer import RawPeer
from runtimes.sim.simulation import Simulation
from svc_proto.commands import Abort, CloseWrite, Connect, Exit, PauseReading, ResumeReading, Send
from svc_proto.facts import ChannelId, Closed, Failure, OperationId, Received, Sent
from tests.runtimes.sim.toy_cores import OUT, ToyNetwork, connected, echo

CH = ChannelId(2)


def test_a_cut_ends_both_sides(bench: ToyNetwork, wire: RawPeer) -> None:
    wire.send(b"lost")
    bench.world.cut(wire.connection)
    wire.connection.cut()
    wire.send(b"into the void")
    bench.world.run_idle()
    assert wire.closed
    assert bench.toy.of(Received) == []
    assert bench.toy.of(Closed) == [Closed(CH, "the connection was cut")]


def test_an_abort_into_a_black_hole_arrives_when_it_is_mended(bench: ToyNetwork, wire: RawPeer) -> None:
    wire.connection.hang()
    bench.order(Abort(CH))
    bench.world.run_for(60.0)
    assert bench.toy.of(Closed)
    assert not wire.closed
    bench.world.heal_all()
    bench.world.run_idle()
    assert wire.closed


def test_end_of_one_partition_leaves_other_faults() -> None:
    bench = ToyNetwork(Simulation(), echo)
    wire, network = connected(bench), bench.world.network
    other = bench.world.host("other", "10.9.9.9")
    network.partition(bench.relay, bench.phone)
    network.partition(bench.relay, other)
    wire.connection.hang()
    network.heal_between(bench.phone, bench.relay)
    assert not network.parted(bench.relay, bench.phone)
    assert network.parted(bench.relay, other)
    wire.send(b"far")
    bench.world.run_for(100.0)
    assert wire.receive() == b""
    network.partition(bench.relay, bench.phone)
    wire.connection.heal()
    bench.world.run_for(100.0)
    assert wire.receive() == b""
    network.heal_between(bench.relay, bench.phone)
    assert wire.read_exactly(3) == b"far"


def test_lost_segments_arrive_late() -> None:
    bench = ToyNetwork(Simulation(faults=Faults(spike=1.0)))
    connected(bench).send(b"x")
    bench.world.run_for(0.15)
    assert bench.toy.of(Received) == []
    bench.world.run_for(3.0)
    assert bench.toy.received() == b"x"


@pytest.mark.parametrize("what", ["cut", "hang"])
def test_faults_break_connections(bench: ToyNetwork, wire: RawPeer, what: str) -> None:
    bench.world.faults = Faults(cut=1.0) if what == "cut" else Faults(hang=1.0)
    wire.send(b"x" * 100_000)
    bench.world.run_for(10.0)
    assert bench.toy.of(Received) == []
    assert wire.closed is (what == "cut")
    bench.world.faults = Faults.NONE
    assert Faults.some(0.0) == Faults.NONE


def test_a_connection_that_is_cut_before_its_handshake_ends(bench: ToyNetwork) -> None:
    listener = bench.world.listen(bench.phone, 80)
    bench.world.network.link(bench.relay, bench.phone, latency=0.1)
    bench.order(Connect(OperationId(901), OUT, "phone", 80))
    wire = listener.accept()
    bench.world.faults = Faults(cut=1.0)
    wire.send(b"x")
    bench.world.run_for(20.5)
    assert isinstance(bench.toy.answer(901), Failure) or bench.toy.of(Closed)


def test_an_abort_before_a_cut(bench: ToyNetwork, wire: RawPeer) -> None:
    wire.connection.cut()
    bench.run(Abort(CH))
    assert bench.toy.of(Closed) == [Closed(CH, "aborted")]
    assert wire.why == "the connection was cut"


def test_killed_while_connecting(bench: ToyNetwork) -> None:
    listener = bench.world.listen(bench.phone, 80)
    bench.order(Connect(OperationId(901), OUT, "phone", 80))
    wire = listener.accept()
    bench.process.kill()
    bench.world.run_until(lambda: wire.closed)
    assert bench.toy.answer(901) is None


def test_exit_after_the_own_fin(bench: ToyNetwork, wire: RawPeer) -> None:
    bench.order(Send(CH, b"bye"), CloseWrite(CH))
    bench.order(Exit(0))
    assert wire.read_all() == b"bye"
    wire.close_write()
    bench.world.run_idle()
    assert (wire.closed, wire.why) == (True, "")


@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(1, 90_000), max_size=8), chunking=st.floats(0.0, 1.0))
@settings(max_examples=50)
def test_nothing_is_lost_or_reordered_as_long_as_the_connection_stands(
    seed: int, sizes: list[int], chunking: float
) -> None:
    faults = Faults(spike=0.1, hang=0.02, late_read=0.5, late_wake=0.5)
    world = Simulation(seed, network=SimNetwork(chunking=chunking), faults=faults)
    bench = ToyNetwork(world, echo)
    wire = connected(bench)
    sent = b""
    for number, size in enumerate(sizes):
        data = bytes([number]) * size
        sent += data
        wire.send(data)
        bench.order(PauseReading(CH) if world.rng.random() < 0.5 else ResumeReading(CH))
        world.run_for(world.rng.random())
        if world.rng.random() < 0.3:
            world.network.heal()
    wire.close_write()
    bench.order(ResumeReading(CH))
    world.heal_all()
    assert wire.read_all() == sent
    world.run_idle()
    assert bench.toy.of(Closed) == [Closed(CH)]
    assert sum(fact.n for fact in bench.toy.of(Sent)) == len(sent)
