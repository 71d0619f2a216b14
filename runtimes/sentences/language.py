"""Templates and texts of one language, matched by hassil.

A file has the templates of each intent, the names of the phone's settings and kinds of apps, the texts of answers, and
examples, which are shown for a sentence that matches none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher, get_close_matches
from importlib.resources import files
from typing import Any, TypeAlias

import yaml
from attrs import frozen
from hassil import Intents, recognize_all
from hassil.models import MatchEntity
from hassil.recognize import RecognizeResult

__all__ = ["Language", "Score", "load_language"]

Score: TypeAlias = tuple[int, int, str]

WILDCARDS = ("app", "name", "message", "rest", "text")
VERBATIM = frozenset({"message", "rest", "text"})  # slots whose words are the user's own, so that none may be skipped
_COMMAS = " ,\uff0c"
_WORD = re.compile(r"[\w-]+")


@frozen(kw_only=True)
class Language:
    """Templates and texts of a language."""

    code: str
    intents: Intents
    skip: tuple[str, ...]
    words: Mapping[str, tuple[str, ...]]  # of settings and kinds of apps, in lower case
    kinds: Mapping[str, tuple[str, ...]]  # by a word of theirs
    replies: Mapping[str, str]
    examples: tuple[str, ...]
    vocabulary: frozenset[str]  # of all templates

    def match(self, text: str) -> tuple[Score, str, dict[str, str] | None] | None:
        """Return the best match: its rank, best first, its intent, and its slots.

        The slots are None if a polite word would have to be skipped within the user's own words.
        """
        best = self._best(text)
        if best is None:
            return None
        slots: dict[str, str] = {}
        for name, entity in best.entities.items():
            value = _slot_value(name, entity)
            own = (
                _own_words(value, text)
                if name in VERBATIM
                else self._trim(value, ends=False)
                if name == "name"
                else value
            )
            if own is None:
                return _score(best), best.intent.name, None
            slots[name] = own
        return _score(best), best.intent.name, slots

    def count_known_words(self, text: str) -> int:
        """Return how many words of a text are in the templates."""
        return len(_words_of(text) & self.vocabulary)

    def nearest(self, text: str) -> tuple[str, ...]:
        """Return the examples, most alike first."""
        return tuple(sorted(self.examples, key=lambda example: -_likeness(text, example.lower())))

    def _best(self, text: str) -> RecognizeResult | None:
        """Return the best match. Polite words are skipped where no free text contains them."""
        begun = self._trim(text, ends=False)
        found = self._all((text, begun, self._trim(text)))
        best = min(found, key=_score, default=None)
        if best is not None and VERBATIM & best.entities.keys():
            return min(self._all((text, begun)), key=_score, default=best)  # a message may end with a polite word
        if best is None or self._has_polite_name(best):
            skipping = recognize_all(text, self.intents, skip_words=self.skip, language=self.code)
            best = min(skipping, key=_score, default=best)
        return best

    def _all(self, texts: Iterable[str]) -> list[RecognizeResult]:
        return [m for text in dict.fromkeys(texts) for m in recognize_all(text, self.intents, language=self.code)]

    def _has_polite_name(self, match: RecognizeResult) -> bool:
        """Report whether a polite word is in a name, and all free text are names."""
        free = {entity.name: f" {entity.text.lower()} " for entity in match.entities_list if entity.is_wildcard}
        return not VERBATIM & free.keys() and any(f" {word} " in text for text in free.values() for word in self.skip)

    def _trim(self, text: str, *, ends: bool = True) -> str:
        """Return the text without polite words at its start, and at its end if `ends`."""
        separator = "" if self.code == "zh" else " "
        while True:
            shorter = text.strip(_COMMAS)
            lowered = shorter.lower()
            for words in self.skip:
                if lowered.startswith(words + separator):
                    shorter = shorter[len(words) :]
                    break
                if ends and lowered.endswith(separator + words):
                    shorter = shorter[: -len(words)]
                    break
            if shorter == text or not shorter.strip(_COMMAS):
                return text
            text = shorter


def load_language(code: str) -> Language:
    """Load the file of a language."""
    found: dict[str, Any] = yaml.load(files(__package__).joinpath(f"{code}.yaml").read_bytes(), yaml.CSafeLoader)
    settings: dict[str, list[str]] = found["settings"]
    kinds: dict[str, list[str]] = found["kinds"]
    replies = {key: text for key, text in found["replies"].items() if isinstance(text, str)}
    replies |= {f"state_{state}": text for state, text in found["replies"]["states"].items()}
    by_word: dict[str, tuple[str, ...]] = {}
    for kind, names in kinds.items():
        for name in names:
            by_word[name.casefold()] = (*by_word.get(name.casefold(), ()), kind)
    lists: dict[str, Any] = {name: {"wildcard": True} for name in WILDCARDS}
    lists["minutes"] = {"range": {"from": 1, "to": 600}}
    for slot, table in (("setting", settings), ("state", found["states"]), ("direction", found["directions"])):
        lists[slot] = {"values": [{"in": word, "out": key} for key, words in table.items() for word in words]}
    intents = Intents.from_dict(
        {
            "language": code,
            "settings": {"ignore_whitespace": code == "zh"},
            "intents": {intent: {"data": [{"sentences": rows}]} for intent, rows in found["sentences"].items()},
            "lists": lists,
            "expansion_rules": found["rules"],
        }
    )
    words = {key: tuple(word.casefold() for word in names) for key, names in (*settings.items(), *kinds.items())}
    templates = [row for rows in found["sentences"].values() for row in rows]
    return Language(
        code=code,
        intents=intents,
        skip=tuple(sorted(found["skip"], key=len, reverse=True)),
        words=words,
        kinds=by_word,
        replies=replies,
        examples=tuple(found["examples"]),
        vocabulary=frozenset(_words_of(" ".join((*templates, *found["skip"])).lower())),
    )


def _score(match: RecognizeResult) -> Score:
    """Rank a match, best first: little free text, in few slots."""
    free = [entity for entity in match.entities_list if entity.is_wildcard]
    return sum(len(entity.text) for entity in free), len(free), match.intent.name


def _slot_value(name: str, entity: MatchEntity) -> str:
    value = str(int(entity.value)) if isinstance(entity.value, float) else str(entity.value)
    return value.strip().strip("-\"'„“”«» ") if name in WILDCARDS else value


def _own_words(value: str, text: str) -> str | None:
    """Return the part of the text that has the words of the value, with its punctuation; None if there is none."""
    words = _WORD.findall(value)
    found = re.search(r"\W+".join(map(re.escape, words)) if words else re.escape(value), text)
    return None if found is None else found[0]


def _words_of(text: str) -> set[str]:
    """Return the words of a text; of Chinese text, the characters."""
    return {
        word
        for found in _WORD.findall(text)
        for word in ((found,) if found.isascii() or not _is_chinese(found) else found)
    }


def _is_chinese(text: str) -> bool:
    return any("CJK" in unicodedata.name(letter, "") for letter in text)


def _likeness(text: str, example: str) -> float:
    """Return how much a text resembles an example: common words count most, then common letters."""
    mine, theirs = _words_of(text), _words_of(example)
    common = sum(bool(get_close_matches(word, theirs, 1, 0.75)) for word in mine) / (len(mine | theirs) or 1)
    return common + SequenceMatcher(None, text, example, autojunk=False).ratio()
