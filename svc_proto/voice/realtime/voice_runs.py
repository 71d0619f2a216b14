"""All runs of one conversation: the turn's run, background runs, queued runs and undelivered answers.

The state of each run decides its role (`svc_proto.voice.realtime.voice_run`). At most one run belongs to the turn.
While a detached run uses the bound chat session, a further task runs in a side session.
"""

from collections.abc import Callable, Mapping
from typing import assert_never

from attrs import define, field

from svc_proto.schema.chat_events import AssistantDelta
from svc_proto.voice.realtime import function_calls
from svc_proto.voice.realtime.actions import AnswerCall, ConversationAction, DetachRun, Emit, LogEvent, StopRun
from svc_proto.voice.realtime.answer_playback import SpokenAnswer
from svc_proto.voice.realtime.run_events import ChatSessionBound, RunEventMapper, VoiceRunEvent
from svc_proto.voice.realtime.voice_run import (
    FOREGROUND,
    LIVE,
    BackgroundPolicy,
    RunTier,
    VoiceRun,
    VoiceRunState,
    VoiceRunTrigger,
)

__all__ = ["GRACE", "MAX_CALLS", "MAX_QUEUED", "MAX_RESULTS", "ONE_TASK", "TOO_LONG", "VoiceRuns"]

MAX_QUEUED = 3  # wire terminal-voice 6.9; a further task gets the output `BUSY`
MAX_RESULTS = 4  # answers that wait for delivery; until there is room nothing more is detached
QUIET = 1.5  # s without microphone audio before an answer is delivered, or a queued task begins
QUIET_TIMEOUT = 12.0  # s after which they no longer wait for that
GRACE = 30.0  # s that a client may take to reconnect after a run
MAX_CALLS = 256  # ids of function calls that are kept; the oldest is dropped
MAX_PREVIEW = 80  # characters of a queued task
ONE_TASK = "A task is under way. Ask for its status, or wait for its result."
TOO_LONG = "The task takes longer than a voice session waits for it. Its answer will be in the chat."
OF_THE_TURN = (VoiceRunState.ASKED, VoiceRunState.PAUSING, VoiceRunState.RUNNING, VoiceRunState.ANSWERED)


