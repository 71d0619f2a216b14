"""Mistakes of design in what one node at a time may do, put there on purpose: a storm over API servers finds each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from runtimes import chat_requests
from runtimes.sim.redis import RedisService
from svc_proto.cluster.leases import Leases
from svc_proto.engine.flow import Flow
from tests.api.test_nodes_storm import Storm

Plant = Callable[[pytest.MonkeyPatch], None]


def fences_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chat_requests, "_pass_fence", lambda hand, session_id, fence: None)


def a_turn_begins_without_its_fence(patch: pytest.MonkeyPatch) -> None:
    begin = chat_requests._begin_turn
    patch.setattr(
        chat_requests, "_begin_turn", lambda counts, hand, request: begin(counts, hand, evolve(request, fence=None))
    )


def what_a_turn_adds_has_no_fence(patch: pytest.MonkeyPatch) -> None:
    add = chat_requests._add_messages
    patch.setattr(chat_requests, "_add_messages", lambda hand, request: add(hand, evolve(request, fence=None)))


def a_lease_is_had_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leases, "has", lambda self, name: name in self._leases and self._leases[name].fence > 0)


def who_drops_it_drops_that_of_others(patch: pytest.MonkeyPatch) -> None:
    def drop(self: RedisService, client: object, keys: list[bytes], given: list[bytes]) -> object:
        self.keys.pop((client.db, keys[0]), None)  # type: ignore[attr-defined]  # it is a client
        return 1

    patch.setattr(RedisService, "_drop_lease", drop)


def nobody_renews(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leases, "renew", lambda self: None)


def a_lease_is_not_given_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leases, "drop", lambda self, name: None)


def whoever_is_asked_runs_the_turn(patch: pytest.MonkeyPatch) -> None:
    def take(self: Leases, name: str) -> Flow[str]:
        yield from ()
        return ""

    patch.setattr(Leases, "take", take)
    patch.setattr(Leases, "drop", lambda self, name: None)
    patch.setattr(Leases, "fence", lambda self, name: None)


PLANTS: list[tuple[Plant, int]] = [  # and a storm that finds it
    (fences_are_not_compared, 6),
    (a_turn_begins_without_its_fence, 6),
    (what_a_turn_adds_has_no_fence, 6),
    (a_lease_is_had_for_ever, 6),
    (who_drops_it_drops_that_of_others, 2),
    (nobody_renews, 187),
    (a_lease_is_not_given_back, 0),
    (whoever_is_asked_runs_the_turn, 2),
]


@pytest.mark.parametrize(("plant", "seed"), PLANTS, ids=[plant.__name__ for plant, _ in PLANTS])
def test_a_storm_finds_it(plant: Plant, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    Storm(seed).run()
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        Storm(seed).run()
