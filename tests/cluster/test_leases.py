"""Leases: owned by one node at a time, renewed, lost, released; the simulated Redis has the same scripts."""

from typing import Any, cast

import pytest

from runtimes.sim.redis_server import RedisService
from svc_proto.cluster import leases
from svc_proto.cluster.leases import DROP, LEASE, RENEW, RENEW_INTERVAL, TAKE, LeaseManager
from svc_proto.cluster.node import Node
from svc_proto.cluster.redis_client import CONNECT_TIMEOUT, PAUSE, RedisClient
from svc_proto.cluster.semaphore import ACQUIRE_SCRIPT, RELEASE_SCRIPT, RENEW_SCRIPT
from svc_proto.commands import Connect
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from tests.cluster.harness import WHERE, NodeStub, RedisHarness


class Owner:
    """Lease manager of a node named `me`, with the names of its lost and lapsed leases."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self.lapsed: list[str] = []

        def make(engine: Engine) -> RedisClient:
            redis = RedisClient(engine, WHERE)
            self.leases = LeaseManager(
                engine, cast("Node", NodeStub(redis)), "me", self.lost.append, self.lapsed.append
            )
            return redis

        self.book: RedisHarness[RedisClient] = RedisHarness(make)
        self.results: list[Any] = []
        self.book.within(self.book.made.start)
        self.book.open()

    def take(self, name: str = "s") -> None:
        self.run(self.leases.acquire(name))

    def run(self, flow: Flow[Any]) -> Any:
        tasks: list[Any] = []
        self.book.within(lambda: tasks.append(self.book.engine.spawn(flow, on_done=self.results.append)))
        return tasks[0]

    def have(self, name: str = "s", fence: int = 7) -> None:
        self.take(name)
        self.book.new_commands()
        self.book.answers([b"me", b"%d" % fence])
        assert self.results.pop() == ""

    def evals(self) -> list[tuple[str, ...]]:
        """Return the scripts sent to Redis since the last call, by name, with their arguments."""
        names = {TAKE: "take", RENEW: "renew", DROP: "drop"}
        said: list[Any] = self.book.new_commands()
        return [
            (names[words[1].decode()], *[word.decode() for word in words[3:]])
            for words in said
            if words[0] == b"EVAL" and int(words[2]) == sum(word.startswith(b"svc:") for word in words[3:])
        ]


@pytest.fixture
def one() -> Owner:
    return Owner()


KEY = "svc:0:kind:lease:s"


def test_leases_are_released_by_their_last_holder_or_a_cancelled_one(one: Owner) -> None:
    one.take()
    assert one.evals() == [("take", KEY, "svc:0:kind:fence", "me", "4000")]
    assert one.leases.fencing_token("s") == 0
    one.book.answers([b"me", b"12"])
    assert (one.results, one.leases.fencing_token("s"), len(one.leases)) == ([""], 12, 1)
    one.take()
    assert (one.results, one.evals()) == (["", ""], [])  # without a query
    one.book.within(lambda: one.leases.release("s"))
    assert (one.evals(), one.leases.fencing_token("s")) == ([], 12)
    one.book.within(lambda: one.leases.release("s"))
    assert (one.evals(), one.leases.fencing_token("s"), len(one.leases)) == ([("drop", KEY, "me")], None, 0)
    one = Owner()
    task = one.run(one.leases.acquire("s"))
    one.book.new_commands()
    one.book.within(task.cancel)
    assert (one.evals(), len(one.leases)) == ([("drop", KEY, "me")], 0)
    one.book.within(one.leases.renew)
    one.book.after(0.1)
    assert one.evals() == []


def test_leases_of_other_nodes_or_without_redis_are_not_acquired(one: Owner) -> None:
    one.take()
    one.book.new_commands()
    one.book.answers([b"you http://b\xff", b"0"])
    assert (one.results, one.evals(), len(one.leases)) == (["you http://b\ufffd"], [("drop", KEY, "me")], 0)
    one = Owner()
    one.have()
    one.take("other")
    one.book.close()
    assert [answer.kind for answer in one.results] == [FailureKind.UNREACHABLE]
    one.take()  # possibly owned by another node
    assert isinstance(one.results[-1], Failure)
    assert one.leases.fencing_token("s") == 7  # of the previous owner


@pytest.mark.parametrize("answer", [None, 7, [b"me"], [b"me", b"x"], [b"me", 3]])
def test_unexpected_reply_is_a_failure(one: Owner, answer: object) -> None:
    one.take()
    one.book.answers(answer)
    assert (one.results, len(one.leases)) == ([leases.UNEXPECTED_REPLY], 0)


def stays_held(one: Owner, name: str, leases_held: int) -> None:
    """Answer all renewals for longer than a lease lasts, and check that this one is held on."""
    for _ in range(int(LEASE / RENEW_INTERVAL) + 1):
        one.book.after(RENEW_INTERVAL)
        assert [words[0] for words in one.evals()] == ["renew"]
        one.book.answers([1] * leases_held)
    assert one.leases.has(name)


def test_leases_are_renewed_each_second_and_after_reconnecting(one: Owner) -> None:
    one.have("a")
    one.have("b", 8)
    one.book.after(RENEW_INTERVAL)
    keys = [KEY.removesuffix("s") + name for name in "ab"]
    assert one.evals() == [("renew", *keys, "me", "4000")]
    one.book.close()
    one.book.after(PAUSE)
    assert one.leases.fencing_token("a") == 7
    one.book.open()
    one.book.within(one.leases.renew)
    assert one.evals() == [("renew", *keys, "me", "4000")]
    one.book.answers([1, 1])
    stays_held(one, "a", 2)
    one.take("a")
    assert (one.results, one.evals()) == ([""], [])
    one.book.within(one.leases.stop)
    one.book.after(RENEW_INTERVAL)
    assert one.evals() == []


def test_leases_expire_after_the_time_of_their_request(one: Owner) -> None:
    one.have()
    one.book.within(one.leases.stop)
    one.book.after(LEASE - 0.1)
    one.take()
    assert one.results == [""]
    one.book.after(0.1)
    one.take()
    assert one.evals() == [("take", KEY, "svc:0:kind:fence", "me", "4000")]
    one.book.answers([b"me", b"9"])
    assert one.leases.fencing_token("s") == 9
    one = Owner()
    one.take()
    one.book.after(1.0)
    one.book.answers([b"me", b"7"])
    one.book.within(one.leases.stop)
    assert one.leases.has("s")
    one.book.after(LEASE - 1.0)
    assert not one.leases.has("s")


def test_leases_taken_by_another_node_or_renewed_late_are_reported(one: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    one.have("a")
    one.have("b", 8)
    one.have("c", 9)
    one.book.within(one.leases.renew)
    one.book.within(one.leases.renew)
    one.book.within(lambda: one.leases.release("c"))
    one.book.answers([0, 1, 0], [0, 1])
    assert one.lost == ["a"]
    assert one.leases.fencing_token("a") == 7  # the store refuses this token
    one.book.answers(1)
    one.book.new_commands()
    one.take("a")  # possibly free again
    assert one.evals()[0][0] == "take"
    one.book.answers([b"me", b"11"])
    assert one.leases.fencing_token("a") == 11
    stays_held(one, "a", 2)
    one = Owner()
    monkeypatch.setattr(one.book.engine, "entropy", lambda size: b"\xff" * size)  # the longest pauses
    one.have()
    one.book.within(one.leases.renew)
    one.book.answers(1)  # not a list
    one.book.within(one.leases.renew)
    one.book.answers([1])
    assert one.lapsed == []
    one.book.close()
    one.book.after(LEASE)
    one.book.ordered(Connect)
    one.book.after(CONNECT_TIMEOUT + PAUSE)
    one.book.open()
    one.book.within(one.leases.renew)
    one.book.answers([1])
    one.book.within(one.leases.renew)
    one.book.answers([1])
    assert (one.lapsed, one.lost) == (["s"], [])


@pytest.mark.parametrize(("late", "lapsed"), [(0.0, ["s"]), (-0.125, [])])
def test_lease_lapses_exactly_at_its_end(one: Owner, late: float, lapsed: list[str]) -> None:
    one.have()
    one.book.within(one.leases.stop)
    one.book.after(LEASE - 0.5)
    one.book.within(one.leases.renew)
    one.book.after(0.5 + late)
    one.book.answers([1])
    assert one.lapsed == lapsed
    one.book.within(one.leases.stop)
    one.book.after(LEASE - 0.75 - late)
    assert one.leases.has("s")
    one.book.after(0.25)  # it ends, as counted from the request
    assert not one.leases.has("s")


def test_renewals_are_batched_and_have_no_effect_without_an_answer(one: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BATCH_SIZE", 2)
    for name in "abc":
        one.have(name)
    one.take("d")  # of unknown state
    one.book.new_commands()
    one.book.within(one.leases.renew)
    assert [len(each) - 3 for each in one.evals()] == [2, 1]
    one = Owner()
    one.have()
    one.book.within(one.leases.renew)
    one.book.close()
    assert (one.lost, one.leases.fencing_token("s")) == ([], 7)


def test_simulator_has_the_same_scripts() -> None:
    assert list(RedisService().scripts) == [TAKE, RENEW, DROP, ACQUIRE_SCRIPT, RENEW_SCRIPT, RELEASE_SCRIPT]
