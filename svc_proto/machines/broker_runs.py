"""The runs of a realtime session: how a function call becomes one, and what becomes of a turn when one ends.

`svc_proto.machines.broker.Broker` stands on it. A run that takes long is detached from its turn
(`svc_proto.machines.background`), as long as nobody is in the middle of saying something. A second task is tried on a
chat session of its own meanwhile. If it has not begun to act or to answer when its time is up, it is stopped and waits
in the queue; otherwise it is not, since whatever it has done would be done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from attrs import define, field

from svc_proto.machines.background import Background
from svc_proto.machines.background_rules import FOREGROUND, BackgroundRules
from svc_proto.machines.broker_calls import (
    Call,
    CancelCall,
    ConfirmCall,
    RunCall,
    StatusCall,
    UnknownCall,
    background_output,
    busy_output,
    cancelled_output,
    completed_output,
    failed_output,
    queued_output,
    status_output,
)
from svc_proto.machines.broker_orders import AnswerCall, LeaveRun, Order, StopRun
from svc_proto.machines.broker_speech import BrokerSpeech
from svc_proto.machines.delivery import ALARM, Delivery, HeldAnswer
from svc_proto.machines.playback import DRAIN_WITHIN, FORCED
from svc_proto.machines.run_story import AnswerDelta, RunEvent, SessionBound
from svc_proto.machines.voice_job import Job, JobState, JobTrigger, Tier
from svc_proto.machines.voice_turn import TurnState, TurnTrigger

__all__ = ["ONE_TASK", "BrokerRuns"]

ONE_TASK = "A task is under way. Ask for its status, or wait for its result."


@define(eq=False, kw_only=True)
class BrokerRuns(BrokerSpeech):
    """`speakable` makes text fit for the ear; `rules` say what may go on in the background."""

    speakable: Callable[[str], str]
    profile: str | None = None  # of runs whose call names none
    session_id: str | None = None  # the chat session that runs go to
    rules: BackgroundRules = FOREGROUND
    _job: Job | None = field(default=None, init=False)  # the run of the turn
    _side_session: str | None = field(default=None, init=False)  # the chat session of tasks beside a detached run
    _background: Background = field(init=False)

    @_background.default
    def _empty(self) -> Background:
        return Background(word=self.word, rules=self.rules, result_delivery=self.result_delivery)

    # --- the client ---

    @property
    def busy(self) -> bool:
        """Whether there is something to stay for."""
        return self.state is not TurnState.IDLE or self._background.busy

    @property
    def unheard(self) -> list[str]:
        """The ids of runs in the background whose answer nobody has heard."""
        return self._background.unheard

    def listen(self, now: float) -> None:
        """The microphone is on."""
        self._background.hear(now)

    def leave(self, now: float) -> None:
        """Nobody listens any more, but somebody may come back."""
        self._background.leave(now)

    def come_back(self, now: float) -> list[Order]:
        """A client has come back to the session."""
        self._background.come_back(now)
        return self._begin(now)

    def kept_until(self, window: float, longest: float) -> float:
        """While nobody listens: when to wait no longer. `longest` counts while something is going on."""
        return self._background.kept_until(window, longest, live=self.state is not TurnState.IDLE)

    def respeak(self, now: float) -> list[Order]:
        """The person wants to hear the last answer from the background again."""
        out = self._begin(now)
        answer = self._background.last
        if answer is None or self.state is not TurnState.IDLE:
            self._emit(f"{self.word}.result.respeak_unavailable")
        else:
            self._delivery = Delivery(answer, self.word, self.new_id)
            self._go(TurnTrigger.RENDER, ALARM)
            out.append(self._delivery.respeak())
        return out

    # --- the run ---

    def run_event(self, call_id: str, event: RunEvent, now: float) -> list[Order]:
        """The run tells something."""
        out = self._begin(now)
        job = self._live_job(call_id)
        if job is None:
            return out
        if job.side:
            job.story.session_id = self.session_id  # clients would switch their chat to another one
            if isinstance(event, SessionBound):
                self._side_session = event.session_id if job is self._job else None
                return out
        out += job.draft() if isinstance(event, AnswerDelta) else []
        out += job.story.take(event)
        job.take_hint(now)
        self.session_id = job.story.session_id
        return out

    def run_ended(self, call_id: str, now: float) -> list[Order]:
        """The run's stream has ended well; one that somebody stopped says so itself."""
        out = self._begin(now)
        job = self._live_job(call_id)
        if job is None:
            return out
        if job is self._background.job:
            idle = self.state is TurnState.IDLE
            stopped = job.story.interrupted
            out += self._background.stopped(now) if stopped else self._background.finish(self.speakable, now, idle=idle)
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
        fields = {"call_id": call_id} | ({} if error_code is None else {"error_code": error_code})
        if job is None:
            return out
        if job is self._background.job:
            out += self._background.fail(message, now)
            self._emit("voice.error", message=message, **fields)
        else:
            self._drop_job(lambda job: failed_output(job, message))
            self._fail(message, **fields)
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

    # --- time ---

    @property
    def _runs_due(self) -> list[float | None]:
        """When something is due of a run."""
        job, background = self._job, self._background
        idle = background.next_at if self.state is TurnState.IDLE else None
        return [None if job is None else job.due, self._promotion_at, background.due, idle]

    @property
    def _promotion_at(self) -> float | None:
        """When the turn waits no longer for its run."""
        job = self._job
        if job is None or not job.live or self.state is not TurnState.WORKING:
            return None
        return job.promote_at if self._background.free or not job.acts else None

    def _advance_runs(self) -> None:
        now, job, background = self._now, self._job, self._background
        floor = self._floor
        if job is not None and job.due is not None and now >= job.due:
            self._out += job.on_due(now, floor)
        at = self._promotion_at
        if job is not None and at is not None and now >= at:
            self._promote(job)
        self._out += background.advance(now, floor)
        if self.state is TurnState.IDLE:
            self._out += background.start_next(now, self.session_id)
            answer = background.take_result(now)
            if answer is not None:
                self._announce(answer)

    @property
    def _floor(self) -> str:
        """Who has the word, for whoever would speak of progress."""
        if self.state in (TurnState.ANSWERING, TurnState.DELIVERING):
            return "provider_speaking"
        if self.state is TurnState.RENDERING:
            return f"{self.word}_filler"
        return "result_pending" if self.state is TurnState.SETTLING or self._background.answered else "idle"

    # --- the background ---

    def _show_results(self) -> None:
        """The provider will not speak them, and this session ends: whoever listens reads them."""
        for answer in self._background.take_results():
            self._out += Delivery(answer, self.word, self.new_id, background=True).show()

    @property
    def _speaks_of_it(self) -> bool:
        return self.rules.spoken_handoff and not self._background.away

    def _promote(self, job: Job) -> None:
        """The turn waits no longer."""
        self._job = None
        if self._background.free:
            self._detach(job, Tier.PROMOTED)
            return
        self._side_session = None  # whatever is stopped there may take its time
        self._out.append(StopRun(job.call_id, job.story.run_id))
        job.step(JobTrigger.DROP)
        self._wait_in_line(self._new_job(RunCall(call_id=job.call_id, text=job.text, profile=job.profile)), job.tier)

    def _detach(self, job: Job, tier: Tier) -> None:
        spoken = self._speaks_of_it
        self._side_session = None if job.side else self._side_session  # that one is taken
        self._out += self._background.promote(job, tier, spoken=spoken)
        self._out.append(AnswerCall(job.call_id, background_output()))
        if spoken:
            self._speak_of(job.call_id)
        else:
            self._go(TurnTrigger.END)

    def _wait_in_line(self, job: Job, tier: Tier) -> None:
        call_id = job.call_id
        job.rename(f"{call_id}:queued")  # not mixed up with a run of that name that has not ended yet
        told = self._background.enqueue(job, Tier.PROMOTED if tier is Tier.FOREGROUND else tier)
        self._out += told
        self._out.append(AnswerCall(call_id, queued_output(len(self._background.queued)) if told else busy_output()))
        if self._speaks_of_it or not told:
            self._speak_of(call_id)
        else:
            self._emit("voice.response.done", response_id=None)
            self._go(TurnTrigger.END)

    def _speak_of(self, call_id: str) -> None:
        """The provider was told something in place of a result: have it say that, once it is done with the call."""
        if self.state is TurnState.WORKING:
            self._respond()
        else:
            self._go(TurnTrigger.CONSULT, DRAIN_WITHIN)
            self._wait_for_playback(call_id, None)

    def _announce(self, answer: HeldAnswer) -> None:
        """An answer from the background is on its way to the ear."""
        self._delivery = Delivery(answer, self.word, self.new_id, background=True)
        self._go(TurnTrigger.SETTLE, DRAIN_WITHIN)
        if self.result_delivery == "visual_only":
            self._deliver(self._delivery)
        else:
            self._wait_for_playback(None, None, FORCED)

    # --- functions ---

    def _take(self, call: RunCall) -> None:
        """The provider wants a run, and the turn has none."""
        if not (call.background and self.rules.enabled):
            detached = self._background.job
            self._job = job = self._new_job(call, side=detached is not None and not detached.side)
            self._go(TurnTrigger.WORK)
            self._out += job.take(self._now, spoke=self._spoke)
            return
        job = self._new_job(call)
        job.spoke = self._spoke
        if self._background.free:
            self._out.append(job.begin(self._now))
            self._detach(job, Tier.DURABLE)
        else:
            self._wait_in_line(job, Tier.DURABLE)

    def _new_job(self, call: RunCall, *, side: bool = False) -> Job:
        session_id = self.session_id or call.session_id  # a model may make ids up: the one that is bound wins
        profile = call.profile or self.profile
        job = Job(
            self.word,
            call.call_id,
            text=call.text,
            session_id=session_id,
            profile=profile,
            rules=self.rules,
            side=side,
        )
        job.side_session = self._side_session
        return job

    def _output(self, call: Call) -> Mapping[str, object]:
        match call:
            case RunCall():
                return {"ok": False, "error": ONE_TASK}
            case StatusCall():
                shown = self._job or self._background.shown
                return {**status_output(shown, self._background.queued), "session_id": self.session_id}
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
        first = job or self._background.job
        stopped = self._background.cancel(self._now)
        if first is None:
            self._emit(f"{self.word}.run.cancelled", session_id=self.session_id, run_id="")
            return {"ok": True, "run_id": None, "status": "idle", "session_id": self.session_id}
        run_id = first.story.run_id
        if job is not None:
            self._out += job.stop()
            self._drop_job(cancelled_output)
        self._out += stopped
        if self.state is TurnState.WORKING:  # called together with the run function
            self._emit("voice.response.done", response_id=None, cancelled=True, run_id=run_id)
            self._go(TurnTrigger.END)
        return {"ok": True, "run_id": run_id or None, "status": "cancelled", "session_id": self.session_id}

    def _approve(self, confirmation_id: str | None, answer: str) -> bool:
        """Pass an answer on to whichever run has asked."""
        for job in (self._job, self._background.job):
            order = None if job is None else job.approve(confirmation_id, answer)
            if order is not None:
                self._out.append(order)
                return True
        return False

    # --- jobs ---

    def _live_job(self, call_id: str) -> Job | None:
        for job in (self._job, self._background.job):
            if job is not None and job.live and job.call_id == call_id:
                return job
        return None

    def _drop_job(self, output: Callable[[Job], Mapping[str, object]] | None) -> None:
        job, self._job = self._job, None
        if job is None:
            return
        if output is not None and job.state is not JobState.FINISHED:
            self._out.append(AnswerCall(job.call_id, output(job)))
        job.step(JobTrigger.DROP)

    def _settle(self, job: Job, answer: HeldAnswer) -> None:
        job.step(JobTrigger.GO)
        self._job = None
        self._delivery = Delivery(answer, self.word, self.new_id)
        self._go(TurnTrigger.SETTLE, DRAIN_WITHIN)
        self._wait_for_playback(job.call_id, f"{self.word}_run_task")
