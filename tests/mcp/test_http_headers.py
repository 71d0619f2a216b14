import pytest

from svc_proto.mcp.pending_request import STATELESS_VERSION
from tests.mcp.http_harness import HANDSHAKE, McpHttpHarness, message

PING = message("ping")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"accept": "application/json"}, 406),
        ({"accept": "text/event-stream"}, 406),
        ({"accept": None}, 400),  # any type is accepted; the id of the session is missing
        ({"content-type": "text/plain"}, 415),
        ({"content-type": None}, 415),
        ({}, 400),
        ({"mcp-session-id": "0" * 32}, 404),
        ({"accept": "application/*;q=1, text/*"}, 400),
        ({"accept": "*/*", "content-type": "Application/JSON; charset=utf-8"}, 400),
        ({"mcp-protocol-version": "2031-01-01"}, 400),
    ],
)
def test_refused_headers(web: McpHttpHarness, headers: dict[str, str | None], status: int) -> None:
    assert web.post(PING, headers).status == status


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"mcp-protocol-version": None}, -32020),
        ({"mcp-protocol-version": HANDSHAKE}, -32020),
        *((headers, -32020) for headers in ({"mcp-method": None}, {"mcp-method": "tools/list"}, {"mcp-name": None})),
        ({"mcp-name": "pay"}, -32020),
        ({"mcp-name": "=?base64?ZWNobx==?="}, -32020),
        ({"mcp-name": "=?base64?/w==?="}, -32020),
        ({"mcp-name": "=?base64?!?="}, -32020),
        ({"Mcp-Method": "tools/call"}, -32020),
        ({"Accept": "application/json, text/event-stream"}, 0),
        ({"mcp-name": "=?base64?ZWNobw==?="}, 0),
    ],
)
def test_head_and_body_agree(web: McpHttpHarness, headers: dict[str, str | None], code: int) -> None:
    answer = web.stateless("tools/call", headers, name="echo").result
    assert answer.json.get("error", {}).get("code", 0) == code
    assert answer.status == (400 if code else 200)


def test_incomplete_stateless_request(web: McpHttpHarness) -> None:
    head = {"mcp-protocol-version": STATELESS_VERSION, "mcp-method": "tools/list"}
    version = {"io.modelcontextprotocol/protocolVersion": STATELESS_VERSION}
    can: dict[str, object] = {"io.modelcontextprotocol/clientCapabilities": {}}
    for meta in ({}, version, can):
        answer = web.post(message("tools/list", _meta=meta), head)
        assert (answer.status, answer.json["error"]["code"], answer.json["id"]) == (400, -32602, 1)


def test_notifications_and_answers_without_a_session(web: McpHttpHarness) -> None:
    note = message("notifications/cancelled", None, requestId=1)
    assert web.post(note, {"mcp-protocol-version": STATELESS_VERSION}).status == 202
    assert web.post(note, {"mcp-protocol-version": "2031-01-01"}).json["error"]["code"] == -32022
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert web.post(answer, {"mcp-protocol-version": STATELESS_VERSION}).json["error"]["code"] == -32600
