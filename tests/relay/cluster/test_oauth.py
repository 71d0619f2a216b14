"""OAuth flows at different nodes of a cluster, a node that is lost meanwhile, and consent queries between nodes."""

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from fuzz.cluster.deployment import ClusterDeployment
from svc_proto.relay.cluster import coordinator
from svc_proto.schema.oauth import AuthorizationRequest, OAuthClient
from tests.mcp.http_harness import TYPES
from tests.relay.cluster.test_sessions import node_that_reads
from tests.relay.coordinator_harness import CoordinatorHarness
from tests.relay.oauth_client import FORM
from tests.support.sim_http import HttpClientConnection, RequestClient

LOOPBACK = "http://127.0.0.1:4000/cb"


class OAuthFlow:
    """Registration, consent and exchange of a code at the nodes of a cluster."""

    def __init__(self, cluster: ClusterDeployment) -> None:
        self.cluster = cluster
        wish = {"client_name": "Claude Code", "redirect_uris": [LOOPBACK]}
        self.client = self.ask(0, "POST", "/oauth/register", wish).json["client_id"]
        self.page = self.word = ""

    def ask(self, node: int, method: str, path: str, body: object = None) -> Any:
        return self.cluster.request_and_wait(node, method, path, body=body).answer

    def begin(self, node: int) -> None:
        query = {
            "response_type": "code", "client_id": self.client, "redirect_uri": LOOPBACK, "state": "s",
            "code_challenge": urlsafe_b64encode(sha256(b"v" * 43).digest()).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }  # fmt: skip
        answer = self.ask(node, "GET", f"/oauth/authorize?{urlencode(query)}")
        assert answer.status == 303, answer
        self.page = f"/oauth/{(answer.headers.get(b'location') or b'').decode()}"
        found = re.search(r'class="word">([A-Z0-9]{6})<', self.ask(node, "GET", self.page).body.decode())
        assert found is not None
        self.word = found[1]

    def allow(self, *nodes: int) -> int:
        """Read the consent request at the first node, allow it at the last, and return the status of that response."""
        shown = self.ask(nodes[0], "GET", f"/mcp/questions/{self.word}").json
        body = {"ballot": shown["ballot"], "allow": True}
        return int(self.ask(nodes[-1], "POST", f"/mcp/questions/{self.word}", body).status)

    def code(self, node: int) -> str:
        answer = self.ask(node, "GET", self.page)
        assert answer.status == 303, answer
        return parse_qs(urlsplit((answer.headers.get(b"location") or b"").decode()).query)["code"][0]

    def trade(self, node: int, code: str) -> Any:
        shown = {"code": code, "redirect_uri": LOOPBACK, "client_id": self.client, "code_verifier": "v" * 43}
        return self.post(node, "/oauth/token", {"grant_type": "authorization_code", **shown})

    def post(self, node: int, path: str, form: dict[str, str]) -> Any:
        target = self.cluster.target(node, local=True)
        what = ("POST", path, {"content-type": FORM[0][1].decode()}, urlencode(form).encode())
        carrier = HttpClientConnection(self.cluster.hosts[node], target, self.cluster.entropy)
        caller = RequestClient(carrier, target, what, on_done=lambda caller: None)
        self.cluster.run(lambda: caller.is_closed)
        return caller.answer


def test_flow_continues_across_nodes(three_nodes: ClusterDeployment) -> None:
    flow = OAuthFlow(three_nodes)
    flow.begin(0)
    assert flow.ask(1, "GET", flow.page).status == 200
    assert flow.ask(2, "GET", "/mcp/questions/AAAAAA").status == 404
    assert flow.allow(2, 0) == 200
    code = flow.code(1)
    assert [len(relay.oauth.consents) for relay in three_nodes.relays] == [0, 1, 0]
    answer = flow.trade(2, code)
    assert [len(relay.oauth.consents) for relay in three_nodes.relays] == [0, 0, 1]
    assert answer.status == 200, answer
    token = answer.json["access_token"]
    three_nodes.sim.run_for(0.1)  # the other nodes have not received it yet
    for node in range(3):
        told = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
        assert three_nodes.request_and_wait(node, "POST", "/mcp", token=token, body=told, fields=TYPES).status == 200
    assert flow.trade(0, code).json["error"] == "invalid_grant"  # a reused code revokes its tokens on all nodes
    assert [len(relay.oauth.consents) for relay in three_nodes.relays] == [0, 0, 0]
    three_nodes.sim.run_for(0.2)
    for node in range(3):
        assert three_nodes.request_and_wait(node, "GET", "/mcp", token=token, fields=TYPES).status == 401
    assert flow.trade(1, code).json["error"] == "invalid_grant"


