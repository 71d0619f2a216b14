"""A run: a task of the user on the API server, from its request to the delivery of its answer.

Its answer so far, the state of its tools, and its open confirmation requests are in its `RunEventMapper`.
"""

from collections.abc import Callable
from enum import Enum

from attrs import Factory, define, field, frozen

from svc_proto.machines.confirmations import choice_for
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.json_object import json_value
from svc_proto.voice.realtime.actions import AnswerApproval, ConversationAction, Emit, StartRun, StopRun
from svc_proto.voice.realtime.answer_playback import SpokenAnswer
from svc_proto.voice.realtime.run_events import RunEventMapper
from svc_proto.voice.realtime.turn_taking import DRAIN_TIMEOUT, PlaybackDrain

__all__ = ["FOREGROUND", "HEARTBEAT", "LIVE", "MAX_SPOKEN", "PAUSE", "RUN_TABLE", "SLOW_AFTER", "BackgroundPolicy"]
__all__ += ["VoiceRun", "VoiceRunState", "VoiceRunTrigger", "RunTier"]

PAUSE = 0.75  # s between "starting" and the run, wire terminal-voice 6.6 step 2
MAX_SPOKEN = 1_800  # characters of an answer that are read out, wire terminal-voice 6.6
SILENT = "The task is done, but it gave no answer."
HEARTBEAT = 5.0  # s, wire terminal-voice 9
SLOW_AFTER = 1.5  # s from the start of a tool that is listed as slow, wire terminal-voice 6.9


class VoiceRunState(Enum):
    """State of a run."""

    ASKED = "asked"
    PAUSING = "pausing"
    QUEUED = "queued"
    RUNNING = "running"
    DETACHED = "detached"
    ANSWERED = "answered"
    WAITING = "waiting"
    OVER = "over"


class VoiceRunTrigger(Enum):
    """Trigger of a transition of `RUN_TABLE`."""

    PAUSE = "pause"
    BEGIN = "begin"
    QUEUE = "queue"
    DETACH = "detach"
    FINISH = "finish"
    TELL = "tell"
    DROP = "drop"


_S, _T = VoiceRunState, VoiceRunTrigger
RUN_TABLE: Table[VoiceRunState, VoiceRunTrigger] = {
    (_S.ASKED, _T.PAUSE): _S.PAUSING,  # speech beside the call is played, or 2.5 s are over
    (_S.ASKED, _T.BEGIN): _S.RUNNING,  # in the background from the start
    (_S.ASKED, _T.QUEUE): _S.QUEUED,  # the background is full, and the turn cannot wait for this run
    (_S.PAUSING, _T.BEGIN): _S.RUNNING,  # 0.75 s are over
    (_S.QUEUED, _T.BEGIN): _S.RUNNING,  # the background has room, and no turn is in progress
    # The run takes long, or was requested for the background: its turn is over.
    (_S.RUNNING, _T.DETACH): _S.DETACHED,
    (_S.RUNNING, _T.FINISH): _S.ANSWERED,  # its answer waits until the provider's response is over
    (_S.DETACHED, _T.FINISH): _S.WAITING,  # its answer waits until the conversation is idle
    (_S.ANSWERED, _T.TELL): _S.OVER,  # its answer is being delivered
    (_S.WAITING, _T.TELL): _S.OVER,  # the same
    # Stopped, failed, longer than a run may be, or abandoned.
    **{(state, _T.DROP): _S.OVER for state in _S if state is not _S.OVER},
}
LIVE = (_S.RUNNING, _S.DETACHED)


class RunTier(Enum):
    """Relation of a run to the turn that requested it, as clients receive it (wire terminal-voice 6.5)."""

    FOREGROUND = "foreground"  # the turn waits for it
    PROMOTED = "promoted"  # it took too long
    DURABLE = "durable"  # it was requested for the background


@frozen(kw_only=True)
class BackgroundPolicy:
    """Limits of runs in the background (wire terminal-voice 6.1, 6.9). Times are seconds."""

    enabled: bool = True
    promote_after: float = 6.0
    spoken_handoff: bool = True  # whether a run in the background is announced aloud
    progress_after: float = 0.0  # from when on progress may be read out; 0: never
    progress_repeat: float = 30.0  # between two such times; 0: it is read out once
    max_runs: int = 1  # in the background at once
    longest: float = 300.0  # a run in the background, from its beginning
    slow_tools: tuple[str, ...] = ()  # parts of their names

    def is_slow(self, tool: str) -> bool:
        """Report whether a tool is listed as slow."""
        return any(part in tool for part in self.slow_tools)


FOREGROUND = BackgroundPolicy(enabled=False)
"""Policy without background runs: the turn waits for each run."""


