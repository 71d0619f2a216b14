"""Parser of sentences by hassil's templates, one file for each language. Files are read at the first use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING

from runtimes.sentences.addresses import address_in, has_dot, is_package
from runtimes.sentences.folding import OWN_WORDS
from runtimes.sentences.refusal import ANSWERS
from runtimes.sentences.suggestions import SHOWN
from svc_proto.agent.sentences import Sentence, SentenceIntent

if TYPE_CHECKING:
    from runtimes.sentences.language import Language

__all__ = ["LANGUAGES", "MAX_SENTENCE", "HassilParser"]

LANGUAGES = ("en", "de", "fr", "es", "zh")
MAX_SENTENCE = 300  # characters; a longer text is no sentence
# Templates that only fix a slot: `turn_on: …` is `toggle` with the state `on`.
ALIASES: Mapping[str, tuple[SentenceIntent, Mapping[str, str]]] = {
    "turn_on": (SentenceIntent.TOGGLE, {"state": "on"}),
    "turn_off": (SentenceIntent.TOGGLE, {"state": "off"}),
    "scroll_down": (SentenceIntent.SCROLL, {"direction": "down"}),
    "scroll_up": (SentenceIntent.SCROLL, {"direction": "up"}),
    "far_down": (SentenceIntent.SCROLL, {"direction": "down", "extent": "end"}),
    "far_up": (SentenceIntent.SCROLL, {"direction": "up", "extent": "end"}),
    "way_to": (SentenceIntent.NAVIGATE, {}),
    "look_if": (SentenceIntent.FIND_TEXT, {}),
    "mute": (SentenceIntent.SET_LEVEL, {"bar": "volume", "percent": "0"}),
    "brightness_up": (SentenceIntent.SET_LEVEL, {"bar": "brightness", "change": "up"}),
    "brightness_down": (SentenceIntent.SET_LEVEL, {"bar": "brightness", "change": "down"}),
}
MAX_JOINS = 8  # words and marks of a sentence that are tried as the start of a second request
SHOWING = (SentenceIntent.SCREENSHOT, SentenceIntent.READ_SCREEN)  # acts that change nothing
NOTED = ("remember", "type")  # intents whose text is no appointment; templates may match words of another language
_LITERAL = re.compile(r"[:\uff1a](?!\d)|[\"“”„«]|(?:^|\s)['\u2018]")
_END = re.compile(r"[\s.!?…。\uff01\uff1f¡¿]+$")
_SPANISH = re.compile("[¿¡ñÑ]")  # signs that no other of the languages has
_MARKS = re.compile("[^?!\uff1f\uff01]+")  # what is no question or exclamation mark
_MARK = re.compile("[,;!?\uff0c\u3002\uff1b\uff01\uff1f]|\\.(?=\\s)")  # between two sentences or clauses


class HassilParser:
    """Parser of all languages. Of the matches in several languages the one with the least free text counts."""

    def parse(self, text: str) -> Sentence | None:
        """Implement `SentenceParser.parse`. Two requests that are joined by a word, such as "then", match nothing."""
        found = self._parse_one(text)
        return None if found is None or self._has_second_request(found, text) else found

    def _parse_one(self, text: str) -> Sentence | None:
        """Return the meaning of a sentence; a second request counts as a part of the user's own words."""
        is_spanish = _SPANISH.search(text) is not None
        whole = text.strip().lstrip("¡¿ ")
        text = _END.sub("", whole)
        is_question = bool(set("?\uff1f") & set(whole[len(text) :]))
        if not text or len(text) > MAX_SENTENCE or "\n" in text:
            return None
        possible = [self._by_code["es"]] if is_spanish else self._languages
        found = [
            (*match, language.code)
            for language in possible
            if (match := language.match(text, is_question=is_question)) is not None
        ]
        if not found:
            return None
        _, name, slots, code = min(found, key=lambda match: match[0])
        if slots is None:
            return None
        ended = self._by_code[code].with_end(name, slots, text, _MARKS.sub("", whole[len(text) :]))
        if name in NOTED and any(each.certainty.names_calendar(slots["text"]) for each in self._languages):
            return None
        intent, fixed = ALIASES.get(name) or (SentenceIntent(name), {})
        reduced = _reduced(intent, {**ended, **fixed})
        if reduced is None:
            return None
        is_certain = self._by_code[code].has_certain_edges(name, slots, text)
        return Sentence(reduced[0], code, reduced[1], whole, is_certain)

    def nearest(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Implement `SentenceParser.nearest`."""
        plain = text.strip().lower()[:MAX_SENTENCE]
        counts = {language.code: language.count_known_words(plain) for language in self._languages}
        likely = [language for language in self._languages if counts[language.code] == max(counts.values())]
        language = likely[0] if len(likely) == 1 else max(likely, key=lambda each: each.count_mistyped_words(plain))
        return language.code, language.nearest(text.strip()[:MAX_SENTENCE])[:SHOWN]

    def head(self, language: str, text: str) -> str:
        """Implement `SentenceParser.head`."""
        return self._by_code[language].head(text.strip()[:MAX_SENTENCE])

    def examples(self, language: str) -> tuple[str, ...]:
        """Implement `SentenceParser.examples`."""
        return self._by_code[language].examples

    def reply(self, language: str, key: str, **values: str) -> str:
        """Implement `SentenceParser.reply`."""
        return self._by_code[language].replies[key].format(**values)

    def words(self, key: str) -> tuple[str, ...]:
        """Implement `SentenceParser.words`."""
        return tuple(word for language in self._languages for word in language.words.get(key, ()))

    def label(self, language: str, key: str) -> str:
        """Implement `SentenceParser.label`."""
        return self._by_code[language].labels[key]

    def message(self, language: str, text: str) -> tuple[str, bool] | None:
        """Implement `SentenceParser.message`."""
        rules = self._by_code[language]
        found = rules.content.content("send_text", text)
        return None if found is None else (found, rules.has_certain_edges("send_text", {"message": found}, text))

    def kinds_of(self, text: str) -> tuple[str, ...]:
        """Implement `SentenceParser.kinds_of`."""
        return tuple(dict.fromkeys(kind for language in self._languages for kind in language.kinds_of(text)))

    def _has_second_request(self, sentence: Sentence, text: str) -> bool:
        """Report whether a word that joins requests, or a mark, is followed by a request that acts.

        It must be within a slot. In the user's own words, marks do not count, and behind a colon or a quotation mark no
        words. At most `MAX_JOINS` words and marks are tried.
        """
        spans = [(text.find(value), len(value)) for value in sentence.slots.values() if value in text]
        if sentence.intent.value in ANSWERS or not spans:
            return False
        is_own = not OWN_WORDS.isdisjoint(sentence.slots)
        parts = (part for language in self._languages for part in language.parts_behind_joins(text))
        marks = () if is_own else _MARK.finditer(text)
        behind_marks = ((text[: mark.start()], text[mark.end() :]) for mark in marks)
        starts = (
            behind
            for before, behind in chain(parts, behind_marks)
            if any(0 < len(before) - at < size for at, size in spans) and not (is_own and _LITERAL.search(before))
        )
        found = filter(None, map(self._parse_one, islice(starts, MAX_JOINS)))
        return any(second.intent.value not in ANSWERS or second.intent in SHOWING for second in found)

    @cached_property
    def _languages(self) -> tuple[Language, ...]:
        from runtimes.sentences.language import load_language  # noqa: PLC0415, RUF100 - hassil, at the first sentence

        return tuple(map(load_language, LANGUAGES))

    @cached_property
    def _by_code(self) -> dict[str, Language]:
        return {language.code: language for language in self._languages}


def _reduced(intent: SentenceIntent, slots: Mapping[str, str]) -> tuple[SentenceIntent, dict[str, str]] | None:
    """Return an intent with its slots in their final form: addresses, times of day and lengths of time.

    An app or a destination that is an address becomes an address to open, and a site without an address a web search.
    Return None for a place to open that is no address.
    """
    match intent:
        case SentenceIntent.OPEN_APP | SentenceIntent.OPEN_URL | SentenceIntent.NAVIGATE if address := address_in(
            slots
        ):
            return SentenceIntent.OPEN_URL, {"url": address}
        case SentenceIntent.OPEN_URL if "place" in slots or has_dot(slots["site"]):
            return None
        case SentenceIntent.OPEN_APP if has_dot(slots["app"]) and not is_package(slots["app"]):
            return None
        case SentenceIntent.OPEN_URL:
            return SentenceIntent.WEB_SEARCH, {"query": slots["site"]}
        case SentenceIntent.WEB_SEARCH:
            return intent, {"query": slots["query"]}
        case SentenceIntent.ALARM:
            return intent, {"time": _time_of_day(slots)}
        case SentenceIntent.TIMER:
            units = {"hours": 3600, "minutes": 60, "seconds": 1, "span": 1}
            return intent, {"seconds": str(sum(int(slots.get(unit, 0)) * each for unit, each in units.items()))}
        case _:
            return intent, dict(slots)


def _time_of_day(slots: Mapping[str, str]) -> str:
    hour = int(slots["hour"]) % 24
    minutes = (
        int(slots.get("minute", 0)) * int(slots.get("dir", 1)) + int(slots.get("past", 0)) - int(slots.get("less", 0))
    )
    part = slots.get("part")
    if part == "pm" and hour < 12:
        hour += 12
    elif part == "am" and hour == 12:
        hour = 0
    hour, minute = divmod((hour * 60 + minutes) % (24 * 60), 60)
    return f"{hour:02}:{minute:02}"
