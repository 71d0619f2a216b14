"""Templates and texts of one language, matched by hassil.

A file has the templates of each intent, the names of the phone's settings and kinds of apps, the texts of answers, and
examples, which are shown for a sentence that matches none.

Templates without free text are also compared with the content words of a sentence: without polite words, without
articles, and without a clause that gives a reason. Free text is cut from the original by its place.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any

import yaml
from attrs import field, frozen
from hassil import Intents, recognize_all
from hassil.models import MatchEntity
from hassil.recognize import RecognizeResult

from runtimes.sentences.addresses import find_address
from runtimes.sentences.certainty import Certainty, load_certainty
from runtimes.sentences.chinese import simplify
from runtimes.sentences.content import SLOTS, ContentRules, load_content, quoted_parts
from runtimes.sentences.folding import OWN_WORDS, TRIMMED, Folded, fold, fold_sentence, fold_template, word_pattern
from runtimes.sentences.matches import Score, fixed_value, is_bare_setting, is_in_place, score, with_skipped
from runtimes.sentences.number_words import number_words
from runtimes.sentences.refusal import ANSWERS, STORED, SentenceRefusal
from runtimes.sentences.suggestions import ROTATION, Suggestions, is_slip, template_words, words_of
from svc_proto.agent.sentences import PhoneSetting

__all__ = ["Language", "load_language"]

NAMES = ("app", "site", "place")  # slots that may have words at their ends that fill a sentence
CONFIRMED = (*STORED, "find_text")  # intents whose own words the owner confirms unless their edges are certain
LABELS = ("app",)  # slots that can begin or end with a word that is skipped elsewhere
WHOLE = OWN_WORDS | {"query", "destination"}  # slots of which no clause is left out
WILDCARDS = (*OWN_WORDS, "app", "name", "label", "query", "site", "place", "destination")
UNGUARDED = OWN_WORDS | {"label", "query"}  # slots whose words are no part of the request
NAMING = ("open_app", "open_url", "help", "greeting", "list_apps", "current_app")  # intents whose words can name an app
# Templates of sentences that are not performed, unless a search is in quotation marks.
SUGGESTED: Mapping[str, str] = {"way_to": "navigate", "look_if": "find_text"}
FAR = ("far_down", "far_up")  # templates that scroll to an end
ENDED: Mapping[str, tuple[str, ...]] = {"send_text": ("message", "rest"), "remember": ("text",), "type": ("text",)}
SAYING = ("说", "讲")  # Chinese conjunctions between a name and a message
SHORTEST_NUMBER = 5  # digits of a telephone number in words
KEPT_MATCHES = 64  # texts whose matches are cached
TYPED = 8  # words of a text that are compared with each known word
_CLAUSES = re.compile(r"(?:[^,.;!?。\uff01\uff1f\uff1b]|\.(?=\w))+")  # the dot of an address ends no clause
_WORD = re.compile(r"[\w-]+")


@frozen(kw_only=True)
class Language:
    """A language of the sentence parser: the templates of its sentences, its words, replies and examples."""

    code: str
    closed: Intents  # templates without free text
    open: Intents  # templates with free text
    patterns: Mapping[str, re.Pattern[str]]  # `polite`, `small`, `reason`, `because`, `guard`, `several`, `own`, …
    words: Mapping[str, tuple[str, ...]]  # of settings and kinds of apps, in lower case
    labels: Mapping[str, str]  # of settings and kinds of apps, for replies
    kinds: Mapping[str, tuple[str, ...]]  # by a word of theirs
    replies: Mapping[str, str]
    examples: tuple[str, ...]
    other_examples: tuple[str, ...]  # for a text that matches no template, besides the examples
    setting_examples: Mapping[str, tuple[str, str, str]]  # of each setting: on, off, and the question
    app_example: str  # with a place for the name of an app
    app_pattern: re.Pattern[str]  # names of kinds of apps and of common apps
    network: tuple[str, ...]  # words for the network
    digits: Mapping[str, str]  # by their words
    states: Mapping[str, re.Pattern[str]]  # see `Suggestions`
    heads: Mapping[str, re.Pattern[str]]  # requests about the calendar, and words that correct a request
    rotation: tuple[str, ...]  # words for the automatic rotation
    certainty: Certainty
    content: ContentRules
    refusal: SentenceRefusal
    vocabulary: Mapping[str, frozenset[str]]  # of the templates of each intent
    other_words: frozenset[str]  # of the skipped words and the replies
    _all_words: frozenset[str] = field(init=False)

    @_all_words.default
    def _join_vocabulary(self) -> frozenset[str]:
        return self.other_words.union(*self.vocabulary.values())

    def match(self, text: str, *, is_question: bool) -> tuple[Score, str, dict[str, str] | None] | None:
        """Return rank (the lowest is the best), intent and slots of the best match; None if no template matches.

        The slots are None for a sentence that must not be performed: its intent is only suggested, it is no plain
        request, or its free words are not plausible or have uncertain edges. A question that consists of a setting and
        a state has the intent `check_setting`: "Wi-Fi on?" is answered with the state.
        """
        folded = self._fold(text)
        if not folded.text:
            return None
        whole, best = folded, self._best(folded)
        shorter = self._without_greeting(folded)
        if shorter is not folded and (best is None or any(each.is_wildcard for each in best[0].entities_list)):
            found = self._best(shorter)
            whole, best = (whole, best) if found is None else (shorter, found)
        if best is None:
            return None
        result, candidate = best
        rank, template = score(result, candidate), result.intent.name
        name = SUGGESTED.get(template, template)
        slots, unguarded, start = self._slots_of(result, candidate, text)
        if template in SUGGESTED and quoted_parts(text) != [slots.get("query")]:
            return rank, name, None
        if self._chooses_app(name, self._fold(text[candidate.places[-1] + 1 :])):
            return rank, name, None
        # A question about a setting may have the form of a statement, since its answer changes nothing.
        written = text[whole.places[0] :].lower()
        written = simplify(written) if self.code == "zh" else written
        is_statement = name != "check_setting" and self.patterns["other"].search(written) is not None
        if is_statement or self.refusal.is_no_request(whole, unguarded, slots, name):
            return rank, name, None
        if any(entity.is_wildcard for entity in result.entities_list) and not self._is_certain(name, slots):
            return rank, name, None
        if is_question and is_bare_setting(name, result, candidate.text):
            return rank, "check_setting", {"setting": slots["setting"]}
        return rank, name, self._with_rest(self.content.settled(name, slots, text, start), text)

    def _chooses_app(self, intent: str, behind: Folded) -> bool:
        """Report whether words behind a request to open or list apps may name the apps that are meant.

        Behind a list, these are all words but the skipped ones, as in "my apps, the large ones".
        """
        if intent == "list_apps":
            return bool(behind.without(self.patterns["skipped"]).text)
        return intent == "open_app" and self.patterns["which"].search(behind.text) is not None

    def _with_rest(self, slots: dict[str, str] | None, text: str) -> dict[str, str] | None:
        """Return the slots; with `rest` if a conjunction stands between a name of several words and a message.

        Then the conjunction can also be a part of the message, as in "text Ada the cake that I made is good". `rest`
        has all words from the name on.
        """
        if slots is None or not {"name", "message"} <= slots.keys():
            return slots
        name, message = slots["name"], slots["message"]
        start = text.find(name)
        behind = text.find(message, start + len(name))
        between = text[start + len(name) : behind].strip(" ,")
        if self.code == "zh":
            can_be_both = between in SAYING and len(name) > 1
        else:
            can_be_both = len(between.split()) <= 1 and " " in name and not name[-1:].isdigit()
        if not can_be_both or set(":\uff1a") & set(between):
            return slots
        return {**slots, "rest": text[start : behind + len(message)]}

    def _slots_of(self, result: RecognizeResult, candidate: Folded, text: str) -> tuple[dict[str, str], set[int], int]:
        """Return the slots of a match, the indexes of the letters without a guard, and where the own words can begin.

        Negations are not searched in the letters of slots in `UNGUARDED` that do not begin the sentence.
        """
        name = result.intent.name
        slots: dict[str, str] = {}
        unguarded: set[int] = set()
        first = 0
        for entity in result.entities_list:
            if entity.text_span is None or not (entity.is_wildcard or entity.name == "app"):
                slots[entity.name] = fixed_value(entity)
                continue
            start, end = candidate.span(*entity.text_span)
            if entity.name in UNGUARDED and entity.text_span[0]:  # a negation or condition can stand before it
                unguarded |= set(range(start, end))
            start, end = self._place_of(name, entity, candidate, text)
            slots[entity.name] = self._without_article(entity.name, text[start:end].strip(TRIMMED))
            if entity.name in NAMES or (name, entity.name) == ("tap", "text"):
                slots["short"] = self.certainty.trimmed(slots[entity.name])
                start = self._add_label(name, entity, candidate, text, (start, end), slots)
            if entity.name in WHOLE:
                first = start
        if name in ("call", "send_text") and "name" in slots:
            slots["name"] = self._spoken_number(slots["name"])
        if name == "clipboard_write":
            slots["text"] = self.certainty.without_heading(slots["text"])
        if name == "send_text":
            if (split := self.content.split_rest(slots.get("rest", ""))) is not None:
                del slots["rest"]
                slots["name"], slots["message"] = split
            slots = self.certainty.with_channel_cut(slots)
        return slots, unguarded, first

    def _add_label(
        self,
        intent: str,
        entity: MatchEntity,
        candidate: Folded,
        text: str,
        span: tuple[int, int],
        slots: dict[str, str],
    ) -> int:
        """Add the longer forms of the name of an app, or of a text to tap, with the skipped words beside it.

        `span` is its place in `text`. Remove the slot `short` if it is no shorter. Return where the name begins.
        """
        start, end = span
        if entity.name in LABELS or intent == "tap":
            region = self._region_of(entity, candidate, text, end)
            longer = slice(*self.certainty.with_label_words(text, span, region))
            if longer != slice(start, end):
                slots[entity.name] = text[longer].strip(TRIMMED)
            start = longer.start
            all_words = text[region[0] : max(region[1], candidate.places[-1] + 1)].strip(TRIMMED)
            if intent == "tap" and all_words != slots["text"]:
                slots["long"] = all_words
        if slots["short"] == slots[entity.name]:
            del slots["short"]
        return start

    def _region_of(self, entity: MatchEntity, candidate: Folded, text: str, end: int) -> tuple[int, int]:
        """Return the place of a label with the skipped words beside it; `end` is where the label ends.

        The words behind an app are no part of its name if a clause that gives a reason follows them.
        """
        assert entity.text_span is not None
        region = with_skipped(candidate, entity.text_span, len(text))
        is_followed = bool(self._fold(text[end : region[1]]).without(self.patterns["skipped"]).text)
        return (region[0], end) if entity.name in LABELS and is_followed else region

    def _place_of(self, intent: str, entity: MatchEntity, candidate: Folded, text: str) -> tuple[int, int]:
        """Return the place of a free text in the sentence, with the skipped words beside it that are a part of it."""
        assert entity.text_span is not None
        span, region = candidate.span(*entity.text_span), with_skipped(candidate, entity.text_span, len(text))
        if entity.name not in WHOLE or intent == "tap":
            return span
        start, end = self.content.with_skipped(text, span, region)
        if entity.name in ("query", "destination") or intent == "clipboard_write":
            return start, end
        return region[0], region[1] if region[1] == len(text) else end

    def with_end(self, intent: str, slots: Mapping[str, str], text: str, end: str) -> Mapping[str, str]:
        """Return the slots with the end of the sentence added to a message, a note or a typed text that ends it.

        `end` has the question and exclamation marks behind `text`. They belong to the sentence itself if that begins
        as a question ("can you ...").
        """
        ended = [each for each in ENDED.get(intent, ()) if each in slots and text.endswith(slots[each])]
        if not ended or not end or self.patterns["asks"].search(self._fold(text[: -len(slots[ended[0]])]).text):
            return slots
        return {**slots, **{slot: slots[slot] + end for slot in ended}}

    def has_certain_edges(self, intent: str, slots: Mapping[str, str], text: str) -> bool:
        """Report whether the user's own words in the slots, which may be stored or sent, certainly begin and end there.

        They do not if they have words that correct the request.
        """
        value = slots.get(SLOTS[intent], "") if intent in CONFIRMED else ""
        before = text[: text.rfind(value)]
        is_corrected = self.patterns["correction"].search(self._fold(value).text) is not None
        return not value or (self.content.is_certain(intent, value, before) and not is_corrected)

    def _spoken_number(self, name: str) -> str:
        """Return the digits of a telephone number whose digits are words; any other name unchanged."""
        folded = self._fold(name).text
        words = list(folded) if self.code == "zh" else folded.split()
        digits = [self.digits.get(word) for word in words]
        return "".join(filter(None, digits)) if len(digits) >= SHORTEST_NUMBER and None not in digits else name

    def _is_certain(self, intent: str, slots: Mapping[str, str]) -> bool:
        is_known = intent == "open_app" and bool(self.kinds_of(slots["app"]))
        return is_known or self.certainty.is_certain(intent, slots)

    def parts_behind_joins(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield, for each word that can be between two requests, the parts of a text before and behind it."""
        folded = self._fold(text)
        for found in self.patterns["joins"].finditer(folded.text, 1):
            if found.end() < len(folded.text):
                yield text[: folded.places[found.start()]], text[folded.places[found.end()] :]

    def kinds_of(self, text: str) -> tuple[str, ...]:
        """Return the kinds of app that have the whole text as a name; empty if none has."""
        return self.kinds.get(fold(text, self.code).text, ())

    def count_known_words(self, text: str) -> int:
        """Return how many different words of a text are in the templates, the skipped words or the replies."""
        return len(words_of(self._fold(text).text) & self._all_words)

    def count_mistyped_words(self, text: str) -> int:
        """Return how many of the first `TYPED` words of a text are known words, or differ from one by a letter.

        Words of one or two letters do not count.
        """
        words = [word for word in _WORD.findall(self._fold(text).text)[:TYPED] if len(word) > 2]
        return sum(any(is_slip(word, known) for known in self._all_words if len(known) > 2) for word in words)

    def nearest(self, text: str) -> tuple[str, ...]:
        """Return examples of this language for a text, the likeliest first; see `Suggestions.nearest`.

        If the text matches a template, the first ones include the example of its intent, if any. An app's name in the
        text leads to an example with that name, which comes first, unless a word of the name belongs to another act. So
        does a web address.
        """
        folded = self._fold(text)
        match = self.match(text, is_question=False)
        likely = "" if match is None else match[1]
        plain = folded.without(self.patterns["polite"])
        plain = plain.without(self.patterns["small"]) if self.code != "zh" else plain
        found = self._suggestions.nearest(plain.text, folded.text, likely)
        if self.head(text) == "calendar":
            named = self.app_example.format(name=self.labels["calendar"])
            return named, *(each for each in found if each not in (named, self.examples[0]))
        if address := find_address(text):
            return self.app_example.format(name=address), *(each for each in found if each != self.examples[0])
        app = self.app_pattern.search(folded.text)
        if app is None or words_of(app[0]) & self._words_of_other_acts:
            return found
        named = self.app_example.format(name=text[slice(*folded.span(*app.span(1)))])
        return named, *(each for each in found if each != self.examples[0])

    def head(self, text: str) -> str:
        """Return the key of the reply that heads the suggestions for a text.

        It is `one_request` for several requests and for one that corrects itself, `calendar` for a request about the
        calendar, and else `nearest`.
        """
        folded = self._fold(text).text
        correction = self.heads["one_request"].search(folded, 1)
        clauses = filter(None, self.states["clause"].split(folded))
        is_corrected = correction is not None and self._is_request(folded[: correction.start()])
        if is_corrected or sum(map(self._is_request, clauses)) > 1:
            return "one_request"
        return "calendar" if self.heads["calendar"].search(folded) else "nearest"

    def _is_request(self, text: str) -> bool:
        match = self.match(text.strip(" ,"), is_question=False)
        return match is not None and match[1] not in ANSWERS

    @cached_property
    def _words_of_other_acts(self) -> frozenset[str]:
        return frozenset[str]().union(*(words for intent, words in self.vocabulary.items() if intent not in NAMING))

    @cached_property
    def _suggestions(self) -> Suggestions:
        found = {each: self.match(each, is_question=False) for each in (*self.examples, *self.other_examples)}
        names = {example: match[1] for example, match in found.items() if match is not None}
        of_setting = {
            fold(word, self.code).text: each.value for each in PhoneSetting for word in self.words[each.value]
        }
        of_setting |= {fold(word, self.code).text: ROTATION for word in self.rotation}
        return Suggestions(
            code=self.code,
            examples=names,
            vocabulary=self.vocabulary,
            setting_examples=self.setting_examples,
            setting_names=of_setting,
            network_names={fold(word, self.code).text: "wifi" for word in self.network},
            states=self.states,
            negation=self.patterns["negation"],
        )

    def _fold(self, text: str) -> Folded:
        return fold_sentence(text, self.code)

    def _best(self, whole: Folded) -> tuple[RecognizeResult, Folded] | None:
        return min(self._candidates(whole), key=lambda found: score(*found), default=None)

    def _without_greeting(self, whole: Folded) -> Folded:
        """Return the text without a greeting before the request; the text itself if it has none, or nothing else."""
        found = self.patterns["greeting"].match(whole.text)
        shorter = whole if found is None else whole.part(found.end(), len(whole.text))
        return shorter if shorter.text else whole

    def _candidates(self, whole: Folded) -> Iterator[tuple[RecognizeResult, Folded]]:
        """Yield the best match of the templates without free text; if there is none, matches of the other templates."""
        polite = whole.without(self.patterns["polite"])
        main, full = self._main_clause(polite), self._main_clause(whole)
        small = self.patterns["small"]
        closed = [*self._all((whole, polite), self.closed)]
        if not any(candidate.text == polite.text for _, candidate in closed):
            without = self._all((polite.without(small),), self.closed)
            closed += [each for each in without if each[0].intent.name not in FAR]  # "a bit" is not far
        if main is not polite or full is not whole:
            shorter = self._all((full, main, main.without(small)), self.closed)
            closed += [each for each in shorter if each[0].intent.name != "greeting"]  # no request is only greeted
        if closed:
            yield closed[0] if len(closed) == 1 else min(closed, key=lambda found: score(*found))
            return
        yield from self._all((whole, polite), self.open)
        for found in self._all((main,), self.open) if main is not polite else ():
            if not WHOLE & found[0].entities.keys():
                yield found

    def _all(self, texts: Iterable[Folded], intents: Intents) -> Iterator[tuple[RecognizeResult, Folded]]:
        for candidate in {each.text: each for each in texts if each.text}.values():
            for result in self._recognize(candidate.text, intents is self.open):
                if is_in_place(result, candidate):
                    yield result, candidate

    @cached_property
    def _recognize(self) -> Callable[[str, bool], Sequence[RecognizeResult]]:
        """Cached function that matches a text with the templates with free text, or with those without.

        The cache is for sentences without a match: they and their clauses are matched again for the nearest examples.
        """

        def recognize(text: str, has_free_text: bool) -> Sequence[RecognizeResult]:
            return tuple(recognize_all(text, self.open if has_free_text else self.closed, language=self.code))

        return lru_cache(KEPT_MATCHES)(recognize)

    def _main_clause(self, text: Folded) -> Folded:
        """Return the text without a clause that gives a reason.

        What follows "because" is removed. If then just one of several clauses gives no reason, that clause is returned.
        """
        reason = self.patterns["reason"]
        tail = self.patterns["because"].search(text.text, 1)
        shorter = text if tail is None else text.part(0, tail.start())
        clauses = [match.span() for match in _CLAUSES.finditer(shorter.text)]
        kept = [span for span in clauses if not reason.match(shorter.text[slice(*span)].lstrip())]
        return shorter.part(*kept[0]) if len(kept) == 1 < len(clauses) else shorter

    def _without_article(self, name: str, value: str) -> str:
        if name not in ("name", "rest", "app"):
            return value
        if name == "name" and self.code != "zh":
            value = self._without_polite_end(value)
        found = self.patterns["own"].match(fold_template(value, "") if self.code == "zh" else fold(value, "en").text)
        shorter = value if found is None else value[found.end() :].strip(TRIMMED)
        return shorter or value

    def _without_polite_end(self, value: str) -> str:
        """Return a text without the polite words at its end."""
        folded = self._fold(value)
        for found in self.patterns["polite"].finditer(folded.text):
            if found.start() and found.end() == len(folded.text):
                return value[: folded.places[found.start()]].strip(TRIMMED)
        return value


