"""Folding of text for search: no accents or case, each character of a script without spaces a word.

Stored text and queries are folded alike, so that the search does not depend on the database's Unicode support.
"""

import re
import unicodedata
from functools import lru_cache

from runtimes.store.sql_executor import UNSTORABLE

__all__ = ["has_letters", "fold_text", "build_snippet", "parse_terms"]

MAX_QUERY = 1_000  # characters of a query that are used
MAX_TERMS = 32  # words of a query that are used: databases limit the depth of an expression
BEFORE, AFTER = 60, 120  # characters of a snippet around the beginning of the first hit

# Patterns that `re` compiles when they are first needed: most programs that open a store never search.
_ACCENTS = "[\u0300-\u036f\u0591-\u05bd\u064b-\u0655\u0670]"  # Latin, Greek, Cyrillic; Hebrew; Arabic
# Thai, Lao, Myanmar, Khmer, kana, Bopomofo, Han: written without spaces, so each character is a word of its own.
_SPACELESS = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_LETTERS = r"[^\W_]+"


def fold_text(text: str) -> str | None:
    """Return the folded text; None for an ASCII text, which searches compare without regard to case."""
    return None if text.isascii() else _fold(text)


def parse_terms(query: str) -> tuple[str, ...]:
    """Return the first 32 different words, folded, of the first 1,000 characters of a query."""
    words = UNSTORABLE.sub(" ", query[:MAX_QUERY]).split()
    return tuple(dict.fromkeys(filter(None, map(_fold, words))))[:MAX_TERMS]


def has_letters(term: str) -> bool:
    """Report whether a term has a letter or a digit, which a full-text index needs."""
    return re.search(_LETTERS, term) is not None


def build_snippet(text: str, wanted: tuple[str, ...]) -> str:
    """Return one line of a text around the first hit, or of its beginning without a hit.

    Each hit in the line is between `>>>` and `<<<`, and cuts are marked with `...`.
    """
    text = unicodedata.normalize("NFC", text)
    folded, places = _fold_with_places(text)
    hits = _hits(folded, wanted)
    start, end = 0, len(text)
    if hits:
        first = places[hits[0][0]]
        start = max(0, first - BEFORE)
        if start:
            start = max(start, text.find(" ", start, first) + 1)  # do not cut a word
    end = min(end, start + BEFORE + AFTER)
    parts = ["..."] if start else []
    told = start
    for begin, past in ((places[begin], min(places[past - 1] + 1, end)) for begin, past in hits):
        if told <= begin < past:
            parts += [text[told:begin], ">>>", text[begin:past], "<<<"]
            told = past
    if end < len(text):
        cut = text.rfind(" ", told, end)
        end = cut if cut != -1 else end
        parts += [text[told:end], "..."]
    else:
        parts.append(text[told:])
    return " ".join("".join(parts).split())


def _fold(text: str) -> str:
    return " ".join("".join(map(_fold_character, unicodedata.normalize("NFC", text))).split())


@lru_cache(maxsize=20_000)
def _fold_character(character: str) -> str:
    folded = re.sub(_ACCENTS, "", unicodedata.normalize("NFKD", character)).casefold()
    folded = unicodedata.normalize("NFKC", folded)
    return f" {folded} " if re.search(_SPACELESS, folded) else folded


def _fold_with_places(text: str) -> tuple[str, range | list[int]]:
    """Return the folded text, and for each of its characters the index in `text` of its origin."""
    if text.isascii():
        return text.lower(), range(len(text))
    folded = [_fold_character(character) for character in text]
    return "".join(folded), [place for place, part in enumerate(folded) for _ in part]


def _hits(folded: str, wanted: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the spans of words that begin with a wanted term, or if there is none, of terms inside words."""
    if not wanted:
        return []
    pattern = "|".join(map(_pattern, sorted(wanted, key=len, reverse=True)))
    for anchored in (rf"(?<![^\W_])(?:{pattern})", pattern):
        found = [hit.span() for hit in re.finditer(anchored, folded)]
        if found:
            return found
    return []


def _pattern(term: str) -> str:
    parts = re.findall(_LETTERS, term)
    if not parts:
        return re.escape(term)
    return r"[\W_]+".join(map(re.escape, parts)) + r"[^\W_]*"
