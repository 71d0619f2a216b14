"""The viewer page permits only its own script and style; tests/browser/test_documents.py runs it."""

import json
import re
from base64 import b64decode
from hashlib import sha256
from html import unescape

import pytest

from svc_proto.api.config import ApiConfig
from svc_proto.openapi.viewer_page import PAGES
from tests.api.harness import KEY, ApiHarness
from tests.relay.harness import RelayHarness

PAGE = PAGES["en"]
TEXT = PAGE.body.decode()


@pytest.mark.parametrize("name", ["script", "style"])
def test_policy_has_the_hashes_of_the_page(name: str) -> None:
    policy = dict(PAGE.policy)[b"content-security-policy"].decode()
    (digest,) = re.findall(f"{name}-src 'sha256-([^']+)'", policy)
    (inline,) = re.findall(f"<{name}>(.*?)</{name}>", TEXT, re.DOTALL)
    assert b64decode(digest) == sha256(inline.encode()).digest()
    assert "unsafe" not in policy


def test_words_of_the_script() -> None:
    (words,) = re.findall('data-words="([^"]*)"', TEXT)
    patterns = {"found": "{count} found", "problem": "Not there: {reason}"}
    assert json.loads(unescape(words)) == {"request": "Request", "answers": "Answers", "shapes": "Shapes", **patterns}


def test_page_makes_no_other_request_and_no_markup() -> None:
    assert '<link rel="icon" href="data:,">' in TEXT  # else browsers request /favicon.ico
    assert re.findall(r"https?:|//\w|@import|url\(", TEXT) == []
    assert re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|new Function", TEXT) == []
    assert re.findall(r"fetch\(([^)]*)\)", TEXT) == ['"openapi.json"']


def test_page_has_one_content_security_policy() -> None:
    for book in (ApiHarness(ApiConfig(key=KEY)), RelayHarness()):
        answer = book.request("GET", "/docs")
        policies = answer.headers.all(b"content-security-policy")
        assert policies == [dict(PAGE.policy)[b"content-security-policy"]]
        assert answer.headers.get(b"x-content-type-options") == b"nosniff"


def test_page_is_in_the_language_of_the_reader_and_caches_know_it() -> None:
    book = RelayHarness()
    answer = book.request("GET", "/docs", headers=[(b"accept-language", b"fr")])
    assert answer.body == PAGES["fr"].body
    assert b'<html lang="fr">' in answer.body
    assert b'"R\\u00e9ponses' not in answer.body
    assert "Réponses".encode() in answer.body
    assert set(answer.headers.tokens(b"vary")) == {b"accept-encoding", b"accept-language", b"cookie"}
    assert len({each.tag for each in PAGES.values()}) == len(PAGES)
    policies = {dict(each.policy)[b"content-security-policy"] for each in PAGES.values()}
    assert policies == {dict(PAGE.policy)[b"content-security-policy"]}
