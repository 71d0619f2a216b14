import re

import pytest

from svc_proto.facts import ReadClosed
from svc_proto.mcp.pending_request import STATELESS_VERSION
from svc_proto.mcp.streamable_http import STREAM_AFTER
from svc_proto.schema.mcp_messages import HANDSHAKE_VERSIONS
from tests.mcp.http_harness import McpHttpHarness, message, status, stream_messages
from tests.mcp.stdio_harness import ELICITS
from tests.relay.harness import REMOTE

PING = message("ping")


@pytest.mark.parametrize(
    ("body", "code"), [(b"{", -32700), ([PING], -32600), ({"id": 1, "method": "ping"}, -32600), (b"\xff", -32700)]
)
def test_invalid_messages(web: McpHttpHarness, body: object, code: int) -> None:
    answer = web.post(body)
    assert (answer.status, answer.json["error"]["code"]) == (400, code)


def test_a_stateless_request(web: McpHttpHarness) -> None:
    found = web.stateless("server/discover").result
    assert found.headers.get(b"mcp-session-id") is None
    assert found.json["result"]["supportedVersions"] == [STATELESS_VERSION, *HANDSHAKE_VERSIONS]
    called = web.stateless("tools/call", name="echo", arguments={"word": "hi"}).result
    assert called.json["result"]["content"] == [{"type": "text", "text": "hi"}]
    assert called.headers.get(b"content-type") == b"application/json"
    assert web.stateless("resources/read", uri="shop://sign").result.status == 200
    missing = web.stateless("nope").result
    assert (missing.status, missing.json["error"]["code"]) == (404, -32601)
    assert web.stateless("tools/call", {"mcp-name": "5"}, name="5").result.status == 400
    assert len(web.server.sessions) == 0


def test_disconnect_cancels_a_stateless_call(web: McpHttpHarness) -> None:
    early, late = [web.stateless("tools/call", name="wait", arguments={"word": word}) for word in "ab"]
    early.vanish()
    assert web.shop.done == ["a", "b", "end of a"]  # although both have the same id
    assert status(late) == 0
    web.book.after(STREAM_AFTER)
    assert len(web.server._waiting) == 0
    assert status(late) == 200
    late.vanish()
    assert web.shop.done[3:] == ["end of b"]


def test_half_close_counts_as_disconnect(web: McpHttpHarness) -> None:
    call = web.stateless("tools/call", name="wait", arguments={"word": "a"})
    web.book.feed(ReadClosed(call.ch))
    assert (call.aborted, web.shop.done) == (True, ["a", "end of a"])
    session = web.open()
    listening = session.listen()
    web.book.feed(ReadClosed(listening.ch))
    assert listening.aborted
    asked = web.call("POST", message("ping"))
    web.book.feed(ReadClosed(asked.ch))
    assert asked.result.status == 400


def test_a_session(web: McpHttpHarness) -> None:
    session = web.open()
    assert len(session.identity) == 32
    tools = session.post(message("tools/list", "x"))
    assert (tools.status, tools.json["id"], len(tools.json["result"]["tools"])) == (200, "x", 10)
    unknown = session.post(message("nope"))
    assert (unknown.status, unknown.json["error"]["code"]) == (200, -32601)
    assert session.end() == 204
    for method in ("DELETE", "GET", "POST"):
        assert session.call(method, PING if method == "POST" else None).result.status == 404
    assert web.book.leaks() == []


def test_concurrent_and_cancelled_calls(web: McpHttpHarness) -> None:
    session = web.open()
    calls = [session.tool("wait", number, word=str(number)) for number in range(2)]
    twice = session.tool("wait", 1).result
    assert (twice.status, twice.json["error"]["code"], twice.json["id"]) == (400, -32600, 1)
    assert session.cancel(0) == 202
    assert (calls[0].result.status, calls[0].result.body) == (202, b"")
    assert status(calls[1]) == 0
    calls[1].vanish()
    assert web.shop.done == ["0", "1", "end of 0"]  # a disconnect does not cancel
    session.end()
    assert web.shop.done[-1] == "end of 1"


def test_revoked_principal_loses_sessions_and_calls(web: McpHttpHarness) -> None:
    other = web.book.pair().token
    theirs = web.open(token=other)
    session = web.open()
    waiting, listening = session.tool("wait", 1, word="a"), session.listen()
    told = session.tool("wait", 2, token="p", word="b")
    web.book.after(STREAM_AFTER)
    alone = web.stateless("tools/call", name="wait", arguments={"word": "c"})
    gone = web.book.request("DELETE", f"/sessions/{web.token[:8]}", token=web.token, peer=REMOTE)
    assert gone.status == 200
    assert (alone.result.status, listening.aborted, told.aborted, waiting.aborted) == (401, True, True, True)
    assert sorted(map(str, web.shop.done)) == ["a", "b", "c", "end of a", "end of b", "end of c"]
    assert len(web.server._answers) == 1  # also what was stored for them
    assert session.post(PING).status == 401
    assert theirs.post(PING).status == 200


def test_the_process_ends(web: McpHttpHarness) -> None:
    session = web.open()
    other = web.open(ELICITS)
    assert other.request("resources/subscribe", uri="shop://sign") == {}
    listening = session.listen()
    call = session.tool("knock", 1, word="a")
    others = [session.tool("knock", 2, word="b"), other.tool("call", 3, word="c")]
    web.book.after(STREAM_AFTER)
    web.book.stop()
    assert re.fullmatch(rb"retry: \d+\n\n", listening.result.body)  # after a random time
    assert stream_messages(others[1])[-1]["result"]["isError"] is True  # the user can answer no more
    assert call.answer is None
    assert len(web.server.sessions) == 1
    web.book.within(lambda: web.shop.ringing.pop()("x"))
    assert stream_messages(call)[-1]["result"]["isError"] is False
    assert len(web.server.sessions) == 1
    web.book.within(lambda: web.shop.ringing.pop()("y"))
    assert stream_messages(others[0])[-1]["result"]["isError"] is False
    assert len(web.server.sessions) == 0
