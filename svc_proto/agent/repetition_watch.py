"""Detection of text that repeats itself at the end of a model's answer.

watch = RepetitionWatch(assembly)
stopped = watch.check()       # after each batch of events; None: the text does not repeat itself
"""

from attrs import frozen

from svc_proto.agent.completion_assembler import CompletionAssembler

__all__ = ["RepeatedText", "RepetitionWatch", "repeated_length"]

MAX_TEXT = 6_400  # characters of an answer that are compared, some 1,600 tokens
CHECK_EVERY = 200  # characters
MIN_REPEATED = 600  # characters of a text that was there before, and as many as two periods
MAX_PERIOD = 2_000  # characters of the text that is repeated


@frozen
class RepeatedText:
    """End of an answer whose text repeats itself.

    `repeated`: length of the repetition at the end of the answer's text, 0 if only the reasoning repeats itself.
    `length`: characters of the answer and its reasoning.
    """

    repeated: int
    length: int


class RepetitionWatch:
    """Watch over the answer of an assembler, and over its reasoning."""

    def __init__(self, assembly: CompletionAssembler) -> None:
        self._assembly = assembly
        self._due = CHECK_EVERY  # characters of both at the next check
        self._tails: tuple[_Tail, _Tail] | None = None  # of answer and reasoning; made at the first check

    def check(self) -> RepeatedText | None:
        """Return a `RepeatedText` if the answer or its reasoning ends in a repetition, else None.

        None is also returned while fewer than `CHECK_EVERY` characters were added since the last check.
        """
        size = self._assembly.answer_size + self._assembly.reasoning_size
        if size < self._due:
            return None
        self._due = size + CHECK_EVERY
        if self._tails is None:
            self._tails = _Tail(self._assembly.answer_pieces), _Tail(self._assembly.reasoning_pieces)
        answer, reasoning = self._tails
        repeated = answer.repeated_length()
        if not (repeated or reasoning.repeated_length()):
            return None
        return RepeatedText(min(repeated, self._assembly.answer_size), size)


class _Tail:
    """The last characters of a growing text, which is a list of pieces; a retraction of the text empties the list."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces
        self._count = 0  # pieces that are in `_text`
        self._text = ""

    def repeated_length(self) -> int:
        """Return the length of the repetition at the end of the text; 0 if there is none or the text has not grown."""
        pieces, count = self._pieces, self._count
        if len(pieces) == count:
            return 0
        if len(pieces) < count:
            count, self._text = 0, ""
        self._count = len(pieces)
        self._text = self._text[-2 * MAX_TEXT :] + "".join(pieces[count:])
        return repeated_length(self._text)


def repeated_length(text: str) -> int:
    """Return how many characters at the end of a text repeat what stands before them; 0 if none do.

    Counted is a repetition of at least two periods and `MIN_REPEATED` characters, with a period of at most
    `MAX_PERIOD`. At most eight periods are tried. A repetition of blanks alone does not count.
    """
    tail = text[-MAX_TEXT:]
    key = tail[-24:]
    place = tail.rfind(key, 0, len(tail) - 1)
    for _ in range(8):  # periods of a text whose key occurs more than once in a period
        if place < 0:
            return 0
        period = len(tail) - len(key) - place
        if period > MAX_PERIOD:
            return 0
        repeated = max(2 * period, MIN_REPEATED)
        if len(tail) >= repeated + period and tail[-repeated:] == tail[-repeated - period : -period]:
            return _extended(text, period, repeated) if tail[-period:].strip() else 0
        place = tail.rfind(key, 0, place + len(key) - 1)
    return 0


def _extended(text: str, period: int, repeated: int) -> int:
    """Return the whole length of a repetition whose last `repeated` characters are known."""
    start = len(text) - repeated
    while start >= 2 * period and text[start - period : start] == text[start - 2 * period : start - period]:
        start -= period
    while start > period and text[start - 1] == text[start - 1 - period]:
        start -= 1
    return len(text) - start
