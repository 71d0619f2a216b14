"""Known sentences that resemble a text which matches no template.

The fewer intents have a word in their templates, the more it counts: "brighter" decides, "make" does not.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from math import log

from attrs import field, frozen

from runtimes.sentences.folding import fold, has_chinese, word_pattern

__all__ = ["STATES", "Suggestions", "is_slip", "template_words", "words_of"]

ROTATION = "auto_rotate"  # the setting whose effect is often named by a negation: "the screen shall not turn"
NAMED_WEIGHT = 4.0  # weight of a setting that a text names
SIMILARITY = 0.8  # of a mistyped word and a known one, from 0 to 1
SHORT = 4  # letters; a shorter word has no similar words
SHOWN = 3  # examples that are shown
CACHED_WORDS = 1024  # words whose correction is cached
LEAST = 3  # letters; a shorter word is taken as it is written
STATES: Mapping[str, str] = {"on": "turn_on", "off": "turn_off"}  # templates of each state
OPPOSITES = (  # names of templates; of two, those that a text resembles less are not suggested
    ("volume_up", "volume_down"),
    ("brightness_up", "brightness_down"),
    ("media_next", "media_previous"),
    ("media_play", "media_pause"),
)
SWITCHES = ("toggle", "check_setting", *STATES.values())  # templates with a setting
_PARTS = re.compile(r"<(\w+)>|{(\w+)(?::\w+)?}|([^<{]+)")  # of a template: a rule, a slot, or literal text
_WORD = re.compile(r"[\w-]+")


@frozen(kw_only=True)
class Suggestions:
    """Examples of each intent of a language, to be ranked by the words that a text shares with the intent."""

    code: str
    examples: Mapping[str, str]  # each example with the name of its templates
    vocabulary: Mapping[str, frozenset[str]]  # of the templates, by their name
    setting_examples: Mapping[str, tuple[str, str, str]]  # of each setting: on, off, and the question
    setting_names: Mapping[str, str]  # each folded name with its setting
    network_names: Mapping[str, str]  # the same of the network, for a text that names no setting
    states: Mapping[str, re.Pattern[str]]  # words of each state, of none (`idiom`), and between two requests (`clause`)
    negation: re.Pattern[str]
    _weights: Mapping[str, float] = field(init=False)  # of each word of all templates

    _setting_words: frozenset[str] = field(init=False)
    _setting_pattern: re.Pattern[str] = field(init=False)
    _network_pattern: re.Pattern[str] = field(init=False)

    @_setting_words.default
    def _split_names(self) -> frozenset[str]:
        names = (*self.setting_names, *self.network_names)
        return frozenset(word for name in names for word in words_of(name))

    @_setting_pattern.default
    def _join_names(self) -> re.Pattern[str]:
        return word_pattern(self.setting_names, self.code)

    @_network_pattern.default
    def _join_network_names(self) -> re.Pattern[str]:
        names = (name for name in self.network_names if name not in self.setting_names)
        return word_pattern(names, self.code)

    @_weights.default
    def _weigh(self) -> dict[str, float]:
        count = Counter(word for words in self.vocabulary.values() for word in words)
        return {word: log((1 + len(self.vocabulary)) / found) for word, found in count.items()}

    def nearest(self, folded: str, whole: str, likely: str = "") -> tuple[str, ...]:
        """Return examples for a text that `fold` has folded, the likeliest first. `whole` also has its polite words.

        The first `SHOWN` include the example of the intent `likely`, if there is one. There is at most one for each
        intent. If the text names settings, the examples that switch a setting are of these settings only, one for each
        setting and state.
        """
        text = _WORD.sub(lambda found: self._corrected(found[0]), folded)
        words = {self._corrected(word) for word in words_of(text)}
        first = next(iter(_WORD.findall(text)), "")
        of_settings = tuple(self._setting_examples(_WORD.sub(lambda found: self._corrected(found[0]), whole)))
        best = dict[str, tuple[float, str]]()
        others = ((name, example, self.vocabulary[name]) for example, name in self.examples.items())
        for group, example, vocabulary in (*of_settings, *others):
            if of_settings and group in SWITCHES:
                continue
            weight = self._common_weight(example, words & vocabulary)
            if group not in self.vocabulary:  # a setting that the text names
                weight += NAMED_WEIGHT
            if first in vocabulary:
                weight += self._weights[first]  # a request begins with its verb
            if group not in best or weight > best[group][0]:
                best[group] = weight, example
        for pair in OPPOSITES:
            weights = [best[group][0] if group in best else 0 for group in pair]
            if weights[0] != weights[1]:
                best.pop(pair[weights[0] > weights[1]], None)
        ranked = sorted(best.values(), key=lambda each: (-each[0], -_letters_in_common(folded, each[1])))
        if likely in best and best[likely] not in ranked[:SHOWN]:
            ranked = [best[likely], *ranked]
        return tuple(dict.fromkeys(example for _, example in ranked))

    def _setting_examples(self, text: str) -> Iterator[tuple[str, str, frozenset[str]]]:
        """Yield examples of the settings that a text names, with a group and the words of their templates.

        Each setting has the one of the state that its clause names, else the whole text, and else of `on`. It has none
        if the clause has a negation or names both states. A single setting also has its question.
        """
        clauses = [*filter(None, self.states["clause"].split(text)), text]
        named = self._named(clauses, self._setting_pattern, self.setting_names)
        named = named or self._named(clauses, self._network_pattern, self.network_names)
        is_single = len({setting for setting, _ in named}) == 1
        for setting, clause in named:
            states = self._states_of(clause, setting) or (is_single and self._states_of(text, setting)) or ("on",)
            *switched, question = self.setting_examples[setting]
            for state, example in zip(STATES, switched, strict=True):
                if states == (state,):
                    yield f"{setting} {state}", example, self.vocabulary["toggle"] | self.vocabulary[STATES[state]]
            if is_single:
                yield setting, question, self.vocabulary["check_setting"]

    @staticmethod
    def _named(clauses: Iterable[str], pattern: re.Pattern[str], names: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return each setting that a clause names, with the first such clause."""
        found = dict[str, str]()
        for clause in clauses:
            for name in pattern.findall(clause):
                found.setdefault(names[name.strip(" ,")], clause)
        return [*found.items()]

    def _states_of(self, text: str, setting: str) -> tuple[str, ...]:
        """Return the states that a text names; both for a negation, which for `ROTATION` means off."""
        plain = self.states["idiom"].sub(" ", self._setting_pattern.sub("x ", text))
        if self.negation.search(plain):
            return ("off",) if setting == ROTATION else tuple(STATES)
        return tuple(state for state in STATES if self.states[state].search(plain))

    @cached_property
    def _corrected(self) -> Callable[[str], str]:
        """Cached `_correct`: each text is corrected several times, and texts share words."""
        return lru_cache(CACHED_WORDS)(self._correct)

    def _correct(self, word: str) -> str:
        """Return the known word that a misspelled word resembles; without such a word, return the word itself."""
        is_known = word in self._weights or word in self._setting_words
        if (
            is_known
            or self.negation.search(word)
            or self.states["clause"].search(word)
            or len(word) < LEAST
            or has_chinese(word)
        ):
            return word
        slips = [known for known in self._weights if len(known) >= LEAST and is_slip(word, known)]
        if slips:
            return max(slips, key=lambda known: (known[0] == word[0], _letters_in_common(word, known), known))
        return next(iter(get_close_matches(word, self._weights, 1, SIMILARITY)), word) if len(word) >= SHORT else word

    @cached_property
    def _own_words(self) -> Callable[[str], set[str]]:
        """Cached function that returns the words of an example."""
        return cache(lambda example: words_of(fold(example, self.code).text))

    def _common_weight(self, example: str, common: set[str]) -> float:
        """Return the weight of the words that a text and an intent share; those of the example count twice."""
        own = self._own_words(example)
        return sum(self._weights[word] * (1 + (word in own)) for word in common)


