"""Tests of the page's message files, and of its examples."""

import json
import re

import pytest

from runtimes.sentences import HassilParser
from servers.dashboard_program import page_files

CALL = re.compile(r"\bt\((?!\w+, values)(\"(?:[^\"\\]|\\.)*\")?")
SENTENCE = re.compile(r"""(?<!t\()["`]([A-Z][a-z]+ [^"`]*)["`]""")  # a literal of several words
VALUE = re.compile(r"\{\w+\}")
FILES = page_files()
SCRIPTS = {
    name: re.sub(r"//.*|/\*\*?[^/]*\*/|function t\(", "", body.decode())
    for name, body in FILES.items()
    if name.endswith(".js") and "/" not in name
}
LANGUAGES = re.findall(r"\[\"(\w+)\", ", SCRIPTS["i18n.js"].partition("LANGUAGES = ")[2].partition(";")[0])
UNTRANSLATED = {"Agent on this host"}  # a device's name at the relay


def used_texts() -> set[str]:
    """Return the first arguments of all calls of `t` in the page's scripts; assert that they are literals."""
    found = set[str]()
    for name, script in SCRIPTS.items():
        for call in CALL.finditer(script):
            assert call[1], f"{name}: {script[call.start() : call.start() + 60]!r} names no literal text"
            found.add(json.loads(call[1]))
    return found


def test_each_language_but_english_has_a_file() -> None:
    assert LANGUAGES == ["en", "de", "es", "fr", "zh"]
    assert {name for name in FILES if name.startswith("messages/")} == {
        f"messages/{each}.json" for each in LANGUAGES[1:]
    }


def test_sentences_of_modules_are_translated() -> None:
    found = {words for script in SCRIPTS.values() for words in SENTENCE.findall(script)}
    assert found == UNTRANSLATED


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_text_has_a_translation_with_the_same_values(language: str) -> None:
    entries = json.loads(FILES[f"messages/{language}.json"])
    used = used_texts()
    assert sorted(used - set(entries)) == [], "not translated"
    assert sorted(set(entries) - used) == [], "not used"
    for key, text in entries.items():
        assert text.strip(), key
        assert sorted(VALUE.findall(key)) == sorted(VALUE.findall(text)), key


@pytest.fixture(scope="module")
def parser() -> HassilParser:
    return HassilParser()


@pytest.mark.parametrize("language", LANGUAGES)
def test_examples_of_an_empty_chat_are_understood_without_a_model(language: str, parser: HassilParser) -> None:
    ideas = SCRIPTS["chat_notes.js"].partition("IDEAS = [")[2].partition("]")[0]
    entries = json.loads(FILES.get(f"messages/{language}.json", b"{}"))
    found = [parser.parse(entries.get(text, text)) for text in re.findall(r't\("([^"]+)"\)', ideas)]
    assert [each and each.language for each in found] == [language] * 4
