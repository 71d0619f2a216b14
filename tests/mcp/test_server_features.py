from functools import partial

from attrs import evolve

from svc_proto.basics.errors import ToolError
from tests.mcp.stdio_harness import McpStdioHarness, ToyMcpServer


def test_tools(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    peer.open()
    listed = {tool["name"]: tool for tool in peer.request("tools/list")["tools"]}
    assert (listed["echo"]["title"], listed["echo"]["description"]) == ("Echo", "echo")
    assert listed["echo"]["inputSchema"]["properties"] == {"word": {"type": "string"}}
    hints = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": True}
    assert listed["echo"]["annotations"] == {"title": "Echo", **hints}
    assert peer.request("tools/list", cursor="x")["code"] == -32602
    assert peer.request("tools/call", name="echo")["content"] == [{"type": "text", "text": "None"}]
    failed = peer.request("tools/call", name="fail", arguments={})
    assert failed == {"content": [{"type": "text", "text": "no bread"}], "isError": True}
    wrong = peer.request("tools/call", name="echo", arguments={"word": []})
    assert wrong == {"content": [{"type": "text", "text": "the argument word must be a string"}], "isError": True}
    assert peer.request("tools/call", name="nope")["code"] == -32602
    assert peer.request("tools/call", name=5)["code"] == -32602
    assert peer.request("tools/call", name="echo", arguments=[])["code"] == -32602
    assert peer.request("nope")["code"] == -32601
    assert peer.request("tools/call", name="weigh", arguments={"word": "flour"}) == {
        "content": [{"type": "text", "text": '{"grams":7,"of":"flour"}'}],
        "structuredContent": {"grams": 7, "of": "flour"},
        "isError": False,
    }


def test_deferred_tool(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    peer.open()
    assert peer.send(id="a", method="tools/call", params={"name": "ring", "arguments": {"word": "Ann"}}) == []
    assert peer.send(id="b", method="tools/call", params={"name": "ring", "arguments": {"word": "Bob"}}) == []
    told = [*peer.act(partial(shop.ringing[1], "out")), *peer.act(partial(shop.ringing[0], "in"))]
    answers = [(each["id"], each["result"]["content"][0]["text"]) for each in told]
    assert answers == [("b", "Bob: out"), ("a", "Ann: in")]
    assert shop.ringing[0]("again") is False
    peer.send(id="c", method="tools/call", params={"name": "ring", "_meta": {"progressToken": "p"}})
    (answer,) = peer.act(partial(shop.ringing[2], "in"))
    assert (answer["id"], peer.after(60.0), peer.engine.next_deadline()) == ("c", [], None)  # no further progress
    absent = peer.request("tools/call", name="ring", arguments={"word": "absent"})
    assert absent["content"][0]["text"] == "absent: absent"
    for name in ("ring", "knock"):
        shut = peer.request("tools/call", name=name, arguments={"word": "shut"})
        assert shut == {"content": [{"type": "text", "text": "it is shut"}], "isError": True}
    for number in range(2):
        assert peer.send(id=f"n{number}", method="tools/call", params={"name": "ring"}) == []
    (failed,) = peer.act(partial(shop.ringing[3], ToolError("no key")))
    (broken,) = peer.act(partial(shop.ringing[4], ZeroDivisionError()))
    assert failed["result"] == {"content": [{"type": "text", "text": "no key"}], "isError": True}
    assert (broken["error"]["code"], peer.request("ping")) == (-32603, {})


def test_deferred_tools_in_order(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    peer.open()
    for number, word in enumerate("abcd"):
        params = {"name": "turn" if word == "c" else "knock", "arguments": {"word": word}}
        assert peer.send(id=f"n{number}", method="tools/call", params=params) == []
    assert shop.done == ["a"]
    (first,) = peer.act(partial(shop.ringing[0], "in"))
    assert (first["id"], shop.done) == ("n0", ["a", "b"])
    (second,) = peer.act(partial(shop.ringing[1], "in"))
    assert (second["id"], shop.done) == ("n1", ["a", "b", "c"])
    assert peer.send(method="notifications/cancelled", params={"requestId": "n2"}) == []
    assert shop.done[2:] == ["c", "end of c", "d"]
    assert peer.send(method="notifications/cancelled", params={"requestId": "n3"}) == []
    assert peer.send(id="e", method="tools/call", params={"name": "knock", "arguments": {"word": "e"}}) == []
    assert peer.send(method="notifications/cancelled", params={"requestId": "e"}) == []
    assert [tell("in") for tell in shop.ringing[2:]] == [False, False]
    assert peer.request("tools/call", name="knock", arguments={"word": "shut"})["isError"] is True
    absent = peer.request("tools/call", name="knock", arguments={"word": "absent"})
    assert absent["content"][0]["text"] == "absent: absent"  # the failed one does not block it


def test_deferred_tool_with_elicitation(peer: McpStdioHarness, shop: ToyMcpServer) -> None:
    peer.open()
    assert peer.request("tools/call", name="call", arguments={"word": "Ann"})["isError"] is True
    shop.asks_there = True
    assert peer.send(id="a", method="tools/call", params={"name": "call", "arguments": {"word": "Ann"}}) == []
    assert peer.act(partial(shop.ringing[0], "in"))[0]["result"]["isError"] is False
    said = peer.request("tools/call", name="call", arguments={"word": "absent"})["content"]
    assert said == [{"type": "text", "text": "absent: absent"}]


def test_read_only_client_has_reading_tools_only(shop: ToyMcpServer) -> None:
    peer = McpStdioHarness(evolve(shop.offer(), may_act=lambda: False))
    peer.open()
    assert peer.request("tools/list")["tools"] == []
    assert "may only look" in peer.request("tools/call", name="echo")["content"][0]["text"]
    assert shop.done == []


def test_resources(peer: McpStdioHarness) -> None:
    peer.open()
    kinds = {"sign": "text/plain", "photo": "image/png", "shut": "text/plain"}
    assert peer.request("resources/list")["resources"] == [
        {"uri": f"shop://{name}", "name": name, "description": name, "mimeType": kind} for name, kind in kinds.items()
    ]
    assert peer.request("resources/templates/list") == {"resourceTemplates": []}
    sign = {"uri": "shop://sign", "mimeType": "text/plain", "text": "open"}
    assert peer.request("resources/read", uri="shop://sign") == {"contents": [sign]}
    photo = {"uri": "shop://photo", "mimeType": "image/png", "blob": "iVBORw=="}
    assert peer.request("resources/read", uri="shop://photo") == {"contents": [photo]}
    shut = peer.request("resources/read", uri="shop://shut")
    assert (shut["message"], shut["data"]) == ("it is shut", {"uri": "shop://shut"})
    for uri in ("shop://nope", 5):
        assert peer.request("resources/read", uri=uri)["data"] == {"uri": str(uri)}


def test_prompts(peer: McpStdioHarness) -> None:
    peer.open()
    (listed,) = peer.request("prompts/list")["prompts"]
    assert (listed["name"], listed["description"]) == ("buy", "b")
    assert listed["arguments"] == [{"name": name, "description": "", "required": True} for name in ("what", "who")]
    filled = peer.request("prompts/get", name="buy", arguments={"what": "{who}", "who": "Ann"})
    assert filled["messages"] == [{"role": "user", "content": {"type": "text", "text": "Buy {who} for Ann."}}]
    assert peer.request("prompts/get", name="buy", arguments={"what": "tea"})["code"] == -32602
    assert peer.request("prompts/get", name="buy", arguments=[])["code"] == -32602
    assert peer.request("prompts/get", name=[])["code"] == -32602
    assert peer.request("prompts/get")["code"] == -32602
