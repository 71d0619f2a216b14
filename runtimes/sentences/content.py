"""Edges of the user's own words: messages, notes, typed text, searches, and texts to tap.

A word of the sentence is a part of such a text, or it is a word of the template. So nothing is cut from its edges
unless that is certain: a conjunction that begins a message ("that", "q" in a Spanish text), or a word of courtesy. A
text whose edge may belong to the request, as in "inform Ada to come", is not certain, and the request is not performed.
"""

import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from runtimes.sentences.folding import TRIMMED, Folded, fold

__all__ = ["ContentRules", "load_content", "quoted_parts"]

SLOTS: Mapping[str, str] = {
    "send_text": "message",
    "remember": "text",
    "type": "text",
    "clipboard_write": "text",
    "web_search": "query",
    "find_text": "query",
    "navigate": "destination",
    "tap": "text",
}
REPORTED = ("send_text", "remember")  # intents whose text can begin with a conjunction that is no part of it
CHINESE_WORD = 4  # characters of a Chinese text that counts as a single word
MAX_NAME = 4  # words before a conjunction that can be a name
_COLON = re.compile("[:\uff1a]\\W*$")
_QUOTED = re.compile(r'["“”„«「『]\s*(.*?[^\s"“”„«»「」『』].*?)\s*["“”»」』]')
_OPENING = "\"'„“”«"
_QUOTES = re.compile('["„“”«»]')


