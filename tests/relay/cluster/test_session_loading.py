"""Sessions that a node of a cluster reads from the store while it starts and serves already."""

from math import inf
from typing import Any

import pytest

from fuzz.cluster.deployment import ClusterDeployment
from svc_proto.basics.entropy import SECRET_LENGTH, sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.cluster.redis_connection import REPLY_TIMEOUT
from svc_proto.commands import Query, ReadConfig
from svc_proto.facts import Done, Failed, Failure, FailureKind
from svc_proto.machines.paired_session import PREFIX_LENGTH
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.relay.cluster import sessions
from svc_proto.relay.cluster.coordinator import START_TIMEOUT, ClusterCoordinator
from svc_proto.relay.session_records import SessionRecords
from svc_proto.store_requests import CountSessions, DeleteSession, LoadSessionChanges, LoadSessionRevision, LoadSessions
from tests.relay.coordinator_harness import CoordinatorHarness
from tests.support.playbook import counting_entropy


def test_sessions_are_read_while_the_node_serves() -> None:
    one = CoordinatorHarness(stored=5)
    registry = one.relay.sessions
    assert (registry.total, one.started) == (5, [])
    one.answer_query(LoadSessionRevision(), 7)
    (page,) = one.book.ordered(Query)
    live, gone, late = (one.record(token_hash=f"{n}{n}" * 32) for n in range(1, 4))
    expired = one.record(token_hash="88" * 32, expires_at=5.0)
    one.deliver("ended", {"token_hash": gone["token_hash"]})
    one.deliver("saved", {**late, "grants": {}})
    one.book.after(START_TIMEOUT)
    registry.cap = 5
    with pytest.raises(Refused, match="too many"):  # the stored ones count
        registry.create(one.book.engine.now, counting_entropy())
    waits: list[Any] = []
    one.run(one.coordinator.wait_until_loaded(), waits)
    one.run(one.coordinator.wait_until_loaded(inf), waits)
    agent = one.coordinator.lookup_session("x" * SECRET_LENGTH, agents=True)
    assert agent is not None
    assert one.coordinator.lookup_session("x" * SECRET_LENGTH) is None
    one.book.after(sessions.LOAD_TIMEOUT)
    assert one.started == [None]  # without the sessions
    assert [each.code for each in waits] == ["busy"]
    one.run(agent, waits)
    token = "7" * 64
    flow = one.coordinator.lookup_session(token)
    assert flow is not None
    one.run(flow, waits)
    one.answer_query(LoadSessions(sha256_hex(token)), FailureKind.UNREACHABLE)
    assert waits[1].code == "store_unavailable"  # the token may be valid
    one.book.feed(Done(page.op, (live, gone, late, expired)))
    assert [one.knows(record) for record in (live, gone, late, expired)] == [True, False, True, False]
    changed = registry.hashed(str(late["token_hash"]))
    assert changed is not None
    assert changed.grants == {}  # the page was read before
    assert waits[2:] == [None, None]
    assert registry.total == 2
    erased, changes = one.book.ordered(Query)
    assert erased.request == DeleteSession("88" * 32)
    assert changes.request == LoadSessionChanges(7)
    assert one.coordinator.lookup_session("x" * SECRET_LENGTH, agents=True) is None


def test_sessions_count_once_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SESSIONS_PAGE", 2)
    one = CoordinatorHarness(stored=3)
    records = tuple(one.record(token_hash=f"{n}{n}" * 32) for n in range(1, 4))
    one.answer_query(LoadSessionRevision(), 7)
    one.answer_query(LoadSessions(limit=2), records[:2])
    assert (one.relay.sessions.total, one.relay.sessions.unread) == (3, 1)
    one.answer_query(LoadSessions(after=str(records[1]["token_hash"]), limit=2), records[2:])
    assert (one.relay.sessions.total, one.relay.sessions.unread) == (3, 0)


def test_sessions_are_read_without_redis_and_their_changes_when_the_node_joins() -> None:
    one = CoordinatorHarness(stored=0)
    one.book.ordered(Query)
    one.book.after(START_TIMEOUT + 2 * REPLY_TIMEOUT)
    assert one.started == [None]
    assert CoordinatorHarness(revision=7).started == [None]  # it reads changes after 7 only


