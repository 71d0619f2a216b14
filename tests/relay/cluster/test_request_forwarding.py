"""Downloads, MCP sessions and voice WebSockets at a node that forwards them to their owner, and their ends."""

import base64
from typing import Any, cast

import pytest

from fuzz.cluster.deployment import ClusterDeployment
from svc_proto.basics.errors import Refused
from svc_proto.commands import Connect
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.relay.cluster import request_forwarding
from tests.cluster.test_forwarding import asking
from tests.relay.coordinator_harness import CoordinatorHarness
from tests.support.sim_http import HttpClientConnection, Pairs, WebSocketClient


def uploaded(cluster: ClusterDeployment, node: int, token: str, data: bytes) -> str:
    """Upload a text file to a node and return the path at which clients fetch it."""
    body = {"content": base64.b64encode(data).decode(), "content_type": "text/plain", "file_name": "a.txt"}
    answer = cluster.request_and_wait(node, "POST", "/media/upload", token=token, body=body).answer
    assert answer.status == 200, answer
    return f"/media/{answer.json['token']}"


def test_file_can_be_fetched_on_any_node(three_nodes: ClusterDeployment) -> None:
    phone = three_nodes.pair_phone("P", 0)
    data = bytes(range(256)) * 2_000
    path = uploaded(three_nodes, 1, phone.token, data)

    def fetch(
        node: int, target: str = path, method: str = "GET", fields: object = None, token: str = phone.token
    ) -> Any:
        return three_nodes.request_and_wait(node, method, target, token=token, fields=cast("Pairs", fields)).answer

    there = fetch(1)
    assert (there.status, there.body) == (200, data)
    tag = (there.headers.get(b"etag") or b"").decode()
    for node in (0, 2):
        for method, fields, status, body in (
            ("GET", {}, 200, data),
            ("HEAD", {}, 200, b""),
            ("GET", {"range": "bytes=1000-299999"}, 206, data[1_000:300_000]),
            ("GET", {"if-none-match": tag}, 304, b""),
            ("GET", {"if-match": '"another"'}, 412, None),
            ("GET", {"range": "bytes=999999-"}, 416, None),
        ):
            near, far = (fetch(n, path, method, fields) for n in (1, node))
            assert (far.status, far.body) == (status, near.body)
            near_fields, far_fields = (sorted(row for row in each.headers if row[0] != b"date") for each in (near, far))
            assert far_fields == near_fields
            assert body is None or far.body == body
    assert fetch(0, fields={"via": "1.0 a, 1.1 svc-node"}).status == 404
    assert fetch(0, "/media/" + "A" * 22).status == 404
    assert fetch(0, token="").status == 401
    assert fetch(0, path.replace("media", "media/inspect"), token="").status == 404  # found on this node only
    three_nodes.kill(1)
    assert fetch(0).status == 404
    three_nodes.kill_redis()
    three_nodes.sim.run_for(1.0)
    answer = fetch(0)
    assert (answer.status, answer.json["code"]) == (503, "cluster_unavailable")
    assert fetch(0, "/media/short").status == 404


def test_killed_node_does_not_complete_a_file(two_nodes: ClusterDeployment) -> None:
    phone = two_nodes.pair_phone("P", 0)
    path = uploaded(two_nodes, 1, phone.token, bytes(4_000_000))
    call = two_nodes.request(0, "GET", path, token=phone.token)
    two_nodes.run(lambda: call.head is not None)
    two_nodes.kill(1)
    two_nodes.run(lambda: call.is_closed)
    assert call.status == 0


MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def initialized(cluster: ClusterDeployment, node: int, token: str) -> Pairs:
    """Open an MCP session on a node and return the header fields of its requests."""
    told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": told}
    answer = cluster.request_and_wait(node, "POST", "/mcp", token=token, body=hello, fields=cast("Pairs", MCP)).answer
    session = (answer.headers.get(b"mcp-session-id") or b"").decode()
    assert session
    return cast("Pairs", {**MCP, "mcp-session-id": session})


