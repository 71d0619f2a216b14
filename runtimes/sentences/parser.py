"""Sentences by hassil's templates, one file for each language.

A file has the templates of each intent, the names of the phone's settings and kinds of apps, the texts of answers, and
examples, which are shown for a sentence that matches none. Files are read at the first sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from svc_proto.agent.sentences import Sentence, SentenceIntent

if TYPE_CHECKING:
    from runtimes.sentences.language import Language

__all__ = ["LANGUAGES", "MAX_SENTENCE", "HassilParser"]

LANGUAGES = ("en", "de", "fr", "es", "zh")
MAX_SENTENCE = 300  # characters; a longer text is no sentence
NEAREST = 3  # examples that are shown
# Templates that only fix a slot: `turn_on: …` is `toggle` with the state `on`.
ALIASES: Mapping[str, tuple[SentenceIntent, Mapping[str, str]]] = {
    "turn_on": (SentenceIntent.TOGGLE, {"state": "on"}),
    "turn_off": (SentenceIntent.TOGGLE, {"state": "off"}),
    "scroll_down": (SentenceIntent.SCROLL, {"direction": "down"}),
    "scroll_up": (SentenceIntent.SCROLL, {"direction": "up"}),
}
_END = re.compile(r"[\s.!?…。\uff01\uff1f¡¿]+$")


class HassilParser:
    """Parser of all languages. The language whose templates match the most literal text wins."""

    def parse(self, text: str) -> Sentence | None:
        """Implement `SentenceParser.parse`."""
        text = _END.sub("", text.strip().lstrip("¡¿ "))
        if not text or len(text) > MAX_SENTENCE or "\n" in text:
            return None
        found = [(*match, language.code) for language in self._languages if (match := language.match(text)) is not None]
        if not found:
            return None
        _, name, slots, code = min(found, key=lambda match: match[0])
        intent, fixed = ALIASES.get(name) or (SentenceIntent(name), {})
        return None if slots is None else Sentence(intent, code, {**slots, **fixed})

    def nearest(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Implement `SentenceParser.nearest`."""
        plain = text.strip().lower()[:MAX_SENTENCE]
        language = max(self._languages, key=lambda each: each.count_known_words(plain))
        return language.code, language.nearest(plain)[:NEAREST]

    def examples(self, language: str) -> tuple[str, ...]:
        """Implement `SentenceParser.examples`."""
        return self._by_code[language].examples

    def reply(self, language: str, key: str, **values: str) -> str:
        """Implement `SentenceParser.reply`."""
        return self._by_code[language].replies[key].format(**values)

    def words(self, key: str) -> tuple[str, ...]:
        """Implement `SentenceParser.words`."""
        return tuple(word for language in self._languages for word in language.words.get(key, ()))

    def kinds_of(self, text: str) -> tuple[str, ...]:
        """Implement `SentenceParser.kinds_of`."""
        plain = text.strip().casefold()
        return tuple(dict.fromkeys(kind for language in self._languages for kind in language.kinds.get(plain, ())))

    @cached_property
    def _languages(self) -> tuple[Language, ...]:
        from runtimes.sentences.language import load_language  # noqa: PLC0415, RUF100 - hassil, at the first sentence

        return tuple(map(load_language, LANGUAGES))

    @cached_property
    def _by_code(self) -> dict[str, Language]:
        return {language.code: language for language in self._languages}
