"""Session with one client: handshake, stateless protocol, calls in progress, elicitation."""

from __future__ import annotations

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
def test_the_handshake(desk: McpStdioHarness, version: str) -> None:
    about = desk.open(version)
    assert about == {
        "protocolVersion": version,
        "serverInfo": {"name": "shop", "title": "Shop", "version": "1"},
        "capabilities": {"tools": {}, "resources": {"subscribe": True}, "prompts": {}},
        "instructions": "Buy.",
    }
    assert desk.request("ping") == {}
    assert len(desk.request("tools/list")["tools"]) == 10
    assert desk.request("server/discover")["code"] == -32601


def test_unknown_version_gets_the_newest_handshake(desk: McpStdioHarness) -> None:
    assert desk.open("2099-01-01")["protocolVersion"] == HANDSHAKE_VERSIONS[-1]


def test_requests_before_and_after_initialize(desk: McpStdioHarness) -> None:
    assert desk.request("ping") == {}
    assert desk.request("tools/list")["code"] == -32600
    assert desk.request("initialize", protocolVersion=1)["code"] == -32602
    desk.send(method="notifications/initialized")
    assert desk.request("tools/list")["code"] == -32600
    assert desk.request("initialize", protocolVersion="2024-11-05")["protocolVersion"] == "2024-11-05"
    assert desk.open("2025-06-18")["protocolVersion"] == "2025-06-18"
    assert desk.send(method="notifications/initialized") == []
    assert desk.request("initialize", protocolVersion="2025-11-25")["code"] == -32600


def test_stateless_requests(desk: McpStdioHarness) -> None:
    info = {"io.modelcontextprotocol/serverInfo": {"name": "shop", "title": "Shop", "version": "1"}}
    found = desk.request("server/discover", **modern())
    assert found == {
        "resultType": "complete",
        "supportedVersions": [STATELESS_VERSION, *HANDSHAKE_VERSIONS],
        "capabilities": {"tools": {}, "resources": {"subscribe": True}, "prompts": {}},
        "instructions": "Buy.",
        "ttlMs": 3_600_000,
        "cacheScope": "private",
        "_meta": info,
    }
    assert desk.request("tools/list", **modern())["ttlMs"] == 3_600_000
    assert desk.request("resources/read", **modern(uri="shop://sign"))["ttlMs"] == 0
    called = desk.request("tools/call", **modern(name="echo", arguments={"word": "hi"}))
    said = [{"type": "text", "text": "hi"}]
    assert called == {"resultType": "complete", "content": said, "isError": False, "_meta": info}
    for gone in ("initialize", "ping", "logging/setLevel"):
        assert desk.request(gone, **modern())["code"] == -32601


def test_incomplete_stateless_request(desk: McpStdioHarness) -> None:
    version = "io.modelcontextprotocol/protocolVersion"
    old = desk.request("tools/list", _meta={version: "2031-01-01"})
    assert old["code"] == -32022
    assert old["data"] == {"supported": [STATELESS_VERSION, *HANDSHAKE_VERSIONS], "requested": "2031-01-01"}
    assert desk.request("tools/list", _meta={version: STATELESS_VERSION})["code"] == -32602
    assert desk.request("tools/list", _meta="x")["code"] == -32600


# --- calls in progress ----------------------------------------------------------------------------------------------


def test_tool_bug_is_answered(desk: McpStdioHarness) -> None:
    desk.open()
    answer = desk.request("tools/call", name="break")
    assert answer["code"] == -32603
    assert answer["message"].startswith("internal error, reference ")


def test_refusal_is_answered_without_a_bug(desk: McpStdioHarness, shop: ToyMcpServer) -> None:
    def refuse() -> None:
        raise Refused(503, "shut", "the shop is shut")

    shop.on_begin = refuse
    desk.open()
    answer = desk.request("tools/call", name="echo")
    assert (answer["code"], answer["message"]) == (-32603, "the shop is shut")