def test_mcp_session_continues_on_any_node(three_nodes: ClusterDeployment) -> None:
    phone, other = three_nodes.pair_phone("P", 0), three_nodes.pair_phone("Q", 0)
    shown = initialized(three_nodes, 0, phone.token)
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    tap = {"name": "android_ping", "arguments": {}}
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": tap}

    def ask(node: int, fields: object, body: object = ping, *, by: str = phone.token, method: str = "POST") -> Any:
        sent = cast("Pairs", fields)
        return three_nodes.request_and_wait(node, method, "/mcp", token=by, body=body, fields=sent).answer

    for node in (0, 1, 2):
        assert ask(node, shown, note).status == 202
        answer = ask(node, shown)
        assert (answer.status, answer.json) == (200, {"jsonrpc": "2.0", "id": 2, "result": {}})
        assert ask(node, shown, by=other.token).status == 404
        assert ask(node, shown, call).status == 200
        assert ask(node, {**shown, "last-event-id": "7-7"}, None, method="GET").status == 400
    assert ask(1, {**shown, "via": "1.1 svc-node"}).status == 404
    assert ask(1, MCP).status == 400
    events = three_nodes.request(1, "GET", "/mcp", token=phone.token, fields=shown)
    three_nodes.run(lambda: events.head is not None)
    assert events.head is not None
    assert events.head.headers.get(b"content-type") == b"text/event-stream"
    assert ask(2, shown, None, method="DELETE").status == 204
    three_nodes.run(lambda: events.is_closed)
    assert ask(1, shown).status == 404
    shown = initialized(three_nodes, 0, phone.token)
    three_nodes.kill(0)
    assert ask(1, shown).status == 404
    shown = initialized(three_nodes, 2, phone.token)
    three_nodes.kill_redis()
    three_nodes.sim.run_for(1.0)
    assert ask(1, shown).status == 404  # the client must initialize a new session
    three_nodes.stop(2)
    three_nodes.run(lambda: not three_nodes.nodes[2].alive)


class Speaker:
    """Client of a voice session that is connected to one node of the cluster."""

    def __init__(self, cluster: ClusterDeployment, node: int, path: str, token: str) -> None:
        target = cluster.target(node)
        self._cluster = cluster
        self.heard: list[dict[str, Any]] = []
        self.over = False
        self.talker = WebSocketClient(
            HttpClientConnection(cluster.crowd, target, cluster.entropy),
            target,
            path=path,
            headers={"authorization": f"Bearer {token}"},
            on_open=lambda talker: None,
            on_message=lambda talker, message: self.heard.append(message),
            on_end=self._ended,
        )

    def _ended(self, talker: WebSocketClient) -> None:
        self.over = True

    @property
    def status(self) -> int:
        return self.talker.status

    def wait(self, kind: str = "") -> None:
        """Run the cluster until a message of this kind, or any message, has arrived."""
        self._cluster.run(lambda: any(kind in ("", message["type"]) for message in self.heard))

    def wait_until_over(self) -> None:
        """Run the cluster until the socket has ended."""
        self._cluster.run(lambda: self.over)


def speaking(cluster: ClusterDeployment, token: str) -> str:
    """Create a voice session on the first node and return the path of its WebSocket."""
    answer = cluster.request_and_wait(0, "POST", "/voice/output/session", token=token, body={"provider": "stub"}).answer
    assert answer.status == 200, answer
    return str(answer.json["websocket_path"])


def test_voice_session_is_reachable_on_any_node(three_nodes: ClusterDeployment) -> None:
    phone, other = three_nodes.pair_phone("P", 0), three_nodes.pair_phone("Q", 0)
    for node in (1, 0, 2):
        path = speaking(three_nodes, phone.token)
        speaker = Speaker(three_nodes, node, path, phone.token)
        speaker.wait()
        speaker.talker.send_message({"type": "response.create", "text": "Hello."})
        speaker.wait("voice.response.done")
        unknown_host = Speaker(three_nodes, node, path, other.token)
        unknown_host.wait_until_over()
        assert unknown_host.status == 403
        speaker.talker.close(1000)
        speaker.wait_until_over()
    late = Speaker(three_nodes, 1, "/voice/output/" + "0" * 32, phone.token)
    three_nodes.run(lambda: late.over)
    assert late.status == 404


@pytest.mark.parametrize("end", ["revoked", "kill", "stop", "leave"])
def test_forwarded_voice_socket_ends_on_both_sides(three_nodes: ClusterDeployment, end: str) -> None:
    phone, ruler = three_nodes.pair_phone("P", 0), three_nodes.pair_phone("R", 0)
    speaker = Speaker(three_nodes, 1, speaking(three_nodes, phone.token), phone.token)
    three_nodes.run(lambda: bool(speaker.heard))
    assert three_nodes.relays[1].coordinator._intermediary.sockets == 1  # type: ignore[attr-defined]
    if end == "leave":
        speaker.talker.disconnect(reset=True)
    elif end == "revoked":
        three_nodes.partition_from_redis(0)  # so that the owning node misses the revocation
        gone = three_nodes.sim.now
        assert three_nodes.request_and_wait(1, "DELETE", f"/sessions/{phone.token}", token=ruler.token).status == 200
        three_nodes.run(lambda: speaker.over)
        assert three_nodes.sim.now - gone < 1.0
        three_nodes.heal()
    else:
        getattr(three_nodes, end)(0)
        three_nodes.run(lambda: speaker.over)
    three_nodes.sim.run_for(2.0)
    assert not three_nodes.relays[1].coordinator._intermediary.sockets  # type: ignore[attr-defined]


def told(harness: CoordinatorHarness) -> Any:
    """Answer the one message that the node has just published, and return its ticket."""
    ((_, body),) = harness.new_messages()
    return body["ticket"]


