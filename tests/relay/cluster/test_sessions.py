"""Sessions that the nodes of a cluster share: received, looked up and reloaded, and kept ended."""

from typing import Any

import pytest

from svc_proto.basics.entropy import sha256_hex
from svc_proto.commands import Query
from svc_proto.facts import Done, FailureKind
from svc_proto.relay.cluster import sessions
from svc_proto.relay.cluster.sessions import CATCH_UP_TIMEOUT
from svc_proto.store_requests import DeleteSession, LoadSessionChanges, LoadSessionRevision, LoadSessions, SessionChange
from tests.cluster.harness import opened
from tests.relay.coordinator_harness import CoordinatorHarness


def test_sessions_of_other_nodes_are_saved_updated_and_ended(harness: CoordinatorHarness) -> None:
    record = harness.record()
    session = harness.shared(record)
    harness.deliver("saved", {**record, "grants": {}})
    assert session.grants == {}
    harness.deliver("ended", {"token_hash": record["token_hash"]})
    assert not harness.knows(record)
    harness.deliver("saved", record)  # sent before the end arrived
    assert not harness.knows(record)
    harness.deliver("saved", {"token_hash": "zz"})
    harness.deliver("saved", {})
    assert harness.book.events()[-1] == "stored session skipped"
    harness.deliver("saved", harness.record(token_hash="12" * 32, expires_at=5.0))  # expired
    assert not harness.relay.sessions.hashed("12" * 32)
    harness.deliver("ended", {"token_hash": "56" * 32})
    record = harness.record(token_hash="78" * 32)
    harness.run(harness.relay.revoke(harness.shared(record), "revoked here"), [])
    harness.deliver("saved", record)  # sent before the end arrived there
    assert not harness.knows(record)
    harness.new_messages()
    undelivered = harness.record(token_hash="9a" * 32)
    session = harness.shared(undelivered)
    harness.book.within(lambda: harness.relay.forget_session(session))
    assert harness.new_messages() == [("ended", {"token_hash": session.token_hash})]


def test_unknown_token_is_looked_up(harness: CoordinatorHarness) -> None:
    assert harness.coordinator.lookup_session("short") is None
    assert harness.coordinator.lookup_session("ü" * 36) is None
    token = "11111111-1111-4111-8111-111111111111"
    record = harness.record(token_hash=sha256_hex(token))
    found: list[Any] = []

    def seek() -> None:
        flow = harness.coordinator.lookup_session(token)
        assert flow is not None
        harness.run(flow, found)

    seek()
    assert harness.loads(failed=True).request == LoadSessions(sha256_hex(token))
    seek()
    harness.loads()
    seek()
    assert not harness.book.ordered(Query)  # the store did not have it a moment ago
    harness.book.after(sessions.UNKNOWN_TTL)
    seek()
    harness.loads(record)
    assert found == [None, None, None, harness.relay.sessions.hashed(sha256_hex(token))]
    assert found[3] is not None


def test_lookups_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_LOOKUPS", 1)
    monkeypatch.setattr(sessions, "MAX_WAITING", 2)
    one = CoordinatorHarness()
    tokens = [f"{n}" * 64 for n in range(4)]
    found: list[Any] = []
    for token in tokens:
        flow = one.coordinator.lookup_session(token)
        assert flow is not None
        one.run(flow, found)
    assert [(each.status, each.code) for each in found] == [(503, "busy")]
    assert one.loads(failed=True).request == LoadSessions(sha256_hex(tokens[0]))
    assert found[1:] == [None]
    one.book.after(sessions.LOOKUP_TIMEOUT)
    assert [each.code for each in found[2:]] == ["busy"]
    assert one.loads().request == LoadSessions(sha256_hex(tokens[1]))


def test_session_ends_at_the_time_that_another_node_has_set(harness: CoordinatorHarness) -> None:
    record = harness.record()
    session = harness.shared(record)
    ends = harness.book.engine.now.wall + 60.0
    harness.deliver("saved", {**record, "expires_at": ends, "grants": {}})
    harness.book.after(59.0)
    assert harness.knows(record)
    harness.book.after(1.0)
    assert (harness.knows(record), session.is_active(0.0)) == (False, False)


