"""Sentences in five languages: matches, and the nearest examples for the rest."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
import yaml

from runtimes.sentences import HassilParser
from runtimes.sentences.parser import LANGUAGES, MAX_SENTENCE
from svc_proto.agent.sentences import PhoneSetting, SentenceIntent

PARSER = HassilParser()
FOLDER = Path("runtimes/sentences")
FILES = {code: yaml.safe_load((FOLDER / f"{code}.yaml").read_text("utf-8")) for code in LANGUAGES}
with (Path(__file__).parent / "sentences.tsv").open(encoding="utf-8", newline="") as table:
    ROWS = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['language']}: {row['sentence']}")
def test_sentence(row: dict[str, str]) -> None:
    found = PARSER.parse(row["sentence"])
    if row["intent"] == "-":
        assert found is None
        assert PARSER.nearest(row["sentence"])[0] == row["language"]
        return
    assert found is not None
    assert (found.language, found.intent.value) == (row["language"], row["intent"])
    assert dict(found.slots) == json.loads(row["slots"])


@pytest.mark.parametrize("code", LANGUAGES)
def test_examples_are_understood(code: str) -> None:
    for example in PARSER.examples(code):
        found = PARSER.parse(example)
        assert found is not None, example
        assert found.language == code, example


@pytest.mark.parametrize("code", LANGUAGES)
def test_languages_have_the_same_intents_settings_and_replies(code: str) -> None:
    mine, english = FILES[code], FILES["en"]
    assert mine["settings"].keys() == english["settings"].keys() == {setting.value for setting in PhoneSetting}
    assert mine["kinds"].keys() == english["kinds"].keys()
    aliases = {"turn_on", "turn_off", "scroll_down", "scroll_up"}
    assert mine["sentences"].keys() - aliases == {intent.value for intent in SentenceIntent}
    for key, text in english["replies"].items():
        holes = [sorted(re.findall(r"{\w+}", str(each))) for each in (text, mine["replies"][key])]
        assert holes[0] == holes[1], key


@pytest.mark.parametrize("text", ["", "?!", "open mail\nand more", "open " + "x" * MAX_SENTENCE])
def test_text_that_is_no_sentence(text: str) -> None:
    assert PARSER.parse(text) is None


def test_nearest_sentences_resemble_the_text() -> None:
    language, nearest = PARSER.nearest("screenshott machen")
    assert (language, nearest[0]) == ("de", "mach einen Screenshot")
    assert len(nearest) == 3


def test_kinds_of_apps_and_their_words() -> None:
    assert PARSER.kinds_of("Posteingang") == ("mail",)
    assert {"mail", "correo", "邮件"} <= set(PARSER.words("mail"))


def test_reply() -> None:
    assert PARSER.reply("fr", "opened", name="Mail") == "Mail est ouvert."
    assert PARSER.reply("zh", "state_on") == "已开启"