@frozen(kw_only=True)
class ContentRules:
    """Rules of one language for the edges of the user's own words."""

    code: str
    conjunction: re.Pattern[str]  # at the start of a folded text: it is no part of a message or a note
    stays: re.Pattern[str]  # at the start of a folded text: a conjunction that the clause behind it needs
    joined: re.Pattern[str]  # a conjunction between a name and a message, in folded text
    kept: re.Pattern[str]  # as it is written: a text that begins with what looks like a conjunction
    unsure: re.Pattern[str]  # as it is written: where a text may begin with what looks like a conjunction
    first: re.Pattern[str]  # at the start of a folded text: it may belong to the request
    typed: re.Pattern[str]  # the same, for typed text only
    noted: re.Pattern[str]  # the same, for notes only
    timed: re.Pattern[str]  # the same, for messages only: it may be the time to send them
    led: re.Pattern[str]  # at the end of a folded text: a message follows that may begin with a time
    asked: re.Pattern[str]  # conjunctions of an indirect question, with which no search begins
    last: re.Pattern[str]  # at the end of a folded text: more words belong to it
    courtesy: re.Pattern[str]  # at an edge of a search: it is no part of it
    closing: re.Pattern[str]  # at the end of a folded text: it may belong to the request
    ending: re.Pattern[str]  # courtesy and thanks at the end of a search
    target: re.Pattern[str]  # fields; typed text that names one may name where to type
    lead: re.Pattern[str]  # at the start of a label: it is hardly a part of it
    place: re.Pattern[str]  # behind a search: it may be a part of it
    translated: re.Pattern[str]  # a search behind a courtesy: that word is to be translated, so it is a part of it

    def settled(self, intent: str, slots: Mapping[str, str], text: str, start: int) -> dict[str, str] | None:
        """Return the slots with certain edges of the user's own words; None if an edge is not certain.

        `text` is the sentence, and `start` the place in it where the own words can begin.
        """
        slot = SLOTS.get(intent, "")
        if slot not in slots:
            return None if self._ends_with_field(slots.get("rest", "")) else dict(slots)
        value = slots[slot]
        start = text.find(value, start)
        if start < 0 or not value:
            return None
        if intent == "tap":
            field = self.target.search(fold(value, self.code).text)
            if field is not None and field.start():  # what to type, and where
                return None
            if len(quoted := quoted_parts(text[start:])) == 1:
                return {slot: quoted[0]}
            shorter = self._stripped(value, self.lead)
            return {**slots, slot: shorter} if shorter == value else {"long": value, **slots, slot: shorter}
        if slot in ("query", "destination"):
            is_clause = slot == "query" and self.asked.match(fold(value, self.code).text) is not None
            return None if is_clause or self._ends_early(value, text) else {**slots, slot: value}
        start, is_certain = self._start_of(text, start)
        value = value if text.startswith(value, start) else text[start : text.find(value, start) + len(value)]
        is_literal = self._is_literal(text[:start])
        is_led = self.led.search(fold(text[:start], self.code).text) is not None
        edged = self.content(intent, value, is_literal=is_literal, is_led=is_led) if is_certain else None
        is_whole = is_literal and _QUOTES.search(value) is None
        names_field = intent == "type" and not is_whole and self.target.search(fold(value, self.code).text)
        return None if edged is None or names_field or self._ends_early(edged, text) else {**slots, slot: edged}

    def content(self, intent: str, value: str, *, is_literal: bool = False, is_led: bool = False) -> str | None:
        """Return a message, note or typed text; None if its start is not certain, or nothing is left.

        A conjunction that certainly begins a message or note is cut. A literal text stands behind a colon or in
        quotation marks, so that its words can belong to nothing else. If a word such as "that" leads to a message
        (`is_led`), a time at its start is a part of it.
        """
        if self.kept.match(value):
            return value
        folded = fold(value, self.code)
        found = self.conjunction.match(folded.text)
        if found is not None and intent in REPORTED:
            is_led = True
            if self.unsure.match(value):
                return None
            value = value[folded.places[found.end()] :].strip(TRIMMED) if found.end() < len(folded.text) else ""
            folded, found = fold(value, self.code), None
        if is_literal:
            return value or None
        if intent in REPORTED and self.conjunction.fullmatch(f"{folded.text} "):
            return None
        more = {"remember": self.noted, "send_text": self.first}.get(intent, self.typed)
        begins_early = any(pattern.match(folded.text) for pattern in (self.first, more))
        if intent == "send_text" and not is_led:
            begins_early |= self.timed.match(fold(self._stripped(value, self.courtesy), self.code).text) is not None
        return None if found or begins_early or not value else value

    def is_certain(self, intent: str, value: str, before: str) -> bool:
        """Report whether the own words `value` of a sentence certainly begin and end there.

        They do in quotation marks and behind a colon. Other words do not if their end may belong to the request. They
        must be a single word or follow a word that leads to them; in a text message, a conjunction does not if it
        stays. `before` is the part of the sentence before them.
        """
        if self._is_literal(before):
            return True
        folded = fold(value, self.code).text
        if self.closing.search(folded):
            return False
        if self.stays.match(folded):
            return intent != "send_text"
        is_single = len(folded) <= CHINESE_WORD if self.code == "zh" else " " not in folded
        return is_single or self.led.search(fold(before, self.code).text) is not None

    @staticmethod
    def _is_literal(before: str) -> bool:
        return _COLON.search(before) is not None or before.rstrip()[-1:] in tuple(_OPENING)

    def _ends_with_field(self, rest: str) -> bool:
        """Report whether a text of a few words is followed by the field that it is typed into."""
        folded = fold(rest, self.code).text
        return any(
            found.end() == len(folded) and len(folded[: found.start()].split()) <= MAX_NAME
            for found in self.target.finditer(folded)
        )

    def split_rest(self, rest: str) -> tuple[str, str] | None:
        """Return the name and the message of a text with a conjunction between them; None without a certain one."""
        folded = fold(rest, self.code)
        found = self.joined.search(folded.text, 1)
        if found is None or len(folded.text[: found.start()].split()) > MAX_NAME or found.end() >= len(folded.text):
            return None
        start, conjunction = folded.places[found.end()], folded.places[found.start(1)]
        if self.stays.match(found[1]):
            start = conjunction
        elif any(each.match(rest, conjunction) for each in (self.kept, self.unsure)):
            return None
        return rest[: folded.places[found.start()]].strip(TRIMMED), rest[start:].strip(TRIMMED)

    def with_skipped(self, text: str, span: tuple[int, int], region: tuple[int, int]) -> tuple[int, int]:
        """Return the place of a search, extended by the skipped words beside it that are no courtesy.

        `span` is its place in `text`, and `region` also has the skipped words beside it.
        """
        (start, end), (first, last) = span, region
        before, after = fold(text[first:start], self.code), fold(text[end:last], self.code)
        is_translated = self.translated.fullmatch(fold(text[start:end], self.code).text) is not None
        if (cut := _behind_courtesy(self.courtesy, before, is_last_kept=is_translated)) < len(before.text):
            start = first + before.places[cut]
        if after.text and (kept := _before_courtesy(self.ending, after)):
            end += after.places[kept - 1] + 1
        if end >= last or not after.text:
            behind = fold(text[end:], self.code)
            if (place := self.place.match(behind.text)) is not None:
                end += behind.places[len(place[0].rstrip(" ,")) - 1] + 1
        return start, end

    def _start_of(self, text: str, start: int) -> tuple[int, bool]:
        """Return where a text begins that a template cut at `start`, and whether that is certain."""
        for found in self.kept.finditer(text):
            if found.start() < start < found.end():
                return found.start(), True
        return start, not any(found.start() < start <= found.end() + 1 for found in self.unsure.finditer(text))

    def _stripped(self, value: str, pattern: re.Pattern[str]) -> str:
        folded = fold(value, self.code)
        found = pattern.match(folded.text)
        if found is None or found.end() >= len(folded.text):
            return value
        return value[folded.places[found.end()] :].strip(TRIMMED) or value

    def _ends_early(self, value: str, text: str) -> bool:
        """Report whether a text that does not end the sentence has a last word that needs more words."""
        folded = fold(value, self.code).text
        return not text.rstrip(TRIMMED).endswith(value) and any(
            found.start() and found.end() == len(folded) for found in self.last.finditer(folded)
        )


