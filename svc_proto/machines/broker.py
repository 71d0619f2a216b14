"""The broker of a realtime voice session: a provider hears and speaks, a chat run does the work (terminal-voice 6.6).

The life of a turn is in `svc_proto.machines.voice_turn`, that of a run in `svc_proto.machines.voice_job`; what is heard
is in `svc_proto.machines.broker_speech`.

Each turn ends with `voice.response.done`, whatever happens: every state but idle has a deadline, except while a run
lives, which has its heartbeat. A cancel that finds nothing ends with one, too. Beside a run the person may talk: the
answer of the run then waits until that is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from attrs import define, field

from svc_proto.machines.broker_calls import (
    Call,
    CancelCall,
    ConfirmCall,
    RunCall,
    StatusCall,
    UnknownCall,
    cancelled_output,
    completed_output,
    failed_output,
    status_output,
)
from svc_proto.machines.broker_orders import (
    AnswerCall,
    CancelResponse,
    ClearInput,
    CloseClient,
    CommitInput,
    LeaveRun,
    Note,
    Order,
    SayText,
)
from svc_proto.machines.broker_speech import BrokerSpeech
from svc_proto.machines.delivery import Answer, Delivery
from svc_proto.machines.playback import DRAIN_WITHIN
from svc_proto.machines.run_story import AnswerDelta, RunEvent
from svc_proto.machines.voice_job import Job, JobState, JobTrigger
from svc_proto.machines.voice_turn import TurnState, TurnTrigger

__all__ = ["Broker"]

TRANSCRIBED_WITHIN = 10.0  # s; the response needs no transcript, the provider has heard the person
MAX_CALLS = 256  # ids of function calls that are remembered; the oldest is forgotten
ONE_TASK = "A task is under way. Ask for its status, or wait for its result."


@define(eq=False, kw_only=True)
class Broker(BrokerSpeech):
    """One session's broker. Every call gives the orders that follow from it, to be carried out in that order.

    Times are monotonic seconds; whoever owns the broker calls `advance` at `due`.
    """

    speakable: Callable[[str], str]  # makes text fit for the ear
    profile: str | None = None  # of runs whose call names none
    session_id: str | None = None  # the chat session that runs go to
    _calls: dict[str, None] = field(factory=dict, init=False)
    _job: Job | None = field(default=None, init=False)

    # --- time ---

    @property
    def due(self) -> float | None:
        """When to call `advance`."""
        job = None if self._job is None else self._job.due
        return min((when for when in (self._due, self._responses.due, job) if when is not None), default=None)

    def advance(self, now: float) -> list[Order]:
        """Time has passed."""
        out = self._begin(now)
        asking = self._responses.due
        if asking is not None and now >= asking:
            out += self._responses.assume_free()
        if self._due is not None and now >= self._due:
            self._due = None
            self._overdue()
        job = self._job
        if job is not None and job.due is not None and now >= job.due:
            floor = "provider_speaking" if self.state is TurnState.ANSWERING else "idle"
            out += job.on_due(now, floor)
        return out

    def postpone(self, seconds: float) -> None:
        """The client took nothing for so long, so nobody else was heard either: that is nobody's silence."""
        self._due = None if self._due is None else self._due + seconds

    # --- the person ---

    def commit(self, now: float, *, heard: bool = True) -> list[Order]:
        """An utterance is complete. `heard`: there was audio; an empty one is answered by nobody."""
        out = self._begin(now)
        if heard:
            self._interrupt()
            out.append(CommitInput())
            self._go(TurnTrigger.HEAR, TRANSCRIBED_WITHIN)
        elif self.state in (TurnState.IDLE, TurnState.WORKING):
            self._emit("voice.input_transcript.final", text="")
            self._emit("voice.response.done", response_id=None)
        return out

    def say(self, text: str, now: float) -> list[Order]:
        """A text turn."""
        out = self._begin(now)
        if self.state is TurnState.HEARING:
            self._emit("voice.response.done", response_id=None, cancelled=True)
        self._interrupt()
        self._emit("voice.input_transcript.final", text=text, source="client_text")
        out.append(SayText(text))
        self._respond()
        return out

    def cancel(self, now: float) -> list[Order]:
        """Stop whatever is going on, on the API server too."""
        out = self._begin(now)
        extra: dict[str, object] = {}
        job = self._job
        if job is not None and job.live:
            extra["run_id"] = job.story.run_id
            out += job.stop()
        self._drop_job(cancelled_output)
        response_id = self._quiet()
        out += [CancelResponse(), ClearInput()]
        self._emit("voice.response.done", response_id=response_id, cancelled=True, **extra)
        self._go(TurnTrigger.END)
        return out

    def confirm(self, confirmation_id: str | None, answer: str, now: float) -> list[Order]:
        """The person answers a question of the run."""
        out = self._begin(now)
        if not self._approve(confirmation_id, answer):
            self._emit(f"{self.word}.confirmation.forwarded", confirmation_id=confirmation_id, answer=None)
        return out

    def drained(self, call_id: str | None, now: float) -> list[Order]:
        """The client has played what it was sent, for this call or another."""
        out = self._begin(now)
        job = self._job
        if job is not None and job.drain is not None:
            out += [job.drain.completed, job.pause(now)]
        if self._drain is not None:
            out.append(self._drain.completed)
            self._go_on()
        return out

    # --- the provider ---

    def transcribed(self, text: str, now: float) -> list[Order]:
        """What the person said. ONE response is asked for; a second transcript asks for no other."""
        out = self._begin(now)
        self._emit("voice.input_transcript.final", text=text)
        if self.state is TurnState.HEARING:
            self._respond()
        return out

    def call(self, response_id: str, call: Call, now: float) -> list[Order]:
        """The provider calls a function: each call id counts once."""
        out = self._begin(now)
        if call.call_id in self._calls:
            return out
        self._calls[call.call_id] = None
        if len(self._calls) > MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        current = self._is_current(response_id)
        if not current and response_id != self._tail:
            return out
        if current and self.state is TurnState.ANSWERING:
            self._tail = response_id
            self._responses.bury(response_id)
            if isinstance(call, RunCall) and self._job is None:
                self._take(call)
                return out
            out.append(AnswerCall(call.call_id, self._output(call)))
            self._go(TurnTrigger.CONSULT, DRAIN_WITHIN)
            self._wait_for_playback(call.call_id, None)
        else:
            out.append(AnswerCall(call.call_id, self._output(call)))
        return out

    def response_done(self, response_id: str, status: str, now: float) -> list[Order]:
        """A response is over: `completed`, `cancelled`, `incomplete` or `failed`."""
        out = self._begin(now)
        current = self._is_current(response_id)
        out += self._responses.over(response_id)
        if not current:
            if response_id == self._tail:
                self._tail = None
                out.append(Note("voice.response.intermediate_done", {"response_id": response_id}))
            return out
        self._responses.bury(response_id)
        if self._delivery is not None:
            self._delivered(self._delivery, response_id)
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
            out.append(CloseClient(1000, "the voice provider has closed an idle session"))
        elif benign:
            out.append(Note("voice.realtime_agent.provider_notice", {"message": message}))
        else:
            self._fail(message)
        return out

    def provider_lost(self, message: str, now: float) -> list[Order]:
        """The provider's socket has ended."""
        out = self._begin(now)
        if self.state is TurnState.IDLE:
            out.append(CloseClient(1000, "the voice provider has closed the session"))
        else:
            self._fail(message)
            out.append(CloseClient(1011, "the voice provider is gone"))
        return out

    # --- the run ---

    def run_event(self, call_id: str, event: RunEvent, now: float) -> list[Order]:
        """The run tells something."""
        out = self._begin(now)
        job = self._live_job(call_id)
        if job is not None:
            out += job.draft() if isinstance(event, AnswerDelta) else []
            out += job.story.take(event)
            self.session_id = job.story.session_id
        return out

    def run_ended(self, call_id: str, now: float) -> list[Order]:
        """The run's stream has ended well; one that somebody stopped says so itself."""
        out = self._begin(now)
        job = self._live_job(call_id)
        if job is None:
            return out
        if job.story.interrupted:
            out.append(job.story.cancelled())
            run_id = job.story.run_id
            self._drop_job(cancelled_output)
            if self.state is TurnState.WORKING:
                self._emit("voice.response.done", response_id=None, cancelled=True, run_id=run_id)
                self._go(TurnTrigger.END)
            return out
        out += job.story.complete()
        answer = job.finish(self.speakable)
        out.append(AnswerCall(call_id, completed_output(job, answer)))
        if self.state is TurnState.WORKING:
            self._settle(job, answer)
        return out

    def run_failed(self, call_id: str, message: str, now: float, *, error_code: str | None = None) -> list[Order]:
        """The run could not be made, or failed."""
        out = self._begin(now)
        job = self._live_job(call_id)
        if job is not None:
            self._drop_job(lambda job: failed_output(job, message))
            code = {} if error_code is None else {"error_code": error_code}
            self._fail(message, call_id=call_id, **code)
        return out

    def approved(self, call_id: str, confirmation_id: str, answer: str | None, now: float) -> list[Order]:
        """The API server has taken an answer; None: it did not want one any more."""
        out = self._begin(now)
        self._emit(f"{self.word}.confirmation.forwarded", confirmation_id=confirmation_id, answer=answer)
        job = self._live_job(call_id)
        if job is not None:
            out += job.story.settle(confirmation_id)
        return out

    # --- turns ---

    def _rest(self) -> None:
        """The provider's answer is over: what next?"""
        job = self._job
        if job is None:
            self._go(TurnTrigger.END)
        elif job.answer is not None:
            self._settle(job, job.answer)
        else:
            self._go(TurnTrigger.WORK)

    def _fail(self, message: str, response_id: str | None = None, **fields: object) -> None:
        """Something broke: whatever is going on ends here. An answer is shown first: clients leave after an error."""
        if self._delivery is not None:
            self._end_turn()
            self._emit("voice.error", message=message, **fields)
        else:
            self._emit("voice.error", message=message, **fields)
            self._end_turn(response_id)

    def _end_turn(self, response_id: str | None = None) -> None:
        """End the turn. A run goes on without us."""
        job = self._job
        if self._delivery is not None:
            self._give_up(self._delivery)
        elif self.state is not TurnState.IDLE:
            if job is not None and job.live:
                self._out.append(LeaveRun(job.call_id))
            self._drop_job(None)
            self._emit("voice.response.done", response_id=self._quiet() or response_id)
        self._go(TurnTrigger.END)

    def _overdue(self) -> None:
        if self._drain is not None:
            self._out.append(self._drain.timed_out)
            self._go_on()
        elif self._delivery is not None:
            self._out.append(Note("voice.realtime_agent.delivery_unconfirmed", {}))
            self._give_up(self._delivery)
            self._go(TurnTrigger.END)
        elif self.state is TurnState.HEARING:
            self._respond()
        else:
            self._fail("The voice provider did not answer.")

    # --- functions ---

    def _take(self, call: RunCall) -> None:
        session_id = self.session_id or call.session_id  # a model may make ids up: the one that is bound wins
        profile = call.profile or self.profile
        self._job = Job(self.word, call.call_id, text=call.text, session_id=session_id, profile=profile)
        self._go(TurnTrigger.WORK)
        self._out += self._job.take(self._now, spoke=self._spoke)

    def _output(self, call: Call) -> Mapping[str, object]:
        match call:
            case RunCall():
                return {"ok": False, "error": ONE_TASK}
            case StatusCall():
                return {**status_output(self._job), "session_id": self.session_id}
            case CancelCall():
                return self._stop_by_call()
            case ConfirmCall(confirmation_id=confirmation_id, answer=answer):
                taken = self._approve(confirmation_id, answer)
                status = "forwarded" if taken else "not_pending"
                return {"ok": taken, "confirmation_id": confirmation_id, "status": status}
            case UnknownCall(output=output):
                return output
            case _:
                assert_never(call)

    def _stop_by_call(self) -> dict[str, object]:
        job = self._job
        if job is None:
            self._emit(f"{self.word}.run.cancelled", session_id=self.session_id, run_id="")
            return {"ok": True, "run_id": None, "status": "idle", "session_id": self.session_id}
        run_id = job.story.run_id
        self._out += job.stop()
        self._drop_job(cancelled_output)
        if self.state is TurnState.WORKING:  # called together with the run function
            self._emit("voice.response.done", response_id=None, cancelled=True, run_id=run_id)
            self._go(TurnTrigger.END)
        return {"ok": True, "run_id": run_id or None, "status": "cancelled", "session_id": self.session_id}

    def _approve(self, confirmation_id: str | None, answer: str) -> bool:
        job = self._job
        order = None if job is None else job.approve(confirmation_id, answer)
        if order is None:
            return False
        self._out.append(order)
        return True

    # --- the run ---

    def _live_job(self, call_id: str) -> Job | None:
        job = self._job
        return job if job is not None and job.live and job.call_id == call_id else None

    def _drop_job(self, output: Callable[[Job], Mapping[str, object]] | None) -> None:
        job, self._job = self._job, None
        if job is None:
            return
        if output is not None and job.state is not JobState.FINISHED:
            self._out.append(AnswerCall(job.call_id, output(job)))
        job.step(JobTrigger.DROP)

    def _settle(self, job: Job, answer: Answer) -> None:
        job.step(JobTrigger.GO)
        self._job = None
        self._delivery = Delivery(answer, self.word, self.new_id)
        self._go(TurnTrigger.SETTLE, DRAIN_WITHIN)
        self._wait_for_playback(job.call_id, f"{self.word}_run_task")
