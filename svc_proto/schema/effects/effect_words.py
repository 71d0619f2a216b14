"""Kinds of effects by the labels of controls and the texts of dialogs, in the languages of many phones.

    kind_of_label("Jetzt kaufen")      # EffectKind.PURCHASE

A text is compared in its plain form (`svc_proto.basics.plain_letters`).
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from svc_proto.basics.plain_letters import plain
from svc_proto.schema.effects import label_words
from svc_proto.schema.effects.effect_kinds import EffectKind

__all__ = ["MAX_WORDS", "is_confirming", "is_harmless", "is_refreshing", "kind_of_label", "kind_of_sentence"]

MAX_WORDS = 6  # words of a label; a longer text is no label
MAX_LABEL = 48  # characters
MAX_EXTRA = 1.6  # times the length of a phrase that an entry of a list may have
MAX_UNSPACED = 12  # characters of a label in a script without spaces

_NOUNS = frozenset(label_words.NOUNS.split("|"))
_NOUN_ENDINGS = frozenset(label_words.NOUN_ENDINGS.split("|"))
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def _phrases(words: str) -> frozenset[str]:
    return frozenset(_letters(each) for line in words.splitlines() for each in line.split("|") if each.strip())


@lru_cache(maxsize=1)
def _net() -> tuple[dict[str, EffectKind], tuple[tuple[str, EffectKind], ...]]:
    """Return the kinds of effects by phrase.

    The first value has the phrases without letters of `_UNSPACED`, the second those with one, longest first.
    """
    spaced: dict[str, EffectKind] = {}
    unspaced: dict[str, EffectKind] = {}
    for kind, words in label_words.EFFECT_WORDS.items():
        for phrase in sorted(_phrases(words)):
            (unspaced if _UNSPACED.search(phrase) else spaced).setdefault(phrase, kind)
    return spaced, tuple(sorted(unspaced.items(), key=lambda item: -len(item[0])))


@lru_cache(maxsize=1)
def _harmless() -> frozenset[str]:
    return _phrases(label_words.HARMLESS)


@lru_cache(maxsize=1)
def _refreshing() -> frozenset[str]:
    """Return the words for loading again, alone and joined with the words for what is loaded."""
    words, things = _phrases(label_words.REFRESHING), _phrases(label_words.REFRESHED)
    pairs = (pair for word in words for each in things for pair in ((word, each), (each, word)))
    return words | {phrase for pair in pairs for phrase in (" ".join(pair), "".join(pair))}


@lru_cache(maxsize=1)
def _lures() -> frozenset[str]:
    return _phrases(label_words.LURES)


@lru_cache(maxsize=1)
def _confirming() -> frozenset[str]:
    return _phrases(label_words.CONFIRMING)


def is_harmless(labels: Iterable[str]) -> bool:
    """Report whether all labels only leave, refuse or look: Back, Cancel, No, Search. False without labels."""
    found = [_letters(label) for label in labels]
    return bool(found) and all(label in _harmless() for label in found)


def is_confirming(labels: Iterable[str]) -> bool:
    """Report whether any label agrees to the text of its screen: OK, Yes, Continue, or a sign for them."""
    return any(
        _letters(label) in _confirming() or _kind_of_symbols(label) is EffectKind.CONFIRMATION for label in labels
    )


def is_refreshing(labels: Iterable[str]) -> bool:
    """Report whether any label only loads a page or a list again: Update, Update the list.

    In a store it may install an app.
    """
    return any(_letters(label) in _refreshing() for label in labels)


def kind_of_label(label: str, *, whole: bool = False) -> EffectKind | None:
    """Return the kind of effect that a label names, or None.

    With `whole`, as for an entry of a list, a phrase counts only if the label has hardly any other text.
    """
    if len(label) > MAX_LABEL:
        return None
    text = _letters(label)
    if not text:
        return _kind_of_symbols(label)
    if text in _harmless() or text in _refreshing():
        return None
    spaced, unspaced = _net()
    if text in spaced:
        return spaced[text]
    for phrase, kind in unspaced:
        if text == phrase or (phrase in text and len(text) <= (len(phrase) * MAX_EXTRA if whole else MAX_UNSPACED)):
            return kind
    words = text.split()
    if not whole and len(words) <= MAX_WORDS and words[-1] not in _NOUN_ENDINGS:
        for size in range(len(words) - 1, 0, -1):
            last = " ".join(words[-size:])
            found = spaced.get(" ".join(words[:size])) or (None if last in _NOUNS else spaced.get(last))
            if found is not None:
                return found
    return _kind_of_symbols(label)


def kind_of_sentence(text: str) -> EffectKind | None:
    """Return the kind of an effect that a sentence names anywhere, as the text of a dialog does; None for none.

    A sentence that only lures to a press counts as `CONFIRMATION`.
    """
    found = _letters(text)
    spaced, unspaced = _net()
    words = found.split()
    for size in (4, 3, 2, 1):
        for start in range(len(words) - size + 1):
            phrase = " ".join(words[start : start + size])
            if phrase in spaced and not (start and phrase in _NOUNS):
                return spaced[phrase]
    if (kind := next((kind for phrase, kind in unspaced if phrase in found), None)) is not None:
        return kind
    lured = any(f" {lure} " in f" {found} " or (_UNSPACED.search(lure) and lure in found) for lure in _lures())
    return EffectKind.CONFIRMATION if lured else None


def _letters(label: str) -> str:
    """Return a label in plain form without punctuation and symbols; vowel signs of Indic scripts are letters here."""
    return " ".join("".join(" " if unicodedata.category(each)[0] in "PS" else each for each in plain(label)).split())


def _kind_of_symbols(label: str) -> EffectKind | None:
    return next(
        (kind for kind, signs in label_words.EFFECT_SYMBOLS.items() if any(sign in label for sign in signs)), None
    )