def test_reload_ends_sessions_missing_in_the_store(harness: CoordinatorHarness) -> None:
    stays, goes, new, unsaved = (harness.record(token_hash=f"{n}{n}" * 32) for n in range(1, 5))
    for record in (stays, goes):
        harness.deliver("saved", record)
    harness.saves(harness.shared(unsaved))
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.book.within(harness.coordinator.on_messages_missed)  # a second time
    harness.loads(stays, new)
    assert harness.loads().request == LoadSessions(str(goes["token_hash"]))
    assert [harness.knows(record) for record in (stays, goes, new, unsaved)] == [True, False, True, True]
    harness.loads(stays, new)
    assert not harness.book.ordered(Query)
    assert [harness.knows(record) for record in (stays, goes, new, unsaved)] == [True, False, True, True]


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
    session = one.shared(first)
    one.book.within(one.coordinator.on_messages_missed)
    one.deliver("saved", {**first, "grants": {}})
    one.book.after(0.5)
    one.answer_query(LoadSessionChanges(11, limit=2), (SessionChange(session.token_hash, 12, first),))
    assert session.grants == {}  # the message is newer than the query


def test_only_sessions_from_before_a_full_reading_are_compared_with_it(harness: CoordinatorHarness) -> None:
    stays, goes, new = (harness.record(token_hash=f"{n}{n}" * 32) for n in range(1, 4))
    for record in (stays, goes):
        harness.deliver("saved", record)
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.answer_query(LoadSessionChanges(0), FailureKind.NOT_FOUND)
    harness.answer_query(LoadSessionRevision(), 7)
    harness.deliver("saved", new)
    harness.deliver("ended", {"token_hash": goes["token_hash"]})
    harness.answer_query(LoadSessions(), (stays,))
    assert not harness.book.ordered(Query)
    assert [harness.knows(record) for record in (stays, goes, new)] == [True, False, True]


def test_hashes_of_many_sessions_are_copied_with_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_COPIED", 1)
    one = CoordinatorHarness()
    stays, goes, other = (one.record(token_hash=name * 32) for name in ("11", "12", "21"))
    for record in (stays, goes, other):
        one.deliver("saved", record)
    one.book.within(one.coordinator.on_messages_missed)
    one.answer_query(LoadSessionChanges(0), FailureKind.NOT_FOUND)
    one.answer_query(LoadSessionRevision(), 7)
    assert not one.book.ordered(Query)
    one.book.after(sessions.COPY_PAUSE)  # for the group "1", which has more than one
    one.answer_query(LoadSessions(), (stays, other))
    one.answer_query(LoadSessions(str(goes["token_hash"])), ())
    assert [one.knows(record) for record in (stays, goes)] == [True, False]


@pytest.mark.parametrize("answered", [0, 1])
def test_a_failed_first_reading_is_repeated(harness: CoordinatorHarness, answered: int) -> None:
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.answer_query(LoadSessionChanges(0), FailureKind.NOT_FOUND)
    harness.answer_query(LoadSessionRevision(), 7 if answered else FailureKind.INTERNAL)
    if answered:
        harness.answer_query(LoadSessions(), FailureKind.INTERNAL)
    harness.book.after(sessions.READ_AGAIN)
    harness.answer_query(LoadSessionChanges(0), FailureKind.NOT_FOUND)


