from collections.abc import Mapping
from typing import Any

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.mcp.pending_request import STATELESS_VERSION
from svc_proto.mcp.server_features import MAX_ASKED
from svc_proto.mcp.session import ELICITATION_TIMEOUT, MAX_CALLS
from svc_proto.schema.mcp_messages import HANDSHAKE_VERSIONS
from tests.mcp.stdio_harness import ELICITS, McpStdioHarness, ToyMcpServer, modern


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_the_handshake(peer: McpStdioHarness, version: str) -> None:
    about = peer.open(version)
    assert about == {
        "protocolVersion": version,
        "serverInfo": {"name": "shop", "title": "Shop", "version": "1"},
        "capabilities": {"tools": {}, "resources": {"subscribe": True}, "prompts": {}},
        "instructions": "Buy.",
    }
    assert peer.request("ping") == {}
    assert len(peer.request("tools/list")["tools"]) == 10
    assert peer.request("server/discover")["code"] == -32601
    assert McpStdioHarness(ToyMcpServer().offer()).open("2099-01-01")["protocolVersion"] == HANDSHAKE_VERSIONS[-1]


def test_requests_before_and_after_initialize(peer: McpStdioHarness) -> None:
    assert peer.request("ping") == {}
    assert peer.request("tools/list")["code"] == -32600
    assert peer.request("initialize", protocolVersion=1)["code"] == -32602
    peer.send(method="notifications/initialized")
    assert peer.request("tools/list")["code"] == -32600
    assert peer.request("initialize", protocolVersion="2024-11-05")["protocolVersion"] == "2024-11-05"
    assert peer.open("2025-06-18")["protocolVersion"] == "2025-06-18"
    assert peer.send(method="notifications/initialized") == []
    assert peer.request("initialize", protocolVersion="2025-11-25")["code"] == -32600


def test_second_handshake_replaces_the_first(peer: McpStdioHarness) -> None:
    peer.request("initialize", protocolVersion="2025-11-25", capabilities=ELICITS)
    peer.open("2024-11-05")
    assert peer.request("tools/call", **PAY)["isError"] is True  # its client has no elicitation


def test_stateless_requests(peer: McpStdioHarness) -> None:
    info = {"io.modelcontextprotocol/serverInfo": {"name": "shop", "title": "Shop", "version": "1"}}
    found = peer.request("server/discover", **modern())
    assert found == {
        "resultType": "complete",
        "supportedVersions": [STATELESS_VERSION, *HANDSHAKE_VERSIONS],
        "capabilities": {"tools": {}, "resources": {"subscribe": True}, "prompts": {}},
        "instructions": "Buy.",
        "ttlMs": 3_600_000,
        "cacheScope": "private",
        "_meta": info,
    }
    assert peer.request("tools/list", **modern())["ttlMs"] == 3_600_000
    assert peer.request("resources/read", **modern(uri="shop://sign"))["ttlMs"] == 0
    called = peer.request("tools/call", **modern(name="echo", arguments={"word": "hi"}))
    said = [{"type": "text", "text": "hi"}]
    assert called == {"resultType": "complete", "content": said, "isError": False, "_meta": info}
    for gone in ("initialize", "ping", "logging/setLevel"):
        assert peer.request(gone, **modern())["code"] == -32601


def test_incomplete_stateless_request(peer: McpStdioHarness) -> None:
    version = "io.modelcontextprotocol/protocolVersion"
    old = peer.request("tools/list", _meta={version: "2031-01-01"})
    assert old["code"] == -32022
    assert old["data"] == {"supported": [STATELESS_VERSION, *HANDSHAKE_VERSIONS], "requested": "2031-01-01"}
    assert peer.request("tools/list", _meta={version: STATELESS_VERSION})["code"] == -32602
    assert peer.request("tools/list", _meta="x")["code"] == -32600


# --- calls in progress ----------------------------------------------------------------------------------------------


