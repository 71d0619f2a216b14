"""Conversation with a provider that only renders: the user's words become a chat run, its answer is rendered.

With a provider that does not transcribe, an utterance needs its text beside it (wire terminal-voice 6.10).
"""

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

HEARING_RATE = 16_000  # Hz of audio that is kept for transcription, as speech engines require
MAX_UTTERANCE = 8 * 1024 * 1024  # bytes, more than four minutes at that rate: audio beyond it is refused


class RenderedState(Enum):
    """State of a turn."""

    IDLE = "idle"
    TRANSCRIBING = "transcribing"
    RUNNING = "running"
    SPEAKING = "speaking"


class RenderedTrigger(Enum):
    """Trigger of a transition of `RENDERED_TABLE`."""

    LISTEN = "listen"
    RUN = "run"
    SPEAK = "speak"
    END = "end"


_S, _T = RenderedState, RenderedTrigger
RENDERED_TABLE: Table[RenderedState, RenderedTrigger] = {
    (_S.IDLE, _T.LISTEN): _S.TRANSCRIBING,  # an utterance, with a provider that transcribes (`local`)
    (_S.IDLE, _T.RUN): _S.RUNNING,  # a text
    (_S.TRANSCRIBING, _T.RUN): _S.RUNNING,  # the transcript is there
    (_S.RUNNING, _T.SPEAK): _S.SPEAKING,  # the run has answered
    # The transcript is empty; or the turn has failed, was cancelled, or its answer was rendered.
    **{(state, _T.END): _S.IDLE for state in _S if state is not _S.IDLE},
}


class RenderedConversation(ConversationBase):
    """Conversation with a rendering provider; `hears`: the provider transcribes, too."""

    def __init__(self, runs: VoiceRuns, now: Callable[[], float], *, hears: bool) -> None:
        super().__init__(runs, now)
        self.state = _S.IDLE
        self._hears = hears
        self._turns = 0
        self._utterance = bytearray()
        self._said_bytes = 0  # of microphone audio since the last turn
        self._rate = HEARING_RATE  # Hz, of the client's last audio

    @property
    def due(self) -> float | None:
        """The monotonic time at which to call `advance`, if any."""
        run = self.runs.turn
        return None if run is None else run.due

    def advance(self) -> None:
        """Send the heartbeat of the run."""
        run = self.runs.turn
        assert run is not None  # only a run has a deadline
        self.out += run.on_due(self.now(), "idle")

    # --- the client ---

    def append_audio(self, pcm: bytes, rate: int) -> bytes:
        """Store microphone audio if it can be transcribed; return no bytes: the provider gets none of it.

        Raise `Refused` 413 if the utterance and this piece have more than `MAX_UTTERANCE` bytes.
        """
        self._said_bytes += len(pcm)
        self._rate = rate
        if self._hears:
            if len(self._utterance) + len(pcm) > MAX_UTTERANCE:
                raise Refused(413, "too_large", f"an utterance may have at most {MAX_UTTERANCE} bytes")
            self._utterance += resample(pcm, rate, HEARING_RATE)
        return b""

    def clear(self) -> None:
        """Discard audio that was not committed."""
        self._utterance.clear()

    def commit(self, said: str | None) -> None:
        """End an utterance; `said` is its text if the client sent one.

        Raise `Refused` 400 during another turn, and without a text if the provider does not transcribe.
        """
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
        """Start a run with a text of the user. Raise `Refused` 400 during another turn."""
        self._check_idle()
        self._on_answer(text)
        self._run(text)

    def cancel(self) -> None:
        """Stop the turn, on the API server too."""
        run = self.runs.turn if self.state is _S.RUNNING else None
        if run is not None:
            self.out.append(StopRun(run.call_id))
        self._abandon_turn()
        self._emit(f"{self.word}.run.cancelled", session_id=self.runs.session_id)
        self._done(cancelled=True)

    def on_client_drained(self, call_id: str | None) -> None:
        """Do nothing: this conversation waits for no playback."""

    def respeak(self) -> None:
        """Report that no answer can be repeated, because this conversation has no background."""
        self._emit(f"{self.word}.result.respeak_unavailable")

    # --- the engines ---

    def on_transcript(self, text: str) -> None:
        """Start a run with the transcript of the utterance, or end the turn if the transcript is empty."""
        self._on_answer(text)
        if text:
            self._run(text)
        else:
            self._end()

    def rendered_audio(self, response_id: str, audio: EmitAudio) -> None:
        """Pass on a piece of rendered audio."""
        self.out.append(evolve(audio, response_id=None, label=None, extra={"label": audio.label}))

    def rendered(self, response_id: str, fields: Mapping[str, object], problem: str | None = None) -> None:
        """End the turn after rendering; with a `problem`, report the failure of the transcription or rendering."""
        if problem is not None:
            self._fail(problem)
            return
        run = self.runs.turn
        assert run is not None  # only the answer of a run is rendered
        assert run.answer is not None
        self._emit("voice.output_audio.done", response_id=None)
        self._end(final_text=run.answer.text, audio_path="", **fields)

    # --- the API server ---

    def drafts(self, call_id: str, delta: str) -> bool:
        """Return False: every piece of the answer is sent to the client."""
        return False

    def run_event(self, call_id: str, event: VoiceRunEvent) -> None:
        """Send the client the events that an event of a live run results in."""
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

    def run_ended(self, call_id: str) -> None:
        """Handle the end of a run's stream: have the answer rendered, or end the turn of an interrupted run."""
        run = self.runs.live(call_id)
        assert run is not None  # a detached run sends no events
        if run.story.interrupted:
            self.out.append(run.story.cancelled())
            self._end(cancelled=True)
        else:
            self._step(_T.SPEAK)
            self.out += [*run.story.complete(), Render("", run.finish(self.runs.speakable).spoken)]

    def run_failed(self, call_id: str, message: str, *, error_code: str | None = None) -> None:
        """Report a run that has failed or was lost, and end the turn."""
        self._fail(message, **({} if error_code is None else {"error_code": error_code}))

    # --- helpers ---

    def _check_idle(self) -> None:
        if self.state is not _S.IDLE:
            raise Refused(400, "response_not_possible", "a response is already running in this session")

    def _run(self, text: str) -> None:
        self._step(_T.RUN)
        self._turns += 1
        run = self.runs.new(RunTaskCall(call_id=f"turn-{self._turns}", text=text[:MAX_TEXT]))
        run.pause(self.now())  # without an announcement: the run begins at once
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
        """Abandon the turn: stop the renderer and detach from the run."""
        self.out.append(StopRendering())
        run = self.runs.turn
        if run is not None:
            self.out.append(DetachRun(run.call_id))
        self.runs.drop_turn()
        if self.state is not _S.IDLE:
            self._step(_T.END)

    def _step(self, trigger: RenderedTrigger) -> None:
        self.state = step(RENDERED_TABLE, self.state, trigger)
