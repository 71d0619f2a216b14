"""Message files of the page: each language has exactly the texts that the modules name."""

from __future__ import annotations

import json
import re

import pytest

from servers.dashboard_program import page_files

CALL = re.compile(r"\bt\((?!\w+, values)(\"(?:[^\"\\]|\\.)*\")?")
ENTRY = re.compile(r"^  (\"(?:[^\"\\]|\\.)*\"): (\"(?:[^\"\\]|\\.)*\"),$", re.MULTILINE)
VALUE = re.compile(r"\{\w+\}")
SCRIPTS = {name: body.decode() for name, body in page_files().items() if name.endswith(".js") and "/" not in name}
LANGUAGES = re.findall(r"\[\"(\w+)\", ", SCRIPTS["i18n.js"].partition("LANGUAGES = ")[2].partition(";")[0])


def used_texts() -> set[str]:
    """Return the first arguments of all calls of `t`, which must be literals."""
    found = set[str]()
    for name, script in SCRIPTS.items():
        for call in CALL.finditer(re.sub(r"//.*|/\*\*?[^/]*\*/|function t\(", "", script)):
            assert call[1], f"{name}: {script[call.start() : call.start() + 60]!r} names no literal text"
            found.add(json.loads(call[1]))
    return found


def test_english_needs_no_file() -> None:
    assert LANGUAGES[0] == "en"
    assert {name for name in SCRIPTS if name.startswith("messages-")} == {
        f"messages-{each}.js" for each in LANGUAGES[1:]
    }
    assert used_texts()


@pytest.mark.parametrize("language", LANGUAGES[1:])
def test_every_text_has_a_translation_with_the_same_values(language: str) -> None:
    entries = {json.loads(key): json.loads(text) for key, text in ENTRY.findall(SCRIPTS[f"messages-{language}.js"])}
    used = used_texts()
    assert sorted(used - set(entries)) == [], "not translated"
    assert sorted(set(entries) - used) == [], "not used"
    for key, text in entries.items():
        assert text.strip(), key
        assert sorted(VALUE.findall(key)) == sorted(VALUE.findall(text)), key
