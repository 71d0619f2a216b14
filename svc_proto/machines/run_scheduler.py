"""Scheduling of chat runs: their lifecycle, and the rules for slots and sessions (wire api 2.3, 4.6, 6.2 to 6.4).

- Turns of one session run one after the other, in order of arrival.
- At most `cap` runs have a slot. A run that may not wait gets one at once, or is refused at the cap.
- Other runs get theirs at their start, in order of arrival, each when it is the first of its session.
- A run that has ended is kept for an hour, or until `MAX_ENDED` later ones have ended.

Lifecycle of a run:

| state                | trigger | next                 |
| queued               | START   | running              | it has a slot, and no other run of its session runs
| queued               | STOP    | stopping             |
| queued               | FAIL    | failed               | it could not begin
| running              | `ASK`   | waiting_for_approval |
| running              | STOP    | stopping             |
| running              | FINISH  | completed            |
| running              | FAIL    | failed               |
| waiting_for_approval | `ASK`   | waiting_for_approval | a second call, beside the first
| waiting_for_approval | RESUME  | running              | the last approval is answered
| waiting_for_approval | STOP    | stopping             |
| waiting_for_approval | FINISH  | completed            |
| waiting_for_approval | FAIL    | failed               |
| stopping             | STOP    | stopping             | a second stop
| stopping             | CANCEL  | cancelled            |
| stopping             | FINISH  | completed            | it had finished before the stop
| stopping             | FAIL    | failed               | it had failed before the stop
"""

from enum import Enum
from math import inf

from attrs import define, field

from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.machines.transitions import Table, step

__all__ = [
    "ENDED",
    "KEEP_ENDED",
    "MAX_ENDED",
    "MAX_QUEUED",
    "RUN_TABLE",
    "RunRecord",
    "RunScheduler",
    "RunState",
    "RunTrigger",
    "too_many_requests",
]

KEEP_ENDED = 3600.0  # s, wire api 6.2: terminal records
MAX_ENDED = 1_000  # ended runs; the oldest is dropped
MAX_QUEUED = 1_000  # runs that wait; a further one is refused with 429
RETRY = ((b"retry-after", b"1"),)  # s, wire api 2.1