def test_concurrent_and_sequential_calls(desk: McpStdioHarness, shop: ToyMcpServer) -> None:
    desk.open()
    for number, (name, word) in enumerate([("wait", "a"), ("turn", "b"), ("turn", "c"), ("wait", "d")]):
        assert desk.send(id=f"n{number}", method="tools/call", params={"name": name, "arguments": {"word": word}}) == []
    assert shop.done == ["a", "b", "d"]
    assert desk.request("ping") == {}
    (twice,) = desk.send(id="n0", method="ping")
    assert twice["error"]["code"] == -32600
    assert desk.end() == []
    assert not desk.is_closed
    assert desk.send(method="notifications/cancelled", params={"requestId": "n1"}) == []
    assert shop.done == ["a", "b", "d", "end of b", "c"]
    for wrong in (True, None, 5, "n1"):
        assert desk.send(method="notifications/cancelled", params={"requestId": wrong}) == []
    for number in (0, 2):
        desk.send(method="notifications/cancelled", params={"requestId": f"n{number}"})
    assert not desk.is_closed
    desk.send(method="notifications/cancelled", params={"requestId": "n3"})
    assert desk.is_closed


def test_waiting_call_does_not_begin_at_the_stop(desk: McpStdioHarness, shop: ToyMcpServer) -> None:
    desk.open()
    for word in ("a", "b", "c"):
        desk.send(id=word, method="tools/call", params={"name": "turn", "arguments": {"word": word}})
    assert shop.done == ["a"]
    desk.stop()
    assert shop.done == ["a", "end of a"]


def test_too_many_calls(desk: McpStdioHarness) -> None:
    desk.open()
    for number in range(MAX_CALLS):
        assert desk.send(id=f"n{number}", method="tools/call", params={"name": "wait"}) == []
    assert desk.request("ping")["code"] == -32000


def test_the_process_ends_with_the_client_or_the_host(shop: ToyMcpServer) -> None:
    for leave in (McpStdioHarness.end, McpStdioHarness.stop):
        desk = McpStdioHarness(shop.offer())
        desk.open()
        leave(desk)
        assert desk.is_closed
    desk = McpStdioHarness(shop.offer())
    desk.open()
    shop.done.clear()
    desk.send(id=1, method="tools/call", params={"name": "wait"})
    assert desk.stop() == []
    assert shop.done == [None, "end of None"]
    desk.closed()
    assert desk.exited


def test_progress(desk: McpStdioHarness) -> None:
    desk.open()
    params = {"name": "wait", "_meta": {"progressToken": "p"}}
    desk.send(id=1, method="tools/call", params=params)
    desk.send(id=2, method="tools/call", params={"name": "wait", "_meta": {"progressToken": True}})
    (first,) = desk.after(5.0)
    assert first["params"] == {"progressToken": "p", "progress": 5, "message": "waiting"}
    (second,) = desk.after(5.0)
    assert second["params"]["progress"] == 10
    desk.send(method="notifications/cancelled", params={"requestId": 1})
    assert desk.after(60.0) == []
    (told,) = desk.send(id="e", method="tools/call", params={"name": "echo", "_meta": {"progressToken": 7}})
    assert told["result"]["isError"] is False
    assert desk.after(60.0) == []


# --- elicitation --------------------------------------------------------------------------------------------------

PAY: dict[str, Any] = {"name": "pay", "arguments": {"word": "bread"}}
QUESTION = 'Pay? pay {"word":"bread"}\nIt costs money.'


@pytest.mark.parametrize(("action", "paid"), [("accept", True), ("decline", False), ("cancel", False), (None, False)])
def test_elicitation(desk: McpStdioHarness, shop: ToyMcpServer, action: str | None, paid: bool) -> None:
    desk.open("2025-06-18", ELICITS)
    (asked,) = desk.send(id=9, method="tools/call", params=PAY)
    assert (asked["method"], asked["params"]["message"]) == ("elicitation/create", QUESTION)
    assert asked["params"]["requestedSchema"] == {"type": "object", "properties": {}}
    assert desk.send(id="other", result={"action": "accept"}) == []
    answer = {"error": {"code": -1, "message": "no"}} if action is None else {"result": {"action": action}}
    (told,) = desk.send(id=asked["id"], **answer)
    assert told["id"] == 9
    assert told["result"]["isError"] is not paid
    assert shop.done == ([{"word": "bread"}] if paid else [])
    assert desk.send(id=asked["id"], **answer) == []