def words_of(text: str) -> set[str]:
    """Return the words of a text; of Chinese text, the characters and the pairs of characters."""
    words = set[str]()
    for found in _WORD.findall(text):
        words |= {*found, *map("".join, pairwise(found))} if has_chinese(found) else {found}
    return words


def template_words(
    rows: Iterable[str], rules: Mapping[str, str], values: Mapping[str, Iterable[str]]
) -> frozenset[str]:
    """Return all words of templates, with those of their rules and of the values of their slots."""

    def expand(template: str) -> Iterator[str]:
        for rule, slot, literal in _PARTS.findall(template):
            if rule:
                yield from of_rule(rule)
            yield from words_of(literal)
            for value in values.get(slot, ()):
                yield from words_of(value)

    @cache
    def of_rule(name: str) -> frozenset[str]:
        return frozenset(expand(rules[name]))

    return frozenset(word for row in rows for word in expand(row))


def is_slip(word: str, known: str) -> bool:
    """Report whether two words are equal or differ by one letter: changed, added, left out or swapped with the next."""
    if abs(len(word) - len(known)) > 1:
        return False
    place = next((i for i, (one, other) in enumerate(zip(word, known, strict=False)) if one != other), -1)
    mine, other = (word[place:], known[place:]) if place >= 0 else (word[len(known) :], known[len(word) :])
    if mine[1:] == other[1:] or mine[1:] == other or mine == other[1:]:
        return True
    return mine[:2] == other[1::-1] and mine[2:] == other[2:]


def _letters_in_common(text: str, example: str) -> float:
    return SequenceMatcher(None, text, example, autojunk=False).ratio()
