import pytest

from svc_proto.mcp.http_sessions import IDLE, MAX_PER_PRINCIPAL, MAX_SESSIONS, MAX_STORED_BYTES
from svc_proto.mcp.pending_request import STATELESS_VERSION
from svc_proto.mcp.streamable_http import STREAM_AFTER
from tests.mcp.http_harness import HANDSHAKE, McpHttpHarness, McpHttpSession, message, status, stream_messages
from tests.mcp.stdio_harness import ELICITS
from tests.support.http_harness import HttpCall

PING = message("ping")


def test_requests_that_open_no_session(web: McpHttpHarness) -> None:
    answer = web.post(message("initialize", protocolVersion=5))
    assert (answer.status, answer.json["error"]["code"]) == (400, -32602)
    assert len(web.server.sessions) == 0
    for method in ("GET", "DELETE"):
        assert web.call(method).result.status == 400
        modern = web.call(method, headers={"mcp-protocol-version": STATELESS_VERSION}).result
        assert (modern.status, modern.headers.get(b"allow")) == (405, b"POST")
        assert web.call(method, headers={"mcp-protocol-version": "1"}).result.status == 400
    assert web.call("PUT", b"x").result.status == 405


def test_session_of_another_bearer_is_not_found(web: McpHttpHarness) -> None:
    session, other = web.open(), web.open(token=web.book.pair().token)
    assert session.identity in web.server.sessions
    assert "another" not in web.server.sessions
    other.headers = session.headers
    assert (other.post(PING).status, other.end()) == (404, 404)
    assert session.post(PING).status == 200


def pay(session: McpHttpSession, number: int, word: str) -> HttpCall:
    """Call a tool that needs an approval, accept its elicitation, and return the call."""
    (asked,) = stream_messages(call := session.tool("pay", number, word=word))
    assert asked["method"] == "elicitation/create"
    assert session.post({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}).status == 202
    return call


def test_stored_answers_are_limited(web: McpHttpHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_STORED_BYTES > 4096
    monkeypatch.setattr("svc_proto.mcp.http_sessions.MAX_STORED_BYTES", 4096)
    session = web.open(ELICITS)
    word = "x" * 1024
    for number in range(1, 19):
        call = pay(session, number, word)
        assert (stream_messages(call)[-1]["result"]["isError"], call.answer is not None) == (False, True)
    assert session.listen("1-1").result.status == 400
    assert stream_messages(session.listen("18-1"))[0]["id"] == 18
    assert web.server.sessions.kept > 1024
    later = web.open(ELICITS)
    for number in range(1, 5):
        pay(later, number, word)
    assert session.listen("18-0").result.status == 400  # the oldest ones of all sessions are dropped
    later.tool("wait", token="p")
    web.book.after(STREAM_AFTER)  # its stream is under way, with a message
    for each in (session, later):
        each.end()
    assert web.server.sessions.kept == 0


@pytest.mark.parametrize("limit", ["MAX_STORED_BYTES", "MAX_SESSIONS"])  # bytes of answers; answers
def test_answer_of_exactly_the_limit_is_stored(
    web: McpHttpHarness, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    session, word = web.open(ELICITS), "x" * 1024
    pay(session, 1, word)
    one = web.server.sessions.kept
    monkeypatch.setattr(f"svc_proto.mcp.http_sessions.{limit}", 2 * one if limit == "MAX_STORED_BYTES" else 2)
    pay(session, 2, word)
    assert web.server.sessions.kept == 2 * one
    pay(session, 3, word)
    assert web.server.sessions.kept == 2 * one


def test_an_idle_session_ends(web: McpHttpHarness) -> None:
    used, hearing, idle = web.open(), web.open(), web.open()
    listening = hearing.listen()
    web.book.after(IDLE - 60)
    assert used.post(PING).status == 200
    web.book.after(60)
    assert [session.post(PING).status for session in (used, hearing, idle)] == [200, 200, 404]
    listening.vanish()
    web.book.after(2 * IDLE)
    assert len(web.server.sessions) == 0


def test_limit_of_one_caller_ends_no_session_of_another(web: McpHttpHarness) -> None:
    first = web.open(token=web.book.pair().token)
    (session,) = web.server.sessions._sessions.values()
    mine = [web.open() for _ in range(MAX_PER_PRINCIPAL)]
    mine[0].listen()
    web.open()
    assert [each.post(PING).status for each in (first, *mine[:3])] == [200, 200, 404, 200]  # a listener goes last
    web.book.within(lambda: web.server.close_principal_sessions(session.caller))
    assert [each.post(PING).status for each in (first, mine[0])] == [404, 200]


def test_idle_sessions_are_evicted(web: McpHttpHarness) -> None:
    busy = web.open()
    busy.tool("wait")
    idle = web.open()
    sessions = [web.open() for _ in range(MAX_PER_PRINCIPAL - 1)]
    assert busy.post(PING).status == 200
    assert idle.post(PING).status == 404
    for session in sessions:
        session.listen()
    web.book.after(1.0)  # uses within one second count as equal
    sessions[0].post(PING)
    sessions = [*sessions[2:], sessions[0], web.open()]  # the longest silent listener is removed
    for session in sessions:
        assert status(session.tool("wait")) == 0
    assert web.post(message("initialize", protocolVersion=HANDSHAKE)).status == 429


def test_total_session_limit(web: McpHttpHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_SESSIONS > MAX_PER_PRINCIPAL
    monkeypatch.setattr("svc_proto.mcp.http_sessions.MAX_SESSIONS", 2)
    first, _ = web.open(), web.open()
    mine = web.open(token=web.book.pair().token)
    assert first.post(PING).status == 404
    assert len(web.server.sessions) == 2
    for session in (mine, web.open()):
        session.tool("wait")
    assert web.post(message("initialize", protocolVersion=HANDSHAKE)).status == 503