class RunState(Enum):
    """State of a run, in the words of wire api 6.2."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting_for_approval"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunTrigger(Enum):
    """Event that can change the state of a run."""

    START = "start"
    ASK = "ask"
    RESUME = "resume"
    STOP = "stop"
    FINISH = "finish"
    FAIL = "fail"
    CANCEL = "cancel"


RUN_TABLE: Table[RunState, RunTrigger] = {
    (RunState.QUEUED, RunTrigger.START): RunState.RUNNING,
    (RunState.QUEUED, RunTrigger.STOP): RunState.STOPPING,
    (RunState.QUEUED, RunTrigger.FAIL): RunState.FAILED,
    (RunState.RUNNING, RunTrigger.ASK): RunState.WAITING,
    (RunState.RUNNING, RunTrigger.STOP): RunState.STOPPING,
    (RunState.RUNNING, RunTrigger.FINISH): RunState.COMPLETED,
    (RunState.RUNNING, RunTrigger.FAIL): RunState.FAILED,
    (RunState.WAITING, RunTrigger.ASK): RunState.WAITING,
    (RunState.WAITING, RunTrigger.RESUME): RunState.RUNNING,
    (RunState.WAITING, RunTrigger.STOP): RunState.STOPPING,
    (RunState.WAITING, RunTrigger.FINISH): RunState.COMPLETED,
    (RunState.WAITING, RunTrigger.FAIL): RunState.FAILED,
    (RunState.STOPPING, RunTrigger.STOP): RunState.STOPPING,
    (RunState.STOPPING, RunTrigger.CANCEL): RunState.CANCELLED,
    (RunState.STOPPING, RunTrigger.FINISH): RunState.COMPLETED,
    (RunState.STOPPING, RunTrigger.FAIL): RunState.FAILED,
}
ENDED = (RunState.COMPLETED, RunState.FAILED, RunState.CANCELLED)


@define(eq=False, kw_only=True)
class RunRecord:
    """A run in the scheduler. Times are Unix seconds."""

    id: str
    session_id: str
    created_at: float
    updated_at: float
    state: RunState = field(default=RunState.QUEUED, init=False)
    has_slot: bool = False

    @property
    def ended(self) -> bool:
        """Report whether the run has ended."""
        return self.state in ENDED

    def step(self, trigger: RunTrigger, now: Moment) -> None:
        """Change the state by `RUN_TABLE`, and set `updated_at`."""
        self.state = step(RUN_TABLE, self.state, trigger)
        self.updated_at = now.wall


class RunScheduler:
    """Live runs of a server, and those that have ended. After `add`, `stop` and `finish`, call `startable`.

    An owner that shares the `cap` with other nodes sets it to its own part.
    """

    def __init__(self, cap: int, *, max_queued: int = MAX_QUEUED, max_ended: int = MAX_ENDED) -> None:
        self.cap: float = cap or inf  # 0: no limit
        self._max_queued = max_queued
        self._slots = 0  # in use
        self._live: dict[str, RunRecord] = {}
        self._queues: dict[str, list[RunRecord]] = {}  # by session, in order; only the first may run
        self._waiting: dict[str, RunRecord] = {}  # not started, in order
        self._ended: ExpiringMap[str, RunRecord] = ExpiringMap(max_ended)

    def __len__(self) -> int:
        return len(self._live)

    # --- queries ---

    def get(self, run_id: str, now: Moment) -> RunRecord | None:
        """Return a run that is live, or ended within an hour and is not dropped yet; None for any other."""
        return self._live.get(run_id) or self._ended.get(run_id, now.mono)

    def live(self) -> list[RunRecord]:
        """Return the live runs, in order of arrival."""
        return list(self._live.values())

    def busy(self, session_id: str) -> bool:
        """Report whether the session has a live run other than one that was stopped before its start."""
        return session_id in self._queues

    def check_capacity(self) -> None:
        """Raise `Refused` 429 at the cap, for a run that may not wait."""
        if self._slots >= self.cap:
            raise too_many_requests(f"{self._slots} runs are under way; the limit is {self.cap}")

    @property
    def slots(self) -> int:
        """Number of slots in use."""
        return self._slots

    @property
    def waiting(self) -> int:
        """Number of runs that wait for a slot."""
        return sum(not run.has_slot for run in self._waiting.values())

    @property
    def waits_only_for_slot(self) -> bool:
        """Report whether any run waits for a slot and is the first of its session."""
        return any(not run.has_slot and self._queues[run.session_id][0] is run for run in self._waiting.values())

    # --- changes ---

    def add(self, run_id: str, session_id: str, *, may_wait: bool, now: Moment) -> RunRecord:
        """Add a queued run. One that may not wait gets its slot at once.

        Raise `Refused` 429 if it may not wait and no slot is free, or if `max_queued` runs wait, and
        `LocalProtocolError` for an id in use. Call `startable` next: the run may be able to start at once.
        """
        if run_id in self._live or run_id in self._ended:
            raise LocalProtocolError("run_id is in use")
        if not may_wait:
            self.check_capacity()
        if len(self._waiting) >= self._max_queued:
            raise too_many_requests("too many turns wait")
        run = RunRecord(id=run_id, session_id=session_id, created_at=now.wall, updated_at=now.wall)
        if not may_wait:
            self._take_slot(run)
        self._live[run_id] = self._waiting[run_id] = run
        self._queues.setdefault(session_id, []).append(run)
        return run

    def startable(self, now: Moment) -> list[RunRecord]:
        """Start each run whose session is free and that has, or gets, a slot; return the started runs."""
        started = [run for run in self._waiting.values() if self._may_start(run)]
        for run in started:
            del self._waiting[run.id]
            run.step(RunTrigger.START, now)
        return started

    def stop(self, run: RunRecord, now: Moment) -> None:
        """Mark a run as stopping. One that had not started leaves its queue and frees its slot at once."""
        run.step(RunTrigger.STOP, now)
        if self._waiting.pop(run.id, None) is not None:
            self._free(run)

    def finish(self, run: RunRecord, trigger: RunTrigger, now: Moment) -> list[str]:
        """End a run with FINISH, FAIL or CANCEL and free its slot; call `startable` next.

        Return the ids of ended runs that are dropped.
        """
        run.step(trigger, now)
        del self._live[run.id]
        self._waiting.pop(run.id, None)
        self._free(run)
        forgotten = [run_id for run_id, _ in self._ended.purge(now.mono)]
        dropped = self._ended.put(run.id, run, now.mono + KEEP_ENDED)
        if dropped is not None:
            forgotten.append(dropped[0])
        return forgotten

    # --- helpers ---

    def _may_start(self, run: RunRecord) -> bool:
        if self._queues[run.session_id][0] is not run:
            return False
        if not run.has_slot:
            if self._slots >= self.cap:
                return False
            self._take_slot(run)
        return True

    def _take_slot(self, run: RunRecord) -> None:
        run.has_slot = True
        self._slots += 1

    def _free(self, run: RunRecord) -> None:
        if run.has_slot:
            run.has_slot = False
            self._slots -= 1
        queue = self._queues.get(run.session_id, [])
        if run in queue:
            queue.remove(run)
            if not queue:
                del self._queues[run.session_id]


def too_many_requests(message: str) -> Refused:
    """Return the error 429 for a run above the limit."""
    return Refused(429, "rate_limit_exceeded", message, headers=RETRY)
