"""Tests of three real API servers with PostgreSQL, Redis and a proxy."""

import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from tests.servers.api_cluster import ApiCluster, Stream
from tests.servers.relay_cluster import BackgroundLoad, needs_nodes, until

pytestmark = needs_nodes
Told = tuple[str, str, tuple[int, str]]  # session, message, and its result

ANSWERS = {
    200,  # done
    0,  # the requested node has died, or the proxy reports an error
    502,  # the turn was interrupted before its first text
    503,  # the session's node, Redis or the store is unavailable
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiCluster]:
    with ApiCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def chatting(cluster: ApiCluster, sessions: list[str]) -> BackgroundLoad[Told]:
    """Start a load of two users in each chat, through the proxy; results with status 200 count."""

    def chat(session: str, number: int) -> Told:
        said = f"number {number}"
        return session, said, cluster.chat(cluster.port, session, said)

    return BackgroundLoad([partial(chat, session) for session in sessions * 2], lambda told: told[2][0] == 200)


def check(cluster: ApiCluster, load: BackgroundLoad[Told]) -> None:
    """Check that all nodes list the same rows, no user's message twice, and an answer with 200 behind its message."""
    assert {answer[0] for _, _, answer in load.told} <= ANSWERS
    for session in dict.fromkeys(session for session, _, _ in load.told):
        rows = cluster.rows(0, session)
        assert all(cluster.rows(n, session) == rows for n in (1, 2))
        assert max(Counter(text for role, text in rows if role == "user").values()) == 1
        pairs = set(pairwise(rows))
        for where, said, (status, answer) in load.told:
            if where == session and status == 200:
                assert answer == said
                assert (("user", said), ("assistant", said)) in pairs, said


def test_the_node_of_a_turn_is_killed(cluster: ApiCluster) -> None:
    session = cluster.session()
    path = f"/api/sessions/{session}/chat/stream"
    slow = Stream(cluster.ports[0], path, "slow")
    slow.until("assistant.delta")
    behind = Stream(cluster.ports[1], path, "behind")  # queued at the first node
    assert cluster.request(2, "GET", f"/v1/runs/{slow.run}").body["status"] == "running"
    cluster.kill(0)
    assert slow.names()[-1:] != ["done"]
    assert behind.names() == []
    until(lambda: cluster.chat(cluster.ports[2], session, "again") == (200, "again"), "another turn")
    for n in (1, 2):
        answer = cluster.request(n, "GET", f"/v1/runs/{slow.run}")
        assert (answer.status, answer.body["error"]["code"]) == (404, "run_not_found")
        assert cluster.rows(n, session) == [("user", "slow"), ("user", "again"), ("assistant", "again")]
    cluster.start_node(0)
    assert cluster.rows(0, session)[-1] == ("assistant", "again")


def test_a_resumed_node_stores_nothing_of_lost_turns(cluster: ApiCluster) -> None:
    session = cluster.session()
    slow = Stream(cluster.ports[0], f"/api/sessions/{session}/chat/stream", "slow")
    slow.until("assistant.delta")
    node = cluster.nodes[0]
    assert node is not None
    node.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: cluster.chat(cluster.ports[1], session, "meanwhile") == (200, "meanwhile"), "another turn")
    finally:
        node.process.send_signal(signal.SIGCONT)
    slow.until("error")
    assert slow.names()[-1] == "done"
    until(lambda: cluster.chat(cluster.ports[0], session, "again") == (200, "again"), "it is one of them again")
    said = [
        ("user", "slow"),
        ("user", "meanwhile"),
        ("assistant", "meanwhile"),
        ("user", "again"),
        ("assistant", "again"),
    ]
    assert cluster.rows(2, session) == said


def test_each_node_is_killed_in_turn_under_load(cluster: ApiCluster) -> None:
    load = chatting(cluster, [cluster.session() for _ in range(3)])
    load.more(20)
    for n in range(3):
        cluster.kill(n)
        load.more(20)
        cluster.start_node(n)
        load.more(5)
    load.end()
    check(cluster, load)


def test_redis_and_the_store_fail_under_load(cluster: ApiCluster) -> None:
    load = chatting(cluster, [cluster.session() for _ in range(3)])
    load.more(10)
    cluster.redis.kill()
    refused = (503, "cluster_unavailable")
    until(
        lambda: any(answer == refused for _, _, answer in load.told), "the nodes do not agree on the owner of the turn"
    )
    cluster.redis.start()
    load.more(10)
    cluster.store.stop("immediate")
    try:
        refused = (503, "session_db_unavailable")
        until(lambda: any(answer == refused for _, _, answer in load.told), "nothing can be stored")
    finally:
        cluster.store.start()
    load.more(10)
    load.end()
    check(cluster, load)
