"""Pages for the browsers of OAuth clients."""

import pytest

from svc_proto.engine.page_language import LANGUAGES, PageTexts
from tests.relay.harness import RelayHarness
from tests.relay.oauth_client import OAuthTestClient


def test_client_name_is_escaped_on_pages(book: RelayHarness) -> None:
    app = OAuthTestClient(book, "<script>alert(1)</script>\u202e\x1b[2J")
    page = app.wait()
    shown = app.call("GET", page)
    assert b"&lt;script&gt;alert(1)&lt;/script&gt;" in shown.body
    assert b"<script" not in shown.body
    assert b'<link rel="icon" href="data:,">' in shown.body  # else the browser requests /favicon.ico
    policy = shown.headers.get(b"content-security-policy") or b""
    assert b"default-src 'none'" in policy
    assert b"frame-ancestors 'none'" in policy
    assert b"form-action 'none'" in policy
    assert shown.headers.get(b"referrer-policy") == b"no-referrer"
    assert app.question(app.word(page)).json["client_name"] == "<script>alert(1)</script> [2J"


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_are_in_the_language_of_the_browser(book: RelayHarness, language: str) -> None:
    app, texts = OAuthTestClient(book, "Claude & Co"), PageTexts(language)
    spoken = ((b"accept-language", language.encode()),)
    page = app.wait()
    waiting = app.call("GET", page, headers=spoken).body.decode()
    assert f'<html lang="{language}">' in waiting
    assert f"<h1>{texts.html('Waiting for the owner')}</h1>" in waiting
    assert f"<b>{texts.html('Allow an agent')}</b>" in waiting
    assert "Claude &amp; Co" in waiting
    assert texts.html("This question is over") in app.call("GET", "/oauth/wait/none", headers=spoken).body.decode()
    app.headers = spoken
    wrong = app.request_authorization(response_type="token").body.decode()
    assert texts.html("This cannot be asked") in wrong
    told = "response_type must be code"
    assert (told if language == "en" else f'<span lang="en">{told}</span>') in wrong
