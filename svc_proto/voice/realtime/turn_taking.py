"""Turn-taking between the user and the provider, and when the next response is requested (terminal-voice 6.6).

During the delivery of an answer, `svc_proto.voice.realtime.answer_playback` has the detailed state.
`svc_proto.voice.realtime.provider_responses` decides which of the provider's responses count.
"""

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

RESPONSE_TIMEOUT = 45.0  # s without an event of a provider with an open request: half of a phone's timeout (6.5)
DRAIN_TIMEOUT = 2.5  # s, wire terminal-voice 9 "drain wait"
DRAIN_MS = round(DRAIN_TIMEOUT * 1000)
FORCED = "forced_summary"  # the reason of a wait before the answer of a run in the background
RESULT = "tool_result_summary"  # the reason of a wait before the response to a function's output


class TurnTakingState(Enum):
    """State of a turn."""

    IDLE = "idle"
    HEARING = "hearing"
    ANSWERING = "answering"
    CONSULTED = "consulted"
    WORKING = "working"
    TELLING = "telling"


class TurnTakingTrigger(Enum):
    """Trigger of a transition of `TURN_TAKING_TABLE`."""

    HEAR = "hear"
    ASK = "ask"
    CONSULT = "consult"
    WORK = "work"
    TELL = "tell"
    END = "end"


_S, _T = TurnTakingState, TurnTakingTrigger
TURN_TAKING_TABLE: Table[TurnTakingState, TurnTakingTrigger] = {
    **{(state, _T.HEAR): _S.HEARING for state in _S},  # the user has finished an utterance, or one more; or interrupts
    # One response is requested: for a text turn, for a transcript or after 10 s without one, after the playback of
    # earlier speech, or for the announcement of a run in the background.
    **{(state, _T.ASK): _S.ANSWERING for state in _S},
    **{(state, _T.END): _S.IDLE for state in _S},  # the turn is over or given up, or there was none to end
    (_S.IDLE, _T.TELL): _S.TELLING,  # an answer from the background is to be played, or played again
    (_S.ANSWERING, _T.CONSULT): _S.CONSULTED,  # the provider called a small function and has its output
    (_S.ANSWERING, _T.WORK): _S.WORKING,  # the provider called the run function; or its answer beside a run is over
    (_S.ANSWERING, _T.TELL): _S.TELLING,  # the provider's answer is over, and a run has finished meanwhile
    (_S.WORKING, _T.TELL): _S.TELLING,  # the run has finished
}


@frozen(kw_only=True)
class PlaybackDrain:
    """A wait until a client has played all audio that was sent, at most 2.5 s (wire terminal-voice 6.4, 6.5).

    The client's `playback.drained` ends it, whatever call that names. `reason` is `pre_<word>_ack`,
    `tool_result_summary` or `forced_summary`.
    """

    call_id: str | None
    tool_name: str | None
    reason: str

    @property
    def requested(self) -> Emit:
        """The event that requests the client's report."""
        fields = {"call_id": self.call_id, "tool_name": self.tool_name, "reason": self.reason, "timeout_ms": DRAIN_MS}
        return Emit("voice.playback_drain.requested", fields)

    @property
    def completed(self) -> LogEvent:
        """The log entry to write when the client has reported the end of playback."""
        return LogEvent("voice.playback_drain.completed", {"call_id": self.call_id, "reason": self.reason})

    @property
    def timed_out(self) -> Emit:
        """The event to send when the client did not report the end of playback in time."""
        fields = {"call_id": self.call_id, "reason": self.reason, "timeout_ms": DRAIN_MS}
        return Emit("voice.playback_drain.timeout", fields)


@define(eq=False)
class TurnTaking:
    """State of one conversation's turn. Times are monotonic seconds; `due` is the deadline of the state."""

    state: TurnTakingState = field(default=TurnTakingState.IDLE, init=False)
    due: float | None = field(default=None, init=False)
    drain: PlaybackDrain | None = field(default=None, init=False)  # the playback that the turn waits for
    responses: ProviderResponses = field(factory=ProviderResponses, init=False)
    tail: str | None = field(default=None, init=False)  # a response that called the run function and may have more
    spoke: bool = field(default=False, init=False)  # whether the current response had audio

    def step(self, trigger: TurnTakingTrigger, due: float | None = None) -> None:
        """Apply a transition and set the deadline of the new state."""
        self.state = step(TURN_TAKING_TABLE, self.state, trigger)
        self.due = due
        if self.state is TurnTakingState.IDLE:
            self.drain = None

    def postpone(self, seconds: float) -> None:
        """Extend the deadline by the time in which the client read nothing: it does not count towards the timeout."""
        self.due = None if self.due is None else self.due + seconds

    def respond(self, now: float) -> list[ConversationAction]:
        """Begin to wait for one response of the provider; return the request, or nothing while another one is open."""
        self.drain = None
        self.spoke = False
        self.step(TurnTakingTrigger.ASK, now + RESPONSE_TIMEOUT)
        return self.responses.request(Respond(), now)

    def wait_for_playback(self, call_id: str | None, tool_name: str | None, reason: str = RESULT) -> ConversationAction:
        """Begin to wait until the client has played all audio that was sent; return the request for its report."""
        self.drain = PlaybackDrain(call_id=call_id, tool_name=tool_name, reason=reason)
        return self.drain.requested

    def cancel_response(self) -> list[ConversationAction]:
        """Return the order to cancel the provider's response; empty if none can be in progress."""
        return [CancelResponse()] if self.responses.talking else []

    def abandon_response(self, now: float) -> str | None:
        """Abandon the current response; return its id, or None if it has not started."""
        response_id = self.responses.current
        self.responses.give_up(now)
        self.tail = self.drain = None
        return response_id
