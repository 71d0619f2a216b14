"""Bugs that are put into the cluster on purpose: a storm finds each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fuzz.cluster import Violated
from fuzz.cluster_storm import storm
from svc_proto.cluster.node import Node
from svc_proto.cluster.redis import Redis
from svc_proto.engine.flow import Flow
from svc_proto.relay.commons import Commons
from svc_proto.relay.fellows import Fellows

Plant = Callable[[pytest.MonkeyPatch], None]


def a_code_is_read_and_not_taken(patch: pytest.MonkeyPatch) -> None:
    ask = Redis.ask

    def asked(self: Redis, *arguments: Any) -> Flow[object]:
        return ask(self, *("GET" if word == "GETDEL" else word for word in arguments))

    patch.setattr(Redis, "ask", asked)


def a_command_is_told_twice(patch: pytest.MonkeyPatch) -> None:
    tell = Node.tell

    def told(self: Node, node: str, word: str, body: Mapping[str, object]) -> bool:
        if word == "command":
            tell(self, node, word, body)
        return tell(self, node, word, body)

    patch.setattr(Node, "tell", told)


def phones_of_a_node_that_is_gone_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "lost", lambda self, node: None)


def an_end_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "session_ended", lambda self, session: None)


def a_revocation_that_nobody_hears_is_a_success(patch: pytest.MonkeyPatch) -> None:
    def settle(self: Fellows) -> Flow[None]:
        yield from ()

    patch.setattr(Fellows, "settle", settle)


def nobody_asks_the_others_for_a_file(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "elsewhere", Commons.elsewhere)


PLANTS: list[tuple[Plant, int, str]] = [  # the bug, a storm that finds it, and what it says
    (a_code_is_read_and_not_taken, 0, "has paired"),
    (a_command_is_told_twice, 0, "performed 2 times"),
    (phones_of_a_node_that_is_gone_stay, 1, "different phones"),
    (an_end_is_not_told, 1, "revoked"),
    (a_revocation_that_nobody_hears_is_a_success, 48, "revoked"),
    (nobody_asks_the_others_for_a_file, 0, "which is there"),
]


@pytest.mark.parametrize(("plant", "seed", "said"), PLANTS, ids=[plant.__name__ for plant, _, _ in PLANTS])
def test_a_storm_finds_it(plant: Plant, seed: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(Violated, match=said):
        storm(seed)