@pytest.mark.parametrize("answered", range(4))
def test_tombstones_are_loaded_before_all_sessions(harness: CoordinatorHarness, answered: int) -> None:
    """Loading fails if the tombstone file, the count or a tombstone's record cannot be read, and succeeds otherwise."""
    registry, found, token_hash = PairedSessionRegistry(), list[Any](), "11" * 32
    harness.run(harness.coordinator.load_sessions(SessionRecords(harness.book.engine, registry)), found)
    harness.answer_query(LoadSessionRevision(), 7)
    (file,) = harness.book.ordered(ReadConfig)
    harness.book.feed(Done(file.op, token_hash) if answered else Failed(file.op, Failure(FailureKind.DENIED)))
    if answered > 0:
        harness.answer_query(CountSessions(), 1 if answered > 1 else FailureKind.UNREACHABLE)
    if answered > 1:
        records = (harness.record(token_hash=token_hash),)
        harness.answer_query(LoadSessions(token_hash), records if answered > 2 else FailureKind.UNREACHABLE)
    assert isinstance(found[0], Failure) == (answered < 3)
    if answered == 3:
        assert [session.token_hash for session in registry.tombstones()] == [token_hash]
        harness.answer_query(DeleteSession(token_hash), None)


def node_that_reads(monkeypatch: pytest.MonkeyPatch, cluster: ClusterDeployment) -> ClusterCoordinator:
    """Restart node 1 with a slow store that has three more sessions; return its coordinator, which still reads them."""
    monkeypatch.setattr(sessions, "SESSIONS_PAGE", 1)
    cluster.add_sessions(3)
    cluster.kill(1)
    cluster.slow_store(0.9, [1])
    cluster.restart(1)
    cluster.run(lambda: cluster.nodes[1].ready)
    starting = cluster.relays[1].coordinator
    assert isinstance(starting, ClusterCoordinator)
    assert not starting.sessions.are_loaded
    return starting


@pytest.mark.parametrize("length", [PREFIX_LENGTH - 1, PREFIX_LENGTH])
def test_phones_connect_while_sessions_are_read(
    two_nodes: ClusterDeployment, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    phones = [two_nodes.pair_phone(f"P{n}", 0) for n in range(3)]
    starting = node_that_reads(monkeypatch, two_nodes)
    back = [two_nodes.new_phone(phone.name, 1, token=phone.token) for phone in phones]
    two_nodes.run(lambda: all(phone.token for phone in back))
    paired = two_nodes.new_phone("P0", 1, code=two_nodes.create_pairing_code(0))
    two_nodes.run(lambda: bool(paired.token))
    assert two_nodes.relays[1].sessions.unread
    assert two_nodes.request_and_wait(1, "DELETE", f"/sessions/{phones[1].token[:length]}").answer.status == 200
    assert starting.sessions.are_loaded == (length < PREFIX_LENGTH)  # which may match a session that is not read yet
    shown = two_nodes.request_and_wait(1, "GET", "/sessions", token=phones[2].token).answer.json["sessions"]
    assert len(shown) == 5  # without the revoked one and the earlier one of P0
    assert starting.sessions.are_loaded


def test_tokens_are_kept_without_the_store(two_nodes: ClusterDeployment, monkeypatch: pytest.MonkeyPatch) -> None:
    phone = two_nodes.pair_phone("P", 0)
    starting = node_that_reads(monkeypatch, two_nodes)
    two_nodes.partition_from_store(1)
    back = two_nodes.new_phone(phone.name, 1, token=phone.token)
    two_nodes.run(lambda: back.closed)
    assert not back.refused  # a phone would give up its token for `auth.fail`
    assert two_nodes.request_and_wait(1, "DELETE", f"/sessions/{phone.token[:4]}").answer.status == 503
    two_nodes.heal()
    two_nodes.sim.run_for(3.0)
    assert starting.sessions.are_loaded
    two_nodes.try_drive(1, phone.token)
