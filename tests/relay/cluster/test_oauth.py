"""OAuth flows at different nodes of a cluster, a node that is lost meanwhile, and consent queries between nodes."""

from typing import Any, cast
from urllib.parse import urlencode

import pytest

from fuzz.cluster.deployment import ClusterDeployment
from svc_proto.relay.cluster import coordinator
from svc_proto.schema.oauth import AuthorizationRequest, OAuthClient
from tests.mcp.http_harness import TYPES
from tests.relay.cluster.test_session_loading import node_that_reads
from tests.relay.coordinator_harness import CoordinatorHarness
from tests.relay.harness import RelayHarness
from tests.relay.oauth_client import FORM, OAuthTestClient
from tests.support.http_harness import Fields

LOOPBACK = "http://127.0.0.1:4000/cb"


class Nodes:
    """A cluster in place of the relay of an OAuth client; requests go to one node, from its own host."""

    def __init__(self, cluster: ClusterDeployment) -> None:
        self.cluster = cluster
        self.node = 0
        self.secrets = set[str]()

    def request(self, method: str, path: str, body: object = None, *, headers: Fields = (), **_: object) -> Any:
        fields = {name.decode(): value.decode() for name, value in headers}
        return self.cluster.request_and_wait(self.node, method, path, body=body, fields=fields).answer


def begun(cluster: ClusterDeployment, node: int = 0) -> tuple[Nodes, OAuthTestClient, str]:
    """Register a client at the first node and request authorization; return the path of the waiting page, too."""
    nodes = Nodes(cluster)
    flow = OAuthTestClient(cast("RelayHarness", nodes), redirect=LOOPBACK)
    nodes.node = node
    return nodes, flow, flow.wait(resource=None)


def test_flow_continues_across_nodes(three_nodes: ClusterDeployment) -> None:
    nodes, flow, page = begun(three_nodes)
    word = flow.word(page)
    nodes.node = 1
    assert flow.call("GET", page).status == 200
    nodes.node = 2
    assert flow.question("AAAAAA").status == 404
    ballot = flow.question(word).json["ballot"]
    nodes.node = 0
    assert flow.answer(word, ballot=ballot).status == 200
    nodes.node = 1
    code = flow.back(page)["code"]
    assert [len(relay.oauth.consents) for relay in three_nodes.relays] == [0, 1, 0]
    nodes.node = 2
    assert flow.trade(code).status == 200
    assert [len(relay.oauth.consents) for relay in three_nodes.relays] == [0, 0, 1]
    token = flow.access
    three_nodes.sim.run_for(0.1)  # the other nodes have not received it yet
    for node in range(3):
        told = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
        assert three_nodes.request_and_wait(node, "POST", "/mcp", token=token, body=told, fields=TYPES).status == 200
    nodes.node = 0
    assert flow.trade(code).json["error"] == "invalid_grant"  # a reused code revokes its tokens on all nodes
    assert [len(relay.oauth.consents) for relay in three_nodes.relays] == [0, 0, 0]
    three_nodes.sim.run_for(0.2)
    for node in range(3):
        assert three_nodes.request_and_wait(node, "GET", "/mcp", token=token, fields=TYPES).status == 401
    nodes.node = 1
    assert flow.trade(code).json["error"] == "invalid_grant"


def test_reloaded_page_at_another_node_does_not_revoke_the_tokens(two_nodes: ClusterDeployment) -> None:
    nodes, flow, page = begun(two_nodes)
    assert flow.answer(flow.word(page)).status == 200
    code = flow.back(page)["code"]
    assert flow.trade(code).status == 200
    for nodes.node in (0, 1):
        assert flow.call("GET", page).status == 404
    two_nodes.sim.run_for(0.2)
    assert [len(relay.oauth.consents) for relay in two_nodes.relays] == [1, 0]
    unopened = two_nodes.request_and_wait(1, "GET", "/mcp", token=flow.access, fields=TYPES)
    assert unopened.status == 400  # an MCP session is needed
    assert flow.trade(code).json["error"] == "invalid_grant"
    two_nodes.sim.run_for(0.2)
    assert two_nodes.request_and_wait(0, "GET", "/mcp", token=flow.access, fields=TYPES).status == 401


def test_revocation_is_confirmed_by_redis_and_unknown_tokens_are_challenged(two_nodes: ClusterDeployment) -> None:
    _, flow, _ = begun(two_nodes)
    assert flow.trade(flow.code(resource=None)).status == 200
    for token in ("short", "7" * 64, "x" * 43):
        fields = {**TYPES, "authorization": f"Bearer {token}"}
        answer = two_nodes.request_and_wait(1, "GET", "/mcp", fields=fields).answer
        assert b"resource_metadata" in (answer.headers.get(b"www-authenticate") or b""), token
    two_nodes.kill_redis()
    two_nodes.sim.run_for(1.0)
    assert flow.revoke(flow.access).status == 503  # other nodes may accept the token yet


