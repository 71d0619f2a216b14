"""Tests of simulated connections: order, chunking, windows, half closing, partitions while connecting."""

import pytest

from runtimes.sim.contract import ContractError
from runtimes.sim.faults import Faults
from runtimes.sim.host import SimPort
from runtimes.sim.network import SimHandshake
from runtimes.sim.raw_peer import ConnectFailed, RawPeer
from runtimes.sim.simulation import Simulation
from svc_proto import facts
from svc_proto.commands import Abort, Cancel, CloseWrite, Connect, PauseReading, ResumeReading, Send
from tests.runtimes.sim.toy_cores import OUT, ToyCore, ToyNetwork, connect, connected

CH = facts.ChannelId(2)


# --- connecting ----------------------------------------------------------------------------------------------------


def test_an_accepted_channel_has_both_addresses(bench: ToyNetwork, wire: RawPeer) -> None:
    (fact,) = bench.toy.of(facts.Accepted)
    assert fact == facts.Accepted(CH, facts.Address("10.0.0.2", 49152), facts.Address("10.0.0.1", 80))
    assert wire.local == fact.peer
    assert repr(wire.connection) == "<connection 1 phone -> relay:80>"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "::1"])
def test_loopback_is_the_host_itself(bench: ToyNetwork, name: str) -> None:
    bench.world.connect(bench.relay, name, 80)
    assert bench.toy.of(facts.Accepted)[0].peer.host == "127.0.0.1"
    with pytest.raises(ConnectFailed, match="refused"):
        bench.world.connect(bench.phone, name, 80)


def test_dns_names_lead_to_hosts(bench: ToyNetwork) -> None:
    bench.world.network.name("Relay.example", "10.0.0.1")
    bench.world.connect(bench.phone, "relay.EXAMPLE", 80)
    with pytest.raises(ConnectFailed, match="UNREACHABLE: name not found") as caught:
        bench.world.connect(bench.phone, "nowhere.example", 80)
    assert caught.value.failure.kind is facts.FailureKind.UNREACHABLE


def test_a_port_is_open_from_ready_on() -> None:
    world = Simulation()
    relay, phone = world.host("relay"), world.host("phone", "10.0.0.2")

    process = relay.start(ToyCore, [80])
    assert world.network.listener(relay, 80) is None
    world.run_idle()
    assert process.ready
    world.connect(phone, "relay", 80)
    with pytest.raises(ValueError, match="port 80 of relay is taken"):
        world.listen(relay, 80)


def test_a_core_connects_to_a_scripted_peer(bench: ToyNetwork) -> None:
    listener = bench.world.listen(bench.phone, 443)
    answer = connect(bench, "phone", 443)
    wire = listener.accept()
    assert answer == ("done", bench.toy.of(facts.Done)[0].result)
    wire.send(b"welcome")
    bench.world.run_until(lambda: bench.toy.received(1) == b"welcome")
    bench.order(Send(OUT, b"thanks"))
    assert wire.read_until(lambda data: data.endswith(b"s")) == b"thanks"
    listener.close()
    with pytest.raises(ConnectFailed):
        bench.world.connect(bench.relay, "phone", 443)


def test_first_bytes_of_a_server_arrive_after_the_handshake() -> None:
    for seed in range(20):
        bench = ToyNetwork(Simulation(seed))

        def greet(toy: ToyCore, fact: facts.Fact | None) -> None:
            if isinstance(fact, facts.Accepted):
                toy.emit(Send(fact.ch, b"220 hello"), CloseWrite(fact.ch))

        bench.phone.start(lambda entropy, react=greet: ToyCore(entropy, react), [25])  # type: ignore[misc]
        bench.world.run_idle()
        connect(bench, "phone", 25)
        bench.world.run_until(lambda bench=bench: bool(bench.toy.of(facts.ReadClosed)))  # type: ignore[misc]
        kinds = [type(fact) for fact in bench.toy.facts if fact is not None][1:]
        assert (kinds[0], kinds[-1]) == (facts.Done, facts.ReadClosed)
        assert bench.toy.received(1) == b"220 hello"


