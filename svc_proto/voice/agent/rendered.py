"""A session whose provider only speaks: the person's words become a chat run, its answer is rendered (wire 6.10).

| state        | trigger | next         |
|--------------|---------|--------------|
| idle         | LISTEN  | transcribing | an utterance, with a provider that can hear (`local`)
| idle         | RUN     | running      | a text
| transcribing | RUN     | running      | it is understood
| transcribing | END     | idle         | it is not, or nobody said anything
| running      | SPEAK   | speaking     | the run has answered
| running      | END     | idle         |
| speaking     | END     | idle         |

The stub hears nothing: its utterances need the text beside them. Any close ends the session. Each turn ends with
`voice.response.done`, one that was cancelled or failed too.
"""

from __future__ import annotations

from enum import Enum

from svc_proto.basics.errors import Refused
from svc_proto.basics.pcm import resample
from svc_proto.engine.flow import Flow, Task
from svc_proto.machines.table import Table, step
from svc_proto.voice.agent.instructions import run_notes
from svc_proto.voice.agent.recording import transcribe
from svc_proto.voice.agent.session import AgentMode, AgentSetup
from svc_proto.voice.contract import AudioChunk, Rendered, SpeechRequest
from svc_proto.voice.realtime.mouth import SpokenAnswer
from svc_proto.voice.realtime.orders import AskAboutApproval, Emit, Order, StartRun
from svc_proto.voice.realtime.run import VoiceRun
from svc_proto.voice.realtime.story import AnswerComplete, AnswerDelta, RunEvent
from svc_proto.voice.registry import LOCAL
from svc_proto.voice.rendering import Rendering
from svc_proto.voice.session import VoiceSession, problem_of
from svc_proto.voice.text import clean_for_speech
from svc_proto.wire.limits import MAX_TEXT

__all__ = ["LIFE", "RenderedMode", "RenderedState", "RenderedTrigger"]

HEARING_RATE = 16_000  # Hz of what is kept to be transcribed: what speech engines want
MAX_UTTERANCE = 8 * 1024 * 1024  # bytes, more than four minutes at that rate: what comes later is refused


class RenderedState(Enum):
    """Where a turn is."""

    IDLE = "idle"
    TRANSCRIBING = "transcribing"
    RUNNING = "running"
    SPEAKING = "speaking"


class RenderedTrigger(Enum):
    """What moves it."""

    LISTEN = "listen"
    RUN = "run"
    SPEAK = "speak"
    END = "end"


LIFE: Table[RenderedState, RenderedTrigger] = {
    (RenderedState.IDLE, RenderedTrigger.LISTEN): RenderedState.TRANSCRIBING,
    (RenderedState.IDLE, RenderedTrigger.RUN): RenderedState.RUNNING,
    (RenderedState.TRANSCRIBING, RenderedTrigger.RUN): RenderedState.RUNNING,
    (RenderedState.TRANSCRIBING, RenderedTrigger.END): RenderedState.IDLE,
    (RenderedState.RUNNING, RenderedTrigger.SPEAK): RenderedState.SPEAKING,
    (RenderedState.RUNNING, RenderedTrigger.END): RenderedState.IDLE,
    (RenderedState.SPEAKING, RenderedTrigger.END): RenderedState.IDLE,
}


