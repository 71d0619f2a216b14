"""Tests of three real API servers with PostgreSQL, Redis and a proxy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from tests.servers.api_cluster import ApiCluster
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