def test_reloaded_page_at_another_node_does_not_revoke_the_tokens(two_nodes: ClusterDeployment) -> None:
    flow = OAuthFlow(two_nodes)
    flow.begin(0)
    assert flow.allow(0) == 200
    code = flow.code(0)
    token = flow.trade(0, code).json["access_token"]
    for node in (0, 1):
        assert flow.ask(node, "GET", flow.page).status == 404
    two_nodes.sim.run_for(0.2)
    assert [len(relay.oauth.consents) for relay in two_nodes.relays] == [1, 0]
    unopened = two_nodes.request_and_wait(1, "GET", "/mcp", token=token, fields=TYPES)
    assert unopened.status == 400  # an MCP session is needed
    assert flow.trade(1, code).json["error"] == "invalid_grant"
    two_nodes.sim.run_for(0.2)
    assert two_nodes.request_and_wait(0, "GET", "/mcp", token=token, fields=TYPES).status == 401


@pytest.mark.parametrize("use", ["call", "refresh", "revoke"])
def test_tokens_work_during_a_load(two_nodes: ClusterDeployment, monkeypatch: pytest.MonkeyPatch, use: str) -> None:
    flow = OAuthFlow(two_nodes)
    flow.begin(0)
    assert flow.allow(0) == 200
    tokens = flow.trade(0, flow.code(0)).json
    node_that_reads(monkeypatch, two_nodes)
    access, refresh = tokens["access_token"], tokens["refresh_token"]
    if use == "call":
        assert two_nodes.request_and_wait(1, "GET", "/mcp", token=access, fields=TYPES).answer.status == 400
        return  # 400: an MCP session is needed
    if use == "refresh":
        form = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": flow.client}
        assert flow.post(1, "/oauth/token", form).status == 200
        assert flow.post(1, "/oauth/token", {**form, "refresh_token": "x"}).status == 400
        return
    assert flow.post(1, "/oauth/revoke", {"token": access}).status == 200
    two_nodes.sim.run_for(0.2)
    assert two_nodes.request_and_wait(0, "GET", "/mcp", token=access, fields=TYPES).answer.status == 401


def test_code_is_redeemed_on_one_node_only(three_nodes: ClusterDeployment) -> None:
    flow = OAuthFlow(three_nodes)
    flow.begin(1)
    assert flow.allow(1) == 200
    shown = {"code": flow.code(1), "redirect_uri": LOOPBACK, "client_id": flow.client, "code_verifier": "v" * 43}
    body = urlencode({"grant_type": "authorization_code", **shown}).encode()
    callers = []
    for node in range(3):
        target = three_nodes.target(node, local=True)
        what = ("POST", "/oauth/token", {"content-type": FORM[0][1].decode()}, body)
        carrier = HttpClientConnection(three_nodes.hosts[node], target, three_nodes.entropy)
        callers.append(RequestClient(carrier, target, what, on_done=lambda caller: None))
    three_nodes.run(lambda: all(caller.is_closed for caller in callers))
    assert [caller.answer.status for caller in callers].count(200) <= 1
    assert sum(len(relay.oauth.consents) for relay in three_nodes.relays) <= 1


def test_consent_request_is_lost_with_its_node(two_nodes: ClusterDeployment) -> None:
    flow = OAuthFlow(two_nodes)
    flow.begin(0)
    two_nodes.kill(0)
    assert flow.ask(1, "GET", flow.page).status == 404
    two_nodes.kill_redis()
    two_nodes.sim.run_for(1.0)
    assert flow.ask(1, "GET", flow.page).status == 404


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