def quoted_parts(text: str) -> list[str]:
    """Return the parts of a text that are in quotation marks."""
    return _QUOTED.findall(text)


def load_content(code: str, table: Mapping[str, Sequence[str]]) -> ContentRules:
    """Return the rules of a language from the section `content` of its file."""
    word = "" if code == "zh" else r"(?![\w'])"
    start = "" if code == "zh" else r"(?<![\w'])"

    def any_of(name: str, *, written: bool = False) -> str:
        return "|".join(each if written else fold(each, code).text for each in table[name]) or "(?!)"

    def words(name: str) -> re.Pattern[str]:
        return re.compile(rf"{start}(?:{any_of(name)}){word}")

    joins = any_of("conjunction")
    return ContentRules(
        code=code,
        conjunction=re.compile(rf"(?:{joins})[ ,]*"),
        stays=words("stays"),
        joined=re.compile(rf"[ ,]+({joins})[ ,]*" if code != "zh" else "(?!)()"),
        kept=re.compile(rf"{start}(?:{any_of('kept', written=True)}){word}", re.IGNORECASE),
        unsure=re.compile(rf"{start}(?:{any_of('unsure', written=True)}){word}", re.IGNORECASE),
        first=words("first"),
        typed=words("typed"),
        noted=words("noted"),
        timed=words("timed"),
        led=re.compile(rf"{start}(?:{any_of('led')})$"),
        asked=words("asked"),
        last=words("last"),
        closing=re.compile(rf"{start}(?:{any_of('closing')})$"),
        courtesy=re.compile(rf"{start}(?:{any_of('courtesy')}){word}[ ,]*"),
        ending=re.compile(rf"{start}(?:{any_of('courtesy')}|{any_of('thanks')}){word}[ ,]*"),
        target=words("target"),
        lead=re.compile(rf"(?:(?:{any_of('lead')}){word}[ ,]*)+"),
        place=re.compile(rf" *(?:{any_of('place')}){word}"),
        translated=re.compile(any_of("translated")),
    )


def _behind_courtesy(pattern: re.Pattern[str], folded: Folded, *, is_last_kept: bool) -> int:
    """Return where the words begin that follow the courtesy at the start of a text, or its last word of courtesy."""
    places = [0]
    while found := pattern.match(folded.text, places[-1]):
        places.append(found.end())
    return places[-2] if is_last_kept and places[-1] == len(folded.text) and len(places) > 1 else places[-1]


def _before_courtesy(pattern: re.Pattern[str], folded: Folded) -> int:
    """Return where the words end that precede the courtesy at the end of a text."""
    end = len(folded.text)
    for found in reversed(list(pattern.finditer(folded.text))):
        if found.end() >= end:
            end = found.start()
    return len(folded.text[:end].rstrip(" ,"))