def load_language(code: str) -> Language:
    """Return the language with this code, loaded from its files of this package: the templates and the texts."""
    found: dict[str, Any] = _read(code) | _read(f"{code}_texts")
    settings: dict[str, list[str]] = found["settings"]
    kinds: dict[str, list[str]] = found["kinds"]
    replies = {key: text for key, text in found["replies"].items() if isinstance(text, str)}
    replies |= {f"state_{state}": text for state, text in found["replies"]["states"].items()}
    replies |= {f"day_{day}": name for day, name in enumerate(found["replies"]["days"])}
    by_word: dict[str, tuple[str, ...]] = {}
    for kind, names in kinds.items():
        for name in names:
            folded = fold(name, code).text
            by_word[folded] = (*by_word.get(folded, ()), kind)
    lists: dict[str, Any] = {name: {"wildcard": True} for name in WILDCARDS}
    for slot, table in {"setting": settings, **found["lists"]}.items():
        lists[slot] = {"values": [_value(word, key, code) for key, words in table.items() for word in words]}
    known_apps = [*(word for names in kinds.values() for word in names), *_read("apps")]
    lists["kind"] = {"values": [_value(word, word, code) for word in known_apps]}
    rules = {name: fold_template(rule, code) for name, rule in found["rules"].items()}
    numbers = number_words(code, found["numbers"])
    amounts = number_words(code, found["numbers"] | found["amounts"])  # before a unit, an article is a number too
    for slot, low, high in (("hour", 0, 24), ("minute", 0, 59), ("percent", 0, 100), ("amount", 1, 600)):
        lists[f"{slot}_digits"] = {"range": {"from": low, "to": high, "words": False}}
        choice = amounts if slot == "amount" else numbers
        lists[f"{slot}_words"] = {"values": [{"in": w, "out": n} for w, n in choice if low <= int(n) <= high]}
    for rule, slot in _NUMBER_RULES.items():
        rules[rule] = f"({{{slot}_digits:{rule}}}|{{{slot}_words:{rule}}})"
    values = {slot: [value["in"] for value in each.get("values", ()) if "in" in value] for slot, each in lists.items()}
    rows = {intent: [fold_template(row, code) for row in each] for intent, each in found["sentences"].items()}
    intents = tuple(
        Intents.from_dict(
            {
                "language": code,
                "settings": {"ignore_whitespace": code == "zh"},
                "intents": {
                    intent: {"data": [{"sentences": chosen}]}
                    for intent, each in rows.items()
                    if (chosen := [row for row in each if _has_free_text(row) is free])
                },
                "lists": lists,
                "expansion_rules": rules,
            }
        )
        for free in (False, True)
    )
    every_setting = [word for names in settings.values() for word in names]
    patterns = {
        name: word_pattern(found["skip"][name], code) for name in ("polite", "small", "reason", "because", "asks")
    }
    patterns |= {name: word_pattern(found["refuse"][name], code) for name in ("several", "pronoun", "object", "joins")}
    for name in ("guard", "when", "acts", "relative", "things", "screen", "web", "which", "correction"):
        patterns[name] = re.compile("|".join(fold_template(each, code) for each in found["refuse"][name]) or "(?!)")
    patterns["skipped"] = word_pattern([*found["skip"]["polite"], *found["skip"]["small"]], code)
    patterns["negation"] = re.compile(fold_template(found["refuse"]["guard"][0], code))
    patterns["other"] = re.compile("|".join(found["refuse"]["other"]))
    patterns["settings"] = word_pattern(every_setting, code)
    greetings = "|".join(fold(each, code).text for each in found["content"]["greeting"])
    patterns["greeting"] = re.compile(rf"(?:(?:{greetings})(?:[ ,.!¡¿]+|(?=[\u4e00-\u9fff])))+")
    patterns["own"] = word_pattern(found["skip"]["own"], code)
    named = {
        **settings,
        **kinds,
        **{f"bar_{bar}": names for bar, names in found["bars"].items()},
    }
    words = {key: tuple(word.casefold() for word in names) for key, names in named.items()}
    vocabulary = {intent: template_words(each, rules, values) for intent, each in rows.items()}
    for intent, phrases in {**found["hints"], "check_setting": found["network"]}.items():
        vocabulary[intent] |= {word for phrase in phrases for word in words_of(fold(phrase, code).text)}
    skipped = {word for each in found["skip"].values() for phrase in each for word in words_of(fold(phrase, code).text)}
    closed_rows = {intent: [row for row in each if not _has_free_text(row)] for intent, each in rows.items()}
    nouns = {
        intent: template_words(each, rules, values) for intent, each in closed_rows.items() if intent not in NAMING
    }
    return Language(
        code=code,
        closed=intents[0],
        open=intents[1],
        patterns=patterns,
        words=words,
        labels={key: names[0] for key, names in named.items()},
        kinds=by_word,
        replies=replies,
        examples=tuple(found["examples"]),
        other_examples=tuple(found["other_examples"]),
        app_example=found["app_example"],
        app_pattern=_app_pattern(known_apps, code),
        network=tuple(found["network"]),
        digits={word: digit for word, digit in numbers if len(digit) == 1} | {digit: digit for digit in "0123456789"},
        setting_examples={setting: tuple(each) for setting, each in found["setting_examples"].items()},
        states={name: re.compile("|".join(each)) for name, each in found["states"].items()},
        heads={name: re.compile("|".join(each)) for name, each in found["heads"].items()},
        rotation=tuple(found["rotation"]),
        certainty=load_certainty(code, found["certain"], nouns, found["skip"]["polite"]),
        content=load_content(code, found["content"]),
        refusal=SentenceRefusal(
            code=code, patterns=patterns, settings=tuple(fold(word, code).text for word in every_setting)
        ),
        vocabulary=vocabulary,
        other_words=frozenset(word for text in replies.values() for word in words_of(fold(text, code).text)) | skipped,
    )


_NUMBER_RULES = {
    "hour": "hour",
    "minute": "minute",
    "percent": "percent",
    "hours": "amount",
    "minutes": "amount",
    "seconds": "amount",
}
"""Rules of the templates, each a number in digits or in words, which is also the name of the slot."""


def _read(name: str) -> Any:
    """Read a file of this package; all scalars are text, so that "on" and "no" are words."""
    data = files(__package__).joinpath(f"{name}.yaml").read_bytes()
    return yaml.load(data, yaml.CBaseLoader)  # noqa: S506 - this loader builds no objects


def _value(word: str, key: str, code: str) -> dict[str, str]:
    return {"in": fold(word, code).text, "out": key}


def _has_free_text(template: str) -> bool:
    return any(f"{{{name}}}" in template for name in WILDCARDS)


def _app_pattern(names: Iterable[str], code: str) -> re.Pattern[str]:
    found = sorted({fold(name, code).text for name in names}, key=len, reverse=True)
    joined = "|".join(map(re.escape, found))
    return re.compile(rf"({joined})" if code == "zh" else rf"(?<![\w'])({joined})(?![\w'])")
