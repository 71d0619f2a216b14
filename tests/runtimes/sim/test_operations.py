"""Tests of simulated files, uploads, state folder, store and work: answers, faults, cancelling, and later state."""

from functools import partial

import pytest

from runtimes.sim.contract import ContractError
from runtimes.sim.faults import Faults
from runtimes.sim.raw_peer import RawPeer
from runtimes.sim.simulation import Simulation
from svc_proto import commands
from svc_proto.facts import ChannelId, Closed, Done, Fact, Failed, Failure, FailureKind, OperationId, Sent
from svc_proto.store_requests import SaveSession
from tests.runtimes.sim.toy_cores import ToyCore, ToyNetwork

CH = ChannelId(2)
EIO = Failure(FailureKind.INTERNAL, "input/output error")


def op(number: int) -> OperationId:
    return OperationId(number)


def opened(bench: ToyNetwork, path: str) -> commands.OpenedFile:
    answer = bench.run_operation(lambda op: commands.OpenFile(op, path))
    assert isinstance(answer, commands.OpenedFile)
    return answer


def unread(data: bytes = bytes(100_000)) -> tuple[ToyNetwork, RawPeer, commands.OpenedFile]:
    """Return a network, a peer that does not read, and a file of the relay that is open at the core."""
    bench = ToyNetwork(Simulation())
    bench.relay.disk.put("/big", data)
    wire = bench.world.connect(bench.phone, "relay", 80)
    wire.pause()
    return bench, wire, opened(bench, "/big")


# --- files ---------------------------------------------------------------------------------------------------------


def test_reading_a_file_by_its_real_path(bench: ToyNetwork) -> None:
    bench.relay.disk.put("/data/real/a.txt", b"0123456789")
    bench.relay.disk.symlink("/data/link", "real")
    file = opened(bench, "/data/link/../link/a.txt")
    assert file == commands.OpenedFile(1, "/data/real/a.txt", 10, 1_800_000_000.0)
    assert bench.process.operations.open_handles == 1
    bench.relay.disk.remove("/data/real/a.txt")  # it stays readable
    assert bench.run_operation(lambda op: commands.ReadFile(op, file.handle, 2, 4)) == b"2345"
    assert bench.run_operation(lambda op: commands.ReadFile(op, file.handle, 8, 4)) == b"89"
    bench.order(commands.ReleaseFile(file.handle))
    assert bench.process.operations.open_handles == 0
    with pytest.raises(ContractError, match="no such handle"):
        bench.order(commands.ReadFile(op(99), file.handle, 0, 1))


def test_io_errors_and_slow_operations() -> None:
    bench = ToyNetwork(Simulation(faults=Faults(file=1.0, store=1.0)))
    bench.relay.disk.put("/a", b"1")
    assert bench.run_operation(lambda op: commands.OpenFile(op, "/a")) == EIO
    assert bench.run_operation(lambda op: commands.WriteConfig(op, "n", "x")) == EIO
    assert bench.relay.disk.paths(bench.relay.state) == []
    assert bench.run_operation(lambda op: commands.Query(op, SaveSession("a", {}))) == EIO
    assert bench.relay.store.sessions == {}
    bench.world.faults = Faults(slow=1.0)
    before = bench.world.now
    bench.run_operation(lambda op: commands.CreateBlob(op))
    assert bench.world.now > before + 0.5


# --- sending files -------------------------------------------------------------------------------------------------


def test_send_file() -> None:
    bench, wire, file = unread(bytes(range(250)) * 1000)
    bench.order(
        commands.SendFile(op(901), CH, file.handle, 1000, 200_000),
        commands.CloseWrite(CH),
        commands.ReleaseFile(file.handle),
    )
    bench.world.run_for(5.0)
    assert bench.toy.answer(901) is None
    wire.resume()
    assert wire.read_all() == bytes(range(250)) * 800
    assert bench.toy.answer(901) == ("done", 200_000)
    assert [fact.n for fact in bench.toy.of(Sent)][:1] == [65_536]
    assert sum(fact.n for fact in bench.toy.of(Sent)) == 200_000


