"""Pages for the browsers of OAuth clients."""

from __future__ import annotations

from tests.relay.harness import RelayHarness
from tests.relay.oauth_client import OAuthTestClient


def test_client_name_is_escaped_on_pages(book: RelayHarness) -> None:
    app = OAuthTestClient(book, "<script>alert(1)</script>\u202e\x1b[2J")
    page = app.wait()
    shown = app.call("GET", page)
    assert b"&lt;script&gt;alert(1)&lt;/script&gt;" in shown.body
    assert b"<script" not in shown.body
    policy = shown.headers.get(b"content-security-policy") or b""
    assert b"default-src 'none'" in policy
    assert b"frame-ancestors 'none'" in policy
    assert b"form-action 'none'" in policy
    assert shown.headers.get(b"referrer-policy") == b"no-referrer"
    assert app.question(app.word(page)).json["client_name"] == "<script>alert(1)</script> [2J"
