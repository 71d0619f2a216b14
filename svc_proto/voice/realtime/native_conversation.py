"""Conversation whose provider listens and answers, while a chat run does the work (wire terminal-voice 6.6, 6.9).

It connects three state machines. Turn-taking decides when the next response may be requested. Each run has a state
from the call to the delivery of its answer. Playback decides which parts of an answer are played, displayed or held
back.
"""

from collections.abc import Callable, Mapping
from typing import assert_never

from svc_proto.basics.pcm import SAMPLE_WIDTH, resample
from svc_proto.voice import provider_interface
from svc_proto.voice.provider_interface import ProviderEvent
from svc_proto.voice.realtime import actions
from svc_proto.voice.realtime.answer_delivery import AnswerDelivery, ProgressAnnouncement
from svc_proto.voice.realtime.answer_playback import ALARM, AnswerPlayback, Said, client_event_of
from svc_proto.voice.realtime.conversation_base import ConversationBase
from svc_proto.voice.realtime.function_calls import (
    CancelCall,
    ConversationCall,
    RunTaskCall,
    completed_output,
    parse_call,
)
from svc_proto.voice.realtime.provider_responses import ResponseOrigin
from svc_proto.voice.realtime.run_events import VoiceRunEvent
from svc_proto.voice.realtime.turn_taking import (
    DRAIN_TIMEOUT,
    RESPONSE_TIMEOUT,
    TurnTaking,
    TurnTakingState,
    TurnTakingTrigger,
)
from svc_proto.voice.realtime.voice_run import RunTier, VoiceRun, VoiceRunState
from svc_proto.voice.realtime.voice_runs import VoiceRuns

__all__ = ["NativeConversation"]

TRANSCRIPTION_TIMEOUT = 10.0  # s; the response needs no transcript, the provider has the audio
SHORTEST = 0.1  # s of an utterance: a provider refuses a shorter one
_S, _T = TurnTakingState, TurnTakingTrigger