def test_sending_past_the_end_of_a_file_fails(bench: ToyNetwork) -> None:
    bench.relay.disk.put("/small", b"abc")
    wire = bench.world.connect(bench.phone, "relay", 80)
    file = opened(bench, "/small")
    assert bench.run_operation(lambda op: commands.SendFile(op, CH, file.handle, 0, 10)).kind is FailureKind.INVALID
    assert wire.read_exactly(3) == b"abc"
    bench.world.faults = Faults(file=1.0)
    assert bench.run_operation(lambda op: commands.SendFile(op, CH, file.handle, 0, 3)) == EIO


def test_a_file_on_a_channel_that_closes() -> None:
    bench, _, file = unread()
    bench.order(commands.SendFile(op(901), CH, file.handle, 0, 100_000))
    bench.run(commands.Abort(CH), commands.SendFile(op(902), CH, file.handle, 0, 1))
    closed = Failure(FailureKind.CANCELLED, "the channel closed")
    assert bench.toy.of(Failed) == [Failed(op(901), closed), Failed(op(902), closed)]
    assert len(bench.toy.of(Closed)) == 1
    with pytest.raises(ContractError, match="the channel is closed"):
        bench.order(commands.SendFile(op(903), CH, file.handle, 0, 1))


@pytest.mark.parametrize(("ahead", "sent"), [(0, 65536), (100_000, 100_000)], ids=["begun", "waiting"])
def test_sending_a_file_is_given_up(ahead: int, sent: int) -> None:
    bench, wire, file = unread()
    bench.order(commands.Send(CH, bytes(ahead)), commands.SendFile(op(901), CH, file.handle, 0, 100_000))
    bench.order(commands.Cancel(op(901)))
    bench.order(commands.Send(CH, b"end"), commands.CloseWrite(CH))
    wire.resume()
    assert wire.read_all() == bytes(sent) + b"end"
    assert bench.toy.answer(901) == Failure(FailureKind.CANCELLED)


# --- uploads -------------------------------------------------------------------------------------------------------


def test_discarding_crosses_with_the_end_of_an_upload() -> None:
    gone = Failure(FailureKind.INVALID, "no such handle")
    outcomes = set()
    handle = 1

    def react(toy: ToyCore, fact: Fact | None) -> None:
        if isinstance(fact, Done) and fact.op == 901:  # the end may be done at this instant without a reported answer
            toy.emit(commands.WriteBlob(op(903), handle, b"x"), commands.DiscardBlob(handle))

    for seed in range(20):
        bench = ToyNetwork(Simulation(seed), react)
        assert bench.run_operation(lambda op: commands.CreateBlob(op)) == handle
        bench.run(commands.WriteBlob(op(901), handle, b"abc"), commands.FinishBlob(op(902), handle))
        finished = bench.toy.answer(902) != gone
        assert (bench.toy.answer(903) == gone) is finished
        assert bench.relay.disk.paths(bench.relay.spool) == []
        outcomes.add(finished)
    assert outcomes == {True, False}


def test_unfinished_uploads_go_with_an_exit_but_stay_after_a_kill() -> None:
    left = []
    for killed in (False, True):
        bench = ToyNetwork(Simulation())
        bench.run_operation(lambda op: commands.CreateBlob(op))
        if killed:
            bench.process.kill()
        else:
            bench.order(commands.Exit(0))
        left.append(len(bench.relay.disk.paths(bench.relay.spool)))
    assert left == [0, 1]


# --- the state folder ----------------------------------------------------------------------------------------------