def test_elicitation_shows_the_whole_call(desk: McpStdioHarness, shop: ToyMcpServer) -> None:
    """Show the whole call unambiguously, and refuse one that is too long to be shown."""
    desk.open("2025-06-18", ELICITS)
    word = f"{'bread' * 100}\n\u202etwo"
    (asked,) = desk.send(id=1, method="tools/call", params={"name": "pay", "arguments": {"word": word}})
    assert asked["params"]["message"] == f'Pay? pay {{"word":"{"bread" * 100}\\n\\u202etwo"}}\nIt costs money.'
    (told,) = desk.send(id=2, method="tools/call", params={"name": "pay", "arguments": {"word": "x" * 8_000}})
    assert told["result"]["isError"] is True
    assert "too long to be shown" in told["result"]["content"][0]["text"]
    assert shop.done == []


def test_unanswered_elicitation(desk: McpStdioHarness, shop: ToyMcpServer) -> None:
    desk.open("2025-11-25", ELICITS)
    (asked,) = desk.send(id=1, method="tools/call", params=PAY)
    withdrawn, told = desk.after(ELICITATION_TIMEOUT)
    assert withdrawn["params"]["requestId"] == asked["id"]
    assert told["result"]["isError"] is True
    (asked,) = desk.send(id=2, method="tools/call", params=PAY)
    (withdrawn,) = desk.send(method="notifications/cancelled", params={"requestId": 2})
    assert withdrawn["params"]["requestId"] == asked["id"]
    assert shop.done == []


@pytest.mark.parametrize(("version", "capabilities"), [("2025-11-25", {}), ("2025-03-26", ELICITS)])
def test_client_without_elicitation(
    desk: McpStdioHarness, shop: ToyMcpServer, version: str, capabilities: Mapping[str, object]
) -> None:
    desk.open(version, capabilities)
    told = desk.request("tools/call", **PAY)
    assert told["isError"] is True
    assert told["content"][0]["text"].startswith("This needs the user's word")
    shop.asks_there = True
    assert desk.request("tools/call", **PAY)["isError"] is False
    assert shop.done == [{"word": "bread", "there": True}]


def test_stateless_elicitation(desk: McpStdioHarness, shop: ToyMcpServer) -> None:
    asked = desk.request("tools/call", **modern(ELICITS, **PAY))
    assert asked["resultType"] == "input_required"
    question = asked["inputRequests"]["confirm"]
    assert (question["method"], question["params"]["message"]) == ("elicitation/create", QUESTION)

    def again(action: str, call: Mapping[str, object] = PAY) -> Any:
        answers = {"confirm": {"action": action}}
        return desk.request(
            "tools/call", **modern(ELICITS, **call, inputResponses=answers, requestState=asked["requestState"])
        )

    other = again("accept", {"name": "pay", "arguments": {"word": "wine"}})
    assert other["resultType"] == "input_required"
    assert again("accept")["resultType"] == "input_required"  # a state is accepted once
    assert shop.done == []
    asked = desk.request("tools/call", **modern(ELICITS, **PAY))
    assert again("decline")["isError"] is True
    asked = desk.request("tools/call", **modern(ELICITS, **PAY))
    assert again("accept")["isError"] is False
    assert shop.done == [{"word": "bread"}]
    assert desk.request("tools/call", **modern(**PAY))["isError"] is True


def test_stateless_elicitations_are_limited(desk: McpStdioHarness, shop: ToyMcpServer) -> None:
    first = desk.request("tools/call", **modern(ELICITS, **PAY))
    later = [desk.request("tools/call", **modern(ELICITS, **PAY)) for _ in range(MAX_ASKED)]
    for asked, paid in ((first, False), (later[-1], True)):
        answers = {"confirm": {"action": "accept"}}
        params = modern(ELICITS, **PAY, inputResponses=answers, requestState=asked["requestState"])
        assert (desk.request("tools/call", **params)["resultType"] == "complete") is paid


def test_invalid_line(desk: McpStdioHarness) -> None:
    (answer,) = desk.bytes(b"{\n")
    assert (answer["error"]["code"], "id" in answer) == (-32700, True)
    assert desk.request("ping") == {}
