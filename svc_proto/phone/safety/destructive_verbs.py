r"""Destructive verbs (spec "Bridge safety gates" 5b, wire bridge 5.4).

A verb counts where it stands as a word: letters, digits and `_` are word characters, so "pay-now" has one and
"send_now" has none. It is taken literally and without regard to case. The list is the user's to edit; once edited
it is alphabetical.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["DEFAULT_VERBS", "MAX_VERBS", "DestructiveVerbs"]

DEFAULT_VERBS = (  # spec "Bridge safety gates" 5b, in its order
    "send",
    "pay",
    "delete",
    "transfer",
    "confirm",
    "submit",
    "post",
    "publish",
    "buy",
    "purchase",
    "charge",
    "withdraw",
)
MAX_VERBS = 200  # entries; more is refused


class DestructiveVerbs:
    """The verbs that make a text one to ask about."""

    def __init__(self, verbs: Iterable[str] = DEFAULT_VERBS) -> None:
        self._patterns: dict[str, re.Pattern[str]] = {}
        for verb in verbs:
            word = _normal(verb)
            if word and len(self._patterns) < MAX_VERBS:
                self._patterns[word] = _pattern(word)

    def __len__(self) -> int:
        return len(self._patterns)

    @property
    def verbs(self) -> tuple[str, ...]:
        """All of them, in the order in which they are tried."""
        return tuple(self._patterns)

    def matches(self, text: str) -> tuple[str, ...]:
        """Every verb that stands in the text, in list order."""
        patterns = self._patterns
        if text.isascii():  # of megabytes: a plain search says at once which patterns need not try each place
            lowered = text.lower()
            patterns = {verb: each for verb, each in patterns.items() if verb in lowered or not verb.isascii()}
        return tuple(verb for verb, pattern in patterns.items() if pattern.search(text) is not None)

    def first(self, text: str) -> str | None:
        """The verb to show: "the first in list order that matches" (wire bridge 5.4)."""
        return next(iter(self.matches(text)), None)

    def add(self, verb: str) -> bool:
        """Add a verb, trimmed and in lower case. False for a blank one, one that is there, or a full list."""
        word = _normal(verb)
        if not word or word in self._patterns or len(self._patterns) >= MAX_VERBS:
            return False
        self._patterns = dict(sorted({**self._patterns, word: _pattern(word)}.items()))
        return True

    def remove(self, verb: str) -> bool:
        """Take a verb out. Whether it was there."""
        word = _normal(verb)
        if word not in self._patterns:
            return False
        self._patterns = {key: value for key, value in sorted(self._patterns.items()) if key != word}
        return True

    def reset(self) -> None:
        """Back to the defaults, in their order."""
        self._patterns = {verb: _pattern(verb) for verb in DEFAULT_VERBS}


def _normal(verb: str) -> str:
    return verb.strip().lower()


def _pattern(word: str) -> re.Pattern[str]:
    # Not \b: it would never hold at the end of a verb that ends in a sign, such as "pay!".
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