def test_unowned_resource_is_not_found(harness: CoordinatorHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    intermediary = harness.coordinator._intermediary
    monkeypatch.setattr(request_forwarding, "MAX_LOOKUPS", 1)
    for answer in ({}, {"url": ""}):  # the answer has no address, or the address is unknown
        harness.run(intermediary.answer("media", "T", asking()), found)
        ((_, body),) = harness.new_messages()
        assert (body["word"], body["body"]) == ("has", {"what": "media", "name": "T"})
        harness.deliver("says", {"ticket": body["ticket"], "body": answer}, to_me=True)
    assert found == [None, None]
    assert not harness.book.ordered(Connect)
    harness.run(intermediary.answer("media", "T", asking()), found)
    harness.deliver("says", {"ticket": told(harness), "body": {"url": "https://b.lan/relay"}}, to_me=True)
    order = harness.book.dialled()
    assert (order.host, order.port, order.tls) == ("b.lan", 443, True)
    harness.run(intermediary.answer("mcp", "T", asking()), found)
    assert (found[2].status, found[2].code) == (503, "busy")
    monkeypatch.undo()
    intermediary.sockets = request_forwarding.MAX_SOCKETS
    harness.run(intermediary.answer("voice", "T", asking()), found)
    assert (found[3].status, found[3].code) == (503, "busy")


@pytest.mark.parametrize(("length", "is_looked_up"), [(0, False), (1, True), (64, True), (65, False)])
def test_names_that_are_looked_up(harness: CoordinatorHarness, length: int, is_looked_up: bool) -> None:
    assert (harness.coordinator.forward_request("voice", "x" * length, asking()) is not None) is is_looked_up


def test_a_lost_node_does_not_end_the_lookup(harness: CoordinatorHarness) -> None:
    harness.deliver("hello", node="c")
    harness.new_messages()
    harness.run(harness.coordinator._intermediary.answer("media", "T", asking()), [])
    (_, _), (_, body) = harness.new_messages()
    harness.deliver("bye")
    harness.deliver("says", {"ticket": body["ticket"], "body": {"url": "http://c.lan"}}, node="c", to_me=True)
    assert harness.book.dialled().host == "c.lan"


class Line:
    """Fake WebSocket that records in `said` sent messages, closings, and each pause or resumption of its reading."""

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.writable = True

    def send_text(self, text: str) -> bool:
        self.said.append(text)
        return True

    def send_binary(self, data: bytes) -> bool:
        self.said.append(data)
        return True

    def close(self, code: int, reason: str = "") -> None:
        self.said.append((code, reason))

    def set_read_paused(self, holding: bool) -> None:
        self.said.append(holding)


def ends(
    harness: CoordinatorHarness,
) -> tuple[request_forwarding._UpstreamSocket, request_forwarding._DownstreamSocket, Any, Any]:
    far, near, there = request_forwarding._UpstreamSocket(), Line(), Line()
    far.on_open(cast("WebSocketConnection", there))
    handler = request_forwarding._DownstreamSocket(harness.coordinator._intermediary, harness.book.engine, "h", far)
    return far, handler, near, there


def test_forwarded_sockets_pass_messages_and_close_codes(harness: CoordinatorHarness) -> None:
    far, handler, near, there = ends(harness)
    far.on_text("early")
    far.on_binary(b"early")
    handler.on_open(cast("WebSocketConnection", near))
    handler.on_text("a")
    handler.on_binary(b"b")
    far.on_text("c")
    near.writable = False
    far.on_binary(b"d")
    handler.on_writable()
    far.on_writable()
    assert there.said == ["a", b"b", True, False]
    assert near.said == ["early", b"early", "c", b"d"]
    far.on_closed(4009, "why")
    assert near.said[4:] == [(4009, "why")]
    handler.on_closed(4009, "why")
    assert there.said[4:] == [(4009, "why")]
    far.on_closed(1000, "")
    assert len(near.said) == 5
    assert not harness.coordinator._intermediary.sockets
    for code, said in ((1005, 1000), (1006, 1001), (1015, 1001), (1011, 1011)):
        far, handler, near, there = ends(harness)
        far.on_closed(code, "gone")  # before the caller's socket is open
        handler.on_open(cast("WebSocketConnection", near))
        assert near.said == [(said, "gone")]
        handler.on_closed(code, "x")
        assert there.said == [(said, "x")]


def test_forwarded_socket_ends_with_its_credential(harness: CoordinatorHarness) -> None:
    _, handler, near, there = ends(harness)
    handler.revoke(Refused(401, "unauthorized", "early"))
    assert not near.said
    handler.on_open(cast("WebSocketConnection", near))
    harness.book.within(lambda: harness.book.engine.revoke_credential("h", Refused(401, "unauthorized", "over")))
    assert near.said == there.said == [(1008, "over")]
    handler.on_closed(1008, "over")
    assert len(harness.book.engine.revocables) == 0
