"""The floor: who speaks, and when the provider may be asked for its next response (wire terminal-voice 6.6).

While an answer is told the mouth says how far that is (`svc_proto.voice.realtime.answer_playback`). Which of the
provider's responses count is in `svc_proto.voice.realtime.provider_responses`.
"""

from __future__ import annotations

from enum import Enum

from attrs import define, field, frozen

from svc_proto.machines.transitions import Table, step
from svc_proto.voice.realtime.actions import CancelResponse, ConversationAction, Emit, LogEvent, Respond
from svc_proto.voice.realtime.provider_responses import ProviderResponses

__all__ = [
    "RESPONSE_TIMEOUT",
    "DRAIN_TIMEOUT",
    "TURN_TAKING_TABLE",
    "FORCED",
    "RESULT",
    "PlaybackDrain",
    "TurnTaking",
    "TurnTakingState",
]
__all__ += ["TurnTakingTrigger"]

RESPONSE_TIMEOUT = 45.0  # s without a word of a provider that was asked: half of a phone's patience (6.5)
DRAIN_TIMEOUT = 2.5  # s, wire terminal-voice 9 "drain wait"
DRAIN_MS = round(DRAIN_TIMEOUT * 1000)
FORCED = "forced_summary"  # the reason of a wait before the answer of a run in the background
RESULT = "tool_result_summary"  # the reason of a wait before what a function answered is spoken


class TurnTakingState(Enum):
    """Whose turn it is."""

    IDLE = "idle"
    HEARING = "hearing"
    ANSWERING = "answering"
    CONSULTED = "consulted"
    WORKING = "working"
    TELLING = "telling"


class TurnTakingTrigger(Enum):
    """What moves it."""

    HEAR = "hear"
    ASK = "ask"
    CONSULT = "consult"
    WORK = "work"
    TELL = "tell"
    END = "end"


_S, _T = TurnTakingState, TurnTakingTrigger
TURN_TAKING_TABLE: Table[TurnTakingState, TurnTakingTrigger] = {
    **{(state, _T.HEAR): _S.HEARING for state in _S},  # the person has finished an utterance, or one more; or speaks up
    # A text turn; or what was said is transcribed, or was not within 10 s; or what was said before is played; or that a
    # run goes on in the background is to be said: ONE response is asked for.
    **{(state, _T.ASK): _S.ANSWERING for state in _S},
    **{(state, _T.END): _S.IDLE for state in _S},  # it is over, was given up, or there was nothing to end
    (_S.IDLE, _T.TELL): _S.TELLING,  # an answer of the background is to be heard, or heard again
    (_S.ANSWERING, _T.CONSULT): _S.CONSULTED,  # the provider called a small function and was answered
    (_S.ANSWERING, _T.WORK): _S.WORKING,  # it called the run function; or its answer beside a run is over
    (_S.ANSWERING, _T.TELL): _S.TELLING,  # its answer is over, and a run has finished meanwhile
    (_S.WORKING, _T.TELL): _S.TELLING,  # the run has finished
}


@frozen(kw_only=True)
class PlaybackDrain:
    """A wait until a client has played what it was sent, at most 2.5 s (wire terminal-voice 6.4, 6.5).

    `playback.drained` for any call ends it: a client that mixes calls up has played all of it. `reason` is
    `pre_<word>_ack`, `tool_result_summary` or `forced_summary`.
    """

    call_id: str | None
    tool_name: str | None
    reason: str

    @property
    def requested(self) -> Emit:
        """What asks for it."""
        fields = {"call_id": self.call_id, "tool_name": self.tool_name, "reason": self.reason, "timeout_ms": DRAIN_MS}
        return Emit("voice.playback_drain.requested", fields)

    @property
    def completed(self) -> LogEvent:
        """The client said so."""
        return LogEvent("voice.playback_drain.completed", {"call_id": self.call_id, "reason": self.reason})

    @property
    def timed_out(self) -> Emit:
        """The client has not said in time that it played to the end."""
        fields = {"call_id": self.call_id, "reason": self.reason, "timeout_ms": DRAIN_MS}
        return Emit("voice.playback_drain.timeout", fields)


@define(eq=False)
class TurnTaking:
    """See the module. Times are monotonic seconds; `due` is when the state has lasted too long."""

    state: TurnTakingState = field(default=TurnTakingState.IDLE, init=False)
    due: float | None = field(default=None, init=False)
    drain: PlaybackDrain | None = field(default=None, init=False)  # what has to be played before it goes on
    responses: ProviderResponses = field(factory=ProviderResponses, init=False)
    tail: str | None = field(default=None, init=False)  # a response that called the run function: what it still says
    spoke: bool = field(default=False, init=False)  # whether the current response had audio

    def step(self, trigger: TurnTakingTrigger, due: float | None = None) -> None:
        """Move along the table."""
        self.state = step(TURN_TAKING_TABLE, self.state, trigger)
        self.due = due
        if self.state is TurnTakingState.IDLE:
            self.drain = None

    def postpone(self, seconds: float) -> None:
        """The client took nothing for so long, so nobody else was heard either: that is nobody's silence."""
        self.due = None if self.due is None else self.due + seconds

    def respond(self, now: float) -> list[ConversationAction]:
        """The provider has the floor: ask it for one response."""
        self.drain = None
        self.spoke = False
        self.step(TurnTakingTrigger.ASK, now + RESPONSE_TIMEOUT)
        return self.responses.request(Respond(), now)

    def wait_for_playback(self, call_id: str | None, tool_name: str | None, reason: str = RESULT) -> ConversationAction:
        """Go on when the client has played what it was sent."""
        self.drain = PlaybackDrain(call_id=call_id, tool_name=tool_name, reason=reason)
        return self.drain.requested

    def cancel_response(self) -> list[ConversationAction]:
        """Stop the provider, if it may be saying something."""
        return [CancelResponse()] if self.responses.talking else []

    def abandon_response(self, now: float) -> str | None:
        """Have nothing to do any more with what is spoken; the response that it was."""
        response_id = self.responses.current
        self.responses.give_up(now)
        self.tail = self.drain = None
        return response_id