def test_a_refused_connection_fails_after_a_round_trip(bench: ToyNetwork) -> None:
    assert connect(bench, "phone", 81) == facts.Failure(facts.FailureKind.UNREACHABLE, "connection refused")
    assert 1000.002 <= bench.world.now <= 1000.004


def test_an_absent_host_times_out(bench: ToyNetwork) -> None:
    assert connect(bench, "10.9.9.9", 80) == facts.Failure(facts.FailureKind.TIMED_OUT, "connecting timed out")
    assert bench.world.now == 1020.0


def test_a_partition_that_ends_in_time_lets_a_handshake_through(bench: ToyNetwork) -> None:
    bench.world.listen(bench.phone, 80)
    bench.world.network.partition(bench.phone, bench.relay)
    bench.world.after(5.0, bench.world.network.heal)
    answer = connect(bench, "phone", 80)
    assert isinstance(answer, tuple)
    assert 1005.0 < bench.world.now < 1008.0


def test_a_server_that_aborts_at_once(bench: ToyNetwork) -> None:
    def refuse(toy: ToyCore, fact: facts.Fact | None) -> None:
        if isinstance(fact, facts.Accepted):
            toy.emit(Abort(fact.ch))

    bench.phone.start(lambda entropy: ToyCore(entropy, refuse), [25])
    bench.world.run_idle()
    assert isinstance(connect(bench, "phone", 25), tuple)
    bench.world.run_idle()
    assert bench.toy.of(facts.Closed) == [facts.Closed(OUT, "reset by the peer")]


@pytest.mark.parametrize("wait", [0.0, 0.0021, 30.0])
def test_giving_up_connecting(bench: ToyNetwork, wait: float) -> None:
    listener = bench.world.listen(bench.phone, 80)
    if wait == 30.0:
        bench.world.network.connect_timeout = 60.0
        bench.world.network.partition(bench.phone, bench.relay)
    bench.world.network.link(bench.phone, bench.relay, latency=0.002, jitter=0.0)
    bench.order(Connect(facts.OperationId(901), OUT, "phone", 80))
    bench.world.run_for(wait)
    bench.run(Cancel(facts.OperationId(901)))
    assert bench.toy.answer(901) == facts.Failure(facts.FailureKind.CANCELLED)
    if wait == 0.0021:
        wire = listener.accept()
        bench.world.run_until(lambda: wire.closed)
    bench.world.run_for(100.0)
    assert len(bench.toy.of(facts.Failed)) == 1


def test_tls_and_alpn() -> None:
    bench = ToyNetwork(Simulation(), listen=(80, SimPort(443, tls=True, alpn="h2")))
    bench.world.connect(bench.phone, "relay", 443, tls=True)
    SimHandshake(bench.world.network, bench.phone, ("relay", 443), tls=True, outcome=lambda end: None, alpn=("h2",))
    bench.world.run_for(1.0)
    assert [(fact.tls, fact.alpn) for fact in bench.toy.of(facts.Accepted)] == [(True, None), (True, "h2")]
    with pytest.raises(ConnectFailed, match="TLS"):
        bench.world.connect(bench.phone, "relay", 80, tls=True)
    plain = bench.world.connect(bench.phone, "relay", 443)
    bench.world.run_until(lambda: plain.closed)
    bench.world.listen(bench.phone, 443, tls=True, alpn="http/1.1")
    connect(bench, "phone", 443, tls=True)
    assert "alpn='http/1.1'" in repr(bench.toy.of(facts.Done))
    bench.world.listen(bench.phone, 444, tls=True, alpn="h2")  # which is not offered
    bench.order(Connect(facts.OperationId(902), facts.ChannelId(23), "phone", 444, tls=True))
    bench.world.run_for(1.0)
    assert "alpn=None" in repr(bench.toy.of(facts.Done)[-1])


# --- bytes ---------------------------------------------------------------------------------------------------------


def test_chunking_is_random_and_keeps_order() -> None:
    sizes = []
    data = bytes(range(256)) * 8
    for seed in range(30):
        bench = ToyNetwork(Simulation(seed))
        connected(bench).send(data)
        bench.world.run_until(lambda bench=bench: len(bench.toy.received()) == len(data))  # type: ignore[misc]
        assert bench.toy.received() == data
        sizes.append(tuple(len(fact.data) for fact in bench.toy.of(facts.Received)))
    assert (len(data),) in sizes
    assert len(set(sizes)) > 5
    assert all(min(size) > 0 for size in sizes)


