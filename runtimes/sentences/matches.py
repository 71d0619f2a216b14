"""Rank, places and values of hassil's matches of a sentence with templates."""

from typing import TypeAlias

from hassil.models import MatchEntity
from hassil.recognize import RecognizeResult

from runtimes.sentences.folding import Folded

__all__ = ["Score", "fixed_value", "is_bare_setting", "is_in_place", "score", "with_skipped"]

Score: TypeAlias = tuple[int, int, int, str]

_GUESS = "吧"  # of Chinese: ends a guess, or a mild request


def score(match: RecognizeResult, candidate: Folded) -> Score:
    """Return the rank of a match; the lowest rank is the best.

    It consists of the length of the free text, the number of its slots, the negative length of the compared text, and
    the intent's name.
    """
    free = [entity for entity in match.entities_list if entity.is_wildcard]
    return sum(len(entity.text) for entity in free), len(free), -len(candidate.text), match.intent.name


def is_in_place(match: RecognizeResult, candidate: Folded) -> bool:
    """Report whether each free text of a match is the part of the compared text that its place names.

    hassil misplaces a text behind a blank that it ignores. It leaves punctuation out of the text.
    """
    return all(
        entity.text_span is not None and _letters(candidate.text[slice(*entity.text_span)]) == _letters(entity.text)
        for entity in match.entities_list
        if entity.is_wildcard
    )


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def is_bare_setting(intent: str, match: RecognizeResult, text: str) -> bool:
    """Report whether a sentence that would switch a setting may be a question for its state.

    Such a sentence has only a setting and a state, without a verb, or is of the intent `turn_off`, begins with the
    setting and ends in the Chinese particle `_GUESS`.
    """
    if intent == "turn_off" and text.endswith(_GUESS):  # "off, isn't it" or "switch it off", of a setting named first
        return any(entity.name == "setting" and text.startswith(entity.text) for entity in match.entities_list)
    if intent != "toggle":
        return False
    return len(text.split()) == sum(len(entity.text.split()) for entity in match.entities_list)


def fixed_value(entity: MatchEntity) -> str:
    """Return the value of a slot whose values the templates list."""
    return str(int(entity.value)) if isinstance(entity.value, float) else str(entity.value)


def with_skipped(candidate: Folded, span: tuple[int, int], end_of_text: int) -> tuple[int, int]:
    """Return the place of a free text in the original sentence, extended by the skipped words beside it."""
    start, end = span
    first = candidate.places[start - 1] + 1 if start else 0
    behind = candidate.text[end:].lstrip(" ,;")
    return first, candidate.places[len(candidate.text) - len(behind)] if behind else end_of_text
