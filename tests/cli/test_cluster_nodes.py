from svc_proto.cli.cluster_nodes import ServiceNode, ServiceNodes, parse_nodes
from svc_proto.schema.openmetrics import MetricSamples

NOW = 1_000_000.0
RELAY = """\
svc_cluster_up 1.0
svc_cluster_node_start_time_seconds{node="http://b"} 996400.0
svc_cluster_node_start_time_seconds{node="http://a"} 999990.0
svc_cluster_node_phones{node="http://b"} 1.0
svc_cluster_node_phones{node="http://a"} 12.0
# EOF
"""
API = """\
svc_cluster_up 0.0
svc_cluster_node_start_time_seconds{node="http://c"} 999940.0
svc_cluster_node_runs{node="http://c"} 1.0
# EOF
"""


def test_nodes_are_parsed() -> None:
    service = parse_nodes(MetricSamples(RELAY))
    rows = [("http://a", 999_990.0, 12), ("http://b", 996_400.0, 1)]
    nodes = [ServiceNode(url=url, since=since, load=load) for url, since, load in rows]
    assert service == ServiceNodes(redis=True, load="phones", nodes=nodes)
    assert parse_nodes(MetricSamples("svc_phones 3.0\n# EOF\n")) is None  # not a cluster
    alone = parse_nodes(MetricSamples("svc_cluster_up 1.0\n# EOF\n"))
    assert alone == ServiceNodes(redis=True, load="phones", nodes=[])


def test_text_output() -> None:
    relay, api = (parse_nodes(MetricSamples(text)) for text in (RELAY, API))
    assert relay is not None
    assert api is not None
    assert [*relay.lines("relay", NOW), *api.lines("api", NOW)] == [
        "Nodes      2, Redis answers",
        "  http://a  up 10s, 12 phones",
        "  http://b  up 1h, 1 phone",
        "API nodes  1, REDIS IS NOT REACHED",
        "  http://c  up 1m, 1 turn",
    ]


def test_json_output() -> None:
    service = parse_nodes(MetricSamples(API))
    assert service is not None
    assert service.members() == {"redis": False, "nodes": [{"url": "http://c", "since": 999_940.0, "runs": 1}]}
