"""The relay's `/mcp`: its features, access, and sessions that end with a withdrawn grant."""

from svc_proto.agent.tools.phone_tools import PHONE_TOOLS
from tests.mcp.http_harness import fields, message
from tests.relay.harness import REMOTE, PairedPhone, RelayHarness
from tests.relay.mcp_client import RelayMcpClient
from tests.relay.routes.media_harness import book as book
from tests.support.http_codec import Response


def test_features_are_offered_until_the_grant_is_withdrawn(agent: RelayMcpClient, book: RelayHarness) -> None:
    assert len(agent.request("tools/list")["tools"]) == len(PHONE_TOOLS)
    assert len(agent.request("resources/list")["resources"]) == 7
    assert len(agent.request("prompts/list")["prompts"]) == 3
    call = agent.tool("phone_ping")
    answer = book.request("PATCH", f"/sessions/{agent.paired.prefix}", {"grants": {"bridge": False}})
    assert answer.status == 200, answer
    assert call.result.status == 202
    assert len(book.relay.mcp.sessions) == 0


def test_access_to_mcp(book: RelayHarness) -> None:
    def met(token: str | None = None, **headers: str) -> Response:
        return book.request("POST", "/mcp", message("ping"), token=token, headers=fields(headers), peer=REMOTE)

    poor: PairedPhone = book.pair(operator={"grants": {"bridge": False}})
    anonymous, page = met(), met(origin="https://evil.example")
    assert (anonymous.status, anonymous.headers.get(b"www-authenticate")) == (401, b"Bearer")
    assert (page.status, page.json["code"]) == (403, "origin_not_allowed")
    rebound = book.request(
        "POST",
        "/mcp",
        message("ping"),
        token=poor.token,
        headers=fields({"origin": "http://evil.example"}),
        host=b"evil.example",
    )
    assert rebound.json["code"] == "origin_not_allowed"
    assert met(origin="http://127.0.0.1:8767").status == 401
    assert met(token=poor.token).json["code"] == "grant_required"
    assert met(token="guessed").headers.get(b"www-authenticate") == b"Bearer"
