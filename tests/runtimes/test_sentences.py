"""Sentences in five languages: matches, and the nearest examples for the rest."""

from __future__ import annotations

import csv
import json
import re
import time
from pathlib import Path

import pytest
import yaml

from runtimes.sentences import HassilParser
from runtimes.sentences.folding import fold
from runtimes.sentences.parser import ALIASES, LANGUAGES, MAX_SENTENCE
from svc_proto.agent.sentences import PhoneSetting, SentenceIntent

PARSER = HassilParser()
FOLDER = Path("runtimes/sentences")
FILES = {code: yaml.load((FOLDER / f"{code}.yaml").read_text("utf-8"), yaml.BaseLoader) for code in LANGUAGES}
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
    assert mine["bars"].keys() == english["bars"].keys()
    assert mine["replies"].keys() == english["replies"].keys()
    assert mine["sentences"].keys() - ALIASES == {intent.value for intent in SentenceIntent}
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


@pytest.mark.parametrize(
    ("language", "text", "folded"),
    [
        ("de", "Wi-Fi für 6:30 Straßen", "wi fi fur 6 30 strassen"),
        ("de", "naechstes Stück", "nachstes stuck"),
        ("fr", "L\u2019\u00c9cran, ", "l'ecran"),
        ("en", "at 7 a.m. 50%", "at 7 am 50 %"),
        ("zh", "\u97f3\u91cf\uff0c50", "\u97f3\u91cf,50"),
    ],
)
def test_folding(language: str, text: str, folded: str) -> None:
    found = fold(text, language)
    assert found.text == folded
    assert len(found.places) == len(folded)


def test_own_words_are_kept_as_they_are() -> None:
    found = PARSER.parse("please text Zoë that I'm late, but please DON'T wait, thanks")
    assert found is not None
    assert found.slots == {"name": "Zoë", "message": "I'm late, but please DON'T wait, thanks"}


@pytest.mark.parametrize(
    "piece",
    [
        "text that ",
        "send a message to that ",
        "打开",
        "发短信给说,",
        "set a timer for 5 minutes and ",
        "que ",
        "turn on wifi ",
    ],
)
def test_time_of_a_long_text_is_bounded(piece: str) -> None:
    PARSER.parse("warm up")
    begun = time.process_time()
    PARSER.parse((piece * MAX_SENTENCE)[:MAX_SENTENCE])
    PARSER.nearest((piece * MAX_SENTENCE)[:MAX_SENTENCE])
    assert time.process_time() - begun < 1.0  # CPU seconds; 0.05 on the machine where this was written


def test_reply() -> None:
    assert PARSER.reply("fr", "opened", name="Mail") == "Mail est ouvert."
    assert PARSER.reply("zh", "state_on") == "已开启"
    assert PARSER.label("de", "wifi") == "WLAN"
    assert PARSER.label("fr", "bar_volume") == "volume multimédia"
