"""Words of numbers in the language of a sentence."""

from collections.abc import Mapping

from unicode_rbnf import RbnfEngine

from runtimes.sentences.folding import fold

__all__ = ["number_words"]

MAX_NUMBER = 100  # the highest number that is known as a word


def number_words(code: str, more: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the words of the numbers up to `MAX_NUMBER` and of `more`, with their digits, longest first."""
    engine = RbnfEngine.for_language(code)
    words = {
        fold(word.replace("\u00ad", ""), code).text: str(number)
        for number in range(MAX_NUMBER + 1)
        for ruleset, word in engine.format_number(number).text_by_ruleset.items()
        if "financial" not in ruleset and "days" not in ruleset
    }
    words |= {fold(word, code).text: str(number) for word, number in more.items()}
    return sorted(words.items(), key=lambda pair: -len(pair[0]))
