"""Tests of three real relays with PostgreSQL, Redis and nginx."""

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from tests.servers.program_process import TIMEOUT, call
from tests.servers.relay_cluster import BackgroundLoad, NodePhone, RelayCluster, needs_nodes, until

pytestmark = needs_nodes

ANSWERS = {
    (200, ""),  # done
    (0, ""),  # the requested node has died, or the proxy reports an error
    (404, "unknown_device"),  # the phone is not connected to any node: it is reconnecting
    (502, "phone_disconnected"),
    (503, "phone_not_connected"),
    (503, "cluster_unavailable"),
}

START = 1.5  # s, at most, for the start of a command on a busy machine


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelayCluster]:
    with RelayCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def driving(
    cluster: RelayCluster, phones: list[NodePhone], callers: int = 4
) -> BackgroundLoad[tuple[int, NodePhone, tuple[int, str]]]:
    """Start callers that send commands to phones through the proxy; results with status 200 count."""

    def drive(number: int) -> tuple[int, NodePhone, tuple[int, str]]:
        phone = phones[number % len(phones)]
        return number, phone, cluster.tap(cluster.port, phone, number, phone.token)

    return BackgroundLoad([drive] * callers, lambda told: told[2][0] == 200)


def is_refused(port: int) -> bool:
    return call(port, "POST", "/pairing").status == 503


def is_unknown(port: int, token: str) -> bool:
    return call(port, "GET", "/sessions", token=token).status == 401


def test_each_node_is_killed_in_turn_under_load(cluster: RelayCluster) -> None:
    phones = [cluster.pair(name, n) for n, name in enumerate(("ada", "bea", "cyd"))]
    token = phones[0].token
    for n in range(3):
        for phone in phones:
            cluster.wait_reached(n, phone, token)
    load = driving(cluster, phones)
    load.more(30)
    for n in range(3):
        cluster.kill(n)
        load.more(30)
        for other in {0, 1, 2} - {n}:
            for phone in phones:
                cluster.wait_reached(other, phone, token)
        cluster.start_node(n)
        cluster.wait_reached(n, phones[0], token)
    load.end()

    outcomes = Counter(answer for _, _, answer in load.told)
    assert outcomes.keys() <= ANSWERS
    for phone in phones:
        done = Counter(body["x"] for body in phone.done if body["x"] != 1)
        assert set(done.values()) == {1}  # at most once
        assert all(done[number] for number, where, answer in load.told if where is phone and answer[0] == 200)


def test_a_node_that_waits_for_a_phone_of_another_node_answers_before_it_stops(cluster: RelayCluster) -> None:
    phone = cluster.pair("waits", 0)
    cluster.wait_reached(0, phone)
    phone.delay = 2.0
    other = next(n for n in range(3) if not call(cluster.ports[n], "GET", "/health").body["clients"])
    answers: list[tuple[int, str]] = []
    caller = threading.Thread(target=lambda: answers.append(cluster.tap(cluster.ports[other], phone, 77, phone.token)))
    caller.start()
    until(lambda: any(body["x"] == 77 for body in phone.done), "the phone has the command")
    began = time.monotonic()
    drained = cluster.drain(other)
    took = time.monotonic() - began
    caller.join(TIMEOUT)
    phone.delay = 0.0
    assert answers == [(200, "")]
    assert sum(body["x"] == 77 for body in phone.done) == 1
    assert re.match(r"The relay moves 0 clients to [12] other nodes?\.\nDrained: relay, in ", drained)
    assert took < 2.0 + 1.0 + START  # `svc` itself starts first
    cluster.start_node(other)
    cluster.wait_reached(other, phone)


def test_without_redis_phones_are_served_at_their_node_only(cluster: RelayCluster) -> None:
    phone = cluster.pair("eve", 0)
    for n in range(3):
        cluster.wait_reached(n, phone)
    token = phone.token
    cluster.redis.kill()
    for port in cluster.ports:
        until(partial(is_refused, port), "the nodes do not agree on codes")
        assert call(port, "POST", "/pairing").body["code"] == "cluster_unavailable"
    assert phone.online.is_set()
    told = sorted(cluster.tap(port, phone, 1, token) for port in cluster.ports)
    assert told == [(200, ""), *[(503, "cluster_unavailable")] * 2]  # at its own node; other nodes cannot find it
    cluster.redis.start()
    for n in range(3):
        cluster.wait_reached(n, phone)
    assert call(cluster.ports[1], "POST", "/pairing").status == 200
    assert not phone.refused


def test_the_store_fails_under_load_without_lost_results(cluster: RelayCluster) -> None:
    phones = [cluster.pair(name, n) for n, name in enumerate(("fay", "gil", "hob"))]
    token, withheld = phones[0].token, cluster.pair("ike", 1)
    revoked = [cluster.pair(name, 2) for name in ("jon", "kit", "lea")]
    for n in range(3):
        for phone in phones:
            cluster.wait_reached(n, phone, token)
    load = driving(cluster, phones)
    load.more(20)
    assert call(cluster.ports[0], "DELETE", f"/sessions/{revoked[0].token}").status == 200
    cluster.store.stop("immediate")
    try:
        load.more(20)
        told = call(cluster.ports[1], "DELETE", f"/sessions/{revoked[1].token}")
        # the session has ended, but this is not stored yet
        assert (told.status, told.body["code"]) == (500, "store_failed")
        until(lambda: bool(revoked[1].refused), "the phone is let in no more")
        grants = {"grants": {"bridge": False}}
        patched = call(cluster.ports[2], "PATCH", f"/sessions/{withheld.token}", grants)
        assert patched.status == 500, patched.body
        load.more(20)
    finally:
        cluster.store.start()
    assert call(cluster.ports[2], "PATCH", f"/sessions/{withheld.token}", grants).status == 200
    for port in cluster.ports:
        until(lambda port=port: call(port, "GET", "/readyz").status == 200, "the store is there")  # type: ignore[misc]
    load.more(20)
    load.end()
    outcomes = Counter(answer for _, _, answer in load.told)
    assert outcomes.keys() <= ANSWERS
    for phone in phones:
        assert set(Counter(body["x"] for body in phone.done if body["x"] != 1).values()) == {1}

    cluster.store.stop("immediate")
    try:
        assert call(cluster.ports[1], "DELETE", f"/sessions/{revoked[2].token}").status == 500
        for n in range(3):  # only the store has the state from now on, and the home of node 1
            cluster.kill(n)
    finally:
        cluster.store.start()
    assert cluster.stored(revoked[2].token)
    for n in range(3):
        cluster.start_node(n)
    for n, port in enumerate(cluster.ports):
        for phone in phones:
            cluster.wait_reached(n, phone)
        for gone in revoked:
            until(partial(is_unknown, port, gone.token), "what was revoked is over")
        assert cluster.tap(port, phones[0], 1, withheld.token) == (403, "grant_required")
