"""Sessions that nodes share: taken over, looked up, reloaded; an ended session stays ended."""

from __future__ import annotations

from typing import Any

import pytest

from svc_proto.basics.entropy import sha256_hex
from svc_proto.commands import Query
from svc_proto.facts import Done, FailureKind
from svc_proto.relay.cluster import sessions
from svc_proto.relay.cluster.sessions import CATCH_UP_TIMEOUT
from svc_proto.store_requests import (
    DeleteSession,
    LoadSessionChanges,
    LoadSessionRevision,
    LoadSessions,
    SessionChange,
)
from tests.cluster.harness import opened
from tests.relay.coordinator_harness import CoordinatorHarness


def test_sessions_of_other_nodes_are_saved_updated_and_ended() -> None:
    one = CoordinatorHarness()
    record = one.record()
    session = one.shared(record)
    one.deliver("saved", {**record, "grants": {}})
    assert session.grants == {}
    one.deliver("ended", {"token_hash": record["token_hash"]})
    assert not one.knows(record)
    one.deliver("saved", record)  # sent before the end arrived
    assert not one.knows(record)
    one.deliver("saved", {"token_hash": "zz"})
    one.deliver("saved", {})
    assert one.book.events()[-1] == "stored session skipped"
    one.deliver("saved", one.record(token_hash="12" * 32, expires_at=5.0))  # expired
    assert not one.relay.sessions.hashed("12" * 32)
    one.deliver("ended", {"token_hash": "56" * 32})


def test_unknown_token_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    one = CoordinatorHarness()
    assert one.coordinator.lookup_session("short") is None
    assert one.coordinator.lookup_session("ü" * 36) is None
    token = "11111111-1111-4111-8111-111111111111"
    record = one.record(token_hash=sha256_hex(token))
    found: list[Any] = []

    def seek() -> None:
        flow = one.coordinator.lookup_session(token)
        assert flow is not None
        one.run(flow, found)

    seek()
    assert one.loads(failed=True).request == LoadSessions(sha256_hex(token))
    seek()
    one.loads()
    seek()
    one.loads(record)
    assert found == [None, None, one.relay.sessions.hashed(sha256_hex(token))]
    assert found[2] is not None
    monkeypatch.setattr(sessions, "MAX_LOOKUPS", 0)
    seek()
    assert (found[3].status, found[3].code) == (503, "busy")


def test_reload_ends_sessions_missing_in_the_store() -> None:
    one = CoordinatorHarness()
    stays, goes, new, unsaved = (one.record(token_hash=f"{n}{n}" * 32) for n in range(1, 5))
    for record in (stays, goes):
        one.deliver("saved", record)
    one.saves(one.shared(unsaved))
    one.book.within(one.coordinator.on_messages_missed)
    one.book.within(one.coordinator.on_messages_missed)  # a second time
    one.loads(stays, new)
    assert one.loads().request == LoadSessions(str(goes["token_hash"]))
    assert [one.knows(record) for record in (stays, goes, new, unsaved)] == [True, False, True, True]
    one.loads(stays, new)
    assert not one.book.ordered(Query)
    assert [one.knows(record) for record in (stays, goes, new, unsaved)] == [True, False, True, True]


def test_only_changes_are_read_after_the_first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_PAGE", 2)
    one = CoordinatorHarness()
    first, second, third = (one.record(token_hash=f"{n}{n}" * 32) for n in range(1, 4))
    one.book.within(one.coordinator.on_messages_missed)
    one.answer_query(LoadSessionChanges(0, limit=2), FailureKind.NOT_FOUND)
    one.answer_query(LoadSessionRevision(), 7)
    one.answer_query(LoadSessions(limit=2), (first, second))
    one.answer_query(LoadSessions(after=str(second["token_hash"]), limit=2), ())
    assert [one.knows(record) for record in (first, second, third)] == [True, True, False]
    one.book.within(one.coordinator.on_messages_missed)
    changed = SessionChange(str(first["token_hash"]), 8, {**first, "grants": {}})
    ended = SessionChange(str(second["token_hash"]), 9, None)
    one.answer_query(LoadSessionChanges(7, limit=2), (changed, ended))
    one.answer_query(LoadSessionChanges(9, limit=2), (SessionChange(str(third["token_hash"]), 11, third),))
    assert [one.knows(record) for record in (first, second, third)] == [True, False, True]
    assert one.shared(first).grants == first["grants"]
    one.book.within(one.coordinator.on_messages_missed)
    one.answer_query(LoadSessionChanges(11, limit=2), ())
    assert not one.book.ordered(Query)


def test_only_changes_since_the_start_are_read_when_the_node_joins() -> None:
    assert CoordinatorHarness(revision=7).started == [None]  # it reads changes after 7 only


def test_only_sessions_from_before_a_full_reading_are_compared_with_it() -> None:
    one = CoordinatorHarness()
    stays, goes, new = (one.record(token_hash=f"{n}{n}" * 32) for n in range(1, 4))
    for record in (stays, goes):
        one.deliver("saved", record)
    one.book.within(one.coordinator.on_messages_missed)
    one.answer_query(LoadSessionChanges(0), FailureKind.NOT_FOUND)
    one.answer_query(LoadSessionRevision(), 7)
    one.deliver("saved", new)
    one.deliver("ended", {"token_hash": goes["token_hash"]})
    one.answer_query(LoadSessions(), (stays,))
    assert not one.book.ordered(Query)
    assert [one.knows(record) for record in (stays, goes, new)] == [True, False, True]


