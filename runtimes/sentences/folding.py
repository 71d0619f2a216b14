"""Folded text, for matching: lower case and plain letters, each with its place in the original text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from attrs import frozen

from runtimes.sentences.chinese import simplify

__all__ = ["OWN_WORDS", "TRIMMED", "Folded", "fold", "fold_sentence", "fold_template", "has_chinese", "word_pattern"]

TRIMMED = " .,:;\"'„“”«»-\uff0c\uff1a。\n"  # at the edges of the user's own words
OWN_WORDS = frozenset({"message", "rest", "text"})  # slots whose words are the user's own, so that none may be skipped
_GERMAN = {"ä": "a", "ö": "o", "ü": "u", "ae": "a", "oe": "o", "ue": "u"}
_BLANKS = re.compile(r"[-\u2010-\u2015:]")
_COLONS = ":\uff1a"  # in Chinese, one between digits is a blank, and every other one separates
_SLOT = re.compile(r"({[^}]*}|<[^>]*>)")
_DOTTED = re.compile(r"(?<=\b[ap])\.(?=m\b)|(?<=\b[ap]\.m)\.")
_ZH_BLANKS = re.compile(r"(?<![a-z0-9]) +| +(?![a-z0-9])")
_IDEOGRAPH = re.compile("[\u4e00-\u9fff]")


@frozen
class Folded:
    """Text for matching; `places` has, for each character of it, the index of its source in the original."""

    text: str
    places: tuple[int, ...]

    def without(self, pattern: re.Pattern[str]) -> Folded:
        """Return the text without the matches of a pattern, stripped."""
        kept = [True] * len(self.text)
        for match in pattern.finditer(self.text):
            kept[slice(*match.span())] = [False] * (match.end() - match.start())
        pairs = [pair for pair, keep in zip(zip(self.text, self.places, strict=True), kept, strict=True) if keep]
        return Folded("".join(letter for letter, _ in pairs), tuple(place for _, place in pairs)).strip()

    def part(self, start: int, end: int) -> Folded:
        """Return the part `text[start:end]`, stripped."""
        return Folded(self.text[start:end], self.places[start:end]).strip()

    def strip(self) -> Folded:
        """Return the text without blanks, commas and semicolons at its ends."""
        begin = len(self.text) - len(self.text.lstrip(" ,;"))
        end = len(self.text.rstrip(" ,;"))
        return self if (begin, end) == (0, len(self.text)) else Folded(self.text[begin:end], self.places[begin:end])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return where the part `text[start:end]` starts and ends in the original text."""
        return self.places[start], self.places[end - 1] + 1


def fold(text: str, language: str) -> Folded:
    """Fold a text: lower case, no accents, blanks for hyphens and colons, and stripped.

    German `ae`, `oe` and `ue` lose their `e`, and the dots of "a.m." are left out. Chinese is simplified, and
    keeps its colons except between digits.
    """
    if language == "zh":
        text = simplify(text)
    letters: list[str] = []
    places: list[int] = []
    skipped = {match.start() for match in _DOTTED.finditer(text)}
    place = 0
    while place < len(text):
        pair = text[place : place + 2].lower() if language == "de" else ""
        size = 2 if pair in _GERMAN else 1
        folded = "" if place in skipped else _fold_letter(pair if size == 2 else text[place].lower(), language)
        if folded == ":" and text[place + 1 : place + 2].isdigit() and text[max(place - 1, 0)].isdigit():
            folded = " "
        letters += folded
        places += [place] * len(folded)
        place += size
    return Folded("".join(letters), tuple(places)).strip()


def fold_sentence(text: str, language: str) -> Folded:
    """Fold a text; in Chinese, also remove the blanks beside Chinese characters."""
    whole = fold(text, language)
    return whole.without(_ZH_BLANKS) if language == "zh" else whole


def has_chinese(text: str) -> bool:
    """Report whether a text has Chinese characters."""
    return _IDEOGRAPH.search(text) is not None


def fold_template(template: str, language: str) -> str:
    """Return a template whose literal parts are folded and whose slots are unchanged."""
    pieces = _SLOT.split(template)
    return "".join(each if place % 2 else _fold_literal(each, language) for place, each in enumerate(pieces))


def word_pattern(words: Iterable[str], language: str) -> re.Pattern[str]:
    """Return a pattern that matches any of the words, the longest first; without words, it matches nothing.

    It matches whole words in folded text, with the blanks and commas behind them. Chinese words match anywhere.
    """
    found = sorted({fold(word, language).text for word in words if word}, key=len, reverse=True)
    if not found:
        return re.compile("(?!)")
    joined = "|".join(map(re.escape, found))
    return re.compile(joined if language == "zh" else rf"(?<![\w'])(?:{joined})(?:(?<=')|(?![\w']))[ ,]*")


def _fold_literal(text: str, language: str) -> str:
    folded = "".join(_fold_letter(letter, language) for letter in text.lower())
    return re.sub("[aou]e", lambda found: found[0][0], folded) if language == "de" else folded


def _fold_letter(letter: str, language: str) -> str:
    if letter in "\u2019`\u00b4":
        return "'"
    if letter == "%" and language != "zh":
        return " % "
    if letter == "\uff0c":  # full-width comma
        return ","
    if language == "zh" and letter in _COLONS:
        return ":"
    if _BLANKS.fullmatch(letter):
        return " "
    if language == "de" and letter in _GERMAN:
        return _GERMAN[letter]
    if letter == "ß":
        return "ss"
    if letter.isascii() or _IDEOGRAPH.fullmatch(letter):
        return letter
    return "".join(each for each in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(each)).lower()