def test_connections_overtake_each_other() -> None:
    orders = set()
    for seed in range(20):
        bench = ToyNetwork(Simulation(seed))
        wires = [connected(bench) for _ in range(3)]
        for number, wire in enumerate(wires):
            wire.send(b"%d" % number)
        bench.world.run_idle()
        orders.add(b"".join(fact.data for fact in bench.toy.of(facts.Received)))
    assert len(orders) > 2


def test_pausing_takes_effect_for_arrived_bytes() -> None:
    def react(toy: ToyCore, fact: facts.Fact | None) -> None:
        if isinstance(fact, facts.Received) and len(toy.of(facts.Received)) == 1:
            toy.emit(PauseReading(fact.ch))

    bench = ToyNetwork(Simulation(1), react)
    wire = connected(bench)
    bench.order(PauseReading(CH))
    for _ in range(50):
        wire.send(b"x" * 20_000)
    bench.world.run_for(1.0)
    bench.order(ResumeReading(CH))
    bench.world.run_for(1.0)
    assert len(bench.toy.of(facts.Received)) == 1


def test_one_read_may_be_under_way_when_pausing() -> None:
    bench = ToyNetwork(Simulation(faults=Faults(late_read=1.0)))
    wire = connected(bench)
    bench.order(PauseReading(CH))
    for _ in range(5):
        wire.send(b"x")
        bench.world.run_for(1.0)
    assert len(bench.toy.of(facts.Received)) == 1
    bench.order(ResumeReading(CH), PauseReading(CH))
    wire.close_write()
    bench.world.run_for(1.0)
    assert len(bench.toy.of(facts.Received)) == 2


# --- ends ----------------------------------------------------------------------------------------------------------


def test_after_a_fin_the_other_direction_goes_on(bench: ToyNetwork, wire: RawPeer) -> None:
    wire.close_write()
    wire.close_write()
    wire.send(b"too late")
    bench.world.run_until(lambda: bool(bench.toy.of(facts.ReadClosed)))
    bench.order(Send(CH, b""), Send(CH, b"bye"), CloseWrite(CH))
    assert wire.read_all() == b"bye"
    assert (bench.toy.received(), wire.closed) == (b"", True)
    assert bench.toy.of(facts.Sent) == [facts.Sent(CH, 3)]


def test_abort_loses_bytes_in_flight(bench: ToyNetwork, wire: RawPeer) -> None:
    bench.run(Send(CH, b"never seen"), Abort(CH), Abort(CH), Send(CH, b"ignored"), CloseWrite(CH))
    assert bench.toy.of(facts.Closed) == [facts.Closed(CH, "aborted")]
    assert (wire.receive(), wire.closed, wire.why) == (b"", True, "reset by the peer")
    bench.order(Abort(CH), PauseReading(CH), ResumeReading(CH))
    with pytest.raises(ContractError, match="the channel is closed"):
        bench.order(Send(CH, b"x"))
    with pytest.raises(EOFError, match="reset by the peer"):
        wire.read_until(b"x")
    with pytest.raises(EOFError, match="0 of 4"):
        wire.read_exactly(4)
    wire.abort()
    wire.pause()


def test_abort_after_a_fin_loses_nothing(bench: ToyNetwork, wire: RawPeer) -> None:
    bench.run(Send(CH, b"last words"), CloseWrite(CH), Abort(CH))
    assert bench.toy.of(facts.Closed) == [facts.Closed(CH, "aborted")]
    assert (wire.receive(), wire.eof, wire.closed) == (b"last words", True, False)
    wire.close_write()
    bench.world.run_idle()
    assert bench.world.network.connections == ()


def test_killed_with_unread_data(bench: ToyNetwork, wire: RawPeer) -> None:
    bench.order(PauseReading(CH))
    wire.send(b"unread")
    bench.world.run_for(1.0)
    end = bench.process.end_of(CH)
    assert end is not None
    end.vanish(reset=False)  # as an exit does
    end.vanish(reset=False)
    bench.world.run_idle()
    assert wire.why == "reset by the peer"
