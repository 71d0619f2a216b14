"""Check of the free words of a sentence: names, labels and messages.

The action of a sentence is performed only if its free words are plausible. A name has no word of the grammar at its
ends, an app's name consists of no words of another intent, and a way of sending ("by text") belongs to neither name
nor message. A name with a dot inside counts as an address, and is plausible.
"""

import re
from collections.abc import Iterable, Mapping

from attrs import frozen

from runtimes.sentences.folding import TRIMMED, Folded, fold, word_pattern
from runtimes.sentences.suggestions import is_slip, words_of

__all__ = ["Certainty", "load_certainty"]

MAX_WORDS = 6  # of the name of a person or an app
MAX_LETTERS = 12  # of such a name in Chinese
SLIPPED = 6  # letters of a word that is compared with similar ones
HEAD = 5  # words before the way of sending
DETERMINED: Mapping[str, tuple[str, ...]] = {
    "call": ("name",),
    "open_app": ("app",),
    "tap": ("text",),
    "type": ("text",),
    "remember": ("text",),
    "clipboard_write": ("text",),
    "web_search": ("query",),
    "find_text": ("query",),
    "navigate": ("destination",),
}
_NUMBER = re.compile(r"\+?\d[\d ()./-]{4,}\d(?!\w)")  # at the start of a text message's free words
_INNER_END = re.compile("[?!;\uff1f\uff01\uff1b](?=.*\\w)")  # the end of a sentence before another one
_ARTICLE = re.compile(r"^(?:the|my|der|die|das|dem|den|le|la|les|mon|ma|el|los|las|mi) |^l'")  # in all languages
_COMMA = re.compile("[,\uff0c]")  # no app has one in its name
_FILLERS = ("before", "behind")
_LETTER = re.compile(r"\w")


