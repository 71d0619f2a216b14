"""Places that nodes have in common: taken, kept, given back; what Redis does is the simulator's."""

from __future__ import annotations

from typing import Any, cast

import pytest

from svc_proto.cluster import semaphore
from svc_proto.cluster.leases import ODD
from svc_proto.cluster.node import Node
from svc_proto.cluster.redis_client import Redis
from svc_proto.cluster.semaphore import GIVE_BACK, KEEP, TAKE_PLACE, Places
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from tests.cluster.harness import WHERE, RedisBook

KEY = "svc:0:kind:places:turns"


class Quiet:
    """A node that says nothing by itself."""

    id = "me"

    def __init__(self, redis: Redis) -> None:
        self.redis = redis

    def key(self, *parts: str) -> str:
        return ":".join(("svc:0:kind", *parts))


class Owner:
    """A node with some of three places."""

    def __init__(self) -> None:
        def make(engine: Engine) -> Redis:
            redis = Redis(engine, WHERE)
            self.places = Places(cast("Node", Quiet(redis)), "turns", 3)
            return redis

        self.book: RedisBook[Redis] = RedisBook(make)
        self.book.within(self.book.made.start)
        self.book.open()

    def asks(self, flow: Flow[Any], *answers: object) -> Any:
        """What comes of it."""
        results: list[Any] = []
        self.book.within(lambda: self.book.engine.spawn(flow, on_done=results.append))
        if answers:
            self.book.answers(*answers)
        (result,) = results
        return result

    def have(self, count: int) -> None:
        """So many are ours."""
        for _ in range(count):
            assert self.asks(self.places.take(), 1) is True
        self.book.said()

    def evals(self) -> list[object]:
        """The scripts that were sent, and what they were given."""
        names = {TAKE_PLACE: "take", KEEP: "keep", GIVE_BACK: "give back"}
        said: list[Any] = self.book.said()
        assert all((words[0], words[2]) == (b"EVAL", b"1") for words in said)
        return [(names[words[1].decode()], *[word.decode() for word in words[3:]]) for words in said]


def test_one_is_taken_while_there_are_some() -> None:
    one = Owner()
    assert one.asks(one.places.take(), 1) is True
    assert one.asks(one.places.take(), 0) is False
    assert one.evals() == [("take", KEY, "me:1", "3", "4000"), ("take", KEY, "me:2", "3", "4000")]
    assert len(one.places) == 1


def test_one_may_look_without_taking() -> None:
    one = Owner()
    one.have(1)
    assert [one.asks(one.places.are_left(), answer) for answer in (0, 1)] == [False, True]
    assert [one.asks(one.places.are_all_ours(), answer) for answer in (0, 1)] == [False, True]
    assert one.evals() == [("take", KEY, "", "3", "4000")] * 2 + [("take", KEY, "", "2", "4000")] * 2
    assert len(one.places) == 1


@pytest.mark.parametrize("answer", [None, 2, b"1", [1]])
def test_an_answer_that_makes_no_sense(answer: object) -> None:
    one = Owner()
    assert one.asks(one.places.take(), answer) is ODD
    assert len(one.places) == 0


def test_without_redis_there_is_none_and_what_one_has_one_keeps() -> None:
    one = Owner()
    one.have(2)
    one.book.close()
    assert isinstance(one.asks(one.places.take()), Failure)
    one.book.within(one.places.keep)
    assert len(one.places) == 2


def test_what_is_over_is_given_back_the_newest_first() -> None:
    one = Owner()
    one.have(3)
    one.book.within(lambda: one.places.give_back(3))
    assert one.evals() == []
    one.book.within(lambda: one.places.give_back(1))
    assert one.evals() == [("give back", KEY, "me:2", "me:3")]
    one.book.within(one.places.keep)
    assert one.evals() == [("keep", KEY, "4000", "me:1")]
    one.book.within(lambda: one.places.give_back(0))
    one.book.within(one.places.keep)
    assert one.evals() == [("give back", KEY, "me:1")]


def test_a_command_names_so_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semaphore, "AT_ONCE", 2)
    one = Owner()
    one.have(3)
    one.book.within(one.places.keep)
    assert one.evals() == [("keep", KEY, "4000", "me:1", "me:2"), ("keep", KEY, "4000", "me:3")]
    one.book.within(lambda: one.places.give_back(0))
    assert one.evals() == [("give back", KEY, "me:1", "me:2"), ("give back", KEY, "me:3")]
    assert len(one.places) == 0


def test_the_limits() -> None:
    assert semaphore.AT_ONCE == 500
