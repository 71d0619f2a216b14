"""Splitter of an answer's text into reasoning and answer, for models that write `<think>…</think>` into the content.

Tags may be cut anywhere between two pieces. An opening tag counts at the start of a line outside code. The first
closing tag without an opening one ends reasoning whose opening tag is part of the model's prompt: then all text so far
is reasoning. In code, behind a quotation mark or after reasoning that has ended it is text. After `MAX_TAGS` tags all
is taken as it comes.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["MARKS", "Piece", "ThoughtSplitter", "without_thoughts"]

MAX_TAGS = 100  # tags of one answer that are looked at; further ones are text

_NAMES = ("think", "thinking", "thought", "reasoning")
# Opening and closing tags, by the closing one: those of most models, of Mistral's, and of Kimi's.
_CLOSING = {f"<{name}>": f"</{name}>" for name in _NAMES} | {"[think]": "[/think]", "◁think▷": "◁/think▷"}
_OPENING = {closing: opening for opening, closing in _CLOSING.items()}
_TAGS = (*_CLOSING, *_OPENING)
_TAG = re.compile("|".join(map(re.escape, _TAGS)), re.IGNORECASE)
LONGEST = max(map(len, _TAGS))
MARKS = ("<", "[", "◁")  # first characters of the tags
FENCE = "```"


class Piece(NamedTuple):
    """A piece of text. `retracts`: all answer text before it was reasoning, too."""

    text: str
    reasoning: bool
    retracts: bool = False


class ThoughtSplitter:
    """Splitter of one answer's text into reasoning and answer. The caller appends the answer's pieces to `answer`."""

    def __init__(self, answer: list[str]) -> None:
        self.is_plain = True  # text without any of `MARKS` is answer text, unchanged
        self._answer = answer
        self._kept = ""  # the start of a tag, perhaps
        self._closing = ""  # the tag that ends the reasoning; empty outside of it
        self._has_thought = False  # reasoning in tags has ended
        self._trims = False  # blanks between reasoning and answer are dropped
        self._tags_left = MAX_TAGS

    def feed(self, text: str) -> Iterator[Piece]:
        """Split the next text and yield its pieces. The caller appends each piece of the answer before the next one."""
        text, self._kept = self._kept + text, ""
        start = 0
        while self._tags_left and (found := _TAG.search(text, start)) is not None:
            self._tags_left -= 1
            tag = found[0].lower()
            yield from self._piece(text[start : found.start()])
            start = found.end()
            if tag == self._closing:
                self._end_thought()
            elif self._closing or self._is_quoted(opens=tag in _CLOSING):
                yield from self._piece(found[0])
            elif tag in _CLOSING:
                self._closing = _CLOSING[tag]
            else:
                yield Piece("", reasoning=True, retracts=True)
                self._end_thought()
        rest = text[start:]
        size = _kept_size(rest) if self._tags_left else 0
        yield from self._piece(rest[: len(rest) - size])
        self._kept = rest[len(rest) - size :]
        self.is_plain = not (self._kept or self._closing or self._trims)

    def finish(self) -> Iterator[Piece]:
        """Return the text that was held back as the possible start of a tag, at the end of the answer."""
        kept, self._kept = self._kept, ""
        return self._piece(kept)

    # --- helpers ---

    def _piece(self, text: str) -> Iterator[Piece]:
        if self._trims and not self._closing:
            text = text.lstrip()
            self._trims = not text
        if text:
            yield Piece(text, bool(self._closing))

    def _end_thought(self) -> None:
        self._closing = ""
        self._has_thought = self._trims = True

    def _is_quoted(self, *, opens: bool) -> bool:
        """Report whether a tag at this place is only text of the answer.

        That is a tag in a code block, an opening tag within a line, and a closing tag after a quotation mark or after
        reasoning that has ended.
        """
        text = "".join(self._answer)
        if sum(line.lstrip().startswith(FENCE) for line in text.split("\n")) % 2:
            return True
        if opens:
            return bool(text.rpartition("\n")[2].strip())
        return self._has_thought or text.endswith(("`", '"', "'"))


def without_thoughts(text: str) -> str:
    """Return a whole answer without the reasoning between tags at its start."""
    while (opening := _TAG.match(text.lstrip())) is not None and opening[0].lower() in _CLOSING:
        closing = re.escape(_CLOSING[opening[0].lower()])
        end = re.compile(closing, re.IGNORECASE).search(text)
        if end is None:
            break
        text = text[end.end() :].lstrip()
    return text


def _kept_size(text: str) -> int:
    """Return the length of the longest end of a text that may be the start of a tag."""
    tail = text[1 - LONGEST :].lower()
    for place, letter in enumerate(tail):
        if letter in MARKS and any(tag.startswith(tail[place:]) for tag in _TAGS):
            return len(tail) - place
    return 0
