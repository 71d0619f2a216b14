"""Tests of the user's own words in sentences: no word is lost, and no word of the request is added to them."""

import re
from itertools import product

import pytest

from runtimes.sentences.parser import LANGUAGES
from runtimes.sentences.suggestions import words_of
from tests.runtimes.test_sentences import EACH_LANGUAGE, FILES, PARSER, parts
from tests.support.tables import read_table

INTENTS = ("send_text", "remember", "type", "clipboard_write", "web_search", "find_text")
SLOT = re.compile(r"{(message|rest|text|query)}")


@pytest.mark.parametrize("code", LANGUAGES)
def test_behind_the_own_words_templates_have_only_particles_and_targets(code: str) -> None:
    (behind,) = parts("behind", code)  # particles of verbs, and names of the target
    allowed = words_of(behind) if code != "zh" else set(behind)
    for intent in INTENTS:
        for row in FILES[code]["sentences"][intent]:
            *_, last = SLOT.split(row) if SLOT.search(row) else ("",)
            literal = re.sub(r"{\w+}|<\w+>", " ", last)
            found = set(re.findall(r"[^\W_]", literal)) if code == "zh" else words_of(literal.replace("-", " "))
            assert found <= allowed, (row, found - allowed)


@pytest.mark.unmeasured
@pytest.mark.parametrize("code", EACH_LANGUAGE)
def test_no_word_of_the_own_words_is_lost(code: str, full: bool) -> None:
    glue = "" if code == "zh" else " "
    words = parts("edges", code)[0].split()  # that templates and skipped words have too
    pairs = [(first, last) for place, (first, last) in enumerate(product(words, words)) if full or not place % 14]
    lost: dict[str, dict[str, str]] = {}
    for stem in parts("stem", code):
        for first, last in pairs:
            own = glue.join((first, "斑马" if code == "zh" else "zebra", last))
            found = PARSER.parse(stem.format(own))
            if found is not None and not any(own in value for value in found.slots.values()):
                lost[stem.format(own)] = dict(found.slots)
    assert lost == {}


@pytest.mark.parametrize("row", read_table("tests/runtimes/message_edges.tsv"), ids=lambda row: row["text"])
def test_edges_of_a_message(row: dict[str, str]) -> None:
    found = PARSER.message(row["language"], row["text"])
    assert (found and found[0]) == (row["message"] or None)


@pytest.mark.parametrize("row", read_table("tests/runtimes/certain_sentences.tsv"), ids=lambda row: row["sentence"])
def test_edges_of_the_own_words_are_certain_behind_a_mark_or_a_leading_word(row: dict[str, str]) -> None:
    found = PARSER.parse(row["sentence"])
    assert found is not None
    assert (found.is_certain, found.text) == (row["is_certain"] == "yes", row["sentence"])
