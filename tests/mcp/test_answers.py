"""What a client gets of an offer."""

from __future__ import annotations

from attrs import evolve

from tests.mcp.desk import Desk, Shop


def test_tools(desk: Desk, shop: Shop) -> None:
    desk.open()
    listed = {tool["name"]: tool for tool in desk.ask("tools/list")["tools"]}
    assert listed["echo"]["inputSchema"]["properties"] == {"word": {"type": "string"}}
    assert listed["echo"]["annotations"]["readOnlyHint"] is False
    assert desk.ask("tools/list", cursor="x")["code"] == -32602
    assert desk.ask("tools/call", name="echo")["content"] == [{"type": "text", "text": "None"}]
    failed = desk.ask("tools/call", name="fail", arguments={})
    assert failed == {"content": [{"type": "text", "text": "no bread"}], "isError": True}
    wrong = desk.ask("tools/call", name="echo", arguments={"word": []})
    assert wrong == {"content": [{"type": "text", "text": "the argument word must be a string"}], "isError": True}
    assert desk.ask("tools/call", name="nope")["code"] == -32602
    assert desk.ask("tools/call", name=5)["code"] == -32602
    assert desk.ask("tools/call", name="echo", arguments=[])["code"] == -32602
    assert desk.ask("nope")["code"] == -32601


def test_an_object_is_told_as_text_and_as_itself(desk: Desk) -> None:
    desk.open()
    assert desk.ask("tools/call", name="weigh", arguments={"word": "flour"}) == {
        "content": [{"type": "text", "text": '{"grams":7,"of":"flour"}'}],
        "structuredContent": {"grams": 7, "of": "flour"},
        "isError": False,
    }


def test_who_may_not_act_has_tools_that_look(shop: Shop) -> None:
    desk = Desk(evolve(shop.offer(), may_act=lambda: False))
    desk.open()
    assert desk.ask("tools/list")["tools"] == []
    assert "may only look" in desk.ask("tools/call", name="echo")["content"][0]["text"]
    assert shop.done == []


def test_resources(desk: Desk) -> None:
    desk.open()
    assert [each["uri"] for each in desk.ask("resources/list")["resources"]] == [
        "shop://sign",
        "shop://photo",
        "shop://shut",
    ]
    assert desk.ask("resources/templates/list") == {"resourceTemplates": []}
    sign = {"uri": "shop://sign", "mimeType": "text/plain", "text": "open"}
    assert desk.ask("resources/read", uri="shop://sign") == {"contents": [sign]}
    photo = {"uri": "shop://photo", "mimeType": "image/png", "blob": "iVBORw=="}
    assert desk.ask("resources/read", uri="shop://photo") == {"contents": [photo]}
    shut = desk.ask("resources/read", uri="shop://shut")
    assert (shut["message"], shut["data"]) == ("it is shut", {"uri": "shop://shut"})
    for uri in ("shop://nope", 5):
        assert desk.ask("resources/read", uri=uri)["data"] == {"uri": str(uri)}


def test_prompts(desk: Desk) -> None:
    desk.open()
    (listed,) = desk.ask("prompts/list")["prompts"]
    assert [argument["name"] for argument in listed["arguments"]] == ["what", "who"]
    filled = desk.ask("prompts/get", name="buy", arguments={"what": "{who}", "who": "Ann"})
    assert filled["messages"][0]["content"]["text"] == "Buy {who} for Ann."
    assert desk.ask("prompts/get", name="buy", arguments={"what": "tea"})["code"] == -32602
    assert desk.ask("prompts/get", name="buy", arguments=[])["code"] == -32602
    assert desk.ask("prompts/get", name=[])["code"] == -32602
    assert desk.ask("prompts/get")["code"] == -32602
