"""Tests of the sentence parser: matches, and the nearest examples for other texts."""

import json
import re
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
import yaml

from runtimes.sentences import HassilParser
from runtimes.sentences.addresses import find_address
from runtimes.sentences.folding import fold
from runtimes.sentences.parser import ALIASES, LANGUAGES, MAX_SENTENCE
from svc_proto.agent.sentences import PhoneSetting, SentenceIntent
from tests.support.scenario_plan import some
from tests.support.tables import read_table

PARSER = HassilParser()
# The other languages take most of the time, so `make test` leaves their large tables to `make test-rest`.
EACH_LANGUAGE = [pytest.param(code, marks=() if code == "en" else pytest.mark.full) for code in LANGUAGES]
FOLDER = Path("runtimes/sentences")
FILES = {
    code: yaml.load(
        (FOLDER / f"{code}.yaml").read_text("utf-8") + (FOLDER / f"{code}_texts.yaml").read_text("utf-8"),
        yaml.CBaseLoader,
    )
    for code in LANGUAGES
}
ROWS = read_table("tests/runtimes/sentences.tsv")
WITHOUT_ACT = read_table("tests/runtimes/sentences_without_act.tsv")
BY_RULE = read_table("tests/runtimes/sentences_by_rule.tsv")
PARTS = read_table("tests/runtimes/sentence_parts.tsv")
QUIET_NAMES = """help greeting tools memory time date battery screenshot read_screen current_app list_apps location ping
clipboard_read find_contact check_setting find_text stop"""
QUIET = {*map(SentenceIntent, QUIET_NAMES.split())}  # intents that change nothing
OWN_WORDS = {"send_text", "type", "remember", "clipboard_write", "web_search"}  # intents that can end in any words


@pytest.mark.unmeasured
@pytest.mark.parametrize("share", some(range(3)))
@pytest.mark.parametrize("code", EACH_LANGUAGE)
def test_sentences_of_the_table(code: str, share: int) -> None:
    for row in ROWS[share::3]:
        if row["language"] == code:
            _check_meaning(row)


@pytest.mark.parametrize("share", some(range(3)))
@pytest.mark.parametrize("rule", sorted({row["rule"] for row in BY_RULE}))
def test_sentences_of_a_rule(rule: str, share: int) -> None:
    for row in BY_RULE[share::3]:
        if row["rule"] == rule:
            _check_meaning(row)


def parts(part: str, language: str) -> list[str]:
    """Return the texts of one kind in a language, such as what can stand before a sentence."""
    return [row["text"] for row in PARTS if (row["part"], row["language"]) == (part, language)]


def _check_meaning(row: dict[str, str]) -> None:
    expected = (row["language"], row["intent"], json.loads(row["slots"] or "{}"))
    assert _meaning_of(row["sentence"]) == expected, row


def _meaning_of(sentence: str) -> tuple[str, str, dict[str, str]]:
    """Return language, intent and slots; without a match, the language of the nearest examples, `-` and no slots."""
    found = PARSER.parse(sentence)
    if found is None:
        return PARSER.nearest(sentence)[0], "-", {}
    return found.language, found.intent.value, dict(found.slots)


@pytest.mark.unmeasured
@pytest.mark.parametrize("code", EACH_LANGUAGE)
def test_sentences_that_ask_for_no_act(code: str, full: bool) -> None:
    sentences = [row["sentence"] for row in WITHOUT_ACT if row["language"] == code]
    assert len(sentences) > 150
    assert _acts_of(_sample(sentences, full)) == {}


@pytest.mark.unmeasured
@pytest.mark.parametrize("code", EACH_LANGUAGE)
def test_negations_questions_conditions_times_second_acts_and_quotes(code: str, full: bool) -> None:
    changed: list[str] = []
    before, after = parts("before", code), parts("after", code)
    for place, row in enumerate(ROWS):  # each sentence with some of the changes, each change with many sentences
        intent, sentence = row["intent"], row["sentence"].rstrip(".!?")
        if row["language"] != code or intent == "-" or SentenceIntent(intent) in QUIET:
            continue
        changed += [before[number % len(before)].format(sentence) for number in (place, place + 3)]
        if intent not in OWN_WORDS:
            changed.append(f'"{sentence}"')
        if intent not in OWN_WORDS | {"tap", "back", "home", "enter", "alarm", "timer"}:  # of a button's text or a time
            changed += [after[number % len(after)].format(sentence) for number in (place, place + 2)]
    assert len(changed) > 100
    assert _acts_of(_sample(changed, full)) == {}


def _sample(sentences: list[str], full: bool) -> list[str]:
    """Return every fourth sentence, or all with `full`."""
    return sentences if full else sentences[::4]


def _acts_of(sentences: list[str]) -> dict[str, str]:
    """Return the intent of each sentence that matches and whose intent is not in `QUIET`."""
    found = {sentence: PARSER.parse(sentence) for sentence in sentences}
    return {text: meaning.intent.value for text, meaning in found.items() if meaning and meaning.intent not in QUIET}


