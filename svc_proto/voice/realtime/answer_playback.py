"""Playback of one run's answer: read out, displayed, held back or repeated.

The provider was requested to read out or summarize the answer (wire terminal-voice 6.6, steps 5 to 7). Its speech is
held back until its text is recognized as the answer (`matches_answer`). A response with audio and without any text
counts as the answer, unless it has more than `MAX_HELD` bytes.
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TypeAlias

from attrs import evolve, frozen

from svc_proto.machines.transitions import Table, step
from svc_proto.voice.provider_interface import AudioDelta, SpokenTextDelta
from svc_proto.voice.realtime.actions import ConversationAction, Emit, EmitAudio, ReadAloud, Render, Summarize

__all__ = ["ALARM", "MAX_HELD", "MAX_TEXT", "PLAYBACK_TABLE", "SpokenAnswer", "Said", "AnswerPlayback", "PlaybackState"]
__all__ += ["PlaybackTrigger"]
__all__ += ["matches_answer", "client_event_of"]

ALARM = 30.0  # s until an answer that was not played is sent as text, wire terminal-voice 9 "delivery alarm"
JUDGED_FROM = 40  # characters
SHARED = 2  # content words
MAX_HELD = 4 * 1024 * 1024  # bytes of audio held back; past it the answer counts as off-script
MAX_TEXT = 4000  # characters, the same; more than twice the longest answer that is requested
SHORT = 3  # letters: shorter words carry no meaning; a digit always does
# Scripts without blanks between words are compared character by character.
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]|[^\W_]+")
SUMMARY = "forced_summary"  # values of `delivery`, wire terminal-voice 6.6
FALLBACK = "fallback"
VISUAL = "visual_only"
RESPEAK = "respeak"
FALLBACK_NOTE = "delivery-fallback"  # the prefix of response ids of answers that are sent as text
_WORDS = """
about also been have here into just like more only some that their them then there these they this very was were what
when which will with would your yours from could should does done
"""
_COMMON = frozenset(_WORDS.split())
Said: TypeAlias = SpokenTextDelta | AudioDelta  # by the provider


class PlaybackState(Enum):
    """State of the delivery of an answer."""

    SILENT = "silent"
    WAITING = "waiting"
    JUDGING = "judging"
    REJECTED = "rejected"
    SPEAKING = "speaking"
    RENDERING = "rendering"
    RENDERED = "rendered"


class PlaybackTrigger(Enum):
    """Trigger of a transition of `PLAYBACK_TABLE`."""

    TAKE = "take"
    ASK = "ask"
    ACCEPT = "accept"
    REJECT = "reject"
    RENDER = "render"
    SOUND = "sound"
    END = "end"


_S, _T = PlaybackState, PlaybackTrigger
PLAYBACK_TABLE: Table[PlaybackState, PlaybackTrigger] = {
    (_S.SILENT, _T.TAKE): _S.WAITING,  # a run has answered; earlier speech is being played
    (_S.SILENT, _T.RENDER): _S.RENDERING,  # an answer is to be played again
    (_S.WAITING, _T.ASK): _S.JUDGING,  # the provider was requested to read it out, and its speech is held back
    (_S.JUDGING, _T.ACCEPT): _S.SPEAKING,  # the speech is the answer
    (_S.JUDGING, _T.REJECT): _S.REJECTED,  # the speech is another text, or empty
    (_S.REJECTED, _T.RENDER): _S.RENDERING,  # the relay has it rendered
    (_S.RENDERING, _T.SOUND): _S.RENDERED,  # the first rendered audio has arrived
    # The delivery is over, or the answer was sent as text.
    **{(state, _T.END): _S.SILENT for state in _S if state not in (_S.SILENT, _S.REJECTED)},
}


@frozen(kw_only=True)
class SpokenAnswer:
    """Answer of a run: `text` to be displayed, `spoken` to be read out."""

    call_id: str
    run_id: str
    text: str
    spoken: str
    structured: bool = False  # JSON: it is summarized, never read out


class AnswerPlayback:
    """Playback of answers, one at a time: `word` is the brand's name, `new_id` makes response ids."""

    def __init__(self, word: str, new_id: Callable[[], str], result_delivery: str = "speak_verbatim") -> None:
        self.result_delivery = result_delivery
        self.state = PlaybackState.SILENT
        self.answer: SpokenAnswer  # from `start` or `respeak` on
        self._word = word
        self._new_id = new_id
        self._held: list[Said] = []  # until the speech is judged
        self._clear()

    @property
    def response_id(self) -> str | None:
        """The id of the response in which the answer is being played, if any."""
        return self._response_id if self.state in (PlaybackState.SPEAKING, PlaybackState.RENDERED) else None

    @property
    def renders(self) -> str | None:
        """The id of the response that the relay renders, if any."""
        return self._response_id if self.state in (PlaybackState.RENDERING, PlaybackState.RENDERED) else None

    def start(self, answer: SpokenAnswer) -> None:
        """Accept an answer for delivery; nothing of it is played yet."""
        self._step(PlaybackTrigger.TAKE)
        self._clear()
        self.answer = answer

    def end(self) -> None:
        """End the delivery, if there is one."""
        if self.state is not PlaybackState.SILENT:
            self._step(PlaybackTrigger.END)

    # --- by the provider ---

    def provider_request(self) -> ConversationAction:
        """Return the request by which the provider reads out or summarizes the answer."""
        self._step(PlaybackTrigger.ASK)
        verbatim = self.result_delivery == "speak_verbatim" and not self.answer.structured
        return ReadAloud(self.answer.spoken) if verbatim else Summarize(self.answer.text)

    def on_speech(self, speech: Said) -> list[ConversationAction]:
        """Handle a piece of the provider's speech and return the events for the client.

        Until the speech is accepted as the answer, its pieces are held back; above the limits, it is rejected.
        """
        if self.state is PlaybackState.SPEAKING:
            return [client_event_of(speech, delivery=SUMMARY)]
        self._held.append(speech)
        if isinstance(speech, AudioDelta):
            self._size += len(speech.data)
        else:
            self._text += speech.delta
        if len(self._text) >= JUDGED_FROM and matches_answer(self._text, self.answer.spoken):
            return self._accept(speech.response_id)
        if self._size > MAX_HELD or len(self._text) > MAX_TEXT:
            self._step(PlaybackTrigger.REJECT)
        return []

    def audio_done(self, response_id: str) -> list[ConversationAction]:
        """Return the event for the end of the response's audio; before the speech is judged, the event is held back."""
        if self.state is PlaybackState.JUDGING:
            self._audio_over = True
            return []
        self._audio_started = True
        return [Emit("voice.output_audio.done", {"response_id": response_id, "delivery": SUMMARY})]

    def complete(self, response_id: str) -> list[ConversationAction]:
        """Handle the end of the provider's response: judge its speech, and end the delivery if it is the answer.

        Else the state is `REJECTED`, and no event is returned.
        """
        emitted: list[ConversationAction] = []
        if self.state is PlaybackState.JUDGING:
            silent = not self._text.strip()
            if silent and self._size:
                self._held.insert(0, SpokenTextDelta(response_id, self.answer.spoken))
            elif silent or not matches_answer(self._text, self.answer.spoken):
                self._step(PlaybackTrigger.REJECT)
                return []
            emitted = self._accept(response_id)
        fields = {"response_id": response_id, "delivery": SUMMARY}
        if self._audio_over:
            emitted.append(Emit("voice.output_audio.done", fields))
        self.end()
        return [*emitted, Emit("voice.response.done", fields)]

    # --- by the relay ---

    def render(self) -> ConversationAction:
        """Return the action by which the relay renders the answer, because the provider's speech deviates."""
        return self._render("forced-summary-fallback", FALLBACK)

    def respeak(self, answer: SpokenAnswer) -> ConversationAction:
        """Return the action by which the relay renders an earlier answer once more."""
        self._clear()
        self.answer = answer
        return self._render("respeak", RESPEAK)

    def rendered_audio(self, audio: EmitAudio) -> list[ConversationAction]:
        """Return the events for a piece of rendered audio; the first piece starts the response."""
        emitted: list[ConversationAction] = []
        if self.state is PlaybackState.RENDERING:
            self._step(PlaybackTrigger.SOUND)
            emitted.append(Emit("voice.response.started", self._relayed))
            emitted.append(Emit("voice.response.delta", {"delta": self.answer.spoken, **self._relayed}))
        extra = {"source": self._word, "delivery": self._relays}
        return [*emitted, evolve(audio, response_id=self._response_id, extra=extra)]

    def rendered(self, fields: Mapping[str, object]) -> list[ConversationAction]:
        """End the rendered response; an answer without any audio is sent as text."""
        if self.state is PlaybackState.RENDERING:
            return self.show()
        self.end()
        done = {**self._relayed, "final_text": self.answer.text, "audio_path": "", **fields}
        return [Emit("voice.output_audio.done", self._relayed), Emit("voice.response.done", done)]

    # --- as text ---

    def show(self, place: str = FALLBACK_NOTE) -> list[ConversationAction]:
        """End the delivery, and return the events that send the answer as text alone."""
        self.end()
        return self.visual_event(self.answer, place)

    def visual_event(self, answer: SpokenAnswer, place: str = FALLBACK_NOTE) -> list[ConversationAction]:
        """Return the events of an answer that is sent as text alone."""
        kind = {"response_id": f"{place}-{self._new_id()}", "source": self._word, "delivery": VISUAL}
        return [
            Emit("voice.response.started", kind),
            Emit("voice.response.delta", {"delta": answer.text, **kind}),
            Emit("voice.response.done", {**kind, "final_text": answer.text}),
        ]

    def give_up(self, *, cancelled: bool = False) -> list[ConversationAction]:
        """End the playback and return the events for that; an answer of which nothing was played is sent as text."""
        heard_in = self.response_id
        if heard_in is None:
            return self.show()
        by_provider = self.state is PlaybackState.SPEAKING
        kind = {"response_id": heard_in, "delivery": SUMMARY} if by_provider else self._relayed
        done = {**kind, "cancelled": True} if cancelled else kind
        silence: list[ConversationAction] = [] if self._audio_started else [Emit("voice.output_audio.done", kind)]
        self.end()
        return [*silence, Emit("voice.response.done", done)]

    # --- helpers ---

    @property
    def _relayed(self) -> dict[str, object]:
        return {"response_id": self._response_id, "source": self._word, "delivery": self._relays}

    def _render(self, place: str, why: str) -> ConversationAction:
        self._step(PlaybackTrigger.RENDER)
        self._relays = why
        self._response_id = f"{place}-{self._new_id()}"
        return Render(self._response_id, self.answer.spoken)

    def _accept(self, response_id: str) -> list[ConversationAction]:
        self._step(PlaybackTrigger.ACCEPT)
        self._response_id = response_id
        held, self._held = self._held, []
        started = Emit("voice.response.started", {"response_id": response_id, "delivery": SUMMARY})
        return [started, *(client_event_of(each, delivery=SUMMARY) for each in held)]

    def _clear(self) -> None:
        self._response_id = ""  # the response that plays or renders it
        self._relays = FALLBACK  # the `delivery` of what the relay renders
        self._text = ""
        self._held = []
        self._size = 0  # bytes of audio in that
        self._audio_over = False  # the audio ended before it was judged
        self._audio_started = False  # the end of the audio was sent

    def _step(self, trigger: PlaybackTrigger) -> None:
        self.state = step(PLAYBACK_TABLE, self.state, trigger)
        if self.state in (PlaybackState.SILENT, PlaybackState.REJECTED):
            self._held = []


def client_event_of(speech: Said, **fields: object) -> ConversationAction:
    """Convert speech of the provider to an event for the client."""
    if isinstance(speech, AudioDelta):
        return EmitAudio(response_id=speech.response_id, data=speech.data, extra=fields)
    about = {"delta": speech.delta, "source": "provider", "response_id": speech.response_id, **fields}
    return Emit("voice.response.delta", about)


def matches_answer(spoken: str, answer: str) -> bool:
    """Report whether speech shares two content words with the answer, or all of them if the answer has fewer.

    An answer without content words matches any speech that is not blank.
    """
    answer_words = _content_words(answer)
    if not answer_words:
        return bool(spoken.strip())
    return len(answer_words & _content_words(spoken)) >= min(SHARED, len(answer_words))


def _content_words(text: str) -> set[str]:
    words = (word.casefold() for word in _TOKEN.findall(text))
    return {word for word in words if (len(word) > SHORT and word not in _COMMON) or _is_content_word(word)}


def _is_content_word(word: str) -> bool:
    return any(letter.isdigit() for letter in word) or (len(word) == 1 and ord(word) > 0x0E00)
