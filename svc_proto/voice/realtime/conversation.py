"""The broker of a realtime session: a provider hears and speaks, a chat run does the work (terminal-voice 6.6, 6.9).

Three machines, and here is what they want of each other: the floor (who speaks, when may the next response be asked
for), the runs (from asked to told, in the turn or not), the mouth (what of an answer is spoken, shown, held back).

Each turn ends with `voice.response.done`, or with `run.promoted` that says that no words follow: every state but idle
has a deadline, except while a run lives, which has its heartbeat. A cancel that finds nothing ends with one. Beside
a run the person may talk: its answer waits until that is over. One that takes long is detached, but never within words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from svc_proto.voice.realtime.calls import Call, CancelCall, RunCall, completed_output
from svc_proto.voice.realtime.delivery import Delivery, Filler
from svc_proto.voice.realtime.floor import ANSWERED_WITHIN, DRAIN_WITHIN, Floor, FloorState, FloorTrigger
from svc_proto.voice.realtime.mouth import ALARM, Held, Mouth, passed_on
from svc_proto.voice.realtime.orders import (
    AnswerCall,
    CancelResponse,
    ClearInput,
    CloseClient,
    CommitInput,
    Emit,
    EmitAudio,
    LeaveRun,
    Note,
    Order,
    SayText,
)
from svc_proto.voice.realtime.responses import Start
from svc_proto.voice.realtime.run import FOREGROUND, BackgroundRules, Tier, VoiceRun, VoiceRunState
from svc_proto.voice.realtime.runs import VoiceRuns
from svc_proto.voice.realtime.story import RunEvent

__all__ = ["VoiceConversation"]

TRANSCRIBED_WITHIN = 10.0  # s; the response needs no transcript, the provider has heard the person
_S, _T = FloorState, FloorTrigger


class VoiceConversation:
    """One session's. Every call gives the orders that follow from it, to be carried out in that order.

    `word` is the product's word on this wire, `new_id` gives what no other response of the session has in its id,
    `speakable` makes text fit for the ear. Times are monotonic seconds; whoever owns it calls `advance` at `due`.
    """

    def __init__(
        self,
        *,
        word: str,
        new_id: Callable[[], str],
        speakable: Callable[[str], str],
        result_delivery: str = "speak_verbatim",
        rules: BackgroundRules = FOREGROUND,
        session_id: str | None = None,
        profile: str | None = None,
    ) -> None:
        self.word = word
        self.floor = Floor()
        self.mouth = Mouth(word, new_id, result_delivery)
        self.answer = Delivery(word, self.floor, self.mouth, Filler(word, new_id))
        self.runs = VoiceRuns(
            word=word,
            speakable=speakable,
            rules=rules,
            result_delivery=result_delivery,
            session_id=session_id,
            profile=profile,
        )
        self.drafts = self.runs.drafts  # a piece of an answer goes to its run alone
        self._now = 0.0
        self._out: list[Order]  # of the call that is under way

    # --- time ---

    @property
    def due(self) -> float | None:
        """When to call `advance`."""
        floor = self.floor
        idle, working = floor.state is _S.IDLE, floor.state is _S.WORKING
        times = self.runs.due(working=working, idle=idle)
        times += [when for when in (floor.due, floor.responses.due) if when is not None]
        return min(times, default=None)

    def advance(self, now: float) -> list[Order]:
        """Time has passed."""
        out, floor = self._begin(now), self.floor
        asking = floor.responses.due
        if asking is not None and now >= asking:
            out += floor.responses.assume_free()
        if floor.due is not None and now >= floor.due:
            floor.due = None
            self._overdue()
        self._advance_runs()
        return out

    # --- the client ---

    @property
    def busy(self) -> bool:
        """Whether there is something to stay for."""
        return self.floor.state is not _S.IDLE or self.runs.busy

    def kept_until(self, window: float, longest: float) -> float:
        """While nobody listens: when to wait no longer. `longest` counts while something is going on."""
        return self.runs.kept_until(window, longest, live=self.floor.state is not _S.IDLE)

    def commit(self, now: float, *, heard: bool = True) -> list[Order]:
        """An utterance is complete. `heard`: there was audio; an empty one is answered by nobody."""
        out = self._begin(now)
        if heard:
            self._interrupt()
            out.append(CommitInput())
            self.floor.go(_T.HEAR, now + TRANSCRIBED_WITHIN)
        elif self.floor.state in (_S.IDLE, _S.WORKING):
            self._emit("voice.input_transcript.final", text="")
            self._emit("voice.response.done", response_id=None)
        return out

    def say(self, text: str, now: float) -> list[Order]:
        """A text turn."""
        out = self._begin(now)
        if self.floor.state is _S.HEARING:
            self._emit("voice.response.done", response_id=None, cancelled=True)
        self._interrupt()
        self._emit("voice.input_transcript.final", text=text, source="client_text")
        out.append(SayText(text))
        out += self.floor.respond(now)
        return out

    def cancel(self, now: float) -> list[Order]:
        """Stop whatever is going on, on the API server too."""
        out, turn = self._begin(now), self.runs.turn
        live = turn if turn is not None and turn.live else None
        first = live or self.runs.detached
        extra: dict[str, object] = {} if first is None else {"run_id": first.story.run_id}
        out += [] if live is None else live.stop()
        out += self.runs.cancel(now)
        self._out += self.runs.drop_turn(cancelled=True)
        response_id = self._quiet()
        out += [CancelResponse(), ClearInput()]
        self._emit("voice.response.done", response_id=response_id, cancelled=True, **extra)
        self.answer.end()
        return out

    def confirm(self, confirmation_id: str | None, answer: str, now: float) -> list[Order]:
        """The person answers a question of the run."""
        out = self._begin(now)
        out += self.runs.approve(confirmation_id, answer)
        if not out:
            self._emit(f"{self.word}.confirmation.forwarded", confirmation_id=confirmation_id, answer=None)
        return out

    def drained(self, call_id: str | None, now: float) -> list[Order]:
        """The client has played what it was sent, for this call or another."""
        out, turn, drain = self._begin(now), self.runs.turn, self.floor.drain
        out += [] if turn is None else turn.drained(now)
        if drain is not None:
            out.append(drain.completed)
            self._go_on()
        return out

    def respeak(self, now: float) -> list[Order]:
        """The person wants to hear the last answer from the background again."""
        out, answer = self._begin(now), self.runs.last
        if answer is None or self.floor.state is not _S.IDLE:
            self._emit(f"{self.word}.result.respeak_unavailable")
        else:
            self.floor.go(_T.TELL, now + ALARM)
            out += [*self.answer.filler.stop(), self.mouth.respeak(answer)]
        return out

    # --- the provider ---

    def transcribed(self, text: str, now: float) -> list[Order]:
        """What the person said. ONE response is asked for; a second transcript asks for no other."""
        out = self._begin(now)
        self._emit("voice.input_transcript.final", text=text)
        if self.floor.state is _S.HEARING:
            out += self.floor.respond(now)
        return out

    def response_started(self, response_id: str, now: float) -> list[Order]:
        """A response has begun."""
        out = self._begin(now)
        self._is_current(response_id)
        return out

    def text(self, response_id: str, delta: str, now: float) -> list[Order]:
        """A piece of what the provider says."""
        return self._hear(response_id, Held(text=delta), now)

    def audio(self, response_id: str, data: bytes, now: float) -> list[Order]:
        """A piece of the provider's speech, to be heard."""
        return self._hear(response_id, Held(audio=data), now)

    def audio_done(self, response_id: str, now: float) -> list[Order]:
        """The audio of a response is complete."""
        out = self._begin(now)
        current = self._is_current(response_id)
        if current and self.answer.tells:
            out += self.mouth.audio_done(response_id)
        elif current or response_id == self.floor.tail:
            self._emit("voice.output_audio.done", response_id=response_id)
        return out

    def call(self, response_id: str, call: Call, now: float) -> list[Order]:
        """The provider calls a function: each call id counts once."""
        out, floor = self._begin(now), self.floor
        if not self.runs.is_new(call.call_id):
            return out
        current = self._is_current(response_id)
        if not current and response_id != floor.tail:
            return out
        if not (current and floor.state is _S.ANSWERING):
            self._answer(call)
            return out
        floor.tail = response_id
        floor.responses.bury(response_id)
        if isinstance(call, RunCall) and self.runs.turn is None and not self.runs.has_task(call.text):
            self._take(call)
            return out
        self._answer(call)
        self._consult(call.call_id)
        return out

    def response_done(self, response_id: str, status: str, now: float) -> list[Order]:
        """A response is over: `completed`, `cancelled`, `incomplete` or `failed`."""
        out, floor = self._begin(now), self.floor
        current = self._is_current(response_id)
        out += floor.responses.over(response_id)
        if not current:
            if response_id == floor.tail:
                floor.tail = None
                out.append(Note("voice.response.intermediate_done", {"response_id": response_id}))
            return out
        floor.responses.bury(response_id)
        if self.answer.tells:
            out += self.answer.complete(response_id, now)
        elif status == "failed":
            self._fail("The voice provider could not answer.", response_id)
        else:
            cancelled: dict[str, object] = {"cancelled": True} if status == "cancelled" else {}
            self._emit("voice.response.done", response_id=response_id, **cancelled)
            self._rest()
        return out

    def problem(self, message: str, now: float, *, benign: bool = False, idle: bool = False) -> list[Order]:
        """The provider has sent an error."""
        out = self._begin(now)
        if idle:
            out.append(Note("voice.realtime_agent.provider_idle_close", {"message": message}))
            self._end_turn()
            out += self._shown_results()
            out.append(CloseClient(1000, "the voice provider has closed an idle session"))
        elif benign:
            out.append(Note("voice.realtime_agent.provider_notice", {"message": message}))
        else:
            self._fail(message)
        return out

    def provider_lost(self, message: str, now: float) -> list[Order]:
        """The provider's socket has ended."""
        out = self._begin(now)
        out += self._shown_results()
        if self.floor.state is _S.IDLE:
            out.append(CloseClient(1000, "the voice provider has closed the session"))
        else:
            self._fail(message)
            out.append(CloseClient(1011, "the voice provider is gone"))
        return out

    # --- the renderer ---

    def rendered_audio(self, response_id: str, audio: EmitAudio, now: float) -> list[Order]:
        """A piece of what the relay has spoken."""
        return self._begin(now) + self.answer.rendered_audio(response_id, audio, now)

    def rendered(self, response_id: str, fields: Mapping[str, object], now: float) -> list[Order]:
        """That was all of it; `fields` are for the end of the response."""
        return self._begin(now) + self.answer.rendered(response_id, fields)

    def render_failed(self, response_id: str, message: str, now: float) -> list[Order]:
        """It cannot be had spoken, or not to its end."""
        return self._begin(now) + self.answer.render_failed(response_id, message)

    # --- the API server ---

    def run_event(self, call_id: str, event: RunEvent, now: float) -> list[Order]:
        """The run tells something."""
        return self._begin(now) + self.runs.event(call_id, event, now)

    def run_ended(self, call_id: str, now: float) -> list[Order]:
        """The run's stream has ended well; one that somebody stopped says so itself."""
        out, runs = self._begin(now), self.runs
        run = runs.live(call_id)
        if run is None:
            return out
        working, stopped = self.floor.state is _S.WORKING, run.story.interrupted
        if run.state is VoiceRunState.DETACHED:
            idle = self.floor.state is _S.IDLE
            out += runs.stopped(run, now) if stopped else runs.finish(run, now, idle=idle)
        elif stopped:
            out.append(run.story.cancelled())
            self._out += self.runs.drop_turn(cancelled=True)
            if working:
                self._emit("voice.response.done", response_id=None, cancelled=True, run_id=run.story.run_id)
                self.answer.end()
        else:
            out += run.story.complete()
            answer = run.finish(runs.speakable)
            out.append(AnswerCall(call_id, completed_output(run, answer)))
            if working:
                out += self.answer.tell(self.runs.tell(run), now)
        return out

    def run_failed(self, call_id: str, message: str, now: float, *, error_code: str | None = None) -> list[Order]:
        """The run could not be made, or failed."""
        out = self._begin(now)
        run = self.runs.live(call_id)
        fields = {"call_id": call_id} | ({} if error_code is None else {"error_code": error_code})
        if run is None:
            return out
        if run.state is VoiceRunState.DETACHED:
            out += self.runs.fail(run, message, now)
            self._emit("voice.error", message=message, **fields)
        else:
            out += self.runs.drop_turn(error=message)
            self._fail(message, **fields)
        return out

    def approved(self, call_id: str, confirmation_id: str, answer: str | None, now: float) -> list[Order]:
        """The API server has taken an answer; None: it did not want one any more."""
        out = self._begin(now)
        self._emit(f"{self.word}.confirmation.forwarded", confirmation_id=confirmation_id, answer=answer)
        run = self.runs.live(call_id)
        if run is not None:
            out += run.story.settle(confirmation_id)
        return out

    # --- turns ---

    def _begin(self, now: float) -> list[Order]:
        self._now = now
        self._out = []
        return self._out

    def _emit(self, kind: str, **fields: object) -> None:
        self._out.append(Emit(kind, fields))

    def _overdue(self) -> None:
        floor = self.floor
        if floor.drain is not None:
            self._out.append(floor.drain.timed_out)
            self._go_on()
        elif self.answer.tells:
            self._out.append(Note("voice.realtime_agent.delivery_unconfirmed", {}))
            self._out += self.answer.give_up(self._now)
            self.answer.end()
        elif floor.state is _S.HEARING:
            self._out += floor.respond(self._now)
        else:
            self._fail("The voice provider did not answer.")

    def _is_current(self, response_id: str) -> bool:
        """Whether a word of a response is of the one that was asked for; its first word starts it."""
        floor = self.floor
        meaning = floor.responses.start(response_id, self._now)
        if meaning is Start.STRAY:
            self._out.append(CancelResponse())
        if meaning in (Start.STRAY, Start.IGNORED):
            return False
        self._out += self.answer.filler.stop()
        if floor.state is _S.ANSWERING:
            floor.due = self._now + ANSWERED_WITHIN
            if meaning is Start.OURS:
                self._emit("voice.response.started", response_id=response_id)
        elif self.mouth.heard_in is not None:
            floor.due = self._now + ALARM
        return True

    def _interrupt(self) -> None:
        """The person begins something new: end what is going on, but for a run."""
        self._out += self.answer.filler.stop()
        if self.answer.tells:
            self._out.append(Note("voice.realtime_agent.delivery_preempted", {}))
            self._out += self.answer.give_up(self._now, cancelled=True)
        elif self.floor.state in (_S.ANSWERING, _S.CONSULTED):
            self._out += self.floor.hush()
            self._emit("voice.response.done", response_id=self._quiet(), cancelled=True)

    def _quiet(self) -> str | None:
        told, response_id = self.answer.quiet(self._now)
        self._out += told
        return response_id

    def _go_on(self) -> None:
        """What was said is played."""
        if self.answer.tells:
            self._out += self.answer.speak(self._now)
        else:
            self._out += self.floor.respond(self._now)

    def _rest(self) -> None:
        """The provider's answer is over: what next?"""
        run = self.runs.turn
        if run is None:
            self.answer.end()
        elif run.state is VoiceRunState.ANSWERED:
            self._out += self.answer.tell(self.runs.tell(run), self._now)
        else:
            self.floor.go(_T.WORK)

    def _fail(self, message: str, response_id: str | None = None, **fields: object) -> None:
        """Something broke: whatever is going on ends here. An answer is shown first: clients leave after an error."""
        if self.answer.tells:
            self._end_turn()
            self._emit("voice.error", message=message, **fields)
        else:
            self._emit("voice.error", message=message, **fields)
            self._end_turn(response_id)

    def _end_turn(self, response_id: str | None = None) -> None:
        """End the turn. A run goes on without us."""
        run = self.runs.turn
        if self.answer.tells:
            self._out += self.answer.give_up(self._now)
        elif self.floor.state is not _S.IDLE:
            if run is not None and run.live:
                self._out.append(LeaveRun(run.call_id))
            self.runs.drop_turn()
            self._emit("voice.response.done", response_id=self._quiet() or response_id)
        self.answer.end()

    # --- the answer on its way to the ear ---

    def _hear(self, response_id: str, held: Held, now: float) -> list[Order]:
        out, floor = self._begin(now), self.floor
        current = self._is_current(response_id)
        if current and self.answer.tells:
            out += self.answer.hear(response_id, held, now)
        elif current or response_id == floor.tail:
            floor.spoke = floor.spoke or bool(held.audio)
            out += passed_on(response_id, held)
        return out

    def _shown_results(self) -> list[Order]:
        """The provider will not speak them, and this session ends: whoever listens reads them."""
        return [order for answer in self.runs.take_results() for order in self.mouth.shown(answer)]

    # --- runs ---

    def _advance_runs(self) -> None:
        now, runs, state = self._now, self.runs, self.floor.state
        floor, run, told = self.answer.who_speaks(waits=runs.answered), runs.turn, list[Order]()
        if run is not None and run.due is not None and now >= run.due:
            told = run.on_due(now, floor)
            self._out += told
        at = runs.promotion_at if state is _S.WORKING else None
        if run is not None and at is not None and now >= at:
            self._promote(run)
        beats = runs.advance(now, floor)
        self._out += beats
        quiet = self.floor.state in (_S.IDLE, _S.WORKING) and self.answer.who_speaks(waits=runs.answered) == "idle"
        if quiet and not runs.away:
            self._out += self.answer.filler.speak([*told, *beats])
        if self.floor.state is _S.IDLE:
            self._out += runs.start_next(now)
            answer = runs.take_result(now)
            if answer is not None:
                self._out += self.answer.tell(answer, self._now, background=True)

    def _promote(self, run: VoiceRun) -> None:
        """The turn waits no longer."""
        runs = self.runs
        if runs.free:
            self._detach(run, Tier.PROMOTED)
            return
        self._out += runs.give_back(run)
        call = RunCall(call_id=run.call_id, text=run.text, profile=run.profile)
        self._wait_in_line(runs.new(call), Tier.PROMOTED)

    def _detach(self, run: VoiceRun, tier: Tier) -> None:
        spoken = self.runs.hands_off
        self._out += self.runs.detach(run, tier, spoken=spoken)
        if spoken:
            self._speak_of(run.call_id)
        else:
            self.answer.end()

    def _wait_in_line(self, run: VoiceRun, tier: Tier) -> None:
        call_id = run.call_id
        self._out += self.runs.wait_in_line(run, tier)
        if self.runs.hands_off or run.state is VoiceRunState.OVER:
            self._speak_of(call_id)
        else:
            self._emit("voice.response.done", response_id=None)
            self.answer.end()

    def _speak_of(self, call_id: str) -> None:
        """The provider was told something in place of a result: have it say that, once it is done with the call."""
        if self.floor.state is _S.WORKING:
            self._out += self.floor.respond(self._now)
        else:
            self._consult(call_id)

    # --- functions ---

    def _answer(self, call: Call) -> None:
        stops = self.runs.first if isinstance(call, CancelCall) else None
        told, output = self.runs.answer(call, self._now)
        self._out += told
        if stops is not None and self.floor.state is _S.WORKING:  # called together with the run function
            self._emit("voice.response.done", response_id=None, cancelled=True, run_id=stops.story.run_id)
            self.answer.end()
        self._out.append(AnswerCall(call.call_id, output))

    def _consult(self, call_id: str) -> None:
        """A function was answered: the provider goes on when what it said before is played."""
        self.floor.go(_T.CONSULT, self._now + DRAIN_WITHIN)
        self._out.append(self.floor.wait_for_playback(call_id, None))

    def _take(self, call: RunCall) -> None:
        """The provider wants a run, and the turn has none."""
        runs, waited_for = self.runs, not (call.background and self.runs.rules.enabled)
        free = runs.free
        run = runs.new(call, side=runs.aside and (free or waited_for))
        run.spoke = self.floor.spoke
        if waited_for:
            self.floor.go(_T.WORK)
            self._out += run.take(self._now, spoke=run.spoke)
        elif free:
            self._out.append(run.begin(self._now))
            self._detach(run, Tier.DURABLE)
        else:
            self._wait_in_line(run, Tier.DURABLE)
