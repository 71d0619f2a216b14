"""Metrics of a node: itself, and the other nodes by their heartbeats."""

from typing import Any

from svc_proto.cluster.metrics import cluster_metrics
from svc_proto.cluster.node import Heartbeat, Node
from svc_proto.engine.core import Engine
from tests.cluster.harness import WHERE, RedisHarness, signed


class NoHandler:
    """`NodeHandler` of a service that has no state to exchange."""

    def __getattr__(self, name: str) -> Any:
        return lambda *given: {}


def shown(node: Node) -> dict[str, dict[str, object]]:
    families = cluster_metrics(node, "phones")
    assert all(each.labels in ((), ("node",)) for each in families)
    return {each.name: {".".join(of): value for of, value in each.values} for each in families}


def test_metrics_of_each_node() -> None:
    def make(engine: Engine) -> Node:
        return Node(engine, WHERE, NoHandler(), url="http://a", load=lambda: 3)

    book = RedisHarness(make)
    node = book.made
    assert shown(node)["svc_cluster_up"] == {"": 0.0}
    book.spawn(node.start())
    book.give_secret()
    book.open()
    for told in (
        {"from": "b", "word": "beat", "body": {"name": "http://b", "since": 7.5, "load": 4}},
        {"from": "c", "word": "beat", "body": {"since": 8, "load": 0}},
        {"from": "d", "word": "beat", "body": {}},  # of an earlier version
        {"from": "e", "word": "beat", "body": {"since": 8, "load": -1}, "told": -1},  # a node that leaves
    ):
        book.within(lambda told=told: node.on_message("svc:0:all", signed(b"svc:0:all", {"told": 0, **told})))  # type: ignore[misc]
    assert node.heartbeats() == [Heartbeat(name="http://b", since=7.5, load=4), Heartbeat(name="c", since=8, load=0)]
    found = shown(node)
    assert (found["svc_cluster_up"], found["svc_cluster_nodes"]) == ({"": 1.0}, {"": 3.0})
    assert found["svc_cluster_node_phones"] == {"http://a": 3.0, "http://b": 4.0, "c": 0.0}
    assert found["svc_cluster_node_start_time_seconds"] == {
        "http://a": node.heartbeat().since,
        "http://b": 7.5,
        "c": 8.0,
    }
