"""Delivery of a run's answer after earlier speech; and rendered progress, which ends when other speech begins.

Once earlier speech has been played, or after 2.5 s, the provider is requested to read out or summarize the answer. If
its speech deviates, that speech is withheld and the relay renders the answer. An answer that is only to be displayed,
or that cannot be rendered, is sent as text alone (wire terminal-voice 6.6, steps 4 to 7).
"""

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
    """Rendered progress: a short text that the relay renders between responses of the provider (wire 6.5).

    Clients receive its audio and the end of the audio, but no response. `word` is the brand's name; `new_id` makes ids
    of responses.
    """

    word: str
    new_id: Callable[[], str]
    speaks: str | None = field(default=None, init=False)  # the id of the sentence that is being rendered

    def speak(self, emitted: Iterable[ConversationAction]) -> list[ConversationAction]:
        """Return the action that renders the first message with `should_speak` among a run's events, if there is one.

        Call this only while no speech plays.
        """
        words = [
            each.fields["message"] for each in emitted if isinstance(each, Emit) and each.fields.get("should_speak")
        ]
        if not words:
            return []
        self.speaks = f"{PROGRESS}-{self.new_id()}"
        return [Render(self.speaks, str(words[0]))]

    def sound(self, audio: EmitAudio) -> ConversationAction:
        """Return a piece of rendered progress as audio for the client."""
        return evolve(audio, response_id=self.speaks, extra={"source": self.word, "delivery": PROGRESS})

    def on_finished(self, problem: str | None = None) -> list[ConversationAction]:
        """End the progress audio; with a `problem`, also log the failure."""
        fields = {"response_id": self.speaks, "source": self.word, "delivery": PROGRESS}
        self.speaks = None
        note = [] if problem is None else [LogEvent("voice.realtime_agent.progress_failed", {"message": problem})]
        return [*note, Emit("voice.output_audio.done", fields)]

    def stop(self) -> list[ConversationAction]:
        """Return the actions that stop the progress audio, because other speech begins; none if there is no audio."""
        return [] if self.speaks is None else [StopRendering(), *self.on_finished()]


@define(eq=False)
class AnswerDelivery:
    """Delivery of answers for one conversation. The actions that a method returns are added by the caller, in order."""

    word: str
    floor: TurnTaking
    playback: AnswerPlayback
    filler: ProgressAnnouncement

    @property
    def tells(self) -> bool:
        """Report whether an answer is being delivered."""
        return self.playback.state is not PlaybackState.SILENT

    def turn_state(self, *, waits: bool) -> str:
        """Return what progress events report about speech. `waits`: an answer from the background is pending.

        It is `provider_speaking`, `<word>_filler`, `result_pending` or `idle`.
        """
        playback = self.playback.state
        if playback in (PlaybackState.JUDGING, PlaybackState.SPEAKING) or self.floor.state is TurnTakingState.ANSWERING:
            return "provider_speaking"
        if self.filler.speaks is not None or playback in (PlaybackState.RENDERING, PlaybackState.RENDERED):
            return f"{self.word}_filler"
        return "result_pending" if waits or playback is PlaybackState.WAITING else "idle"

    def deliver(self, answer: SpokenAnswer, now: float, *, background: bool = False) -> list[ConversationAction]:
        """Begin the delivery of an answer; return the actions, such as the wait for the playback of earlier speech.

        An answer from the `background` that is displayed only is sent as text at once.
        """
        out = self.filler.stop()
        self.playback.start(answer)
        self.floor.step(TurnTakingTrigger.TELL, now + DRAIN_TIMEOUT)
        if not background:
            return [*out, self.floor.wait_for_playback(answer.call_id, f"{self.word}_run_task")]
        if self.playback.result_delivery == VISUAL:
            return [*out, *self.show("background-visual")]
        return [*out, self.floor.wait_for_playback(None, None, FORCED)]

    def speak(self, now: float) -> list[ConversationAction]:
        """Return the request for the answer from the provider, after the wait for the playback of earlier speech.

        An answer that is to be displayed only is sent as text.
        """
        self.floor.drain = None
        if self.playback.result_delivery == VISUAL:
            return self.show()
        self.floor.due = now + ALARM
        return self.floor.responses.request(self.playback.provider_request(), now)

    def show(self, place: str = FALLBACK_NOTE) -> list[ConversationAction]:
        """Send the answer as text alone and end its delivery."""
        emitted = self.playback.show(place)
        self.end()
        return emitted

    def end(self) -> None:
        """End the delivery and the turn."""
        self.playback.end()
        self.floor.step(TurnTakingTrigger.END)

    def quiet(self, now: float) -> tuple[list[ConversationAction], str | None]:
        """Abandon the speech that is played now; return the actions for that, and the id of its response, if any."""
        response_id = self.floor.abandon_response(now)
        out = self.filler.stop()
        if self.playback.renders is not None:
            out.append(StopRendering())
        return out, self.playback.response_id or response_id

    def give_up(self, now: float, *, cancelled: bool = False) -> list[ConversationAction]:
        """End the playback of an answer; an answer of which nothing was played is sent as text."""
        return [*self.floor.cancel_response(), *self.quiet(now)[0], *self.playback.give_up(cancelled=cancelled)]

    # --- by the provider ---

    def on_provider_speech(self, speech: Said, now: float) -> list[ConversationAction]:
        """Handle speech of the provider: pass it on, withhold it, or fall back to the renderer."""
        out = self.playback.on_speech(speech)
        return [*out, *self._fall_back(now)] if self.playback.state is PlaybackState.REJECTED else out

    def complete(self, response_id: str, now: float) -> list[ConversationAction]:
        """Handle the end of the provider's response: end the delivery, or have the relay render the answer.

        The relay renders it if the provider's speech deviates from the answer.
        """
        out = self.playback.complete(response_id)
        if self.playback.state is PlaybackState.REJECTED:
            return [*out, *self._fall_back(now)]
        self.end()
        return out

    def _fall_back(self, now: float) -> list[ConversationAction]:
        """Have the relay render the answer, because the provider's speech deviates from it."""
        note = LogEvent("voice.response.forced_summary_off_script", {"call_id": self.playback.answer.call_id})
        return [note, *self.floor.cancel_response(), *self.quiet(now)[0], self.playback.render()]

    # --- by the relay ---

    def rendered_audio(self, response_id: str, audio: EmitAudio, now: float) -> list[ConversationAction]:
        """Return rendered audio as events for the client; none if this response is no longer being rendered."""
        if self.filler.speaks == response_id:
            return [self.filler.sound(audio)]
        if self.playback.renders != response_id:
            return []
        self.floor.due = now + ALARM
        return self.playback.rendered_audio(audio)

    def rendered(self, response_id: str, fields: Mapping[str, object], problem: str | None) -> list[ConversationAction]:
        """End the progress audio or the answer whose rendering has ended or failed (`problem`).

        `fields` are for the end of an answer. A response that is no longer being rendered is ignored.
        """
        if self.filler.speaks == response_id:
            return self.filler.on_finished(problem)
        if self.playback.renders != response_id:
            return []
        emitted = self.playback.rendered(fields)
        self.end()
        failed = {"message": problem}
        return emitted if problem is None else [LogEvent("voice.response.forced_summary_failed", failed), *emitted]
