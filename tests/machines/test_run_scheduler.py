import pytest

from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.machines.run_scheduler import RunRecord, RunScheduler, RunState, RunTrigger
from tests.machines.fixed_inputs import WALL, at

T = RunTrigger


def names(runs: list[RunRecord]) -> list[str]:
    return [run.id for run in runs]


def turn(runs: RunScheduler, name: str, session: str = "s", when: float = 0.0) -> RunRecord:
    return runs.add(name, session, may_wait=True, now=at(when))


def test_turns_of_one_session_run_in_sequence_and_hold_their_slots() -> None:
    runs = RunScheduler(2)  # a turn that waits for its session has no slot
    first, second, other = turn(runs, "a"), turn(runs, "b"), turn(runs, "c", "t")
    assert names(runs.startable(at(1))) == ["a", "c"]
    assert (first.state, second.state, other.state) == (RunState.RUNNING, RunState.QUEUED, RunState.RUNNING)
    assert runs.startable(at(1)) == []
    assert runs.busy("s")
    runs.finish(first, T.FINISH, at(2))
    assert names(runs.startable(at(2))) == ["b"]
    assert (second.created_at, second.updated_at) == (WALL, WALL + 2)
    runs.finish(second, T.FAIL, at(3))
    assert second.ended
    assert not runs.busy("s")
    assert names(runs.live()) == ["c"]
    assert len(runs) == 1
    runs = RunScheduler(2)
    first = turn(runs, "a")
    runs.startable(at(0))
    second = runs.add("b", "s", may_wait=False, now=at(0))
    assert runs.startable(at(0)) == []
    with pytest.raises(Refused):
        runs.check_capacity()
    runs.finish(first, T.FINISH, at(1))
    assert names(runs.startable(at(1))) == ["b"]
    runs.stop(second, at(2))
    runs.finish(second, T.CANCEL, at(3))
    runs.check_capacity()
    runs = RunScheduler(2)
    turn(runs, "a")
    runs.startable(at(0))
    runs.add("b", "s", may_wait=False, now=at(0))
    assert (runs.slots, runs.waiting, runs.waits_only_for_slot) == (2, 0, False)


def test_the_cap_limits_what_runs() -> None:
    runs = RunScheduler(1)
    first = runs.add("a", "s", may_wait=False, now=at(0))
    assert names(runs.startable(at(0))) == ["a"]
    with pytest.raises(Refused) as refused:
        runs.add("b", "t", may_wait=False, now=at(0))
    assert (refused.value.status, refused.value.code) == (429, "rate_limit_exceeded")
    assert refused.value.headers == ((b"retry-after", b"1"),)
    turn(runs, "c", "t")
    turn(runs, "d", "u")
    assert runs.startable(at(1)) == []
    runs.finish(first, T.FINISH, at(2))
    assert names(runs.startable(at(2))) == ["c"]
    runs = RunScheduler(0)
    for number in range(50):
        runs.add(f"r{number}", f"s{number}", may_wait=number % 2 == 0, now=at(0))
    assert len(runs.startable(at(0))) == 50
    runs.check_capacity()
    runs = RunScheduler(10)
    runs.cap = 0
    first, second, third = turn(runs, "a"), turn(runs, "b"), turn(runs, "c", "t")
    assert runs.startable(at(0)) == []
    assert (runs.slots, runs.waiting, runs.waits_only_for_slot) == (0, 3, True)
    runs.cap = 1
    assert names(runs.startable(at(0))) == ["a"]
    assert (runs.slots, runs.waiting, runs.waits_only_for_slot) == (1, 2, True)  # `c` waits only for a slot
    runs.stop(third, at(1))
    assert (runs.slots, runs.waiting, runs.waits_only_for_slot) == (1, 1, False)  # `b` waits for its session
    runs.finish(first, T.FINISH, at(2))
    assert (runs.slots, runs.waits_only_for_slot) == (0, True)
    assert names(runs.startable(at(2))) == [second.id]


def test_stopped_turns_free_their_place_at_their_end() -> None:
    runs = RunScheduler(1)
    first, second, third = turn(runs, "a"), turn(runs, "b"), turn(runs, "c")
    runs.startable(at(0))
    runs.stop(second, at(1))
    runs.stop(second, at(1))  # a second request
    assert second.state.value == "stopping"
    runs.finish(first, T.FINISH, at(2))
    assert names(runs.startable(at(2))) == ["c"]
    runs.finish(second, T.CANCEL, at(3))
    assert (second.state.value, third.state.value) == ("cancelled", "running")
    runs = RunScheduler(1)
    first = turn(runs, "a")
    runs.startable(at(0))
    turn(runs, "b")
    runs.stop(first, at(1))
    assert runs.startable(at(1)) == []
    runs.finish(first, T.CANCEL, at(2))
    assert names(runs.startable(at(2))) == ["b"]


@pytest.mark.parametrize(
    ("started", "stopped", "end"),
    [
        (True, False, T.FINISH),
        (True, False, T.FAIL),
        (True, True, T.CANCEL),
        (False, False, T.FAIL),
        (False, True, T.CANCEL),
    ],
)
def test_each_end_frees_the_slot_once(started: bool, stopped: bool, end: RunTrigger) -> None:
    runs = RunScheduler(2)
    turn(runs, "a")
    runs.startable(at(0))
    run = runs.add("b", "t" if started else "s", may_wait=False, now=at(0))
    assert runs.startable(at(0)) == [run] * started
    if stopped:
        runs.stop(run, at(1))
    runs.finish(run, end, at(2))
    assert (runs.slots, runs.waiting, names(runs.live()), runs.startable(at(2))) == (1, 0, ["a"], [])
    with pytest.raises(LocalProtocolError):
        turn(runs, "b")  # the ended run has this id


def test_the_queue_has_a_limit_and_its_ids_are_unique() -> None:
    runs = RunScheduler(1, max_queued=2)
    turn(runs, "a")
    runs.startable(at(0))
    turn(runs, "b")
    turn(runs, "c")
    with pytest.raises(Refused) as refused:
        turn(runs, "d")
    assert (refused.value.status, refused.value.code) == (429, "rate_limit_exceeded")
    runs.cap = 2
    with pytest.raises(Refused):
        runs.add("d", "t", may_wait=False, now=at(0))
    assert (len(runs), runs.slots) == (3, 1)
    runs = RunScheduler(1)
    turn(runs, "a")
    with pytest.raises(LocalProtocolError):
        turn(runs, "a")


def test_ended_runs_are_remembered_for_an_hour() -> None:
    runs = RunScheduler(1, max_ended=2)
    for number in range(3):
        run = turn(runs, f"r{number}")
        runs.startable(at(number))
        assert runs.get(run.id, at(number)) is run
        assert runs.finish(run, T.FINISH, at(number)) == (["r0"] if number == 2 else [])
    assert runs.get("r0", at(2)) is None  # one over the limit
    assert runs.get("r1", at(3600.999)) is not None
    assert runs.get("r1", at(3601)) is None
    assert runs.get("r2", at(3601)) is not None
    assert runs.get("never", at(0)) is None
    last = turn(runs, "last")
    runs.startable(at(3601))
    assert runs.finish(last, T.FINISH, at(3601)) == ["r1"]