@pytest.mark.parametrize("answered", [0, 1])
def test_a_failed_first_reading_is_repeated(answered: int) -> None:
    one = CoordinatorHarness()
    one.book.within(one.coordinator.on_messages_missed)
    one.answer_query(LoadSessionChanges(0), FailureKind.NOT_FOUND)
    one.answer_query(LoadSessionRevision(), 7 if answered else FailureKind.INTERNAL)
    if answered:
        one.answer_query(LoadSessions(), FailureKind.INTERNAL)
    one.book.after(sessions.READ_AGAIN)
    one.answer_query(LoadSessionChanges(0), FailureKind.NOT_FOUND)


def test_session_saved_during_a_reload_is_kept() -> None:
    one = CoordinatorHarness()
    record = one.record()
    one.book.within(one.coordinator.on_messages_missed)
    one.deliver("saved", record)
    one.loads()
    one.loads(record)
    assert one.knows(record)
    waits: list[object] = []
    one.run(one.coordinator.sync_sessions(), waits)
    one.run(one.coordinator.sync_sessions(), waits)
    one.loads(record)
    assert not waits
    one.loads(record)
    assert waits == [None, None]


def test_session_ended_while_being_saved_is_erased() -> None:
    one = CoordinatorHarness()
    record = one.record()
    session = one.shared(record)
    save = one.saves(session)
    one.deliver("ended", {"token_hash": record["token_hash"]})
    (erase,) = one.book.ordered(Query)
    assert isinstance(erase.request, DeleteSession)
    one.new_messages()
    one.book.feed(Done(save.op, None))
    assert one.new_messages() == []  # an ended session is not announced


def test_failed_reload_is_retried() -> None:
    one = CoordinatorHarness()
    record = one.record()
    one.book.within(one.coordinator.on_messages_missed)
    one.loads(failed=True)
    one.book.after(sessions.READ_AGAIN)
    one.loads(record)
    assert one.knows(record)
    assert not one.book.ordered(Query)
    one.book.within(one.coordinator.on_messages_missed)
    one.loads(failed=True)
    one.run(one.leaving(), [])
    one.book.after(10 * sessions.READ_AGAIN)
    assert not one.book.ordered(Query)


def test_sync_wait_has_a_timeout() -> None:
    one = CoordinatorHarness()
    waits: list[object] = []
    one.run(one.coordinator.sync_sessions(), waits)
    one.book.after(CATCH_UP_TIMEOUT)
    assert waits == [None]


def test_limits() -> None:
    numbers = (CATCH_UP_TIMEOUT, sessions.READ_AGAIN, sessions.ENDED_TTL, sessions.MAX_ENDED)
    assert (*numbers, sessions.MAX_LOOKUPS) == (5.0, 1.0, 3_600.0, 10_000, 64)


def test_stale_reload_does_not_undo_a_received_change() -> None:
    one = CoordinatorHarness()
    before = one.record()
    session = one.shared(before)
    one.book.within(one.coordinator.on_messages_missed)
    one.deliver("saved", {**before, "grants": {}})
    one.loads(before)
    assert session.grants == {}
    one.book.after(1.0)
    one.book.within(one.coordinator.on_messages_missed)
    one.loads(before)  # as the store has it now
    assert session.grants == before["grants"]


def test_reload_during_a_save_does_not_undo_the_change() -> None:
    one = CoordinatorHarness()
    before = one.record()
    session = one.shared(before)
    one.book.after(1.0)
    session.grants = {}
    save = one.saves(session)
    one.book.within(one.coordinator.on_messages_missed)
    one.loads(before)
    assert session.grants == {}
    one.book.feed(Done(save.op, None))
    commands = [words for words in one.book.new_commands() if isinstance(words, list)]
    told = [opened(words) for words in commands if words[0] == b"PUBLISH"]
    assert [each["body"]["grants"] for each in told if each["word"] == "saved"] == [{}]
    one.book.within(one.coordinator.on_messages_missed)
    one.deliver("ended", {"token_hash": before["token_hash"]})
    one.loads(before)
    assert not one.knows(before)


def test_outdated_messages_are_ignored() -> None:
    one = CoordinatorHarness()
    before = one.record()
    session = one.shared(before)
    now = one.coordinator.node.cluster_time
    one.deliver("saved", {**before, "grants": {}, "at": now + 0.2})
    one.deliver("saved", {**before, "at": now + 0.1})
    assert session.grants == {}
    one.deliver("saved", {**before, "at": now + 0.2})
    assert session.grants == before["grants"]
    one.book.after(1.0)
    session.grants = {}
    one.book.spawn(one.relay.save(session))
    for at in (
        now + 0.9,
        one.coordinator.node.cluster_time,
    ):  # the node was partitioned when it sent the message, or sends the message at the same time
        one.deliver("saved", {**before, "at": at})
        assert session.grants == {}
    one.deliver("saved", {**before, "at": now + 1.1})
    assert session.grants == before["grants"]


def test_invalid_records_are_skipped() -> None:
    one = CoordinatorHarness()
    record = one.record()
    one.book.within(one.coordinator.on_messages_missed)
    one.deliver("saved", {"token_hash": 5})
    one.loads({"token_hash": 5}, record)
    assert one.knows(record)
