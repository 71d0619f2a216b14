import json
from math import nan
from typing import Any, cast

import pytest

from svc_proto.mcp.pending_request import OutgoingMessage, _Progress
from tests.engine.toy_service import open_book
from tests.mcp.http_harness import McpHttpHarness, stream_messages
from tests.mcp.stdio_harness import McpStdioHarness, ToyMcpServer, modern


def test_non_json_result_is_a_bug(peer: McpStdioHarness) -> None:
    handlers = cast("dict[str, Any]", peer.server._conversation._answers.handlers)
    handlers["odd"] = lambda params, call: {"weight": nan}
    peer.book.logs.bugs = True
    assert peer.request("odd", **modern())["code"] == -32603
    assert peer.request("tools/list", **modern())["resultType"] == "complete"


@pytest.mark.parametrize(("name", "done"), [("echo", [{"word": "x"}]), ("wait", ["x", "end of x"]), ("ring", ["x"])])
def test_tool_that_closes_its_client(peer: McpStdioHarness, shop: ToyMcpServer, name: str, done: list[object]) -> None:
    peer.open()
    conversation = peer.server._conversation
    shop.on_begin = conversation.close
    assert peer.send(id="a", method="tools/call", params={"name": name, "arguments": {"word": "x"}}) == []
    assert (shop.done, conversation.busy) == (done, False)
    assert [tell("in") for tell in shop.ringing] == [False] * len(shop.ringing)


def test_stateless_progress(web: McpHttpHarness) -> None:
    params = {"name": "ring", "arguments": {"word": "Ann"}}
    call = web.call("POST", _asking_for_progress(params), _HEAD)
    web.book.after(5.0)
    web.book.after(5.0)
    web.book.within(lambda: web.shop.ringing[0]("in"))
    first, second, answer = stream_messages(call)
    assert first["method"] == second["method"] == "notifications/progress"
    assert (first["params"]["progress"], second["params"]["progress"]) == (5, 10)
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (1, "Ann: in")
    assert call.answer is not None
    web.book.after(60.0)
    assert web.book.leaks() == []


def test_progress_always_rises() -> None:
    """Progress rises with each notification, also if no time has passed since the one before (MCP specification)."""
    book, said = open_book(), list[OutgoingMessage]()
    made: list[_Progress] = []
    book.act(lambda: made.append(_Progress(book.engine, "p", said.append)))
    for seconds, times in ((0.0, 2), (1.0, 1), (3.4, 1)):
        book.after(seconds)
        for _ in range(times):
            book.act(lambda: made[0].report("so far"))
    book.after(0.6)
    notes = [json.loads(each.text)["params"] for each in said]
    assert [(note["progress"], note["message"]) for note in notes] == [
        *((progress, "so far") for progress in (1, 2, 3, 4)),
        (5, "waiting"),
    ]
    assert {note["progressToken"] for note in notes} == {"p"}


def test_disconnected_client_gets_no_progress(web: McpHttpHarness) -> None:
    call = web.call("POST", _asking_for_progress({"name": "knock"}), _HEAD)
    call.vanish()
    assert web.shop.ringing[0]("in") is False
    other = web.call("POST", _asking_for_progress({"name": "knock"}), _HEAD)
    assert len(web.shop.ringing) == 2  # a slot is free
    web.book.after(5.0)
    other.vanish()
    assert web.shop.ringing[1]("in") is False
    web.book.after(60.0)
    assert web.book.leaks() == []


_HEAD = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}


def _asking_for_progress(params: dict[str, Any]) -> dict[str, object]:
    _HEAD["mcp-name"] = params["name"]
    about = modern(None, **params)
    meta = {**cast("dict[str, object]", about["_meta"]), "progressToken": "p"}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**about, "_meta": meta}}
