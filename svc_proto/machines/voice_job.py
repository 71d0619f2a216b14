"""The chat run behind a spoken turn: its stages, its heartbeat, and what progress says of it.

| state         | trigger | next          |
|---------------|---------|---------------|
| acknowledging | GO      | pausing       | what was said is played, or 2.5 s are over
| acknowledging | DROP    | over          |
| pausing       | GO      | running       | 0.75 s are over: the run begins
| pausing       | DROP    | over          |
| running       | FINISH  | finished      | its answer waits until nobody speaks
| running       | DROP    | over          | stopped, or failed
| finished      | GO      | over          | its answer is on its way to the ear
| finished      | DROP    | over          | nobody wants it any more
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from svc_proto.basics import strict_json
from svc_proto.machines.background_rules import FOREGROUND, BackgroundRules
from svc_proto.machines.broker_orders import Approve, Emit, Order, StartRun, StopRun
from svc_proto.machines.confirmations import choice_for
from svc_proto.machines.delivery import HeldAnswer
from svc_proto.machines.playback import DRAIN_WITHIN, Drain
from svc_proto.machines.run_story import RunStory
from svc_proto.machines.table import Table, step

__all__ = ["HEARTBEAT", "MAX_SPOKEN", "JOB_TABLE", "PAUSE", "SLOW_AFTER", "Job", "JobState", "JobTrigger", "Tier"]

PAUSE = 0.75  # s between "starting" and the run, wire terminal-voice 6.6 step 2
MAX_SPOKEN = 1_800  # characters of an answer that are spoken, wire terminal-voice 6.6
SILENT = "The task is done, but it gave no answer."
HEARTBEAT = 5.0  # s, wire terminal-voice 9
SLOW_AFTER = 1.5  # s from the start of a tool that is known to be slow, wire terminal-voice 6.9


class JobState(Enum):
    """Where a job is."""

    ACKNOWLEDGING = "acknowledging"
    PAUSING = "pausing"
    RUNNING = "running"
    FINISHED = "finished"
    OVER = "over"


class JobTrigger(Enum):
    """What moves it."""

    GO = "go"
    FINISH = "finish"
    DROP = "drop"


JOB_TABLE: Table[JobState, JobTrigger] = {
    (JobState.ACKNOWLEDGING, JobTrigger.GO): JobState.PAUSING,
    (JobState.ACKNOWLEDGING, JobTrigger.DROP): JobState.OVER,
    (JobState.PAUSING, JobTrigger.GO): JobState.RUNNING,
    (JobState.PAUSING, JobTrigger.DROP): JobState.OVER,
    (JobState.RUNNING, JobTrigger.FINISH): JobState.FINISHED,
    (JobState.RUNNING, JobTrigger.DROP): JobState.OVER,
    (JobState.FINISHED, JobTrigger.GO): JobState.OVER,
    (JobState.FINISHED, JobTrigger.DROP): JobState.OVER,
}


class Tier(Enum):
    """How a run stands to the turn that has asked for it, as clients are told it (wire terminal-voice 6.5)."""

    FOREGROUND = "foreground"  # the turn waits for it
    PROMOTED = "promoted"  # it took too long
    DURABLE = "durable"  # it was asked for in the background


class Job:
    """One call of the run function. One on the `side` has a chat session of its own, which clients do not see."""

    def __init__(
        self,
        word: str,
        call_id: str,
        *,
        text: str,
        session_id: str | None,
        profile: str | None,
        rules: BackgroundRules = FOREGROUND,
        side: bool = False,
    ) -> None:
        self._word = word
        self.text = text
        self.profile = profile
        self.rules = rules
        self.side = side
        self.side_session: str | None = None
        self.tier = Tier.FOREGROUND
        self.spoke = False  # the provider said something before it called
        self.story = RunStory(word, call_id, session_id)
        self.state = JobState.ACKNOWLEDGING
        self.due: float | None = None  # of the drain, of the pause, or of the heartbeat
        self.drain: Drain | None = None
        self.answer: HeldAnswer | None = None
        self.began = 0.0
        self.promote_at: float | None = None  # when the turn waits for it no longer
        self._hinted = False
        self._speak_at = rules.progress_after or None  # s from its beginning on

    def step(self, trigger: JobTrigger) -> None:
        """Move along the table."""
        self.state = step(JOB_TABLE, self.state, trigger)

    @property
    def call_id(self) -> str:
        """The call of the run function, by which everybody knows the run."""
        return self.story.call_id

    @property
    def live(self) -> bool:
        """Whether the API server may be at it."""
        return self.state is JobState.RUNNING

    @property
    def acts(self) -> bool:
        """Whether it has begun to do something, or to answer: it had better not begin again."""
        return self.story.drafting or self.story.last_tool_name is not None

    def rename(self, call_id: str) -> None:
        """The name of its call is in use by another one."""
        self.story.call_id = call_id

    def take(self, now: float, *, spoke: bool) -> list[Order]:
        """The provider has called: have it played what was said with the call, if anything was."""
        self.spoke = spoke
        if not spoke:
            return [self.pause(now)]
        self.due = now + DRAIN_WITHIN
        reason = f"pre_{self._word}_ack"
        self.drain = Drain(call_id=self.call_id, tool_name=f"{self._word}_run_task", reason=reason, until=self.due)
        return [self.drain.requested]

    def on_due(self, now: float, floor: str) -> list[Order]:
        """`due` has come."""
        if self.drain is not None:
            return [self.drain.timed_out, self.pause(now)]
        if self.live:
            return [self.beat(now, floor)]
        return [self.begin(now)]

    def begin(self, now: float) -> StartRun:
        """Have the API server at it, without a pause if there was none yet."""
        while not self.live:
            self.step(JobTrigger.GO)
        self.began = now
        self.due = now + HEARTBEAT
        self.promote_at = now + self.rules.promote_after if self.rules.enabled else None
        session_id = self.side_session if self.side else self.story.session_id
        return StartRun(call_id=self.call_id, text=self.text, profile=self.profile, session_id=session_id)

    def take_hint(self, now: float) -> None:
        """It has told something: if that is a tool known to be slow, it is not waited for."""
        tool = self.story.active_tool_name
        if self.promote_at is not None and not self._hinted and tool is not None and self.rules.is_slow(tool):
            self._hinted = True
            self.promote_at = min(self.promote_at, now + SLOW_AFTER)

    def finish(self, speakable: Callable[[str], str]) -> HeldAnswer:
        """The run has answered."""
        self.step(JobTrigger.FINISH)
        self.due = None
        text = self.story.answer or SILENT
        self.answer = HeldAnswer(
            call_id=self.call_id,
            run_id=self.story.run_id,
            text=text,
            spoken=speakable(text)[:MAX_SPOKEN].strip() or SILENT,
            structured=_is_json(text),
        )
        return self.answer

    def stop(self) -> list[Order]:
        """Somebody wants it stopped."""
        stop: list[Order] = [StopRun(self.call_id, self.story.run_id)] if self.live else []
        return [*stop, self.story.cancelled()]

    def approve(self, confirmation_id: str | None, answer: str) -> Approve | None:
        """An answer to the question that is shown; None when it is not the one that is meant."""
        question = self.story.confirmations.take(confirmation_id)
        if question is None:
            return None
        return Approve(
            call_id=self.call_id,
            run_id=self.story.run_id,
            confirmation_id=question.id,
            choice=choice_for(answer),
            answer=answer,
        )

    def pause(self, now: float) -> Emit:
        """What was said is played: say that it starts, and give the person a moment."""
        self.step(JobTrigger.GO)
        self.drain = None
        self.due = now + PAUSE
        fields = {
            "session_id": self.story.session_id,
            "run_id": None,
            "status": "starting",
            "message": "Checking.",
            "status_key": f"run:checking_{self._word}",
            "should_speak": False,
            "call_id": self.call_id,
            **self.story.tools(),
        }
        return Emit(f"{self._word}.run.progress", fields)

    def draft(self) -> list[Emit]:
        """The answer begins: said once."""
        if self.story.drafting:
            return []
        self.story.drafting = True
        fields = {
            "session_id": self.story.session_id,
            "run_id": self.story.run_id,
            "status": "running",
            "message": "Drafting the answer.",
            "status_key": "run:drafting",
            "should_speak": False,
            **self.story.tools(),
        }
        return [Emit(f"{self._word}.run.progress", fields)]

    def beat(self, now: float, floor: str) -> Emit:
        """The heartbeat: a client takes 90 s without an event for a stall."""
        self.due = now + HEARTBEAT
        status, key, message = self.story.status()
        elapsed = now - self.began
        fields = {
            "session_id": self.story.session_id,
            "run_id": self.story.run_id,
            "status": status,
            "message": message,
            "status_key": key,
            "should_speak": self._may_be_spoken(elapsed, floor),
            "floor": floor,
            "tier": self.tier.value,
            "elapsed_ms": round(elapsed * 1000),
            **self.story.tools(),
        }
        return Emit(f"{self._word}.run.progress", fields)

    def _may_be_spoken(self, elapsed: float, floor: str) -> bool:
        """Whether it is time to speak of the progress, and nobody else speaks."""
        if self._speak_at is None or elapsed < self._speak_at or floor != "idle":
            return False
        self._speak_at = elapsed + self.rules.progress_repeat if self.rules.progress_repeat else None
        return True


def _is_json(text: str) -> bool:
    if not text.startswith(("{", "[")):
        return False
    try:
        strict_json.loads(text)
    except strict_json.JsonError:
        return False
    return True
