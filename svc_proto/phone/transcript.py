"""Transcript of the conversation between user and agent, for the phone's screen: the latest lines.

| kind     | content                                            |
|----------|----------------------------------------------------|
| `person` | text of the user, or the transcript of a recording |
| `agent`  | an answer; one that arrives in pieces grows        |
| `note`   | other texts for the user                           |
"""

from __future__ import annotations

from collections import deque

from attrs import define

from svc_proto.commands import Notify

__all__ = ["PhoneTranscript"]

MAX_LINES = 50  # the oldest is dropped
MAX_LINE_CHARS = 20_000  # characters of one line that are displayed
CUT = " … (the rest is not shown here)"


class PhoneTranscript:
    """The latest lines of the conversation of user and agent, oldest first."""

    def __init__(self) -> None:
        self._lines = deque[_TranscriptLine](maxlen=MAX_LINES)
        self._growing: _TranscriptLine | None = None  # the answer that has not ended yet
        self._count = 0

    def lines(self) -> list[dict[str, object]]:
        """Return the lines, each with `id`, `kind` and `text`."""
        return [{"id": line.number, "kind": line.kind, "text": line.text} for line in self._lines]

    def add_user_text(self, text: str) -> None:
        """Add a text of the user."""
        self._add("person", text)

    def add_event(self, news: Notify) -> None:
        """Add an event of the phone; ignore events outside the conversation."""
        text = str(news.fields.get("text", ""))
        match news.event:
            case "answer":
                self._grow(text)
            case "answered":
                self._growing = None
            case "spoken":
                self._add("agent", text)
            case "heard":
                self._add("person", text)
            case "note":
                self._add("note", text)

    def _grow(self, text: str) -> None:
        if self._growing is None or self._growing.number < self._lines[0].number:  # dropped since its start
            self._growing = self._add("agent", "")
        self._growing.text = _cut(self._growing.text.removesuffix(CUT) + text)

    def _add(self, kind: str, text: str) -> _TranscriptLine:
        self._count += 1
        line = _TranscriptLine(self._count, kind, _cut(text))
        self._lines.append(line)
        return line


@define
class _TranscriptLine:
    number: int
    kind: str
    text: str


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LINE_CHARS else text[:MAX_LINE_CHARS] + CUT
