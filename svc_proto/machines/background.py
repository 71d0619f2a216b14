"""Runs that go on while the person talks of something else: one at a time, those that wait for it, what they answered.

A run goes through these stages (wire terminal-voice 6.9):

| stage    | trigger | next     |
|----------|---------|----------|
| taken    | DETACH  | detached | it takes long, or was to be in the background from the first: its turn is over
| taken    | QUEUE   | queued   | the same, and another one is detached
| queued   | DETACH  | detached | its time has come, and nobody is in a turn
| queued   | DROP    | over     | cancelled
| detached | FINISH  | waiting  | its answer waits until nobody speaks
| detached | DROP    | over     | failed, stopped, or longer than a run may be
| waiting  | DELIVER | over     | its answer is on its way to the ear
| waiting  | DROP    | over     | cancelled

Each run that was promoted is told to be over once: by `run.background_completed`, or by `run.cancelled` if somebody has
stopped it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum

from attrs import define, field

from svc_proto.machines.background_rules import BackgroundRules
from svc_proto.machines.broker_orders import Emit, LeaveRun, Note, Order
from svc_proto.machines.delivery import HeldAnswer
from svc_proto.machines.table import Table, step
from svc_proto.machines.voice_job import Job, JobTrigger, Tier

__all__ = ["GRACE", "MAX_QUEUED", "MAX_RESULTS", "RUN_TABLE", "Background", "BackgroundRun", "Stage", "StageTrigger"]

MAX_QUEUED = 3  # wire terminal-voice 6.9; a further task is told to be too many
MAX_RESULTS = 4  # answers that wait to be heard; until there is room nothing more is detached
QUIET = 1.5  # s without the microphone before an answer is spoken, or a task that has waited begins
QUIET_WITHIN = 12.0  # s that they wait for that
GRACE = 30.0  # s that a client may take to come back after a run
MAX_PREVIEW = 80  # characters of a task that waits
TOO_LONG = "The task takes longer than a voice session waits for it. Its answer will be in the chat."


class Stage(Enum):
    """Where a run is."""

    TAKEN = "taken"
    QUEUED = "queued"
    DETACHED = "detached"
    WAITING = "waiting"
    OVER = "over"


class StageTrigger(Enum):
    """What moves it."""

    QUEUE = "queue"
    DETACH = "detach"
    FINISH = "finish"
    DELIVER = "deliver"
    DROP = "drop"


_S, _T = Stage, StageTrigger
RUN_TABLE: Table[Stage, StageTrigger] = {
    (_S.TAKEN, _T.DETACH): _S.DETACHED,
    (_S.TAKEN, _T.QUEUE): _S.QUEUED,
    (_S.QUEUED, _T.DETACH): _S.DETACHED,
    (_S.QUEUED, _T.DROP): _S.OVER,
    (_S.DETACHED, _T.FINISH): _S.WAITING,
    (_S.DETACHED, _T.DROP): _S.OVER,
    (_S.WAITING, _T.DELIVER): _S.OVER,
    (_S.WAITING, _T.DROP): _S.OVER,
}


@define(eq=False)
class BackgroundRun:
    """One run, and where it is."""

    job: Job
    stage: Stage = field(default=Stage.TAKEN, init=False)

    def step(self, trigger: StageTrigger) -> None:
        """Move along the table."""
        self.stage = step(RUN_TABLE, self.stage, trigger)


@define(eq=False, kw_only=True)
class Background:
    """All of one session. Times are monotonic seconds; whoever owns it calls `advance` at `due`."""

    word: str
    rules: BackgroundRules
    result_delivery: str = "speak_verbatim"
    away: bool = field(default=False, init=False)  # nobody listens
    last: HeldAnswer | None = field(default=None, init=False)  # the newest answer, to be said again
    _detached: BackgroundRun | None = field(default=None, init=False)
    _queue: deque[BackgroundRun] = field(factory=deque, init=False)
    _results: deque[BackgroundRun] = field(factory=deque, init=False)
    _waiting_since: float = field(default=0.0, init=False)  # the first of the results
    _heard_at: float = field(default=0.0, init=False)  # the microphone
    _away_since: float = field(default=0.0, init=False)
    _ended_at: float = field(default=0.0, init=False)  # the run that was detached last

    # --- what there is ---

    @property
    def job(self) -> Job | None:
        """The run that is detached."""
        return None if self._detached is None else self._detached.job

    @property
    def shown(self) -> Job | None:
        """The run that somebody who asks how far it is may mean."""
        return self._results[-1].job if self._detached is None and self._results else self.job

    @property
    def answered(self) -> bool:
        """Whether an answer waits."""
        return bool(self._results)

    @property
    def free(self) -> bool:
        """Whether a run may be detached."""
        return self._detached is None and len(self._results) < MAX_RESULTS

    @property
    def busy(self) -> bool:
        """Whether there is something to stay for."""
        return bool(self._detached or self._results or self._queue)

    @property
    def queued(self) -> list[str]:
        """The tasks that wait, shortened."""
        return [run.job.text[:MAX_PREVIEW] for run in self._queue]

    @property
    def unheard(self) -> list[str]:
        """The ids of runs whose answer nobody has heard."""
        runs = [*self._results, *([] if self._detached is None else [self._detached])]
        return [run.job.story.run_id for run in runs]

    def knows(self, call_id: str) -> bool:
        """Whether a run of that call is in here."""
        runs = (*self._results, *self._queue, *([] if self._detached is None else [self._detached]))
        return any(run.job.call_id == call_id for run in runs)

    def has_task(self, text: str) -> bool:
        """Whether that is under way, or waits: models ask for a thing twice."""
        runs = (*self._queue, *([] if self._detached is None else [self._detached]))
        return any(run.job.text == text for run in runs)

    # --- time ---

    @property
    def due(self) -> float | None:
        """When to call `advance`: a heartbeat, or the end of patience."""
        job = self.job
        if job is None or job.due is None:
            return None
        return min(job.due, job.began + self.rules.longest)

    def advance(self, now: float, floor: str) -> list[Order]:
        """Time has passed."""
        job, due = self.job, self.due
        if job is None or due is None or now < due:
            return []
        if now < job.began + self.rules.longest:
            return job.on_due(now, floor)
        return [LeaveRun(job.call_id), *self.fail(TOO_LONG, now), Emit("voice.error", {"message": TOO_LONG})]

    @property
    def next_at(self) -> float | None:
        """When something can begin, as long as nobody is in a turn; a time that is past: now."""
        if self._can_start:
            return min(self._heard_at + QUIET, self._ended_at + QUIET_WITHIN)
        if not self._results or self.away:
            return None
        if self.result_delivery == "visual_only":
            return self._waiting_since
        since = self._waiting_since
        return min(max(since, self._heard_at + QUIET), since + QUIET_WITHIN)

    def hear(self, now: float) -> None:
        """The microphone is on."""
        self._heard_at = now

    # --- the client ---

    def leave(self, now: float) -> None:
        """Nobody listens any more."""
        self.away, self._away_since = True, now

    def come_back(self, now: float) -> None:
        """Somebody does again: what has waited may be said once it is quiet."""
        if self.away:
            self.away, self._waiting_since = False, now

    def kept_until(self, window: float, longest: float, *, live: bool) -> float:
        """While nobody listens, when to wait no longer: `live`: something is going on (wire terminal-voice 6.9)."""
        plain = self._away_since + window
        if live or self._detached is not None or self._queue:
            return max(self._away_since + longest, plain)
        return max(plain, self._ended_at + GRACE)

    # --- runs ---

    def promote(self, job: Job, tier: Tier, *, spoken: bool) -> list[Order]:
        """A run is not waited for any longer. `spoken`: words about that follow."""
        run = BackgroundRun(job)
        job.tier = tier
        return self._detach(run, {"call_id": job.call_id, "origin": "provider_tool_call", "spoken_handoff": spoken})

    def enqueue(self, job: Job, tier: Tier) -> list[Order]:
        """A run has to wait for the one that is detached; nothing when too many wait."""
        if len(self._queue) >= MAX_QUEUED:
            return []
        run = BackgroundRun(job)
        run.step(StageTrigger.QUEUE)
        job.tier = tier
        self._queue.append(run)
        fields = {
            "session_id": job.story.session_id,
            "run_id": "",
            "queued_count": len(self._queue),
            "queue_position": len(self._queue),
            "transcript_preview": job.text[:MAX_PREVIEW],
        }
        return [Emit(f"{self.word}.run.queued", fields)]

    def start_next(self, now: float, session_id: str | None) -> list[Order]:
        """The one that waits longest begins, if it can. Only between turns: clients take it for the end of one."""
        at = self.next_at if self._can_start else None
        if at is None or now < at:
            return []
        run = self._queue.popleft()
        run.job.story.session_id = session_id or run.job.story.session_id
        begun = run.job.begin(now)
        return [begun, *self._detach(run, {"call_id": None, "origin": "queued", "spoken_handoff": False})]

    def finish(self, speakable: Callable[[str], str], now: float, *, idle: bool) -> list[Order]:
        """The detached run has answered. `idle`: nobody is in a turn."""
        run = self._end(now)
        told: list[Order] = [*run.job.story.complete()]
        self.last = run.job.finish(speakable)
        run.step(StageTrigger.FINISH)
        if not self._results:
            self._waiting_since = now
        self._results.append(run)
        told.append(self._completed(run.job, ok=True, tool_count=run.job.story.completed_tool_count))
        if self.away or not idle:
            told.append(Note("voice.realtime_agent.result_deferred", {"run_id": self.last.run_id}))
        return told

    def fail(self, error: str, now: float) -> list[Order]:
        """The run of this task has failed."""
        run = self._end(now)
        self._drop(run)
        return [self._completed(run.job, ok=False, error=error)]

    def stopped(self, now: float) -> list[Order]:
        """Somebody else has stopped it."""
        run = self._end(now)
        self._drop(run)
        return [run.job.story.cancelled()]

    def cancel(self, now: float) -> list[Order]:
        """Stop it, and forget what waits (wire terminal-voice 6.8)."""
        told: list[Order] = []
        if self._detached is not None:
            run = self._end(now)
            told += run.job.stop()
            self._drop(run)
        for waiting in (*self._queue, *self._results):
            self._drop(waiting)
        self._queue.clear()
        self._results.clear()
        return told

    def take_result(self, now: float) -> HeldAnswer | None:
        """An answer whose time has come."""
        at = None if self._can_start else self.next_at
        if at is None or now < at:
            return None
        self._waiting_since = now
        return self._next_result()

    def take_results(self) -> list[HeldAnswer]:
        """All of them, at the end, if somebody listens."""
        if self.away:
            return []
        return [self._next_result() for _ in range(len(self._results))]

    # --- helpers ---

    @property
    def _can_start(self) -> bool:
        return self.free and bool(self._queue)

    def _next_result(self) -> HeldAnswer:
        run = self._results.popleft()
        run.step(StageTrigger.DELIVER)
        run.job.step(JobTrigger.GO)
        assert run.job.answer is not None  # it has finished
        return run.job.answer

    def _detach(self, run: BackgroundRun, about: dict[str, object]) -> list[Order]:
        run.step(StageTrigger.DETACH)
        self._detached = run
        job = run.job
        told = {"run_id": job.story.run_id, "tier": job.tier.value}
        fields = {
            "session_id": job.story.session_id,
            **told,
            "promote_after_ms": round(self.rules.promote_after * 1000),
            "provider_acknowledged": job.spoke,
            "result_delivery": self.result_delivery,
            "queued_count": len(self._queue),
            **about,
        }
        return [Note(f"voice.{self.word}_run.promoted", told), Emit(f"{self.word}.run.promoted", fields)]

    def _end(self, now: float) -> BackgroundRun:
        """The detached run is not that any more."""
        run, self._detached = self._detached, None
        assert run is not None  # the owner asks only for what there is
        self._ended_at = now
        return run

    def _drop(self, run: BackgroundRun) -> None:
        run.step(StageTrigger.DROP)
        run.job.step(JobTrigger.DROP)

    def _completed(self, job: Job, **fields: object) -> Emit:
        about = {"session_id": job.story.session_id, "run_id": job.story.run_id, "queued_count": len(self._queue)}
        return Emit(f"{self.word}.run.background_completed", {**about, **fields})
