"""What goes wrong with a vendor, in words that may be shown."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.engine.client import Fetched
from svc_proto.facts import Failure, FailureKind
from svc_proto.voice.providers.access import VendorAccess
from svc_proto.voice.providers.problems import broke_off, refused, safe_words, unreachable
from svc_proto.wire.events import Headers

KEY = "sk-abcdefghijklmnop"
ACCESS = VendorAccess("OpenAI", "https://api.example/v1", KEY)


def answer(status: int, body: bytes = b"", **headers: str) -> Fetched:
    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Fetched(status, Headers(fields), body)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (FailureKind.TIMED_OUT, "OpenAI did not answer in time"),
        (FailureKind.TOO_LARGE, "OpenAI sent more than is taken"),
        (FailureKind.INVALID, "OpenAI does not speak HTTP as it should, or its address is wrong"),
        (FailureKind.TLS, "OpenAI cannot be reached: tls"),
    ],
)
def test_no_answer(kind: FailureKind, words: str) -> None:
    assert str(unreachable(ACCESS, Failure(kind))) == words


def test_half_an_answer() -> None:
    assert "fell silent" in str(broke_off(ACCESS, Failure(FailureKind.TIMED_OUT)))
    assert "broke off" in str(broke_off(ACCESS, Failure(FailureKind.UNREACHABLE)))


@pytest.mark.parametrize(("status", "redirects"), [(299, False), (300, True), (399, True), (400, False)])
def test_which_answers_are_redirects(status: int, redirects: bool) -> None:
    assert ("redirects are not followed" in str(refused(ACCESS, answer(status)))) is redirects


@pytest.mark.parametrize("wait", ["", "soon", "-1", "1.5", "9999999", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_retry_after_that_is_no_number_of_seconds(wait: str) -> None:
    assert str(refused(ACCESS, answer(429, retry_after=wait))) == "OpenAI takes no more requests for now (429)"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"too much", ": too much"),
        (b" <html>", ""),
        (b'{"error": "cut', ""),
        (b'["cut', ""),
        (b'{"error": "x"}', ": x"),
    ],
)
def test_words_that_are_no_document(body: bytes, words: str) -> None:
    assert str(refused(ACCESS, answer(400, body))) == f"OpenAI answered 400{words}"


@pytest.mark.parametrize("shown", [KEY, KEY[:6], f"...{KEY[-6:]}", f"sk-{KEY[4:12]}***"])
def test_no_piece_of_the_key_is_quoted(shown: str) -> None:
    assert safe_words(f"bad key {shown}", KEY) == ""
    assert safe_words(f"bad key {KEY[:5]}", KEY) == f"bad key {KEY[:5]}"


@given(st.integers(300, 599), st.binary(max_size=100))
def test_whatever_an_error_says_it_is_one_line(status: int, body: bytes) -> None:
    words = str(refused(ACCESS, answer(status, body)))
    assert words.isprintable()
    assert len(words) < 400


@given(
    st.recursive(
        st.none() | st.text(max_size=9), lambda inner: st.lists(inner) | st.dictionaries(st.just("error"), inner)
    )
)
def test_whatever_shape_an_error_has(value: object) -> None:
    assert str(refused(ACCESS, answer(500, json.dumps(value).encode()))).startswith("OpenAI answered 500")