class RenderedMode(AgentMode):
    """See the module."""

    names_chat = False

    def __init__(self, session: VoiceSession, setup: AgentSetup) -> None:
        super().__init__(session, setup)
        self.state = RenderedState.IDLE
        self._turns = 0
        self._utterance: list[bytes] = []
        self._kept = 0  # bytes of it
        self._said_bytes = 0  # of microphone audio since the last turn
        self._rate = HEARING_RATE  # as the client said last
        self._current: VoiceRun | None = None
        self._listening: Task | None = None
        self._rendering: Rendering | None = None
        self._beat = self.engine.timers.timer(self._run_due)

    # --- Mode ---

    def on_closed(self) -> None:
        """The end. A run goes on, its answer is in the chat."""
        self._drop()
        self._beat.retire()

    # --- the client ---

    def hear(self, pcm: bytes, rate: int) -> None:
        """Keep it, if somebody can listen to it."""
        self._said_bytes += len(pcm)
        self._rate = rate
        if self.chosen.provider != LOCAL:
            return
        if self._kept + len(pcm) > MAX_UTTERANCE:
            raise Refused(413, "too_large", f"an utterance may have at most {MAX_UTTERANCE} bytes")
        kept = resample(pcm, rate, HEARING_RATE)
        self._utterance.append(kept)
        self._kept += len(kept)

    def commit(self, said: str | None) -> None:
        """An utterance is complete."""
        self._check_idle()
        utterance = b"".join(self._utterance)
        if said is None and self.chosen.provider != LOCAL:
            raise Refused(400, "text_missing", "this provider does not listen: text is required")
        if said is not None:
            self.say(said)
        elif utterance:
            self._step(RenderedTrigger.LISTEN)
            self._listening = self.engine.spawn(
                transcribe(self.session.voice, self.chosen.provider, utterance, HEARING_RATE),
                on_done=self._heard,
                on_error=self._failed,
            )
        else:
            self._told("")
            self._done()
        self.clear()

    def clear(self) -> None:
        """Forget what was not committed."""
        self._utterance.clear()
        self._kept = 0

    def say(self, said: str) -> None:
        """A text turn."""
        self._check_idle()
        self._told(said)
        self._run(said)

    def cancel(self) -> None:
        """Stop whatever is going on, on the API server too."""
        if self.state is RenderedState.RUNNING:
            self.chat_runs.stop(f"turn-{self._turns}")
        self._drop()
        self.session.emit(f"{self.word}.run.cancelled", session_id=self.chat_session_id)
        self._done(cancelled=True)

    def confirm(self, confirmation_id: str | None, answer: str) -> None:
        """An answer to a question of the run."""
        order = None if self._current is None else self._current.approve(confirmation_id, answer)
        if order is None:
            self.session.emit(f"{self.word}.confirmation.forwarded", confirmation_id=confirmation_id, answer=None)
        else:
            self.chat_runs.approve(order)

    def respeak(self) -> None:
        """There is no background, and no answer from it."""
        self.session.emit(f"{self.word}.result.respeak_unavailable")

    # --- the turn ---

    def _check_idle(self) -> None:
        if self.state is not RenderedState.IDLE:
            raise Refused(400, "response_not_possible", "a response is already running in this session")

    def _heard(self, text: str) -> None:
        self._listening = None
        self._told(text)
        if text:
            self._run(text)
        else:
            self._step(RenderedTrigger.END)
            self._done()

    def _told(self, text: str) -> None:
        said, self._said_bytes = self._said_bytes, 0
        self.session.emit("voice.input_transcript.final", text=text, sample_rate=self._rate, input_audio_bytes=said)

    def _run(self, text: str) -> None:
        self._step(RenderedTrigger.RUN)
        self._turns += 1
        self.tell(Emit("voice.response.started", {"response_id": None}))
        self._current = run = VoiceRun(
            self.word,
            f"turn-{self._turns}",
            text=text[:MAX_TEXT],
            session_id=self.chat_session_id,
            profile=self.chosen.scope.profile,
        )
        run.pause(self.engine.now.mono)  # nobody has to be told: the run begins at once
        self._run_due()

    def _run_due(self) -> None:
        run = self._current
        assert run is not None  # without one the timer is not set
        assert run.due is not None
        self._obey(run.on_due(self.engine.now.mono, "idle"))
        self._beat.set(run.due)

    def _obey(self, orders: list[Order]) -> None:
        for order in orders:
            match order:
                case StartRun():
                    self.chat_runs.start(order, run_notes(self.interface))
                case AskAboutApproval():
                    self.chat_runs.ask_about(order)
                case _:
                    assert isinstance(order, Emit)  # there is nothing else in a run of this kind
                    self.tell(order)

    def _failed(self, error: Exception) -> None:
        self.session.error(problem_of(self.engine, error), provider=self.chosen.provider, session_id=self.session.id)
        self._drop()
        self._done()

    def _done(self, **fields: object) -> None:
        self.tell(Emit("voice.response.done", {"response_id": None, **fields}))

    def _drop(self) -> None:
        """Have nothing to do any more with the turn."""
        if self._listening is not None:
            self._listening.cancel()
        if self._rendering is not None:
            self._rendering.stop()
        self.chat_runs.leave_all()
        self._listening = self._rendering = self._current = None
        self._beat.cancel()
        if self.state is not RenderedState.IDLE:
            self._step(RenderedTrigger.END)

    def _step(self, trigger: RenderedTrigger) -> None:
        self.state = step(LIFE, self.state, trigger)

    # --- the run ---

    def run_event(self, call_id: str, event: RunEvent) -> None:
        """The run tells something: everything is passed on (wire 6.10)."""
        run = self._current
        if run is None or run.call_id != call_id or not run.live:
            return
        if isinstance(event, AnswerDelta):
            self._obey([*run.draft()])
        self._obey([*run.story.take(event)])
        self.chat_session_id = run.story.session_id
        if isinstance(event, AnswerDelta):
            self.session.emit("voice.response.delta", delta=event.delta)
        if isinstance(event, AnswerComplete):
            self.session.emit("voice.response.turn_completed", content=event.content)

    def run_ended(self, call_id: str) -> None:
        """The run has answered: have the answer spoken."""
        run = self._current
        assert run is not None  # nothing is told of a run that was left
        if run.story.interrupted:
            self._obey([run.story.cancelled()])
            self._drop()
            self._done(cancelled=True)
            return
        self._obey([*run.story.complete()])
        answer = run.finish(clean_for_speech)
        self._beat.cancel()
        self._speak(answer)

    def run_failed(self, call_id: str, message: str, error_code: str | None) -> None:
        """The run has failed, or was lost."""
        code = {} if error_code is None else {"error_code": error_code}
        self.session.error(message, provider=self.chosen.provider, session_id=self.session.id, **code)
        self._drop()
        self._done()

    def approved(self, call_id: str, confirmation_id: str, answer: str | None) -> None:
        """An answer was taken, or not wanted any more."""
        self.session.emit(f"{self.word}.confirmation.forwarded", confirmation_id=confirmation_id, answer=answer)
        if self._current is not None and self._current.call_id == call_id:
            self._obey([*self._current.story.settle(confirmation_id)])

    # --- the rendering: a `RenderingListener` ---

    def _speak(self, answer: SpokenAnswer) -> None:
        self._step(RenderedTrigger.SPEAK)
        chosen = self.chosen
        request = SpeechRequest(
            text=answer.spoken, model=chosen.model, voice=chosen.voice, sample_rate=chosen.sample_rate
        )
        self._rendering = Rendering(self.session, request, "", self)
        self._rendering.start()

    def rendered_audio(self, response_id: str, chunk: AudioChunk) -> None:
        """The renderer has made a piece of sound."""
        self.sound(chunk.data, chunk.sample_rate, label=chunk.label, response_id=None)

    def room(self) -> Flow[None]:
        """Wait until the client has read enough."""
        yield from self.session.room()

    def rendered(self, response_id: str, done: Rendered, fields: dict[str, object]) -> None:
        """The renderer has spoken all of the answer."""
        answer = None if self._current is None else self._current.answer
        self.session.emit("voice.output_audio.done", response_id=None)
        self._drop()
        text = "" if answer is None else answer.text
        self._done(final_text=text, audio_path="", **fields)

    def render_failed(self, response_id: str, error: Exception) -> None:
        """It could not be done: the answer is in the deltas."""
        self._failed(error)