class NativeConversation(ConversationBase):
    """Conversation with a provider that listens; `rate` is the session's, in Hz; `new_id` makes response ids."""

    def __init__(self, runs: VoiceRuns, now: Callable[[], float], *, rate: int, new_id: Callable[[], str]) -> None:
        super().__init__(runs, now)
        self.floor = TurnTaking()
        self.playback = AnswerPlayback(self.word, new_id, runs.result_delivery)
        self.answer = AnswerDelivery(self.word, self.floor, self.playback, ProgressAnnouncement(self.word, new_id))
        self.drafts = runs.drafts  # a piece of an answer goes to its run alone
        self.uncommitted = 0  # bytes of the current utterance at the provider
        self._rate = rate

    # --- time ---

    @property
    def due(self) -> float | None:
        """The monotonic time at which to call `advance`, if any."""
        floor = self.floor
        idle, working = floor.state is _S.IDLE, floor.state is _S.WORKING
        times = [*self.runs.due(working=working, idle=idle), floor.due, floor.responses.due]
        return min([when for when in times if when is not None], default=None)

    def advance(self) -> None:
        """Handle all deadlines that have passed."""
        now, floor = self.now(), self.floor
        asking = floor.responses.due
        if asking is not None and now >= asking:
            self.out += floor.responses.assume_free()
        if floor.due is not None and now >= floor.due:
            floor.due = None
            self._overdue()
        self._advance_runs()

    # --- the client ---

    @property
    def busy(self) -> bool:
        """Report whether a turn, a run outside of the turn, or a pending answer keeps the session alive."""
        return self.floor.state is not _S.IDLE or self.runs.busy

    def kept_until(self, window: float, longest: float) -> float:
        """Return when a detached session expires; `longest` applies while a turn or run is active. Times in seconds."""
        return self.runs.kept_until(window, longest, live=self.floor.state is not _S.IDLE)

    def append_audio(self, pcm: bytes, rate: int) -> bytes:
        """Count a piece of microphone audio (`rate` in Hz) as uncommitted, and return it at the session's rate.

        Also record its time as the latest speech of the user.
        """
        pcm = resample(pcm, rate, self._rate)
        self.uncommitted += len(pcm)
        self.runs.on_user_speech(self.now())
        return pcm

    def clear(self) -> None:
        """Discard audio that was not committed."""
        self.uncommitted = 0
        self.out.append(actions.ClearInput())

    def commit(self, transcript: str | None) -> None:
        """End an utterance: interrupt the current speech, commit the audio and wait for the provider's transcript.

        An utterance under 0.1 s interrupts and commits nothing. Between turns, or while a run is awaited, the client
        receives an empty transcript and a `voice.response.done` for it.
        """
        byte_count, self.uncommitted = self.uncommitted, 0
        if byte_count >= SHORTEST * SAMPLE_WIDTH * self._rate:
            self._interrupt()
            self.out.append(actions.CommitInput())
            self.floor.step(_T.HEAR, self.now() + TRANSCRIPTION_TIMEOUT)
        elif self.floor.state in (_S.IDLE, _S.WORKING):
            self._emit("voice.input_transcript.final", text="")
            self._emit("voice.response.done", response_id=None)

    def add_user_text(self, text: str) -> None:
        """Interrupt the current speech, send a text of the user, and request a response."""
        if self.floor.state is _S.HEARING:
            self._emit("voice.response.done", response_id=None, cancelled=True)
        self._interrupt()
        self._emit("voice.input_transcript.final", text=text, source="client_text")
        self.out.append(actions.SendUserText(text))
        self.out += self.floor.respond(self.now())

    def cancel(self) -> None:
        """Stop the turn and all runs, on the API server too."""
        turn = self.runs.turn
        live = turn if turn is not None and turn.live else None
        first = live or self.runs.detached
        extra: dict[str, object] = {} if first is None else {"run_id": first.story.run_id}
        self.out += [] if live is None else live.stop()
        self.out += self.runs.cancel(self.now())
        self.out += self.runs.drop_turn(cancelled=True)
        response_id = self._quiet()
        self.out.append(actions.CancelResponse())
        self.clear()
        self._emit("voice.response.done", response_id=response_id, cancelled=True, **extra)
        self.answer.end()

    def on_client_drained(self, call_id: str | None) -> None:
        """Continue after the client has played all audio that was sent; the call id is not compared."""
        turn, drain = self.runs.turn, self.floor.drain
        self.out += [] if turn is None else turn.drained(self.now())
        if drain is not None:
            self.out.append(drain.completed)
            self._resume()

    def respeak(self) -> None:
        """Play the last background answer again; without one, or during a turn, report that to the client."""
        answer = self.runs.last
        if answer is None or self.floor.state is not _S.IDLE:
            self._emit(f"{self.word}.result.respeak_unavailable")
        else:
            self.floor.step(_T.TELL, self.now() + ALARM)
            self.out += [*self.answer.filler.stop(), self.playback.respeak(answer)]

    # --- the provider ---

    def on_provider_event(self, event: ProviderEvent) -> None:  # noqa: C901 - one row for each event
        """Add the actions that an event of the provider results in."""
        match event:
            case provider_interface.AudioDelta() | provider_interface.SpokenTextDelta():
                self._on_speech(event)
            case provider_interface.ResponseStarted(response_id):
                self._is_current(response_id)
            case provider_interface.AudioDone(response_id):
                self._audio_done(response_id)
            case provider_interface.ResponseDone(response_id, status):
                self._response_done(response_id, status)
            case provider_interface.FunctionCall(response_id, call_id, name, arguments):
                self.call(response_id, parse_call(call_id, name, arguments, self.word))
            case provider_interface.ProviderReady(model):
                self._note("voice.realtime_agent.provider_model_resolved", model=model)
            case provider_interface.TranscriptDelta(delta):
                self._emit("voice.input_transcript.delta", delta=delta)
            case provider_interface.TranscriptFinal(text):
                # One response is requested for each utterance; a second transcript requests no other.
                self._emit("voice.input_transcript.final", text=text)
                if self.floor.state is _S.HEARING:
                    self.out += self.floor.respond(self.now())
            case provider_interface.ProviderErrorEvent(message, idle=True):
                self._note("voice.realtime_agent.provider_idle_close", message=message)
                self._end_turn()
                self._show_results()
                self.out.append(actions.CloseClient(1000, "the voice provider has closed an idle session"))
            case provider_interface.ProviderErrorEvent(message, benign=True):
                self._note("voice.realtime_agent.provider_notice", message=message)
            case provider_interface.ProviderErrorEvent(message):
                self._fail(message)
            case _:
                assert_never(event)

    def call(self, response_id: str, call: ConversationCall) -> None:
        """Handle a function call of the provider; ignore a repeated call id, and a call of a response not requested.

        A call of a response that was given up is ignored, too.
        """
        floor = self.floor
        if not self.runs.is_new(call.call_id):
            return
        current = self._is_current(response_id)
        if not current and response_id != floor.tail:
            return
        if not (current and floor.state is _S.ANSWERING):
            self._answer(call)
            return
        floor.tail = response_id
        floor.responses.ignore(response_id)
        if isinstance(call, RunTaskCall) and self.runs.turn is None and not self.runs.has_task(call.text):
            self._start_run(call)
            return
        self._answer(call)
        self._consult(call.call_id)

    def provider_lost(self, message: str) -> None:
        """Handle the end of the provider's socket: send pending answers as text and end the session.
        A turn in progress ends with an error. Without a client, pending answers are not sent.
        """
        self._show_results()
        if self.floor.state is _S.IDLE:
            self.out.append(actions.CloseClient(1000, "the voice provider has closed the session"))
        else:
            self._fail(message)
            self.out.append(actions.CloseClient(1011, "the voice provider is gone"))

    # --- the renderer ---

    def rendered_audio(self, response_id: str, audio: actions.EmitAudio) -> None:
        """Send the client a piece of audio that the relay rendered, unless its response is no longer wanted."""
        self.out += self.answer.rendered_audio(response_id, audio, self.now())

    def rendered(self, response_id: str, fields: Mapping[str, object], problem: str | None = None) -> None:
        """End speech whose rendering has ended or failed (`problem`), unless its response is no longer wanted.

        `fields` are for the end of the response.
        """
        self.out += self.answer.rendered(response_id, fields, problem)

    # --- the API server ---

    def run_event(self, call_id: str, event: VoiceRunEvent) -> None:
        """Apply an event of a run, and add the resulting events for the client."""
        self.out += self.runs.event(call_id, event, self.now())

    def run_ended(self, call_id: str) -> None:
        """Handle the end of a run's stream: deliver the answer, or report that the run was stopped.

        The answer waits while the turn is not waiting for it. Ignore a run that is no longer live.
        """
        runs = self.runs
        run = runs.live(call_id)
        if run is None:
            return
        working, stopped = self.floor.state is _S.WORKING, run.story.interrupted
        if run.state is VoiceRunState.DETACHED:
            idle = self.floor.state is _S.IDLE
            self.out += runs.fail(run, None, self.now()) if stopped else runs.finish(run, self.now(), idle=idle)
        elif stopped:
            self.out.append(run.story.cancelled())
            self.out += self.runs.drop_turn(cancelled=True)
            if working:
                self._emit("voice.response.done", response_id=None, cancelled=True, run_id=run.story.run_id)
                self.answer.end()
        else:
            self.out += run.story.complete()
            answer = run.finish(runs.speakable)
            self.out.append(actions.AnswerCall(call_id, completed_output(run, answer)))
            if working:
                self.out += self.answer.deliver(self.runs.deliver(run), self.now())

    def run_failed(self, call_id: str, message: str, *, error_code: str | None = None) -> None:
        """Report the failure of a live run to the client; in the turn, it also ends the turn. Ignore any other run."""
        run = self.runs.live(call_id)
        fields = {"call_id": call_id} | ({} if error_code is None else {"error_code": error_code})
        if run is None:
            return
        if run.state is VoiceRunState.DETACHED:
            self.out += self.runs.fail(run, message, self.now())
            self._emit("voice.error", message=message, **fields)
        else:
            self.out += self.runs.drop_turn(error=message)
            self._fail(message, **fields)

    # --- turns ---

    def _overdue(self) -> None:
        floor = self.floor
        if floor.drain is not None:
            self.out.append(floor.drain.timed_out)
            self._resume()
        elif self.answer.tells:
            self._note("voice.realtime_agent.delivery_unconfirmed")
            self.out += self.answer.give_up(self.now())
            self.answer.end()
        elif floor.state is _S.HEARING:
            self.out += floor.respond(self.now())
        else:
            self._fail("The voice provider did not answer.")

    def _is_current(self, response_id: str) -> bool:
        """Report whether a response is the requested one, and handle its start; cancel it if it was not requested."""
        floor = self.floor
        meaning = floor.responses.start(response_id, self.now())
        if meaning is ResponseOrigin.STRAY:
            self.out.append(actions.CancelResponse())
        if meaning in (ResponseOrigin.STRAY, ResponseOrigin.IGNORED):
            return False
        self.out += self.answer.filler.stop()
        if floor.state is _S.ANSWERING:
            floor.due = self.now() + RESPONSE_TIMEOUT
            if meaning is ResponseOrigin.OURS:
                self._emit("voice.response.started", response_id=response_id)
        elif self.playback.response_id is not None:
            floor.due = self.now() + ALARM
        return True

    def _interrupt(self) -> None:
        """End the current speech, but no run, because the user begins a new turn."""
        self.out += self.answer.filler.stop()
        if self.answer.tells:
            self._note("voice.realtime_agent.delivery_preempted")
            self.out += self.answer.give_up(self.now(), cancelled=True)
        elif self.floor.state in (_S.ANSWERING, _S.CONSULTED):
            self.out += self.floor.cancel_response()
            self._emit("voice.response.done", response_id=self._quiet(), cancelled=True)

    def _quiet(self) -> str | None:
        emitted, response_id = self.answer.quiet(self.now())
        self.out += emitted
        return response_id

    def _resume(self) -> None:
        """Request the answer that is to be delivered, or else a response, after the playback of earlier speech."""
        if self.answer.tells:
            self.out += self.answer.speak(self.now())
        else:
            self.out += self.floor.respond(self.now())

    def _rest(self) -> None:
        """Continue after the provider's answer: deliver the run's answer, wait for the run, or end the turn."""
        run = self.runs.turn
        if run is None:
            self.answer.end()
        elif run.state is VoiceRunState.ANSWERED:
            self.out += self.answer.deliver(self.runs.deliver(run), self.now())
        else:
            self.floor.step(_T.WORK)

    def _fail(self, message: str, response_id: str | None = None, **fields: object) -> None:
        """Report an error and end the turn; an answer is sent first, because clients disconnect after an error."""
        if self.answer.tells:
            self._end_turn()
            self._emit("voice.error", message=message, **fields)
        else:
            self._emit("voice.error", message=message, **fields)
            self._end_turn(response_id)

    def _end_turn(self, response_id: str | None = None) -> None:
        """End the turn; its run, if it is live, continues without this session."""
        run = self.runs.turn
        if self.answer.tells:
            self.out += self.answer.give_up(self.now())
        elif self.floor.state is not _S.IDLE:
            if run is not None and run.live:
                self.out.append(actions.DetachRun(run.call_id))
            self.runs.drop_turn()
            self._emit("voice.response.done", response_id=self._quiet() or response_id)
        self.answer.end()

    # --- speech of the provider ---

    def _on_speech(self, speech: Said) -> None:
        floor = self.floor
        current = self._is_current(speech.response_id)
        if current and self.answer.tells:
            self.out += self.answer.on_provider_speech(speech, self.now())
        elif current or speech.response_id == floor.tail:
            floor.spoke = floor.spoke or isinstance(speech, provider_interface.AudioDelta)
            self.out.append(client_event_of(speech))

    def _audio_done(self, response_id: str) -> None:
        current = self._is_current(response_id)
        if current and self.answer.tells:
            self.out += self.playback.audio_done(response_id)
        elif current or response_id == self.floor.tail:
            self._emit("voice.output_audio.done", response_id=response_id)

    def _response_done(self, response_id: str, status: str) -> None:
        """Handle the end of a response; `status` is `completed`, `cancelled`, `incomplete` or `failed`."""
        floor = self.floor
        current = self._is_current(response_id)
        self.out += floor.responses.finish(response_id)
        if not current:
            if response_id == floor.tail:
                floor.tail = None
                self._note("voice.response.intermediate_done", response_id=response_id)
            return
        floor.responses.ignore(response_id)
        if self.answer.tells:
            self.out += self.answer.complete(response_id, self.now())
        elif status == "failed":
            self._fail("The voice provider could not answer.", response_id)
        else:
            cancelled: dict[str, object] = {"cancelled": True} if status == "cancelled" else {}
            self._emit("voice.response.done", response_id=response_id, **cancelled)
            self._rest()

    def _show_results(self) -> None:
        """Send all pending answers as text if a client is connected, because the session ends without its provider."""
        for answer in self.runs.take_results():
            self.out += self.playback.visual_event(answer)

    # --- runs ---

    def _advance_runs(self) -> None:
        now, runs, state = self.now(), self.runs, self.floor.state
        floor, run, emitted = self.answer.turn_state(waits=runs.answered), runs.turn, list[actions.ConversationAction]()
        if run is not None and run.due is not None and now >= run.due:
            emitted = run.on_due(now, floor)
            self.out += emitted
        at = runs.promotion_at if state is _S.WORKING else None
        if run is not None and at is not None and now >= at:
            self._promote(run)
        beats = runs.advance(now, floor)
        self.out += beats
        quiet = self.floor.state in (_S.IDLE, _S.WORKING) and self.answer.turn_state(waits=runs.answered) == "idle"
        if quiet and not runs.away:
            self.out += self.answer.filler.speak([*emitted, *beats])
        if self.floor.state is _S.IDLE:
            self.out += runs.start_next(self.now())
            answer = runs.take_result(self.now())
            if answer is not None:
                self.out += self.answer.deliver(answer, self.now(), background=True)

    def _promote(self, run: VoiceRun) -> None:
        """Move the turn's run to the background; if that has no room, stop the run and queue a new one for its task."""
        runs = self.runs
        if runs.free:
            self._detach(run, RunTier.PROMOTED)
            return
        self.out += runs.requeue(run)
        call = RunTaskCall(call_id=run.call_id, text=run.text, profile=run.profile)
        self._queue_run(runs.new(call), RunTier.PROMOTED)

    def _detach(self, run: VoiceRun, tier: RunTier) -> None:
        spoken = self.runs.hands_off
        self.out += self.runs.detach(run, tier, spoken=spoken)
        if spoken:
            self._announce(run.call_id)
        else:
            self.answer.end()

    def _queue_run(self, run: VoiceRun, tier: RunTier) -> None:
        call_id = run.call_id
        self.out += self.runs.enqueue(run, tier)
        if self.runs.hands_off or run.state is VoiceRunState.OVER:
            self._announce(call_id)
        else:
            self._emit("voice.response.done", response_id=None)
            self.answer.end()

    def _announce(self, call_id: str) -> None:
        """Request a response about a function output: now if a run is awaited, else after earlier speech was played."""
        if self.floor.state is _S.WORKING:
            self.out += self.floor.respond(self.now())
        else:
            self._consult(call_id)

    # --- functions ---

    def _answer(self, call: ConversationCall) -> None:
        stops = self.runs.first if isinstance(call, CancelCall) else None
        emitted, output = self.runs.answer(call, self.now())
        self.out += emitted
        if stops is not None and self.floor.state is _S.WORKING:  # the run call came with this cancel call
            self._emit("voice.response.done", response_id=None, cancelled=True, run_id=stops.story.run_id)
            self.answer.end()
        self.out.append(actions.AnswerCall(call.call_id, output))

    def _consult(self, call_id: str) -> None:
        """Begin to wait for the playback of earlier speech; then a response to the function output is requested."""
        self.floor.step(_T.CONSULT, self.now() + DRAIN_TIMEOUT)
        self.out.append(self.floor.wait_for_playback(call_id, None))

    def _start_run(self, call: RunTaskCall) -> None:
        """Start the run that the provider called for; queue a background run while there is no room."""
        runs, waited_for = self.runs, not (call.background and self.runs.rules.enabled)
        free = runs.free
        run = runs.new(call, side=runs.aside and (free or waited_for))
        run.spoke = self.floor.spoke
        if waited_for:
            self.floor.step(_T.WORK)
            self.out += run.start(self.now(), spoke=run.spoke)
        elif free:
            self.out.append(run.begin(self.now()))
            self._detach(run, RunTier.DURABLE)
        else:
            self._queue_run(run, RunTier.DURABLE)