@pytest.mark.parametrize("code", EACH_LANGUAGE)
def test_examples_are_understood(code: str) -> None:
    intents = set[SentenceIntent]()
    for example in (*PARSER.examples(code), *FILES[code]["other_examples"]):
        found = PARSER.parse(example)
        assert found is not None, example
        assert found.language == code, example
        intents.add(found.intent)
    assert set(SentenceIntent) - intents <= {SentenceIntent.TOOLS, SentenceIntent.SWIPE, SentenceIntent.PING}


@pytest.mark.parametrize("code", EACH_LANGUAGE)
def test_examples_of_settings_are_understood(code: str) -> None:
    examples = FILES[code]["setting_examples"]
    assert examples.keys() == {setting.value for setting in PhoneSetting}
    for setting, (switch_on, switch_off, question) in examples.items():
        assert _meaning_of(switch_on) == (code, "toggle", {"setting": setting, "state": "on"})
        assert _meaning_of(switch_off) == (code, "toggle", {"setting": setting, "state": "off"})
        assert _meaning_of(question) == (code, "check_setting", {"setting": setting})


@pytest.mark.parametrize("row", read_table("tests/runtimes/nearest_examples.tsv"), ids=lambda row: row["sentence"])
def test_nearest_examples_have_the_setting_and_the_direction(row: dict[str, str]) -> None:
    assert PARSER.parse(row["sentence"]) is None
    nearest = PARSER.nearest(row["sentence"])[1]
    assert row["shown"] in nearest
    assert row["hidden"] not in nearest


@pytest.mark.parametrize(
    ("text", "address"),
    [("see bbc.co.uk/weather, please", "bbc.co.uk/weather"), ("info@example.org", ""), ("com.android.settings", "")],
)
def test_web_address_in_a_text(text: str, address: str) -> None:
    assert find_address(text) == address


@pytest.mark.parametrize(("text", "head"), [row.values() for row in read_table("tests/runtimes/nearest_heads.tsv")])
def test_head_of_the_nearest_examples(text: str, head: str) -> None:
    language, nearest = PARSER.nearest(text)
    assert PARSER.parse(text) is None
    assert PARSER.head(language, text) == head
    assert head != "calendar" or "open_app" in _intents_of(nearest[:1])


@pytest.mark.unmeasured
@pytest.mark.parametrize("share", some(range(3)))
@pytest.mark.parametrize("code", EACH_LANGUAGE)
def test_nearest_examples_have_the_intent(code: str, share: int) -> None:
    rows = [row for row in ROWS[share::3] if row["language"] == code and row["intent"] != "-"]
    wrong = {row["sentence"] for row in rows if row["intent"] not in _intents_of(PARSER.nearest(row["sentence"])[1])}
    assert len(wrong) <= 0.07 * len(rows), wrong


@pytest.mark.parametrize(
    ("text", "intent"), [row.values() for row in read_table("tests/runtimes/mistyped_sentences.tsv")]
)
def test_mistyped_words_have_a_nearest_example(text: str, intent: str) -> None:
    assert _intents_of(PARSER.nearest(text)[1][:1]) == {intent}


def _intents_of(examples: Iterable[str]) -> set[str]:
    return {intent for example in examples if (intent := _intent_of(example))}


@cache
def _intent_of(example: str) -> str:
    """Return the intent of an example, empty without one; many sentences have the same nearest examples."""
    found = PARSER.parse(example)
    return "" if found is None else found.intent.value


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


@pytest.mark.parametrize(
    ("text", "example"), [row.values() for row in read_table("tests/runtimes/nearest_sentences.tsv")]
)
def test_nearest_example_has_the_intent_and_the_app(text: str, example: str) -> None:
    assert PARSER.parse(text) is None
    nearest = PARSER.nearest(text)[1]
    assert (nearest[0], len(nearest)) == (example, 3)


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
        ("zh", "傳簡訊給陳先生", "发短信给陈先生"),
    ],
)
def test_folding(language: str, text: str, folded: str) -> None:
    found = fold(text, language)
    assert found.text == folded
    assert len(found.places) == len(folded)


PIECES = """text that |send a message to that |打开|发短信给说,|set a timer for 5 minutes and |que |turn on wifi |\
text Ada that and """


@pytest.mark.full
@pytest.mark.parametrize("piece", PIECES.split("|"))
def test_time_grows_with_the_length_alone(piece: str) -> None:
    """Compare the processor time of the longest text with that of a quarter of it: linear is 4, quadratic 16."""

    def least_time(length: int) -> float:
        times = []
        for end in "abc":  # the first one also compiles the templates, and the same text would be known
            text = (piece * length)[: length - 1] + end
            began = time.process_time()
            PARSER.parse(text)
            PARSER.nearest(text)
            times.append(time.process_time() - began)
        return min(times)

    assert least_time(MAX_SENTENCE) < 9 * least_time(MAX_SENTENCE // 4)


def test_reply() -> None:
    assert PARSER.reply("fr", "opened", name="Mail") == "Mail est ouvert."
    assert PARSER.reply("zh", "state_on") == "已开启"
    assert PARSER.label("de", "wifi") == "WLAN"
    assert PARSER.label("fr", "bar_volume") == "volume multimédia"
