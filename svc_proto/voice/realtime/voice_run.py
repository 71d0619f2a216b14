"""One run: a task of the person on the API server, from the call that asks for it until its answer is told.

What it has told so far, and asks, is its `RunEventMapper`.
"""

from __future__ import annotations

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
MAX_SPOKEN = 1_800  # characters of an answer that are spoken, wire terminal-voice 6.6
SILENT = "The task is done, but it gave no answer."
HEARTBEAT = 5.0  # s, wire terminal-voice 9
SLOW_AFTER = 1.5  # s from the start of a tool that is known to be slow, wire terminal-voice 6.9


class VoiceRunState(Enum):
    """Where a run is."""

    ASKED = "asked"
    PAUSING = "pausing"
    QUEUED = "queued"
    RUNNING = "running"
    DETACHED = "detached"
    ANSWERED = "answered"
    WAITING = "waiting"
    OVER = "over"


class VoiceRunTrigger(Enum):
    """What moves it."""

    PAUSE = "pause"
    BEGIN = "begin"
    QUEUE = "queue"
    DETACH = "detach"
    FINISH = "finish"
    TELL = "tell"
    DROP = "drop"


_S, _T = VoiceRunState, VoiceRunTrigger
RUN_TABLE: Table[VoiceRunState, VoiceRunTrigger] = {
    (_S.ASKED, _T.PAUSE): _S.PAUSING,  # what was said with the call is played, or 2.5 s are over
    (_S.ASKED, _T.BEGIN): _S.RUNNING,  # in the background from the first
    (_S.ASKED, _T.QUEUE): _S.QUEUED,  # another one is in the background, and this cannot be waited for
    (_S.PAUSING, _T.BEGIN): _S.RUNNING,  # 0.75 s are over
    (_S.QUEUED, _T.BEGIN): _S.RUNNING,  # its time has come, and nobody is in a turn
    # It takes long, or was to be in the background from the first: its turn is over.
    (_S.RUNNING, _T.DETACH): _S.DETACHED,
    (_S.RUNNING, _T.FINISH): _S.ANSWERED,  # its answer waits until the provider has done with speaking
    (_S.DETACHED, _T.FINISH): _S.WAITING,  # its answer waits until nobody speaks
    (_S.ANSWERED, _T.TELL): _S.OVER,  # its answer is on its way to the ear
    (_S.WAITING, _T.TELL): _S.OVER,  # the same
    # Stopped, failed, longer than a run may be, or nobody wants it any more.
    **{(state, _T.DROP): _S.OVER for state in _S if state is not _S.OVER},
}
LIVE = (_S.RUNNING, _S.DETACHED)


class RunTier(Enum):
    """How a run stands to the turn that has asked for it, as clients are told it (wire terminal-voice 6.5)."""

    FOREGROUND = "foreground"  # the turn waits for it
    PROMOTED = "promoted"  # it took too long
    DURABLE = "durable"  # it was asked for in the background


@frozen(kw_only=True)
class BackgroundPolicy:
    """What may go on in the background (wire terminal-voice 6.1, 6.9). Times are seconds."""

    enabled: bool = True
    promote_after: float = 6.0
    spoken_handoff: bool = True  # whether the person is told aloud that a run goes on in the background
    progress_after: float = 0.0  # from when on progress may be spoken; 0: never
    progress_repeat: float = 30.0  # between two such times; 0: it is spoken once
    max_runs: int = 1  # in the background at once
    longest: float = 300.0  # a run in the background, from its beginning
    slow_tools: tuple[str, ...] = ()  # parts of their names

    def is_slow(self, tool: str) -> bool:
        """Whether a tool is known to take long."""
        return any(part in tool for part in self.slow_tools)


FOREGROUND = BackgroundPolicy(enabled=False)
"""Runs just block."""


