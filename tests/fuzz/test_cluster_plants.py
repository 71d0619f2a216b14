"""Bugs that are put into the cluster on purpose: a storm finds each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fuzz.cluster_law import Violated
from fuzz.cluster_storm import storm
from svc_proto.cluster.node import Node
from svc_proto.cluster.redis import Redis
from svc_proto.engine.flow import Flow
from svc_proto.machines.limiter import Limiter
from svc_proto.machines.told_limiter import ToldLimiter
from svc_proto.relay.commons import Commons
from svc_proto.relay.fellows import Fellows
from svc_proto.schema.members import Members
from tests.fuzz import plants_cluster as plants

Plant = Callable[[pytest.MonkeyPatch], None]  # those of `plants` are mistakes of design


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


def failures_are_counted_by_each_node_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ToldLimiter, "failure", Limiter.failure)


def what_was_missed_is_not_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "missed", lambda self: None)


def the_last_word_counts_and_not_the_later_place(patch: pytest.MonkeyPatch) -> None:
    came = Fellows._came

    def taken(self: Fellows, node: str, entry: Members) -> None:
        came(self, node, Members({**entry, "since": 1e18}))

    patch.setattr(Fellows, "_came", taken)


def a_change_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "session_saved", lambda self, session: None)


def a_phone_that_leaves_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "phone_left", lambda self, number: self._forget(number))


def who_is_selected_is_not_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fellows, "phone_selected", lambda self: None)


PLANTS: list[tuple[Plant, int, str]] = [  # the bug, a storm that finds it, and what it says
    (a_code_is_read_and_not_taken, 0, "has paired"),
    (a_command_is_told_twice, 0, "performed 2 times"),
    (phones_of_a_node_that_is_gone_stay, 4, "reaches nobody"),
    (an_end_is_not_told, 0, "revoked"),
    (a_revocation_that_nobody_hears_is_a_success, 53, "revoked"),
    (nobody_asks_the_others_for_a_file, 4, "which is there"),
    (failures_are_counted_by_each_node_alone, 0, "has guessed"),
    (what_was_missed_is_not_read, 16, "may not any more"),
    (the_last_word_counts_and_not_the_later_place, 36, "come elsewhere"),
    (a_change_is_not_told, 1, "may not any more"),
    (a_phone_that_leaves_is_not_told, 11, "different phones"),
    (who_is_selected_is_not_told, 2, "different phones"),
    (plants.a_code_is_read_and_deleted_behind, 0, "has paired"),
    (plants.a_code_is_taken_from_memory_while_redis_is_away, 6, "has paired"),
    (plants.a_code_has_no_end, 0, "for ever"),
    (plants.what_has_ended_is_not_kept, 0, "revoked"),
    (plants.nobody_looks_into_the_store, 2, "is not known"),
    (plants.late_news_count, 2, "may not any more"),
    (plants.a_lifted_block_is_not_told, 0, "is shut out"),
    (plants.nobody_counts_who_hears, 9, "which have gone"),
    (plants.who_loses_redis_goes_on_to_believe, 4, "reaches nobody"),
    (plants.a_phone_that_was_forgotten_keeps_its_number, 0, "has left"),
    (plants.each_node_has_a_time_of_its_own, 1, "come elsewhere"),
    (plants.a_place_of_ours_is_never_overtaken, 1, "come elsewhere"),
    (plants.the_last_word_about_who_is_driven_counts, 3, "different phones"),
    (plants.who_reaches_nobody_says_there_is_no_phone, 1, "reaches nobody"),
    (plants.nobody_is_asked_what_they_did, 0, "different commands"),
    (plants.nobody_is_asked_who_is_online, 2, "are online"),
    (plants.a_notification_stays_at_its_node, 2, "has not heard"),
    (plants.an_upload_is_not_told, 9, "has nothing"),
    (plants.an_upload_is_known_before_others_know_it, 37, "which is there"),
    (plants.uploads_are_not_in_the_state, 34, "has nothing"),
    (plants.uploads_of_who_is_gone_are_nobodys, 5, "nobody deletes it"),
    (plants.who_has_just_joined_hears_nothing_of_orphans, 1354, "which is there"),
]


@pytest.mark.parametrize(("plant", "seed", "said"), PLANTS, ids=[plant.__name__ for plant, _, _ in PLANTS])
def test_a_storm_finds_it(plant: Plant, seed: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(Violated, match=said):
        storm(seed)