def test_too_many_calls_and_a_refused_one(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    def refuse() -> None:
        raise Refused(503, "shut", "the shop is shut")

    shop.on_begin = refuse
    peer.open()
    answer = peer.request("tools/call", name="echo")
    assert (answer["code"], answer["message"]) == (-32603, "the shop is shut")
    shop.on_begin = lambda: None
    for number in range(MAX_CALLS):
        assert peer.send(id=f"n{number}", method="tools/call", params={"name": "wait"}) == []
    assert peer.request("ping")["code"] == -32000


def test_concurrent_and_sequential_calls(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    peer.open()
    for number, (name, word) in enumerate([("wait", "a"), ("turn", "b"), ("turn", "c"), ("wait", "d")]):
        assert peer.send(id=f"n{number}", method="tools/call", params={"name": name, "arguments": {"word": word}}) == []
    assert shop.done == ["a", "b", "d"]
    assert peer.request("ping") == {}
    (twice,) = peer.send(id="n0", method="ping")
    assert twice["error"]["code"] == -32600
    assert peer.end() == []
    assert not peer.is_closed
    assert peer.send(method="notifications/cancelled", params={"requestId": "n1"}) == []
    assert shop.done == ["a", "b", "d", "end of b", "c"]
    for wrong in (True, None, 5, "n1"):
        assert peer.send(method="notifications/cancelled", params={"requestId": wrong}) == []
    for number in (0, 2):
        peer.send(method="notifications/cancelled", params={"requestId": f"n{number}"})
    assert not peer.is_closed
    peer.send(method="notifications/cancelled", params={"requestId": "n3"})
    assert peer.is_closed


def test_waiting_call_does_not_begin_at_the_stop(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    peer.open()
    for word in ("a", "b", "c"):
        peer.send(id=word, method="tools/call", params={"name": "turn", "arguments": {"word": word}})
    assert shop.done == ["a"]
    peer.stop()
    assert shop.done == ["a", "end of a"]


def test_the_process_ends_with_the_client_or_the_host(shop: ToyMcpServer) -> None:
    for leave in (McpStdioHarness.end, McpStdioHarness.stop):
        peer = McpStdioHarness(shop.offer())
        peer.open()
        leave(peer)
        assert peer.is_closed
    peer = McpStdioHarness(shop.offer())
    peer.open()
    shop.done.clear()
    peer.send(id=1, method="tools/call", params={"name": "wait"})
    assert peer.stop() == []
    assert shop.done == [None, "end of None"]
    peer.closed()
    assert peer.exited


def test_progress(peer: McpStdioHarness) -> None:
    peer.open()
    params = {"name": "wait", "_meta": {"progressToken": "p"}}
    peer.send(id=1, method="tools/call", params=params)
    peer.send(id=2, method="tools/call", params={"name": "wait", "_meta": {"progressToken": True}})
    (first,) = peer.after(5.0)
    assert first["params"] == {"progressToken": "p", "progress": 5, "message": "waiting"}
    (second,) = peer.after(5.0)
    assert second["params"]["progress"] == 10
    peer.send(method="notifications/cancelled", params={"requestId": 1})
    assert peer.after(60.0) == []
    for name, failed in (("echo", False), ("none", None)):  # a result, and an error without one
        (told,) = peer.send(id=name, method="tools/call", params={"name": name, "_meta": {"progressToken": 7}})
        assert told.get("result", {}).get("isError") is failed
    assert peer.after(60.0) == []


# --- elicitation --------------------------------------------------------------------------------------------------

PAY: dict[str, Any] = {"name": "pay", "arguments": {"word": "bread"}}
QUESTION = 'Pay? pay {"word":"bread"}\nIt costs money.'


@pytest.mark.parametrize(("action", "paid"), [("accept", True), ("decline", False), ("cancel", False), (None, False)])
def test_elicitation(peer: McpStdioHarness, shop: ToyMcpServer, action: str | None, paid: bool) -> None:
    peer.open("2025-06-18", ELICITS)
    (asked,) = peer.send(id=9, method="tools/call", params=PAY)
    assert (asked["method"], asked["params"]["message"]) == ("elicitation/create", QUESTION)
    assert asked["params"]["requestedSchema"] == {"type": "object", "properties": {}}
    assert peer.send(id="other", result={"action": "accept"}) == []
    answer = {"error": {"code": -1, "message": "no"}} if action is None else {"result": {"action": action}}
    (told,) = peer.send(id=asked["id"], **answer)
    assert told["id"] == 9
    assert told["result"]["isError"] is not paid
    assert shop.done == ([{"word": "bread"}] if paid else [])
    assert peer.send(id=asked["id"], **answer) == []


def test_elicitation_shows_the_whole_call(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    """Show the whole call unambiguously, and refuse one that is too long to be shown."""
    peer.open("2025-06-18", ELICITS)
    word = f"{'bread' * 100}\n\u202etwo"
    (asked,) = peer.send(id=1, method="tools/call", params={"name": "pay", "arguments": {"word": word}})
    assert asked["params"]["message"] == f'Pay? pay {{"word":"{"bread" * 100}\\n\\u202etwo"}}\nIt costs money.'
    (told,) = peer.send(id=2, method="tools/call", params={"name": "pay", "arguments": {"word": "x" * 8_000}})
    assert told["result"]["isError"] is True
    assert "too long to be shown" in told["result"]["content"][0]["text"]
    assert shop.done == []


def test_unanswered_elicitation(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    peer.open("2099-01-01", ELICITS)  # the server answers with a version that has elicitation
    (asked,) = peer.send(id=1, method="tools/call", params=PAY)
    withdrawn, told = peer.after(ELICITATION_TIMEOUT)
    assert withdrawn["params"] == {"requestId": asked["id"], "reason": "no caller waits for it any more"}
    assert told["result"]["isError"] is True
    (asked,) = peer.send(id=2, method="tools/call", params=PAY)
    (withdrawn,) = peer.send(method="notifications/cancelled", params={"requestId": 2})
    assert withdrawn["params"]["requestId"] == asked["id"]
    assert shop.done == []


@pytest.mark.parametrize(("version", "capabilities"), [("2025-11-25", {}), ("2025-03-26", ELICITS)])
def test_client_without_elicitation(
    peer: McpStdioHarness, shop: ToyMcpServer, version: str, capabilities: Mapping[str, object]
) -> None:
    peer.open(version, capabilities)
    told = peer.request("tools/call", **PAY)
    assert told["isError"] is True
    assert told["content"][0]["text"].startswith("This needs the user's approval")
    shop.asks_there = True
    assert peer.request("tools/call", **PAY)["isError"] is False
    assert shop.done == [{"word": "bread", "there": True}]


def test_stateless_elicitation(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    asked = peer.request("tools/call", **modern(ELICITS, **PAY))
    assert asked["resultType"] == "input_required"
    question = asked["inputRequests"]["confirm"]
    assert (question["method"], question["params"]["message"]) == ("elicitation/create", QUESTION)
    assert question["params"]["requestedSchema"] == {"type": "object", "properties": {}}

    def again(action: str, call: Mapping[str, object] = PAY) -> Any:
        answers = {"confirm": {"action": action}}
        params = modern(ELICITS, **call, inputResponses=answers, requestState=asked["requestState"])
        return peer.request("tools/call", **params)

    other = again("accept", {"name": "pay", "arguments": {"word": "wine"}})
    assert other["resultType"] == "input_required"
    assert again("accept")["resultType"] == "input_required"  # a state is accepted once
    assert shop.done == []
    asked = peer.request("tools/call", **modern(ELICITS, **PAY))
    assert again("decline")["isError"] is True
    asked = peer.request("tools/call", **modern(ELICITS, **PAY))
    assert again("accept")["isError"] is False
    assert shop.done == [{"word": "bread"}]
    assert peer.request("tools/call", **modern(**PAY))["isError"] is True


def test_stateless_elicitations_are_limited(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    first = peer.request("tools/call", **modern(ELICITS, **PAY))
    later = [peer.request("tools/call", **modern(ELICITS, **PAY)) for _ in range(MAX_ASKED)]
    for asked, paid in ((first, False), (later[-1], True)):
        answers = {"confirm": {"action": "accept"}}
        params = modern(ELICITS, **PAY, inputResponses=answers, requestState=asked["requestState"])
        assert (peer.request("tools/call", **params)["resultType"] == "complete") is paid


def test_invalid_line(peer: McpStdioHarness) -> None:
    (answer,) = peer.bytes(b"{\n")
    assert (answer["error"]["code"], "id" in answer) == (-32700, True)
    assert peer.request("ping") == {}