@define(eq=False, kw_only=True)
class VoiceRun:
    """See the module. One on the `side` has a chat session of its own, `side_session`, which clients do not see."""

    story: RunEventMapper
    text: str
    profile: str | None = None
    rules: BackgroundPolicy = FOREGROUND
    side: bool = False
    side_session: str | None = None
    tier: RunTier = field(default=RunTier.FOREGROUND, init=False)
    spoke: bool = field(default=False, init=False)  # the provider said something before it called
    state: VoiceRunState = field(default=VoiceRunState.ASKED, init=False)
    due: float | None = field(default=None, init=False)  # of the drain, of the pause, or of the heartbeat
    drain: PlaybackDrain | None = field(default=None, init=False)
    answer: SpokenAnswer | None = field(default=None, init=False)
    began: float = field(default=0.0, init=False)
    promote_at: float | None = field(default=None, init=False)  # when the turn waits for it no longer
    _speak_at: float | None = field(  # s from its beginning on
        default=Factory(lambda run: run.rules.progress_after or None, takes_self=True), init=False
    )

    def step(self, trigger: VoiceRunTrigger) -> None:
        """Move along the table."""
        self.state = step(RUN_TABLE, self.state, trigger)

    @property
    def call_id(self) -> str:
        """The call of the run function, by which everybody knows the run."""
        return self.story.call_id

    @property
    def live(self) -> bool:
        """Whether the API server may be at it."""
        return self.state in LIVE

    @property
    def acts(self) -> bool:
        """Whether it has begun to do something, or to answer: it had better not begin again."""
        return self.story.drafting or self.story.last_tool_name is not None

    # --- until it runs ---

    def start(self, now: float, *, spoke: bool) -> list[ConversationAction]:
        """The provider has called: have it played what was said with the call, if anything was."""
        self.spoke = spoke
        if not spoke:
            return [self.pause(now)]
        self.due = now + DRAIN_TIMEOUT
        reason = f"pre_{self.story.word}_ack"
        self.drain = PlaybackDrain(call_id=self.call_id, tool_name=f"{self.story.word}_run_task", reason=reason)
        return [self.drain.requested]

    def drained(self, now: float) -> list[ConversationAction]:
        """The client has played what was said with the call."""
        return [] if self.drain is None else [self.drain.completed, self.pause(now)]

    def pause(self, now: float) -> Emit:
        """What was said is played: say that it starts, and give the person a moment."""
        self.step(VoiceRunTrigger.PAUSE)
        self.drain = None
        self.due = now + PAUSE
        about = {"run_id": None, "call_id": self.call_id}
        return self._progress("starting", f"run:checking_{self.story.word}", "Checking.", **about)

    def begin(self, now: float) -> StartRun:
        """Have the API server at it."""
        self.step(VoiceRunTrigger.BEGIN)
        self.began = now
        self.due = now + HEARTBEAT
        self.promote_at = now + self.rules.promote_after if self.rules.enabled else None
        session_id = self.side_session if self.side else self.story.session_id
        return StartRun(call_id=self.call_id, text=self.text, profile=self.profile, session_id=session_id)

    # --- while it runs ---

    def on_due(self, now: float, floor: str) -> list[ConversationAction]:
        """`due` has come."""
        if self.drain is not None:
            return [self.drain.timed_out, self.pause(now)]
        return [self.send_progress(now, floor) if self.live else self.begin(now)]

    def draft(self) -> list[Emit]:
        """The answer begins: said once."""
        if self.story.drafting:
            return []
        self.story.drafting = True
        return [self._progress("running", "run:drafting", "Drafting the answer.")]

    def send_progress(self, now: float, floor: str) -> Emit:
        """The heartbeat: a client takes 90 s without an event for a stall."""
        self.due = now + HEARTBEAT
        elapsed = now - self.began
        speak = self._may_be_spoken(elapsed, floor)
        about = {"floor": floor, "tier": self.tier.value, "elapsed_ms": round(elapsed * 1000), "should_speak": speak}
        return self._progress(*self.story.status(), **about)

    def take_hint(self, now: float) -> None:
        """It has told something: if that is a tool known to be slow, it is not waited for."""
        tool = self.story.active_tool_name
        if self.promote_at is not None and tool is not None and self.rules.is_slow(tool):
            self.promote_at = min(self.promote_at, now + SLOW_AFTER)

    def approve(self, confirmation_id: str | None, answer: str) -> AnswerApproval | None:
        """An answer to the question that is shown; None when it is not the one that is meant."""
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
        """The run has answered."""
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
        """Somebody wants it stopped."""
        stop: list[ConversationAction] = [StopRun(self.call_id)] if self.live else []
        return [*stop, self.story.cancelled()]

    # --- helpers ---

    def _progress(self, status: str, key: str, message: str, /, **about: object) -> Emit:
        told = {"status": status, "message": message, "status_key": key, "should_speak": False, **about}
        return self.story.emit("run.progress", **told, **self.story.tools())

    def _may_be_spoken(self, elapsed: float, floor: str) -> bool:
        """Whether it is time to speak of the progress, and nobody else speaks."""
        if self._speak_at is None or elapsed < self._speak_at or floor != "idle":
            return False
        self._speak_at = elapsed + self.rules.progress_repeat if self.rules.progress_repeat else None
        return True


def _is_json(text: str) -> bool:
    return text.startswith(("{", "[")) and json_value(text) is not None
