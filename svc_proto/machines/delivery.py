"""The answer of a run on its way to the person's ear: what the provider says instead of it is held back and judged.

The provider was asked to speak the answer (wire terminal-voice 6.6, steps 5 to 7). What it says counts as the answer
once 40 characters of it share two content words with the answer, or, when it is shorter, at its end. Audio without a
word of text cannot be judged and counts. Until then nothing is passed on, at most `MAX_HELD` bytes
of sound and `MAX_TEXT` characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum

from attrs import evolve, field, frozen

from svc_proto.machines.broker_orders import Emit, EmitAudio, Order, Render

__all__ = ["ALARM", "MAX_HELD", "MAX_TEXT", "HeldAnswer", "Delivery", "Held", "Verdict", "on_script", "passed_on"]

ALARM = 30.0  # s until an answer that nobody heard is shown as text, wire terminal-voice 9 "delivery alarm"
JUDGED_FROM = 40  # characters
SHARED = 2  # content words
MAX_HELD = 4 * 1024 * 1024  # bytes of audio held back; past it the answer counts as off-script
MAX_TEXT = 4000  # characters, the same; more than twice what is ever asked for
SHORT = 3  # letters: shorter words say nothing; a digit always does
# Scripts without blanks between words are compared character by character.
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]|[^\W_]+")
SUMMARY = "forced_summary"  # values of `delivery`, wire terminal-voice 6.6
FALLBACK = "fallback"
VISUAL = "visual_only"
RESPEAK = "respeak"
_COMMON = frozenset(
    [
        "about",
        "also",
        "been",
        "have",
        "here",
        "into",
        "just",
        "like",
        "more",
        "only",
        "some",
        "that",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "very",
        "was",
        "were",
        "what",
        "when",
        "which",
        "will",
        "with",
        "would",
        "your",
        "yours",
        "from",
        "could",
        "should",
        "does",
        "done",
    ]
)


@frozen(kw_only=True)
class HeldAnswer:
    """What a run answered: `text` to be seen, `spoken` to be heard."""

    call_id: str
    run_id: str
    text: str
    spoken: str
    structured: bool = False  # JSON: it is summed up, never read out


class Verdict(Enum):
    """What is known of what the provider says."""

    OPEN = "open"
    ON_SCRIPT = "on script"
    OFF_SCRIPT = "off script"


@frozen
class Held:
    """Something that waits for the verdict."""

    text: str = ""
    audio: bytes = field(default=b"", repr=False)


class Delivery:
    """One answer on its way. `word` is the product's word on this wire, `new_id` makes ids of responses."""

    def __init__(self, answer: HeldAnswer, word: str, new_id: Callable[[], str], *, background: bool = False) -> None:
        self.answer = answer
        self.background = background  # nobody's turn waits for it
        self.verdict = Verdict.OPEN
        self.speaking: str | None = None  # the response in which it is heard
        self.rendering = ""  # the response that the relay renders
        self._word = word
        self._new_id = new_id
        self._relays = FALLBACK  # why the relay speaks
        self._text = ""
        self._held: list[Held] = []
        self._size = 0
        self._audio_over = False
        self._audio_told = False  # that it is over

    # --- by the provider ---

    def hear(self, response_id: str, held: Held) -> list[Order]:
        """The provider says something: what of all that it said is passed on now. The verdict may be there then."""
        if self.verdict is Verdict.ON_SCRIPT:
            return passed_on(response_id, held, delivery=SUMMARY)
        if held.text or held.audio:
            self._held.append(held)
        self._text += held.text
        self._size += len(held.audio)
        if len(self._text) >= JUDGED_FROM and on_script(self._text, self.answer.spoken):
            return self._accept(response_id)
        if self._size > MAX_HELD or len(self._text) > MAX_TEXT:
            self._reject()
        return []

    def audio_done(self, response_id: str) -> list[Order]:
        """Its audio is complete: told with the rest, if it is the answer."""
        if self.speaking is None:
            self._audio_over = True
            return []
        self._audio_told = True
        return [Emit("voice.output_audio.done", {"response_id": response_id, "delivery": SUMMARY})]

    def end(self, response_id: str) -> list[Order]:
        """The provider has finished. The verdict is there now; on script, the turn is told to be over."""
        told: list[Order] = []
        if self.verdict is Verdict.OPEN:
            silent = not self._text.strip()
            if silent and any(held.audio for held in self._held):
                self._held.insert(0, Held(self.answer.spoken))
                told = self._accept(response_id)
            elif not silent and on_script(self._text, self.answer.spoken):
                told = self._accept(response_id)
            else:
                self._reject()
                return []
        fields = {"response_id": response_id, "delivery": SUMMARY}
        if self._audio_over:
            told.append(Emit("voice.output_audio.done", fields))
        return [*told, Emit("voice.response.done", fields)]

    # --- by the relay ---

    def render(self) -> Order:
        """Have the relay speak it."""
        self.verdict = Verdict.OFF_SCRIPT
        self.rendering = f"forced-summary-fallback-{self._new_id()}"
        return Render(self.rendering, self.answer.spoken)

    def respeak(self) -> Order:
        """Have the relay speak it once more."""
        self._relays = RESPEAK
        self.rendering = f"respeak-{self._new_id()}"
        return Render(self.rendering, self.answer.spoken)

    def rendered_audio(self, audio: EmitAudio) -> list[Order]:
        """A piece of that."""
        told: list[Order] = []
        if self.speaking is None:
            self.speaking = self.rendering
            told.append(Emit("voice.response.started", self._relayed))
            told.append(Emit("voice.response.delta", {"delta": self.answer.spoken, **self._relayed}))
        return [
            *told,
            evolve(audio, response_id=self.rendering, extra={"source": self._word, "delivery": self._relays}),
        ]

    def rendered(self, fields: Mapping[str, object]) -> list[Order]:
        """That was all; if it was nothing, it is shown."""
        if self.speaking is None:
            return self.show()
        done = {**self._relayed, "final_text": self.answer.text, "audio_path": "", **fields}
        return [Emit("voice.output_audio.done", self._relayed), Emit("voice.response.done", done)]

    # --- by nobody ---

    def show(self, *, wanted: bool = False) -> list[Order]:
        """As text alone. `wanted`: that is how it is to be."""
        place = "background-visual" if wanted and self.background else "delivery-fallback"
        kind = {
            "response_id": f"{place}-{self._new_id()}",
            "source": self._word,
            "delivery": VISUAL,
        }
        return [
            Emit("voice.response.started", kind),
            Emit("voice.response.delta", {"delta": self.answer.text, **kind}),
            Emit("voice.response.done", {**kind, "final_text": self.answer.text}),
        ]

    def give_up(self, *, cancelled: bool = False) -> list[Order]:
        """End what is heard of it; if that is nothing, it is shown."""
        if self.speaking is None:
            return self.show()
        spoken = {"response_id": self.speaking, "delivery": SUMMARY}
        kind: Mapping[str, object] = self._relayed if self.rendering else spoken
        done = {**kind, "cancelled": True} if cancelled else kind
        silence: list[Order] = [] if self._audio_told else [Emit("voice.output_audio.done", kind)]
        return [*silence, Emit("voice.response.done", done)]

    # --- helpers ---

    @property
    def _relayed(self) -> dict[str, object]:
        return {"response_id": self.rendering, "source": self._word, "delivery": self._relays}

    def _accept(self, response_id: str) -> list[Order]:
        self.verdict = Verdict.ON_SCRIPT
        self.speaking = response_id
        held, self._held = self._held, []
        started = Emit("voice.response.started", {"response_id": response_id, "delivery": SUMMARY})
        return [started, *(order for each in held for order in passed_on(response_id, each, delivery=SUMMARY))]

    def _reject(self) -> None:
        self.verdict = Verdict.OFF_SCRIPT
        self._held = []


def passed_on(response_id: str, held: Held, **fields: object) -> list[Order]:
    """What the provider says, for the client."""
    told: list[Order] = []
    if held.text:
        about = {"delta": held.text, "source": "provider", "response_id": response_id, **fields}
        told.append(Emit("voice.response.delta", about))
    if held.audio:
        told.append(EmitAudio(response_id=response_id, data=held.audio, extra=fields))
    return told


def on_script(said: str, answer: str) -> bool:
    """Whether what was said shares two content words with the answer, or all that it has if it has fewer."""
    wanted = _content_words(answer)
    if not wanted:
        return bool(said.strip())
    return len(wanted & _content_words(said)) >= min(SHARED, len(wanted))


def _content_words(text: str) -> set[str]:
    words = (word.casefold() for word in _TOKEN.findall(text))
    return {word for word in words if (len(word) > SHORT and word not in _COMMON) or _says_much(word)}


def _says_much(word: str) -> bool:
    return any(letter.isdigit() for letter in word) or (len(word) == 1 and ord(word) > 0x0E00)