@pytest.mark.parametrize("use", ["call", "refresh", "revoke"])
def test_tokens_work_during_a_load(two_nodes: ClusterDeployment, monkeypatch: pytest.MonkeyPatch, use: str) -> None:
    nodes, flow, _ = begun(two_nodes)
    assert flow.trade(flow.code(resource=None)).status == 200
    node_that_reads(monkeypatch, two_nodes)
    nodes.node = 1
    if use == "call":
        assert two_nodes.request_and_wait(1, "GET", "/mcp", token=flow.access, fields=TYPES).answer.status == 400
        return  # 400: an MCP session is needed
    if use == "refresh":
        assert flow.refresh().status == 200
        assert flow.refresh("x").status == 400
        return
    assert flow.revoke(flow.access).status == 200
    two_nodes.sim.run_for(0.2)
    assert two_nodes.request_and_wait(0, "GET", "/mcp", token=flow.access, fields=TYPES).answer.status == 401


def test_code_is_redeemed_on_one_node_only(three_nodes: ClusterDeployment) -> None:
    _, flow, page = begun(three_nodes, 1)
    assert flow.answer(flow.word(page)).status == 200
    shown = {"redirect_uri": LOOPBACK, "client_id": flow.client, "code_verifier": flow.verifier}
    form = {"grant_type": "authorization_code", "code": flow.back(page)["code"], **shown}
    fields, body = {"content-type": FORM[0][1].decode()}, urlencode(form).encode()
    callers = [three_nodes.request(node, "POST", "/oauth/token", fields=fields, body=body) for node in range(3)]
    three_nodes.run(lambda: all(caller.is_closed for caller in callers))
    assert [caller.answer.status for caller in callers].count(200) <= 1
    assert sum(len(relay.oauth.consents) for relay in three_nodes.relays) <= 1


def test_consent_request_is_lost_with_its_node(two_nodes: ClusterDeployment) -> None:
    nodes, flow, page = begun(two_nodes)
    two_nodes.kill(0)
    nodes.node = 1
    assert flow.call("GET", page).status == 404
    two_nodes.kill_redis()
    two_nodes.sim.run_for(1.0)
    assert flow.call("GET", page).status == 404


def test_consent_queries_between_nodes(harness: CoordinatorHarness) -> None:
    harness.deliver("asks", {"word": "consent", "body": {"by": "ticket", "value": "x"}, "ticket": 1}, to_me=True)
    assert harness.new_messages() == [("says", {"ticket": 1, "body": {}})]
    for record in ({}, {"client": "x", "stage": "asked", "ticket": "t"}):
        harness.deliver("consent", record, to_me=True)
    assert len(harness.relay.oauth.consents) == 0
    harness.deliver("asks", {"word": "consent", "body": {"by": "ticket", "value": "x"}, "ticket": 1}, to_me=True)
    assert harness.new_messages() == [("says", {"ticket": 1, "body": {}})]
    question = AuthorizationRequest(
        client=OAuthClient("A", (LOOPBACK,)), redirect=LOOPBACK, scope="bridge", challenge="", state="s"
    )
    oauth, engine = harness.relay.oauth, harness.book.engine
    asked = oauth.consents.request(question, "192.0.2.1", engine.now, engine.entropy)
    harness.book.within(
        lambda: oauth.release_consent("ticket", asked.ticket, lambda record: False)
    )  # the client that requested it is gone
    assert len(oauth.consents) == 1
    found: list[Any] = []
    for _ in range(coordinator.MAX_LOOKUPS):
        seeking = harness.coordinator.lookup_consent("code", "AAAAAA")
        assert seeking is not None
        harness.run(seeking, found)
    assert harness.coordinator.lookup_consent("code", "AAAAAA") is None
    harness.deliver("bye")
    harness.book.after(coordinator.PROPAGATION_DELAY)
    assert found == [None] * coordinator.MAX_LOOKUPS


def test_consent_that_no_node_has_is_looked_up_again(
    harness: CoordinatorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "MAX_LOOKUPS", 1)
    found: list[Any] = []
    seeking = harness.coordinator.lookup_consent("ticket", "x")
    assert seeking is not None
    harness.run(seeking, found)
    for _ in range(2):  # the request may have been in transit between two nodes
        assert (found, harness.coordinator.lookup_consent("ticket", "y")) == ([], None)
        ((_, asks),) = harness.new_messages()
        assert (asks["word"], asks["body"]) == ("consent", {"by": "ticket", "value": "x"})
        harness.deliver("says", {"ticket": asks["ticket"], "body": {}}, to_me=True)
        harness.book.after(coordinator.PROPAGATION_DELAY)
    assert found == [None]
    assert harness.coordinator.lookup_consent("ticket", "y") is not None
