r"""Destructive verbs (spec "Bridge safety gates" 5b, wire bridge 5.4).

A verb counts where it is a whole word: letters, digits and `_` are word characters, so "pay-now" contains a verb and
"send_now" does not. Verbs are matched literally and without regard to case. The user may edit the list; an edited
list is in alphabetical order.
"""

import re
from collections.abc import Iterable

from svc_proto.schema.effects.label_words import DEFAULT_VERBS

__all__ = ["DEFAULT_VERBS", "MAX_VERBS", "DestructiveVerbs"]

MAX_VERBS = 200  # entries; more is refused


class DestructiveVerbs:
    """Verbs that require a confirmation for a text that contains them."""

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
        """The verbs, in the order in which they are tried."""
        return tuple(self._patterns)

    def matches(self, text: str) -> tuple[str, ...]:
        """Return the verbs that the text contains, in list order."""
        patterns = self._patterns
        # A text may have megabytes: a plain search excludes most patterns, which would try each position.
        if text.isascii():
            lowered = text.lower()
            patterns = {verb: each for verb, each in patterns.items() if verb in lowered or not verb.isascii()}
        return tuple(verb for verb, pattern in patterns.items() if pattern.search(text) is not None)

    def first(self, text: str) -> str | None:
        """Return the verb to show: "the first in list order that matches" (wire bridge 5.4), or None."""
        return next(iter(self.matches(text)), None)

    def add(self, verb: str) -> bool:
        """Add a verb, trimmed and in lower case; return False for a blank or known one, or a full list."""
        word = _normal(verb)
        if not word or word in self._patterns or len(self._patterns) >= MAX_VERBS:
            return False
        self._patterns = dict(sorted({**self._patterns, word: _pattern(word)}.items()))
        return True

    def remove(self, verb: str) -> bool:
        """Remove a verb; return whether it was in the list."""
        word = _normal(verb)
        if word not in self._patterns:
            return False
        self._patterns = {key: value for key, value in sorted(self._patterns.items()) if key != word}
        return True

    def reset(self) -> None:
        """Restore the defaults, in their order."""
        self._patterns = {verb: _pattern(verb) for verb in DEFAULT_VERBS}


def _normal(verb: str) -> str:
    return verb.strip().lower()


def _pattern(word: str) -> re.Pattern[str]:
    # Not \b: it would never match at the end of a verb that ends in a sign, such as "pay!".
    return re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