@define(eq=False, kw_only=True)
class VoiceRuns:
    """Runs of one conversation. Times are monotonic seconds."""

    word: str
    speakable: Callable[[str], str]  # makes text fit for speech
    rules: BackgroundPolicy = FOREGROUND
    result_delivery: str = "speak_verbatim"
    profile: str | None = None  # of runs whose call names none
    session_id: str | None = None  # the chat session that runs go to
    away: bool = field(default=False, init=False)  # no client is connected
    last: SpokenAnswer | None = field(default=None, init=False)  # the newest from the background, for a repetition
    side_session: str | None = field(default=None, init=False)  # the chat session of tasks beside a detached run
    _calls: dict[str, None] = field(factory=dict, init=False)
    _runs: list[VoiceRun] = field(factory=list, init=False)  # none that is over
    _waiting_since: float = field(default=0.0, init=False)  # since when the first of the answers waits
    _heard_at: float = field(default=0.0, init=False)  # the last microphone audio
    _away_since: float = field(default=0.0, init=False)
    _ended_at: float = field(default=0.0, init=False)  # the end of the run that was detached last

    # --- what there is ---

    @property
    def turn(self) -> VoiceRun | None:
        """The run of the current turn; None without one."""
        for run in self._runs:
            if run.state in OF_THE_TURN:
                return run
        return None

    @property
    def detached(self) -> VoiceRun | None:
        """The first run in the background; None without one."""
        return next(iter(self._runs_in(VoiceRunState.DETACHED)), None)

    @property
    def first(self) -> VoiceRun | None:
        """The turn's run, or else the first one in the background: the run that the output of a cancel call names."""
        return self.turn or self.detached

    @property
    def hands_off(self) -> bool:
        """Report whether a background run is announced aloud now: the rules allow it, and a client is connected."""
        return self.rules.spoken_handoff and not self.away

    @property
    def status_run(self) -> VoiceRun | None:
        """The run that a status call refers to: `first`, or else the last whose answer waits; None without one."""
        waiting = self._runs_in(VoiceRunState.WAITING)
        return self.first or (waiting[-1] if waiting else None)

    @property
    def answered(self) -> bool:
        """Report whether an answer from the background waits."""
        return bool(self._runs_in(VoiceRunState.WAITING))

    @property
    def free(self) -> bool:
        """Report whether one more run may be detached: the limits on detached runs and on waiting answers allow it."""
        states = [run.state for run in self._runs]
        detached = states.count(VoiceRunState.DETACHED)
        return detached < self.rules.max_runs and detached + states.count(VoiceRunState.WAITING) < MAX_RESULTS

    @property
    def aside(self) -> bool:
        """Report whether a detached run uses the bound chat session, so that the next run needs a side session."""
        return any(not run.side for run in self._runs_in(VoiceRunState.DETACHED))

    @property
    def busy(self) -> bool:
        """Report whether there are runs outside of the turn: detached, queued, or with a pending answer."""
        return any(run.state not in OF_THE_TURN for run in self._runs)

    @property
    def queued(self) -> list[str]:
        """The queued tasks, shortened."""
        return [run.text[:MAX_PREVIEW] for run in self._runs_in(VoiceRunState.QUEUED)]

    @property
    def undelivered(self) -> list[str]:
        """The ids of the background runs: first those whose answers wait for delivery, then those still running."""
        return [
            run.story.run_id for run in (*self._runs_in(VoiceRunState.WAITING), *self._runs_in(VoiceRunState.DETACHED))
        ]

    def has_task(self, text: str) -> bool:
        """Report whether the same task is queued or running in the background: models repeat a call."""
        return any(
            run.text == text and run.state in (VoiceRunState.QUEUED, VoiceRunState.DETACHED) for run in self._runs
        )

    def live(self, call_id: str) -> VoiceRun | None:
        """Return the run of that call, if the API server may be executing it."""
        for run in self._runs:
            if run.state in LIVE and run.story.call_id == call_id:
                return run
        return None

    # --- time ---

    def due(self, *, working: bool, idle: bool) -> list[float | None]:
        """Return the deadlines of the runs; with runs also `promotion_at` if `working`, or `next_at` if only `idle`.

        `working`: the turn waits for its run; `idle`: there is no turn. An entry of None is no deadline.
        """
        times: list[float | None] = []
        for run in self._runs:
            if run.due is not None:
                times.append(run.due)
                if run.state is VoiceRunState.DETACHED:
                    times.append(run.began + self.rules.longest)
        if self._runs:
            times += [self.promotion_at] if working else [self.next_at] if idle else []
        return times

    def advance(self, now: float, floor: str) -> list[ConversationAction]:
        """Return the due heartbeats of background runs; remove runs above their time limit as failed.

        A removed run is not observed any more, and continues on the API server.
        """
        out: list[ConversationAction] = []
        for run in self._runs_in(VoiceRunState.DETACHED):
            if now >= run.began + self.rules.longest:
                gone = self.fail(run, TOO_LONG, now)
                out += [DetachRun(run.call_id), *gone, Emit("voice.error", {"message": TOO_LONG})]
            elif run.due is not None and now >= run.due:
                out += run.on_due(now, floor)
        return out

    @property
    def promotion_at(self) -> float | None:
        """The time at which the turn stops waiting for its run; None if it must not, or the run does not run.

        The run then moves to the background or, if that has no room, is stopped and queued anew.
        """
        run = self.turn
        if run is None or not run.live:
            return None
        return run.promote_at if self.free or not run.acts else None

    @property
    def next_at(self) -> float | None:
        """The time at which a queued run or a delivery can begin between turns; None while neither is possible.

        A time in the past means now.
        """
        if self._can_start:
            return min(self._heard_at + QUIET, self._ended_at + QUIET_TIMEOUT)
        if not self.answered or self.away:
            return None
        since = self._waiting_since
        if self.result_delivery == "visual_only":
            return since
        return min(max(since, self._heard_at + QUIET), since + QUIET_TIMEOUT)

    def on_user_speech(self, now: float) -> None:
        """Record the time of microphone audio."""
        self._heard_at = now

    # --- the client ---

    def on_client_left(self, now: float) -> None:
        """Record that the client has disconnected."""
        self.away, self._away_since = True, now

    def on_client_back(self, now: float) -> None:
        """Record that a client has reconnected; the wait of pending answers for silence starts anew."""
        if self.away:
            self.away, self._waiting_since = False, now

    def kept_until(self, window: float, longest: float, *, live: bool) -> float:
        """Return when a detached session expires; `live`: a turn is in progress (wire terminal-voice 6.9)."""
        plain = self._away_since + window
        if live or any(run.state in (VoiceRunState.QUEUED, VoiceRunState.DETACHED) for run in self._runs):
            return max(self._away_since + longest, plain)
        return max(plain, self._ended_at + GRACE)

    # --- functions that the provider calls ---
    def is_new(self, call_id: str) -> bool:
        """Register a call id; return False for a repeated one."""
        if call_id in self._calls or any(run.call_id == call_id and run.state not in OF_THE_TURN for run in self._runs):
            return False
        self._calls[call_id] = None
        if len(self._calls) > MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        return True

    def answer(
        self, call: function_calls.ConversationCall, now: float
    ) -> tuple[list[ConversationAction], Mapping[str, object]]:
        """Handle a call that starts no run; return the actions and the output."""
        match call:
            case function_calls.RunTaskCall():
                return [], {"ok": False, "error": ONE_TASK}
            case function_calls.StatusCall():
                return [], {**function_calls.status_output(self.status_run, self.queued), "session_id": self.session_id}
            case function_calls.CancelCall():
                return self._stop(now)
            case function_calls.ConfirmCall(confirmation_id=confirmation_id, answer=answer):
                taken = self.approve(confirmation_id, answer)
                status = "forwarded" if taken else "not_pending"
                return taken, {"ok": bool(taken), "confirmation_id": confirmation_id, "status": status}
            case function_calls.UnknownCall(output=output):
                return [], output
            case _:
                assert_never(call)

    def _stop(self, now: float) -> tuple[list[ConversationAction], Mapping[str, object]]:
        turn, first = self.turn, self.first
        stopped = self.cancel(now)
        if first is None:
            about = {"session_id": self.session_id, "run_id": ""}
            nothing = {"ok": True, "run_id": None, "status": "idle", "session_id": self.session_id}
            return [Emit(f"{self.word}.run.cancelled", about)], nothing
        actions_made = [] if turn is None else [*turn.stop(), *self.drop_turn(cancelled=True)]
        run_id = first.story.run_id or None
        output = {"ok": True, "run_id": run_id, "status": "cancelled", "session_id": self.session_id}
        return [*actions_made, *stopped], output

    # --- start of a run ---

    def new(self, call: function_calls.RunTaskCall, *, side: bool = False) -> VoiceRun:
        """Create a run for this call. The bound chat session overrides the call's; `side`: use the side session."""
        run = VoiceRun(
            story=RunEventMapper(self.word, call.call_id, self.session_id or call.session_id),
            text=call.text,
            profile=call.profile or self.profile,
            rules=self.rules,
            side=side,
            side_session=self.side_session,
        )
        self._runs.append(run)
        return run

    def detach(self, run: VoiceRun, tier: RunTier, *, spoken: bool) -> list[ConversationAction]:
        """Detach a run from its turn; `spoken`: the provider announces that aloud."""
        about = {"call_id": run.call_id, "origin": "provider_tool_call", "spoken_handoff": spoken}
        return [*self._promote(run, tier, about), AnswerCall(run.call_id, function_calls.BACKGROUND)]

    def enqueue(self, run: VoiceRun, tier: RunTier) -> list[ConversationAction]:
        """Queue a run until the background has room; discard it if the queue is full."""
        call_id, place = run.call_id, len(self.queued) + 1
        if place > MAX_QUEUED:
            self.discard(run)
            return [AnswerCall(call_id, function_calls.BUSY)]
        run.step(VoiceRunTrigger.QUEUE)
        run.story.call_id = f"{call_id}:queued"  # distinct from an earlier run of that name that has not ended yet
        run.tier = tier
        self._move_to_end(run)
        about = {"queued_count": place, "queue_position": place, "transcript_preview": run.text[:MAX_PREVIEW]}
        return [run.story.emit("run.queued", **about), AnswerCall(call_id, function_calls.queued_output(place))]

    def requeue(self, run: VoiceRun) -> list[ConversationAction]:
        """Stop the turn's run, because the background has no room; the caller queues a new one."""
        self.side_session = None  # the stopped run may occupy its chat session for a while
        self.discard(run)
        return [StopRun(run.call_id)]

    def start_next(self, now: float) -> list[ConversationAction]:
        """Start the first queued run, if its time has come, and return the actions for that.

        Call this only between turns, since clients regard the events as the end of a turn.
        """
        at = self.next_at if self._can_start else None
        if at is None or now < at:
            return []
        run = self._runs_in(VoiceRunState.QUEUED)[0]
        run.side, run.side_session = self.aside, self.side_session
        run.story.session_id = self.session_id or run.story.session_id
        begun = run.begin(now)
        about = {"call_id": None, "origin": "queued", "spoken_handoff": False}
        return [begun, *self._promote(run, run.tier, about)]

    # --- while it runs ---

    def drafts(self, call_id: str, delta: str) -> bool:
        """Append a piece of the answer to its run; return False if the piece must be passed to `event` instead."""
        run = self.live(call_id)
        if run is None or not run.story.drafting or run.side:
            return False
        run.story.add_hidden_text(delta)
        self.session_id = run.story.session_id
        return True

    def event(self, call_id: str, event: VoiceRunEvent, now: float) -> list[ConversationAction]:
        """Handle an event of a live run and return the resulting actions; ignore other runs."""
        run = self.live(call_id)
        if run is None:
            return []
        story = run.story
        if run.side:
            story.session_id = self.session_id  # clients would switch their chat to another one
            if isinstance(event, ChatSessionBound):
                self.side_session = event.session_id if run.state is VoiceRunState.RUNNING else None
                return []
        actions_made: list[ConversationAction] = [*run.draft()] if isinstance(event, AssistantDelta) else []
        actions_made += story.map_event(event)
        run.take_hint(now)
        self.session_id = story.session_id
        return actions_made

    def approve(self, confirmation_id: str | None, answer: str) -> list[ConversationAction]:
        """Return the order that forwards the user's answer to the run that requested it; an empty list if none did."""
        for run in (self.turn, *self._runs_in(VoiceRunState.DETACHED)):
            order = None if run is None else run.approve(confirmation_id, answer)
            if order is not None:
                return [order]
        return []

    # --- end of a run ---

    def finish(self, run: VoiceRun, now: float, *, idle: bool) -> list[ConversationAction]:
        """Finish a background run, whose answer then waits for delivery; return the events.

        The delay is logged if no client is connected or, unless `idle`, a turn is in progress.
        """
        self._ended_at = now
        actions_made: list[ConversationAction] = [*run.story.complete()]
        if not self.answered:
            self._waiting_since = now
        self.last = run.finish(self.speakable)
        self._move_to_end(run)
        actions_made.append(self._completed(run, ok=True, tool_count=run.story.completed_tool_count))
        if self.away or not idle:
            actions_made.append(LogEvent("voice.realtime_agent.result_deferred", {"run_id": self.last.run_id}))
        return actions_made

    def fail(self, run: VoiceRun, error: str | None, now: float) -> list[ConversationAction]:
        """Remove a background run that has failed or was stopped, and return its last event.

        `error` is None if it was stopped.
        """
        self._ended_at = now
        self.discard(run)
        return [run.story.cancelled() if error is None else self._completed(run, ok=False, error=error)]

    def cancel(self, now: float) -> list[ConversationAction]:
        """Stop the background runs, drop the queued runs and pending answers, and return the actions (wire 6.8)."""
        actions_made: list[ConversationAction] = []
        for run in self._runs_in(VoiceRunState.DETACHED):
            self._ended_at = now
            actions_made += run.stop()
        for run in [each for each in self._runs if each.state not in OF_THE_TURN]:
            self.discard(run)
        return actions_made

    def discard(self, run: VoiceRun) -> None:
        """Remove a run without delivering its answer."""
        run.step(VoiceRunTrigger.DROP)
        self._runs.remove(run)

    def drop_turn(self, **why: object) -> list[ConversationAction]:
        """Remove the turn's run; with `why`, return the function's output for the model unless the run has answered."""
        run = self.turn
        if run is None:
            return []
        wanted = why and run.state is not VoiceRunState.ANSWERED
        self.discard(run)
        return [AnswerCall(run.call_id, function_calls.ended_output(run, **why))] if wanted else []

    def deliver(self, run: VoiceRun) -> SpokenAnswer:
        """Remove an answered run and return its answer for delivery."""
        run.step(VoiceRunTrigger.TELL)
        self._runs.remove(run)
        assert run.answer is not None  # by the transition table
        return run.answer

    def take_result(self, now: float) -> SpokenAnswer | None:
        """Remove and return the next pending answer whose time has come, if any; none while a queued run can start."""
        at = None if self._can_start else self.next_at
        if at is None or now < at:
            return None
        self._waiting_since = now
        return self.deliver(self._runs_in(VoiceRunState.WAITING)[0])

    def take_results(self) -> list[SpokenAnswer]:
        """Remove and return all pending answers at the end of the session; none without a client."""
        return [] if self.away else [self.deliver(run) for run in self._runs_in(VoiceRunState.WAITING)]

    # --- helpers ---

    def _runs_in(self, state: VoiceRunState) -> list[VoiceRun]:
        return [run for run in self._runs if run.state is state]

    @property
    def _can_start(self) -> bool:
        return bool(self._runs_in(VoiceRunState.QUEUED)) and self.free

    def _promote(self, run: VoiceRun, tier: RunTier, about: Mapping[str, object]) -> list[ConversationAction]:
        self.side_session = None if run.side else self.side_session  # a promoted run occupies the side session
        run.tier = tier
        run.step(VoiceRunTrigger.DETACH)
        promoted = run.story.emit(
            "run.promoted",
            tier=tier.value,
            promote_after_ms=round(self.rules.promote_after * 1000),
            provider_acknowledged=run.spoke,
            result_delivery=self.result_delivery,
            queued_count=len(self.queued),
            **about,
        )
        return [LogEvent(f"voice.{self.word}_run.promoted", {"run_id": run.story.run_id, "tier": tier.value}), promoted]

    def _move_to_end(self, run: VoiceRun) -> None:
        """Move a run to the end of the list. Queued runs start, and waiting answers are delivered, in its order."""
        self._runs.remove(run)
        self._runs.append(run)

    def _completed(self, run: VoiceRun, **fields: object) -> Emit:
        return run.story.emit("run.background_completed", queued_count=len(self.queued), **fields)