def test_files_of_the_state_folder_and_of_extra_folders(bench: ToyNetwork) -> None:
    disk = bench.relay.disk
    bench.relay.rooms = ("/etc/svc",)
    assert bench.run_operation(lambda op: commands.WriteConfig(op, "/etc/svc/sub/config.yaml", "a: 1")) is None
    assert disk.get("/etc/svc/sub/config.yaml") == b"a: 1"
    assert (
        bench.run_operation(lambda op: commands.WriteFile(op, "audio/a.mp3", b"\xff")) == "/home/user/.svc/audio/a.mp3"
    )
    bench.world.run_for(100.0)
    assert bench.run_operation(lambda op: commands.WriteFile(op, "audio/b.mp3", b"1")).endswith("/audio/b.mp3")
    disk.put("/home/user/.svc/audio/below/c.mp3", b"")
    assert bench.run_operation(lambda op: commands.SweepFolder(op, "audio", disk.wall() - 50.0)) == 1
    assert bench.run_operation(lambda op: commands.SweepFolder(op, "audio", disk.wall() + 1.0, "c")) == 0
    assert bench.run_operation(lambda op: commands.SweepFolder(op, "audio", disk.wall() + 1.0, "b")) == 1
    assert disk.paths("/home/user/.svc/audio") == ["/home/user/.svc/audio/below/c.mp3"]
    for name in ("", ".", "..", "a//b", "a/../b", "a\0", "/etc/passwd", "/etc/svcs/x", "/etc/svc/../x", "/etc/svc/"):
        assert bench.run_operation(partial(commands.WriteFile, name=name, data=b"")).kind is FailureKind.INVALID
    for fresh in (b"1" * 32, b"2" * 32):
        assert bench.run_operation(partial(commands.EnsureSecret, name="key", default=fresh)) == b"1" * 32


# --- the store -----------------------------------------------------------------------------------------------------


def test_requests_pending_at_a_kill_may_be_stored() -> None:
    kept = set()
    for seed in range(40):
        bench = ToyNetwork(Simulation(seed))
        bench.run_operation(lambda op: commands.Query(op, SaveSession("sure", {})))
        bench.order(*[commands.Query(op(900 + n), SaveSession(str(n), {})) for n in range(2)])
        bench.order(commands.WriteConfig(op(910), "file", "text"))
        bench.process.kill()
        bench.world.run_idle()
        kept.add((tuple(bench.relay.store.sessions), bench.relay.disk.exists("/home/user/.svc/file")))
    assert {names for names, _ in kept} == {("sure",), ("sure", "0"), ("sure", "0", "1")}
    assert {written for _, written in kept} == {True, False}


# --- work ----------------------------------------------------------------------------------------------------------


def test_work_by_name(bench: ToyNetwork) -> None:
    assert bench.run_operation(lambda op: commands.Compute(op, "speak")).kind is FailureKind.UNSUPPORTED
    bench.relay.compute["speak"] = lambda text: text.upper()
    before = bench.world.now
    assert bench.run_operation(lambda op: commands.Compute(op, "speak", ("hi",))) == "HI"
    assert 0.0025 <= bench.world.now - before < 0.01
    assert bench.run_operation(lambda op: commands.Compute(op, "speak", (1,))).kind is FailureKind.INTERNAL


# --- cancelling ----------------------------------------------------------------------------------------------------


def test_a_cancelled_operation_has_one_answer_and_no_effect(bench: ToyNetwork) -> None:
    bench.run(commands.CreateBlob(op(901)), commands.Cancel(op(901)), commands.Cancel(op(901)))
    assert bench.toy.of(Failed) == [Failed(op(901), Failure(FailureKind.CANCELLED))]
    assert bench.relay.disk.paths(bench.relay.spool) == []
    with pytest.raises(ContractError, match="has been answered"):
        bench.order(commands.Cancel(op(901)))


def test_a_cancel_may_come_too_late() -> None:
    bench = ToyNetwork(Simulation(faults=Faults(late_answer=1.0)))
    bench.run(commands.CreateBlob(op(901)), commands.Cancel(op(901)))
    assert bench.toy.answer(901) == ("done", 1)


def test_a_cancelled_change_may_be_made_nevertheless() -> None:
    made = set()
    for seed in range(20):
        bench = ToyNetwork(Simulation(seed))
        bench.run(commands.Query(op(901), SaveSession("a", {})), commands.Cancel(op(901)))
        assert bench.toy.answer(901) == Failure(FailureKind.CANCELLED)
        made.add("a" in bench.relay.store.sessions)
    assert made == {True, False}


def test_a_killed_process_gets_no_answer() -> None:
    bench = ToyNetwork(Simulation())
    bench.order(commands.CreateBlob(op(901)), commands.Compute(op(902), "network_addresses"))
    bench.process.kill()
    bench.world.run_idle()
    assert bench.toy.of(Done) == []
