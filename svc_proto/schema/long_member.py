"""Incremental reader of JSON text of which one member is a long string, such as the content of a file.

    reader = LongMemberReader(("content_base64",))
    content = reader.receive_text(text)        # for each piece of the JSON text: what it has of the long string
    rest = reader.finish()                     # the JSON text, with "" in place of the long string

The first string member with one of the names counts as long, at any depth and whatever its length, unless the name has
escapes or more than `MAX_GAP` characters separate it from the value. Only strings are recognized here: `rest` still has
to be parsed, which finds all other errors. The long string is not stored.
"""

import re
from collections.abc import Collection

from svc_proto.basics import strict_json
from svc_proto.basics.strict_json import MAX_STRINGS, JsonError, JsonTooLarge

__all__ = ["LongMemberReader"]

MAX_ESCAPE = 12  # characters: a letter beyond U+FFFF is escaped by two times `\u` and four digits
MAX_GAP = 64  # characters between a name and its value; after more of them the member is part of the rest
_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)  # content of a string, up to its end or a lone backslash
_CONTROL = re.compile("[\x00-\x1f]")  # RFC 8259 section 7: in strings these are escaped


class LongMemberReader:
    """Reader of one JSON text, which arrives in pieces."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._rest: list[str] = []
        self._strings = 0
        self._last = ""  # beginning of the latest string of the rest
        self._gap = ""  # what follows that string
        self._cut = ""  # received, but cut within an escape
        self._in_string = False
        self._in_long = False
        self.name = ""  # of the long member; empty before it begins
        self.line = 0  # of the long member: the line ends before it
        self.size = 0  # characters of the rest

    def receive_text(self, text: str) -> str:
        """Read the next piece of the JSON text; return what it has of the long string, unescaped.

        Raises `JsonError` if the long string is invalid, or for too many strings; nothing may be read after that.
        """
        found: list[str] = []
        text, self._cut, place = self._cut + text, "", 0
        while place < len(text):
            if not self._in_string:
                place = self._read_gap(text, place)
                continue
            match = _STRING.match(text, place)
            assert match is not None  # it matches an empty text
            end = match.end()
            is_over = text.startswith('"', end)
            piece, self._cut = text[place:end], "" if is_over else text[end:]
            if self._in_long:
                found.append(self._unescape(piece, is_over))
            else:
                self._last = (self._last + piece[:MAX_GAP])[:MAX_GAP]
                self._keep(piece)
            if is_over:
                self._in_string = self._in_long = False
                self._keep('"')
            place = end + 1 if is_over else len(text)
        return "".join(found)

    def finish(self) -> str:
        """Return the rest, after the last piece. Raises `JsonError` if the text ends within the long string."""
        if self._in_long:
            raise JsonError("the text ends within a string")
        return "".join((*self._rest, self._cut))

    def _keep(self, text: str) -> None:
        self._rest.append(text)
        self.size += len(text)

    def _read_gap(self, text: str, place: int) -> int:
        """Read up to the beginning of the next string; return the place behind its quote, or the end of the text."""
        quote = text.find('"', place)
        end = len(text) if quote < 0 else quote + 1
        self._gap += text[place : end if quote < 0 else quote][: MAX_GAP + 1]
        self._keep(text[place:end])
        if quote >= 0:
            self._in_string = True
            self._strings += 1
            if self._strings > MAX_STRINGS:
                raise JsonTooLarge(f"more than {MAX_STRINGS} strings")
            is_value = self._gap.strip(" \t\r\n") == ":" and len(self._gap) <= MAX_GAP
            if is_value and not self.name and self._last in self._names:
                self._in_long, self.name = True, self._last
                self.line = sum(piece.count("\n") for piece in self._rest)
            self._last = self._gap = ""
        return end

    def _unescape(self, piece: str, is_last: bool) -> str:
        """Return the text of a piece of the long string; unless it is the last one, a cut escape stays unread."""
        if _CONTROL.search(piece):
            raise JsonError("a control character in a string")
        if "\\" not in piece:
            return piece
        for held in range(1 if is_last else MAX_ESCAPE):
            end = len(piece) - held
            try:
                text = str(strict_json.loads(f'"{piece[:end]}"'))
            except JsonError:
                continue
            self._cut = piece[end:] + self._cut
            return text
        raise JsonError("an invalid escape in a string")
