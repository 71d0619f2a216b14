"""Sentences that are no plain requests: negations, questions, quotations, conditions, and several acts at once."""

import re
from collections.abc import Mapping

from attrs import frozen

from runtimes.sentences.folding import Folded, fold_sentence
from runtimes.sentences.suggestions import is_slip

__all__ = ["ANSWERS", "SentenceRefusal"]

STORED = ("send_text", "remember", "type", "clipboard_write")  # intents whose own words are stored or sent
MESSAGES = ("send_text", "remember")  # intents whose own words can name other acts
TIMED = ("alarm", "timer", "web_search")  # intents that a time belongs to
ANSWERS = frozenset(  # intents that change nothing, so that only a negation is refused
    {
        *("battery", "check_setting", "clipboard_read", "current_app", "date", "find_contact", "find_text", "greeting"),
        *("help", "list_apps", "location", "memory", "ping", "read_screen", "screenshot", "stop", "time", "tools"),
    }
)
PERSONS = ("name", "rest")
OBJECTS: Mapping[str, str] = {  # slot by intent
    "call": "name",
    "send_text": "rest",
    "web_search": "query",
    "navigate": "destination",
}
SHORT = 3  # letters of a name that is compared with no other
HEAD = 4  # words of a recipient and a message that can be names
_QUOTES = re.compile('["“”„«»]')


@frozen(kw_only=True)
class SentenceRefusal:
    """Rules that refuse the sentences of one language."""

    code: str
    patterns: Mapping[str, re.Pattern[str]]
    settings: tuple[str, ...]  # the folded names of the settings

    def is_no_request(self, whole: Folded, unguarded: set[int], slots: Mapping[str, str], intent: str) -> bool:
        """Report whether a sentence is no plain request, so that it must not be performed.

        Examples are a negation, a question, a quotation, a condition, and several acts. For the intents in `ANSWERS`,
        which change nothing, only a negation counts.
        """
        text = "".join(
            " " if place in unguarded else letter for letter, place in zip(whole.text, whole.places, strict=True)
        )
        is_corrected = self.patterns["correction"].search(text if intent in STORED else whole.text) is not None
        text = self.patterns["settings"].sub(" ", text)
        if is_corrected and intent not in ANSWERS:
            return True
        if intent in ANSWERS:
            return self.patterns["negation"].search(text) is not None
        if intent == "navigate" and self.patterns["settings"].search(self._fold(slots["destination"]).text):
            return True
        if self.patterns["guard"].search(text) or _QUOTES.search(text):
            return True
        if intent not in TIMED and self.patterns["when"].search(text):
            return True
        if self.patterns["acts"].search(text if intent in MESSAGES else whole.text):
            return True
        if slots.get("percent") not in (None, "0", "100") and self.patterns["relative"].search(text):
            return True
        if self._names_no_person(slots):
            return True
        app = self._fold(slots.get("app", "")).text if intent == "open_app" else ""
        if app and (self.patterns["settings"].search(app) or self._is_mistyped_setting(app)):
            return True
        if self._is_part_of_phone(whole.text, slots, intent):
            return True
        return intent == "tap" and self.patterns["object"].match(self._fold(slots["text"]).text) is not None

    def _names_no_person(self, slots: Mapping[str, str]) -> bool:
        """Report whether the recipient of a call or a message is a pronoun, several persons, or corrected."""
        for slot in PERSONS:
            person = self._fold(slots.get(slot, "")).text
            if slot == "rest":
                person = person[: HEAD + 1] if self.code == "zh" else " ".join(person.split()[:HEAD])
            is_unclear = self.patterns["several"].search(person) or self.patterns["correction"].search(person)
            if person and (is_unclear or self.patterns["pronoun"].match(person)):
                return True
        return False

    def _is_part_of_phone(self, text: str, slots: Mapping[str, str], intent: str) -> bool:
        """Report whether the object of a call, a text or a search is a part of the phone, such as its location.

        The result is False for a search that names the web.
        """
        if intent not in OBJECTS or (intent == "web_search" and self.patterns["web"].search(text)):
            return False
        found = self._fold(slots.get(OBJECTS[intent], "")).text
        if intent == "web_search" and self.patterns["screen"].search(found):
            return True
        return self.patterns["things"].fullmatch(found) is not None

    def _is_mistyped_setting(self, name: str) -> bool:
        """Report whether a name of over `SHORT` letters is that of a setting, or differs from it by one letter."""
        return len(name) > SHORT and any(is_slip(name, each) for each in self.settings)

    def _fold(self, text: str) -> Folded:
        return fold_sentence(text, self.code)
