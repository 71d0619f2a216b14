"""The broker of a session whose provider only speaks: the person's words become a chat run, its answer is rendered.

The stub hears nothing: its utterances need the text beside them (wire terminal-voice 6.10). Each turn ends with
`voice.response.done`, one that was cancelled or failed too. Nothing goes on in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum

from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.basics.pcm import resample
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.chat_events import AssistantCompleted, AssistantDelta, RunCompleted
from svc_proto.voice.realtime.actions import DetachRun, EmitAudio, Render, StopRendering, StopRun, Transcribe
from svc_proto.voice.realtime.conversation_base import ConversationBase
from svc_proto.voice.realtime.function_calls import RunTaskCall
from svc_proto.voice.realtime.run_events import VoiceRunEvent
from svc_proto.voice.realtime.voice_runs import VoiceRuns
from svc_proto.wire.limits import MAX_TEXT

__all__ = ["HEARING_RATE", "RENDERED_TABLE", "RenderedConversation", "RenderedState", "RenderedTrigger"]

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


_S, _T = RenderedState, RenderedTrigger
RENDERED_TABLE: Table[RenderedState, RenderedTrigger] = {
    (_S.IDLE, _T.LISTEN): _S.TRANSCRIBING,  # an utterance, with a provider that can hear (`local`)
    (_S.IDLE, _T.RUN): _S.RUNNING,  # a text
    (_S.TRANSCRIBING, _T.RUN): _S.RUNNING,  # it is understood
    (_S.RUNNING, _T.SPEAK): _S.SPEAKING,  # the run has answered
    # It is not understood, nobody said anything, it has failed, was cancelled, or is told.
    **{(state, _T.END): _S.IDLE for state in _S if state is not _S.IDLE},
}


class RenderedConversation(ConversationBase):
    """See the module. `hears`: its provider can."""

    def __init__(self, runs: VoiceRuns, now: Callable[[], float], *, hears: bool) -> None:
        super().__init__(runs, now)
        self.state = _S.IDLE
        self._hears = hears
        self._turns = 0
        self._utterance = bytearray()
        self._said_bytes = 0  # of microphone audio since the last turn
        self._rate = HEARING_RATE  # as the client said last

    @property
    def due(self) -> float | None:
        """When to call `advance`."""
        run = self.runs.turn
        return None if run is None else run.due

    def advance(self) -> None:
        """The heart of the run beats."""
        run = self.runs.turn
        assert run is not None  # without one nothing is due
        self.out += run.on_due(self.now(), "idle")

    # --- the client ---

    def append_audio(self, pcm: bytes, rate: int) -> bytes:
        """Keep what the microphone hears, if somebody can listen to it; no provider gets any. `Refused` 413 for too
        much."""
        self._said_bytes += len(pcm)
        self._rate = rate
        if self._hears:
            if len(self._utterance) + len(pcm) > MAX_UTTERANCE:
                raise Refused(413, "too_large", f"an utterance may have at most {MAX_UTTERANCE} bytes")
            self._utterance += resample(pcm, rate, HEARING_RATE)
        return b""

    def clear(self) -> None:
        """Forget what was not committed."""
        self._utterance.clear()

    def commit(self, said: str | None) -> None:
        """An utterance is complete; what it says, where the client knows."""
        self._check_idle()
        if said is None and not self._hears:
            raise Refused(400, "text_missing", "this provider does not listen: text is required")
        utterance = bytes(self._utterance)
        self.clear()
        if said is not None:
            self.add_user_text(said)
        elif utterance:
            self._step(_T.LISTEN)
            self.out.append(Transcribe(utterance, HEARING_RATE))
        else:
            self._on_answer("")
            self._done()

    def add_user_text(self, text: str) -> None:
        """A text turn."""
        self._check_idle()
        self._on_answer(text)
        self._run(text)

    def cancel(self) -> None:
        """Stop whatever is going on, on the API server too."""
        run = self.runs.turn if self.state is _S.RUNNING else None
        if run is not None:
            self.out.append(StopRun(run.call_id))
        self._abandon_turn()
        self._emit(f"{self.word}.run.cancelled", session_id=self.runs.session_id)
        self._done(cancelled=True)

    def on_client_drained(self, call_id: str | None) -> None:
        """Nobody waits for that."""

    def respeak(self) -> None:
        """There is no background, and no answer from it."""
        self._emit(f"{self.word}.result.respeak_unavailable")

    # --- the engines ---

    def on_transcript(self, text: str) -> None:
        """What the utterance says."""
        self._on_answer(text)
        if text:
            self._run(text)
        else:
            self._end()

    def rendered_audio(self, response_id: str, audio: EmitAudio) -> None:
        """A piece of sound."""
        self.out.append(evolve(audio, response_id=None, label=None, extra={"label": audio.label}))

    def rendered(self, response_id: str, fields: Mapping[str, object], problem: str | None = None) -> None:
        """That was all of the answer. With a `problem` it could not be heard, or not be spoken: it is in the deltas."""
        if problem is not None:
            self._fail(problem)
            return
        run = self.runs.turn
        assert run is not None  # nobody else is rendered
        assert run.answer is not None
        self._emit("voice.output_audio.done", response_id=None)
        self._end(final_text=run.answer.text, audio_path="", **fields)

    # --- the API server ---

    def drafts(self, call_id: str, delta: str) -> bool:
        """A run goes on with its answer: everybody is told."""
        return False

    def run_event(self, call_id: str, event: VoiceRunEvent) -> None:
        """The run tells something: everything is passed on."""
        if self.runs.live(call_id) is None:
            return
        self.out += self.runs.event(call_id, event, self.now())
        match event:
            case AssistantDelta(delta=delta):
                self._emit("voice.response.delta", delta=delta)
            case AssistantCompleted(content=content):
                self._emit("voice.response.turn_completed", content=content)
            case RunCompleted(interrupted=True):
                self._emit("voice.response.turn_completed", content="")
            case _:
                pass

    def run_ended(self, call_id: str) -> None:
        """The run has answered: have the answer spoken."""
        run = self.runs.live(call_id)
        assert run is not None  # nothing is told of a run that was left
        if run.story.interrupted:
            self.out.append(run.story.cancelled())
            self._end(cancelled=True)
        else:
            self._step(_T.SPEAK)
            self.out += [*run.story.complete(), Render("", run.finish(self.runs.speakable).spoken)]

    def run_failed(self, call_id: str, message: str, *, error_code: str | None = None) -> None:
        """The run has failed, or was lost."""
        self._fail(message, **({} if error_code is None else {"error_code": error_code}))

    # --- helpers ---

    def _check_idle(self) -> None:
        if self.state is not _S.IDLE:
            raise Refused(400, "response_not_possible", "a response is already running in this session")

    def _run(self, text: str) -> None:
        self._step(_T.RUN)
        self._turns += 1
        run = self.runs.new(RunTaskCall(call_id=f"turn-{self._turns}", text=text[:MAX_TEXT]))
        run.pause(self.now())  # nobody has to be told: the run begins at once
        self._emit("voice.response.started", response_id=None)
        self.out.append(run.begin(self.now()))

    def _on_answer(self, text: str) -> None:
        said, self._said_bytes = self._said_bytes, 0
        self._emit("voice.input_transcript.final", text=text, sample_rate=self._rate, input_audio_bytes=said)

    def _done(self, **fields: object) -> None:
        self._emit("voice.response.done", response_id=None, **fields)

    def _fail(self, message: str, **fields: object) -> None:
        self._emit("voice.error", message=message, **fields)
        self._end()

    def _end(self, **fields: object) -> None:
        self._abandon_turn()
        self._done(**fields)

    def _abandon_turn(self) -> None:
        """Have nothing to do any more with the turn."""
        self.out.append(StopRendering())
        run = self.runs.turn
        if run is not None:
            self.out.append(DetachRun(run.call_id))
        self.runs.drop_turn()
        if self.state is not _S.IDLE:
            self._step(_T.END)

    def _step(self, trigger: RenderedTrigger) -> None:
        self.state = step(RENDERED_TABLE, self.state, trigger)
