"""Access to the API's `/mcp`, and requests for an ended session."""

from __future__ import annotations

import pytest

from svc_proto.api.config import ApiConfig
from tests.api.harness import ApiHarness
from tests.mcp.http_harness import McpHttpSession, fields


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_access_to_mcp(method: str) -> None:
    book = ApiHarness()
    assert book.call(method, "/mcp", key="", headers=fields()).result.status == 401
    assert book.call(method, "/mcp", headers=fields({"origin": "https://evil.example"})).result.status == 403
    assert book.api._mcp is None


def test_without_key_mcp_refuses_rebound_names() -> None:
    book = ApiHarness(ApiConfig())
    assert McpHttpSession(book).identity
    book.host_name = b"evil.example"  # a page under DNS rebinding
    assert book.call("POST", "/mcp", {}, headers=fields()).result.status == 403


def test_ended_session_is_not_found() -> None:
    book = ApiHarness()
    session = McpHttpSession(book)
    assert session.end() == 204
    assert session.listen().result.status == 404