def test_sessions_that_change_while_they_are_read_or_saved(harness: CoordinatorHarness) -> None:
    record = harness.record()
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.deliver("saved", record)
    harness.loads()
    harness.loads(record)
    assert harness.knows(record)
    waits: list[object] = []
    harness.run(harness.coordinator.sync_sessions(), waits)
    harness.run(harness.coordinator.sync_sessions(), waits)
    harness.loads(record)
    assert not waits
    harness.loads(record)
    assert waits == [None, None]
    record = harness.record(token_hash=sha256_hex("1" * 36))
    session = harness.shared(record)
    lookup = harness.coordinator.lookup_session("1" * 36)
    assert lookup is not None
    harness.run(lookup, [])
    harness.deliver("saved", {**record, "grants": {}})
    harness.book.after(1.0)
    harness.loads(record)  # as the store had it before
    assert session.grants == {}
    harness = CoordinatorHarness()
    record = harness.record()
    session = harness.shared(record)
    save = harness.saves(session)
    harness.deliver("ended", {"token_hash": record["token_hash"]})
    (erase,) = harness.book.ordered(Query)
    assert isinstance(erase.request, DeleteSession)
    harness.new_messages()
    harness.book.feed(Done(save.op, None))
    assert harness.new_messages() == []  # an ended session is not announced


def test_failed_reload_is_retried(harness: CoordinatorHarness) -> None:
    record = harness.record()
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.loads(failed=True)
    harness.book.after(sessions.READ_AGAIN)
    harness.loads(record)
    assert harness.knows(record)
    assert not harness.book.ordered(Query)
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.loads(failed=True)
    harness.run(harness.leaving(), [])
    harness.book.after(10 * sessions.READ_AGAIN)
    assert not harness.book.ordered(Query)


def test_changes_are_not_undone_by_a_reload(harness: CoordinatorHarness) -> None:
    before = harness.record()
    session = harness.shared(before)
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.deliver("saved", {**before, "grants": {}})
    harness.loads(before)
    assert session.grants == {}
    harness.book.after(1.0)
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.loads(before)  # as the store has it now
    assert session.grants == before["grants"]
    harness = CoordinatorHarness()
    before = harness.record()
    session = harness.shared(before)
    harness.book.after(1.0)
    session.grants = {}
    save = harness.saves(session)
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.loads(before)
    assert session.grants == {}
    harness.book.feed(Done(save.op, None))
    commands = [words for words in harness.book.new_commands() if isinstance(words, list)]
    told = [opened(words) for words in commands if words[0] == b"PUBLISH"]
    assert [each["body"]["grants"] for each in told if each["word"] == "saved"] == [{}]
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.deliver("ended", {"token_hash": before["token_hash"]})
    harness.loads(before)
    assert not harness.knows(before)


def test_outdated_messages_are_ignored(harness: CoordinatorHarness) -> None:
    before = harness.record()
    session = harness.shared(before)
    now = harness.coordinator.node.cluster_time
    harness.deliver("saved", {**before, "grants": {}, "at": now + 0.2})
    harness.deliver("saved", {**before, "at": now + 0.1})
    assert session.grants == {}
    harness.deliver("saved", {**before, "at": now + 0.2})
    assert session.grants == before["grants"]
    harness.book.after(1.0)
    session.grants = {}
    harness.book.spawn(harness.relay.save(session))
    for at in (
        now + 0.9,
        harness.coordinator.node.cluster_time,
    ):  # the node was partitioned when it sent the message, or sends the message at the same time
        harness.deliver("saved", {**before, "at": at})
        assert session.grants == {}
    harness.deliver("saved", {**before, "at": now + 1.1})
    assert session.grants == before["grants"]
    harness = CoordinatorHarness()
    session = harness.shared(before)
    harness.book.after(1.0)
    session.grants = {}
    save = harness.saves(session)
    harness.book.feed(Done(save.op, None))
    now = harness.coordinator.node.cluster_time
    harness.deliver("saved", {**before, "at": now - 0.1})  # from before the change that is stored by now
    assert session.grants == {}
    harness.deliver("saved", {**before, "at": now + 0.1})
    assert session.grants == before["grants"]


def test_unavailable_records_are_skipped_and_waits_have_a_timeout(harness: CoordinatorHarness) -> None:
    record = harness.record()
    harness.book.within(harness.coordinator.on_messages_missed)
    harness.deliver("saved", {"token_hash": 5})
    harness.loads({"token_hash": 5}, record)
    assert harness.knows(record)
    waits: list[object] = []
    harness.run(harness.coordinator.sync_sessions(), waits)
    harness.book.after(CATCH_UP_TIMEOUT)
    assert waits == [None]
