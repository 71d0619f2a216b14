"""Nodes of a service for `svc status` and `svc top`, read from the metrics of one of its servers."""

from collections.abc import Sequence

from attrs import frozen

from svc_proto.basics.duration_text import short_duration
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.schema.openmetrics import MetricSamples

__all__ = ["ServiceNode", "ServiceNodes", "parse_nodes"]

LOADS = ("phones", "runs")  # of the nodes of a relay, and of an API server
WORDS = {"phones": ("phone", "phones"), "runs": ("turn", "turns")}


@frozen(kw_only=True)
class ServiceNode:
    """Node of a service: its address, its start in epoch seconds, and the count of its phones or turns."""

    url: str  # or its id, if it has reported no address
    since: float  # epoch s
    load: int  # phones, or turns


@frozen(kw_only=True)
class ServiceNodes:
    """Nodes of a service, from the metrics of one of its servers; each node counts `phones` or `runs` (`load`)."""

    redis: bool  # Redis is reached
    load: str
    nodes: Sequence[ServiceNode]

    def lines(self, role: str, now: float) -> list[str]:
        """Return lines for a person: the number of nodes and whether Redis answers, then a line for each node.

        `role` is the role of the queried server.
        """
        redis = "Redis answers" if self.redis else "REDIS IS NOT REACHED"
        told = [f"{'API nodes' if role == 'api' else 'Nodes':<11}{len(self.nodes)}, {redis}"]
        one, many = WORDS[self.load]
        for node in self.nodes:
            count = f"{node.load} {one if node.load == 1 else many}"
            told.append(f"  {sanitize_line(node.url)}  up {short_duration(now - node.since)}, {count}")
        return told

    def members(self) -> dict[str, object]:
        """Return the nodes as JSON members, for programs."""
        rows = [{"url": node.url, "since": node.since, self.load: node.load} for node in self.nodes]
        return {"redis": self.redis, "nodes": rows}


def parse_nodes(numbers: MetricSamples) -> ServiceNodes | None:
    """Return the nodes in a server's metrics; None for a server without a cluster."""
    redis = numbers.total("svc_cluster_up")
    if redis is None:
        return None
    loads = {load: numbers.by(f"svc_cluster_node_{load}", "node") for load in LOADS}
    load = next((load for load in LOADS if loads[load]), LOADS[0])
    since = numbers.by("svc_cluster_node_start_time_seconds", "node")
    nodes = [ServiceNode(url=url, since=since[url], load=int(loads[load].get(url, 0))) for url in sorted(since)]
    return ServiceNodes(redis=redis > 0, load=load, nodes=nodes)