@define(eq=False, kw_only=True)
class VoiceRun:
    """State of one run. With `side` it uses the chat session `side_session`, which is hidden from clients."""

    story: RunEventMapper
    text: str
    profile: str | None = None
    rules: BackgroundPolicy = FOREGROUND
    side: bool = False
    side_session: str | None = None
    tier: RunTier = field(default=RunTier.FOREGROUND, init=False)
    spoke: bool = field(default=False, init=False)  # the provider's response had audio before the call
    state: VoiceRunState = field(default=VoiceRunState.ASKED, init=False)
    due: float | None = field(default=None, init=False)  # of the drain, of the pause, or of the heartbeat
    drain: PlaybackDrain | None = field(default=None, init=False)
    answer: SpokenAnswer | None = field(default=None, init=False)
    began: float = field(default=0.0, init=False)
    promote_at: float | None = field(default=None, init=False)  # when the turn stops waiting for it
    _speak_at: float | None = field(  # s from its beginning on
        default=Factory(lambda run: run.rules.progress_after or None, takes_self=True), init=False
    )

    def step(self, trigger: VoiceRunTrigger) -> None:
        """Change the state by `RUN_TABLE`."""
        self.state = step(RUN_TABLE, self.state, trigger)

    @property
    def call_id(self) -> str:
        """The id that identifies the run: that of the call it was made for, with a suffix once the run was queued."""
        return self.story.call_id

    @property
    def live(self) -> bool:
        """Report whether the API server may be executing the run."""
        return self.state in LIVE

    @property
    def acts(self) -> bool:
        """Report whether the run has called a tool or begun its answer, so that a restart would repeat work."""
        return self.story.drafting or self.story.last_tool_name is not None

    # --- until it runs ---

    def start(self, now: float, *, spoke: bool) -> list[ConversationAction]:
        """Announce the run; first wait for the playback of speech beside the call, if there was any (`spoke`)."""
        self.spoke = spoke
        if not spoke:
            return [self.pause(now)]
        self.due = now + DRAIN_TIMEOUT
        reason = f"pre_{self.story.word}_ack"
        self.drain = PlaybackDrain(call_id=self.call_id, tool_name=f"{self.story.word}_run_task", reason=reason)
        return [self.drain.requested]

    def drained(self, now: float) -> list[ConversationAction]:
        """Announce the run after the client has played the speech beside the call; nothing unless that was awaited."""
        return [] if self.drain is None else [self.drain.completed, self.pause(now)]

    def pause(self, now: float) -> Emit:
        """Return the event that announces the run, and set `due` 0.75 s later: until then the user can cancel it."""
        self.step(VoiceRunTrigger.PAUSE)
        self.drain = None
        self.due = now + PAUSE
        about = {"run_id": None, "call_id": self.call_id}
        return self._progress("starting", f"run:checking_{self.story.word}", "Checking.", **about)

    def begin(self, now: float) -> StartRun:
        """Return the order that starts the run at the API server."""
        self.step(VoiceRunTrigger.BEGIN)
        self.began = now
        self.due = now + HEARTBEAT
        self.promote_at = now + self.rules.promote_after if self.rules.enabled else None
        session_id = self.side_session if self.side else self.story.session_id
        return StartRun(call_id=self.call_id, text=self.text, profile=self.profile, session_id=session_id)

    # --- while it runs ---

    def on_due(self, now: float, floor: str) -> list[ConversationAction]:
        """Handle the passing of `due`: announce the run, begin it, or send its heartbeat."""
        if self.drain is not None:
            return [self.drain.timed_out, self.pause(now)]
        return [self.send_progress(now, floor) if self.live else self.begin(now)]

    def draft(self) -> list[Emit]:
        """Return the progress event that the answer is being drafted; nothing after the first call."""
        if self.story.drafting:
            return []
        self.story.drafting = True
        return [self._progress("running", "run:drafting", "Drafting the answer.")]

    def send_progress(self, now: float, floor: str) -> Emit:
        """Return the run's progress event and schedule the next, since clients regard 90 s without one as a stall."""
        self.due = now + HEARTBEAT
        elapsed = now - self.began
        speak = self._is_announcement_due(elapsed, floor)
        about = {"floor": floor, "tier": self.tier.value, "elapsed_ms": round(elapsed * 1000), "should_speak": speak}
        return self._progress(*self.story.status(), **about)

    def take_hint(self, now: float) -> None:
        """Bring the promotion forward if the active tool is listed as slow."""
        tool = self.story.active_tool_name
        if self.promote_at is not None and tool is not None and self.rules.is_slow(tool):
            self.promote_at = min(self.promote_at, now + SLOW_AFTER)

    def approve(self, confirmation_id: str | None, answer: str) -> AnswerApproval | None:
        """Return the order that forwards an answer to the open confirmation request.

        None if there is no such request.
        """
        question = self.story.confirmations.pop(confirmation_id)
        if question is None:
            return None
        return AnswerApproval(
            call_id=self.call_id,
            run_id=self.story.run_id,
            confirmation_id=question.id,
            choice=choice_for(answer),
            answer=answer,
        )

    # --- how it ends ---

    def finish(self, speakable: Callable[[str], str]) -> SpokenAnswer:
        """Build the answer of the finished run."""
        self.step(VoiceRunTrigger.FINISH)
        self.due = None
        text = self.story.answer or SILENT
        self.answer = SpokenAnswer(
            call_id=self.call_id,
            run_id=self.story.run_id,
            text=text,
            spoken=speakable(text)[:MAX_SPOKEN].strip() or SILENT,
            structured=_is_json(text),
        )
        return self.answer

    def stop(self) -> list[ConversationAction]:
        """Return the order to stop the run if it is live, and the event of its cancellation."""
        stop: list[ConversationAction] = [StopRun(self.call_id)] if self.live else []
        return [*stop, self.story.cancelled()]

    # --- helpers ---

    def _progress(self, status: str, key: str, message: str, /, **about: object) -> Emit:
        told = {"status": status, "message": message, "status_key": key, "should_speak": False, **about}
        return self.story.emit("run.progress", **told, **self.story.tools())

    def _is_announcement_due(self, elapsed: float, floor: str) -> bool:
        """Report whether progress is to be read out now, and then schedule the next time.

        It is to be read out if it is due and no other speech plays or is pending.
        """
        if self._speak_at is None or elapsed < self._speak_at or floor != "idle":
            return False
        self._speak_at = elapsed + self.rules.progress_repeat if self.rules.progress_repeat else None
        return True


def _is_json(text: str) -> bool:
    return text.startswith(("{", "[")) and json_value(text) is not None
