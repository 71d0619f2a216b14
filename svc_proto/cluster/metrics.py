"""Metrics of the nodes of a service, as one of them sees them."""

from svc_proto.basics.metrics import MetricFamily, counter, gauge
from svc_proto.cluster.node import Node

__all__ = ["cluster_metrics"]


def cluster_metrics(node: Node, load: str) -> list[MetricFamily]:
    """Return the metrics of the connection and of each node; `load` is the unit of their load, such as `phones`."""
    nodes = {pulse.name: pulse for pulse in (node.heartbeat(), *node.heartbeats())}
    return [
        gauge("svc_cluster_up", "Whether Redis is reached: 1, or 0.", node.is_up),
        gauge("svc_cluster_nodes", "Other nodes that are reached.", len(node.members)),
        counter("svc_cluster_connections", "Connections to Redis that there have been.", node.redis.connections),
        gauge(
            "svc_cluster_node_start_time_seconds",
            "When each node of the service began, in Unix seconds.",
            {name: pulse.since for name, pulse in nodes.items()},
            "node",
        ),
        gauge(
            f"svc_cluster_node_{load}",
            f"How many {load} each node of the service has.",
            {name: float(pulse.load) for name, pulse in nodes.items()},
            "node",
        ),
    ]
