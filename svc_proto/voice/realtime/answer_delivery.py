"""An answer between the floor and the mouth, on its way to the ear; and progress, which gives way to everybody.

When what was said before is played, the provider is asked to speak the answer. What it says in place of it is not
heard: the relay has the answer spoken then. What cannot be heard is shown (wire terminal-voice 6.6, steps 4 to 7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import define, evolve, field

from svc_proto.voice.realtime.actions import ConversationAction, Emit, EmitAudio, LogEvent, Render, StopRendering
from svc_proto.voice.realtime.answer_playback import (
    ALARM,
    FALLBACK_NOTE,
    VISUAL,
    AnswerPlayback,
    PlaybackState,
    Said,
    SpokenAnswer,
)
from svc_proto.voice.realtime.turn_taking import DRAIN_TIMEOUT, FORCED, TurnTaking, TurnTakingState, TurnTakingTrigger

__all__ = ["AnswerDelivery", "ProgressAnnouncement"]

PROGRESS = "progress"


@define(eq=False)
class ProgressAnnouncement:
    """Progress that is spoken: a sentence of the relay's own, between what the provider says (wire terminal-voice 6.5).

    The relay renders it, since a provider would take it for a turn: it is sound and the end of that, no response, so
    that no client takes it for the end of a turn. Whoever has something to say himself ends it. `word` is the product's
    word on this wire, `new_id` makes ids of responses.
    """

    word: str
    new_id: Callable[[], str]
    speaks: str | None = field(default=None, init=False)  # the id of what is being rendered

    def speak(self, told: Iterable[ConversationAction]) -> list[ConversationAction]:
        """Of what a run has told, speak what is to be spoken. Only while nobody speaks."""
        words = [each.fields["message"] for each in told if isinstance(each, Emit) and each.fields.get("should_speak")]
        if not words:
            return []
        self.speaks = f"{PROGRESS}-{self.new_id()}"
        return [Render(self.speaks, str(words[0]))]

    def sound(self, audio: EmitAudio) -> ConversationAction:
        """A piece of it."""
        return evolve(audio, response_id=self.speaks, extra={"source": self.word, "delivery": PROGRESS})

    def on_finished(self, problem: str | None = None) -> list[ConversationAction]:
        """That was all of it, or all that can be had."""
        fields = {"response_id": self.speaks, "source": self.word, "delivery": PROGRESS}
        self.speaks = None
        note = [] if problem is None else [LogEvent("voice.realtime_agent.progress_failed", {"message": problem})]
        return [*note, Emit("voice.output_audio.done", fields)]

    def stop(self) -> list[ConversationAction]:
        """Somebody else has the word."""
        return [] if self.speaks is None else [StopRendering(), *self.on_finished()]


@define(eq=False)
class AnswerDelivery:
    """See the module. Whoever has it adds the orders to his own, in their order."""

    word: str
    floor: TurnTaking
    mouth: AnswerPlayback
    filler: ProgressAnnouncement

    @property
    def tells(self) -> bool:
        """Whether an answer is on its way."""
        return self.mouth.state is not PlaybackState.SILENT

    def who_speaks(self, *, waits: bool) -> str:
        """Who has the word, for whoever would speak of progress; `waits`: an answer from the background does."""
        mouth = self.mouth.state
        if mouth in (PlaybackState.JUDGING, PlaybackState.SPEAKING) or self.floor.state is TurnTakingState.ANSWERING:
            return "provider_speaking"
        if self.filler.speaks is not None or mouth in (PlaybackState.RENDERING, PlaybackState.RENDERED):
            return f"{self.word}_filler"
        return "result_pending" if waits or mouth is PlaybackState.WAITING else "idle"

    def deliver(self, answer: SpokenAnswer, now: float, *, background: bool = False) -> list[ConversationAction]:
        """An answer is to be heard, when what was said before is played."""
        out = self.filler.stop()
        self.mouth.start(answer)
        self.floor.step(TurnTakingTrigger.TELL, now + DRAIN_TIMEOUT)
        if not background:
            return [*out, self.floor.wait_for_playback(answer.call_id, f"{self.word}_run_task")]
        if self.mouth.result_delivery == VISUAL:
            return [*out, *self.show("background-visual")]
        return [*out, self.floor.wait_for_playback(None, None, FORCED)]

    def speak(self, now: float) -> list[ConversationAction]:
        """It is played: ask for the answer."""
        self.floor.drain = None
        if self.mouth.result_delivery == VISUAL:
            return self.show()
        self.floor.due = now + ALARM
        return self.floor.responses.request(self.mouth.provider_request(), now)

    def show(self, place: str = FALLBACK_NOTE) -> list[ConversationAction]:
        """Nobody is to speak it."""
        told = self.mouth.show(place)
        self.end()
        return told

    def end(self) -> None:
        """Nobody has the floor."""
        self.mouth.end()
        self.floor.step(TurnTakingTrigger.END)

    def quiet(self, now: float) -> tuple[list[ConversationAction], str | None]:
        """Have nothing to do any more with what is spoken; and the response that it was."""
        response_id = self.floor.abandon_response(now)
        out = self.filler.stop()
        if self.mouth.renders is not None:
            out.append(StopRendering())
        return out, self.mouth.response_id or response_id

    def give_up(self, now: float, *, cancelled: bool = False) -> list[ConversationAction]:
        """End what is heard of an answer; what was not heard is shown."""
        return [*self.floor.cancel_response(), *self.quiet(now)[0], *self.mouth.give_up(cancelled=cancelled)]

    # --- by the provider ---

    def on_provider_speech(self, said: Said, now: float) -> list[ConversationAction]:
        """The provider says something."""
        out = self.mouth.on_speech(said)
        return [*out, *self._fall_back(now)] if self.mouth.state is PlaybackState.REJECTED else out

    def complete(self, response_id: str, now: float) -> list[ConversationAction]:
        """It has finished."""
        out = self.mouth.complete(response_id)
        if self.mouth.state is PlaybackState.REJECTED:
            return [*out, *self._fall_back(now)]
        self.end()
        return out

    def _fall_back(self, now: float) -> list[ConversationAction]:
        """It says something else: the relay has the answer spoken itself. The alarm stays as it is set."""
        note = LogEvent("voice.response.forced_summary_off_script", {"call_id": self.mouth.answer.call_id})
        return [note, *self.floor.cancel_response(), *self.quiet(now)[0], self.mouth.render()]

    # --- by the relay ---

    def rendered_audio(self, response_id: str, audio: EmitAudio, now: float) -> list[ConversationAction]:
        """A piece of what the relay has spoken."""
        if self.filler.speaks == response_id:
            return [self.filler.sound(audio)]
        if self.mouth.renders != response_id:
            return []
        self.floor.due = now + ALARM
        return self.mouth.rendered_audio(audio)

    def rendered(self, response_id: str, fields: Mapping[str, object], problem: str | None) -> list[ConversationAction]:
        """That was all of it, or with a `problem` all that can be had; `fields` are for the end of the response."""
        if self.filler.speaks == response_id:
            return self.filler.on_finished(problem)
        if self.mouth.renders != response_id:
            return []
        told = self.mouth.rendered(fields)
        self.end()
        failed = {"message": problem}
        return told if problem is None else [LogEvent("voice.response.forced_summary_failed", failed), *told]
