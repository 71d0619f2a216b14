"""A semaphore of several nodes: acquired, renewed, released, and batched."""

from typing import Any, cast

import pytest

from svc_proto.cluster import semaphore
from svc_proto.cluster.leases import UNEXPECTED_REPLY
from svc_proto.cluster.node import Node
from svc_proto.cluster.redis_client import RedisClient
from svc_proto.cluster.semaphore import ACQUIRE_SCRIPT, RELEASE_SCRIPT, RENEW_SCRIPT, DistributedSemaphore
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from tests.cluster.harness import WHERE, NodeStub, RedisHarness

KEY = "svc:0:kind:places:turns"


class Owner:
    """Node with a semaphore of three slots; the test is its Redis."""

    def __init__(self) -> None:
        def make(engine: Engine) -> RedisClient:
            redis = RedisClient(engine, WHERE)
            self.places = DistributedSemaphore(cast("Node", NodeStub(redis)), "turns", 3)
            return redis

        self.book: RedisHarness[RedisClient] = RedisHarness(make)
        self.book.within(self.book.made.start)
        self.book.open()

    def asks(self, flow: Flow[Any], *answers: object) -> Any:
        """Start a flow, reply with `answers` as Redis, and return the flow's result."""
        results: list[Any] = []
        self.book.within(lambda: self.book.engine.spawn(flow, on_done=results.append))
        if answers:
            self.book.answers(*answers)
        (result,) = results
        return result

    def have(self, count: int) -> None:
        for _ in range(count):
            assert self.asks(self.places.acquire(), 1) is True
        self.book.new_commands()

    def evals(self) -> list[object]:
        """Return the scripts sent to Redis since the last call, by name, with their arguments."""
        names = {ACQUIRE_SCRIPT: "take", RENEW_SCRIPT: "keep", RELEASE_SCRIPT: "give back"}
        said: list[Any] = self.book.new_commands()
        assert all((words[0], words[2]) == (b"EVAL", b"1") for words in said)
        return [(names[words[1].decode()], *[word.decode() for word in words[3:]]) for words in said]


@pytest.fixture
def one() -> Owner:
    return Owner()


def test_slots_are_acquired_or_queried_while_free(one: Owner) -> None:
    assert one.asks(one.places.acquire(), 1) is True
    assert one.asks(one.places.acquire(), 0) is False
    assert one.evals() == [("take", KEY, "me:1", "3", "4000"), ("take", KEY, "me:2", "3", "4000")]
    assert len(one.places) == 1
    one = Owner()
    one.have(1)
    assert [one.asks(one.places.has_free(), answer) for answer in (0, 1)] == [False, True]
    assert [one.asks(one.places.holds_all(), answer) for answer in (0, 1)] == [False, True]
    assert one.evals() == [("take", KEY, "", "3", "4000")] * 2 + [("take", KEY, "", "2", "4000")] * 2
    assert len(one.places) == 1
    one = Owner()
    for _ in range(2):
        one.book.within(lambda: one.book.engine.spawn(one.places.acquire()))
    slots = [("take", KEY, f"me:{number}", "3", "4000") for number in (1, 2)]
    assert one.evals() == slots  # two at once are two slots


@pytest.mark.parametrize("answer", [None, 2, b"1", [1]])
def test_unexpected_reply_is_a_failure(one: Owner, answer: object) -> None:
    assert one.asks(one.places.acquire(), answer) is UNEXPECTED_REPLY
    assert len(one.places) == 0


def test_held_slots_are_kept_without_redis_in_batches(one: Owner) -> None:
    one.have(2)
    one.book.close()
    assert isinstance(one.asks(one.places.acquire()), Failure)
    one.book.within(one.places.renew)
    assert len(one.places) == 2
    assert semaphore.BATCH_SIZE == 500


def test_surplus_slots_are_released_newest_first_in_batches(one: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    one.have(3)
    one.book.within(lambda: one.places.release_down_to(3))
    assert one.evals() == []
    one.book.within(lambda: one.places.release_down_to(1))
    assert one.evals() == [("give back", KEY, "me:2", "me:3")]
    one.book.within(one.places.renew)
    assert one.evals() == [("keep", KEY, "4000", "me:1")]
    one.book.within(lambda: one.places.release_down_to(0))
    one.book.within(one.places.renew)
    assert one.evals() == [("give back", KEY, "me:1")]
    monkeypatch.setattr(semaphore, "BATCH_SIZE", 2)
    one = Owner()
    one.have(3)
    one.book.within(one.places.renew)
    assert one.evals() == [("keep", KEY, "4000", "me:1", "me:2"), ("keep", KEY, "4000", "me:3")]
    one.book.within(lambda: one.places.release_down_to(0))
    assert one.evals() == [("give back", KEY, "me:1", "me:2"), ("give back", KEY, "me:3")]
    assert len(one.places) == 0