@frozen(kw_only=True)
class Certainty:
    """Rules for the free words of one language."""

    code: str
    labels: re.Pattern[str]  # skipped words that can be a part of a label
    channels: re.Pattern[str]  # ways of sending
    before: re.Pattern[str]  # at the start of a folded name: words that fill a sentence, and no part of the name
    behind: re.Pattern[str]  # the same, at its end
    first: re.Pattern[str]  # words that begin no name
    last: re.Pattern[str]  # words that end no name
    inside: re.Pattern[str]  # words that no name has
    elsewhere: re.Pattern[str]  # things that no app and no person is
    vague: re.Pattern[str]  # words that are no whole label, text or name
    calendar: re.Pattern[str]  # places of an appointment, which no note and no typed text is
    heading: re.Pattern[str]  # words between a number and a message, as in "the message"
    exceptions: re.Pattern[str]  # words that begin none of them
    nouns: Mapping[str, frozenset[str]]  # of the templates without free text, by intent

    def with_label_words(self, text: str, span: tuple[int, int], region: tuple[int, int]) -> tuple[int, int]:
        """Return start and end of a label in `text`, extended by the skipped words beside it that can be a part of it.

        `span` is the place of the label, and `region` also has the skipped words beside it.
        """
        start, end = span
        before, after = (fold(part, self.code) for part in (text[region[0] : start], text[end : region[1]]))
        found = [each for each in self.labels.finditer(before.text) if each.end() == len(before.text)]
        if found:
            start = region[0] + before.places[found[0].start()]
        first = self.labels.match(after.text)
        if first is not None:
            end += after.places[first.end() - 1] + 1
        return start, end

    def trimmed(self, name: str) -> str:
        """Return a name without the words at its ends that only fill a sentence; unchanged if nothing else is left."""
        folded = self._fold(name)
        start, end = self.before.match(folded.text), self.behind.search(folded.text)
        first, last = start.end() if start else 0, end.start() if end else len(folded.text)
        if first >= last:
            return name
        return name[folded.places[first] : folded.places[last - 1] + 1].strip(TRIMMED) or name

    def with_channel_cut(self, slots: Mapping[str, str]) -> dict[str, str]:
        """Return the slots of a text message; a way of sending, such as "by text", is cut between name and message.

        It is cut from the end of `name`, and from the start of `message` where a comma or colon follows. A slot `rest`
        is replaced by `name` and `message` if a way of sending is between them, or if it begins with a number.
        """
        found = dict(slots)
        if "rest" in found and (split := self._split(found["rest"])) is not None:
            del found["rest"]
            found["name"], found["message"] = split
        if "name" in found and (end := self._channel_at_end(found["name"])):
            found["name"] = found["name"][:end].strip(TRIMMED)
        if "message" in found:
            found["message"] = self._without_channel_at_start(found["message"])
        return found

    def without_heading(self, text: str) -> str:
        """Return a text without the words that announce it, such as "the text"; unchanged if nothing else is left."""
        folded = self._fold(text)
        heading = self.heading.match(folded.text)
        return text if heading is None else _text_behind(text, folded, heading.end()) or text

    def is_certain(self, intent: str, slots: Mapping[str, str]) -> bool:
        """Report whether the free words in `slots` are plausible for the intent; for some intents none are checked."""
        if any(self._is_vague(slots[slot]) for slot in DETERMINED.get(intent, ()) if slot in slots):
            return False
        match intent:
            case "open_app":
                app = slots.get("app", "x")
                return not _COMMA.search(app) and self._is_plain(app) and not self._is_of_other_intent(app)
            case "call":
                return self._is_plain(slots["name"])
            case "navigate":
                place = _ARTICLE.sub("", self._fold(slots["destination"]).text)
                return not self.elsewhere.fullmatch(place) and not self._is_of_other_intent(place)
            case "send_text":
                if "message" in slots and (
                    not _LETTER.search(slots["message"]) or self._channel_at_end(slots["message"])
                ):
                    return False
                rest = self._fold(slots.get("rest", "x"))
                return self._is_plain(slots.get("name", "x")) and self.first.match(rest.text) is None
            case _:
                return True

    def names_calendar(self, text: str) -> bool:
        """Report whether a text names, in this language, where appointments are kept, such as the calendar."""
        return self.calendar.search(self._fold(text).text) is not None

    def _is_vague(self, text: str) -> bool:
        folded = self._fold(text).text
        return self.vague.fullmatch(folded) is not None or self.exceptions.match(folded) is not None

    def _is_plain(self, name: str) -> bool:
        folded = self._fold(name).text
        if "." in name.strip("."):  # an address
            return True
        if _INNER_END.search(name) or self.inside.search(folded) or self.elsewhere.fullmatch(folded):
            return False
        return self._is_name(name)

    def _is_name(self, name: str) -> bool:
        """Report whether a text has the form of a name: few words, none of the grammar at its ends."""
        folded = self._fold(name).text
        size, limit = (len(folded), MAX_LETTERS) if self.code == "zh" else (len(folded.split()), MAX_WORDS)
        if not folded or size > limit or self.first.match(folded):
            return False
        return all(found.end() < len(folded) for found in self.last.finditer(folded) if found.start())

    def _is_of_other_intent(self, name: str) -> bool:
        """Report whether the words of an app's name are words of another intent, as in "open quick settings".

        All its words must be words of one intent; of Chinese, at least half of the pairs of characters. The result is
        False for a name with a dot.
        """
        folded = self._fold(name).text
        words = {word for word in words_of(folded) if len(word) == 2} if self.code == "zh" else set(folded.split())
        if not words or "." in name:
            return False
        least = len(words) / 2 if self.code == "zh" else len(words)
        return any(sum(_is_known(word, nouns) for word in words) >= least for nouns in self.nouns.values())

    def _split(self, rest: str) -> tuple[str, str] | None:
        folded = self._fold(rest)
        if number := _NUMBER.match(rest):
            message = self.without_heading(rest[number.end() :].strip(TRIMMED))
            return (number[0].strip(), message) if message else None
        for found in self.channels.finditer(folded.text):
            head = folded.text[: found.start()].strip()
            if head and found.end() < len(folded.text) and len(head.split()) <= HEAD:
                name = rest[: folded.places[found.start()]].strip(TRIMMED)
                message = _text_behind(rest, folded, found.end())
                return (name, message) if message else None
        return None

    def _channel_at_end(self, text: str) -> int:
        """Return where the way of sending begins that ends a text, as in "to Anna by text"; 0 if there is none."""
        folded = self._fold(text)
        ends = (found.start() for found in self.channels.finditer(folded.text) if found.end() == len(folded.text))
        return next((folded.places[start] for start in ends if start), 0)

    def _without_channel_at_start(self, message: str) -> str:
        folded = self._fold(message)
        found = self.channels.match(folded.text)
        if found is None or found.end() == len(folded.text):
            return message
        rest = message[folded.places[found.end() - 1] + 1 :]
        return (
            rest.strip(TRIMMED) if rest[:1] in (",", ":", "\uff0c", "\uff1a") or rest[:2] in (" :", " ,") else message
        )

    def _fold(self, text: str) -> Folded:
        return fold(text, self.code)


def load_certainty(
    code: str, table: Mapping[str, list[str]], nouns: Mapping[str, frozenset[str]], polite: Iterable[str]
) -> Certainty:
    """Return the rules of a language from the section `certain` of its file, with the polite words of the language."""
    glue = "" if code == "zh" else "[ ,]+"
    courtesy = [re.escape(fold(each, code).text) for each in polite]
    before, behind = ("|".join((*(fold_pattern(each, code) for each in table[name]), *courtesy)) for name in _FILLERS)
    channels = "|".join(fold_pattern(each, code) for each in table["channels"])
    ways = rf"(?:{channels})" if code == "zh" else rf"(?<!\w)(?:{channels})(?!\w)"
    return Certainty(
        code=code,
        channels=re.compile(ways),
        before=re.compile(rf"(?:(?:{before}){glue})+(?=.)"),
        behind=re.compile(rf"(?:{glue}(?:{behind}))+$"),
        nouns=nouns,
        exceptions=word_pattern(table["except"], code),
        **{
            name: word_pattern(table[name], code)
            for name in ("labels", "first", "last", "inside", "elsewhere", "vague", "calendar", "heading")
        },
    )


def fold_pattern(pattern: str, code: str) -> str:
    """Return a regular expression whose letters are folded: lower case and plain, as in a folded text."""
    return fold(pattern, code).text


def _text_behind(text: str, folded: Folded, end: int) -> str:
    """Return the part of a text behind the first `end` characters of its folded form."""
    return text[folded.places[end - 1] + 1 :].strip(TRIMMED)


def _is_known(word: str, nouns: frozenset[str]) -> bool:
    return word in nouns or (len(word) >= SLIPPED and any(is_slip(word, noun) for noun in nouns))
