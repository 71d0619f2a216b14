"""The door of the API's `/mcp` is that of its other routes."""

from __future__ import annotations

import pytest

from svc_proto.api.config import ApiConfig
from tests.api.test_mcp_agent import TYPES, Client
from tests.api.world import ApiBook


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_who_may(method: str) -> None:
    book = ApiBook()
    assert book.call(method, "/mcp", key="", headers=TYPES).result.status == 401
    page = [*TYPES, (b"origin", b"https://evil.example")]
    assert book.call(method, "/mcp", headers=page).result.status == 403
    assert book.api._mcp is None


def test_without_a_key_it_is_this_networks() -> None:
    book = ApiBook(ApiConfig())
    assert Client(book).session
    book.host_name = b"evil.example"  # a page whose name was made to point here
    assert book.call("POST", "/mcp", {}, headers=TYPES).result.status == 403


def test_an_end() -> None:
    book = ApiBook()
    client = Client(book)
    headers = [*TYPES, (b"mcp-session-id", client.session)]
    assert book.call("DELETE", "/mcp", headers=headers).result.status == 204
    assert book.call("GET", "/mcp", headers=headers).result.status == 404
