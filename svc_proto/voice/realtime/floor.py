"""The floor: who speaks, and when the provider may be asked for its next response (wire terminal-voice 6.6).

| state     | trigger | next      |
|-----------|---------|-----------|
| idle      | HEAR    | hearing   | the person has finished an utterance
| idle      | ASK     | answering | a text turn
| idle      | TELL    | telling   | an answer of the background is to be heard, or heard again
| idle      | END     | idle      | a cancel with nothing to cancel
| hearing   | HEAR    | hearing   | one more utterance before the first was transcribed
| hearing   | ASK     | answering | it is transcribed, or was not within 10 s: ONE response is asked for
| hearing   | END     | idle      | given up
| answering | HEAR    | hearing   | the person speaks up
| answering | ASK     | answering | the same, by text
| answering | CONSULT | consulted | the provider called a small function and was answered
| answering | WORK    | working   | it called the run function; or its answer beside a run is over
| answering | TELL    | telling   | its answer is over, and a run has finished meanwhile
| answering | END     | idle      | its answer is over
| consulted | HEAR    | hearing   |
| consulted | ASK     | answering | what was said is played: ask for a response
| consulted | END     | idle      |
| working   | HEAR    | hearing   | the person says something beside the run
| working   | ASK     | answering | the same, by text; or that the run goes on in the background is to be said
| working   | TELL    | telling   | the run has finished
| working   | END     | idle      | it was stopped, or failed, or goes on in the background
| telling   | HEAR    | hearing   | the answer lands on the screen
| telling   | ASK     | answering | the same
| telling   | END     | idle      |

While an answer is told the mouth says how far that is (`svc_proto.voice.realtime.mouth`). Which of the provider's
responses count is in `svc_proto.voice.realtime.responses`.
"""

from __future__ import annotations

from enum import Enum

from attrs import define, field, frozen

from svc_proto.machines.table import Table, step
from svc_proto.voice.realtime.orders import CancelResponse, Emit, Note, Order, Respond
from svc_proto.voice.realtime.responses import ProviderResponses

__all__ = ["ANSWERED_WITHIN", "DRAIN_WITHIN", "FLOOR_TABLE", "FORCED", "RESULT", "Drain", "Floor", "FloorState"]
__all__ += ["FloorTrigger"]

ANSWERED_WITHIN = 45.0  # s without a word of a provider that was asked: half of a phone's patience (6.5)
DRAIN_WITHIN = 2.5  # s, wire terminal-voice 9 "drain wait"
DRAIN_MS = round(DRAIN_WITHIN * 1000)
FORCED = "forced_summary"  # the reason of a wait before the answer of a run in the background
RESULT = "tool_result_summary"  # the reason of a wait before what a function answered is spoken


class FloorState(Enum):
    """Whose turn it is."""

    IDLE = "idle"
    HEARING = "hearing"
    ANSWERING = "answering"
    CONSULTED = "consulted"
    WORKING = "working"
    TELLING = "telling"


class FloorTrigger(Enum):
    """What moves it."""

    HEAR = "hear"
    ASK = "ask"
    CONSULT = "consult"
    WORK = "work"
    TELL = "tell"
    END = "end"


_S, _T = FloorState, FloorTrigger
FLOOR_TABLE: Table[FloorState, FloorTrigger] = {
    (_S.IDLE, _T.HEAR): _S.HEARING,
    (_S.IDLE, _T.ASK): _S.ANSWERING,
    (_S.IDLE, _T.TELL): _S.TELLING,
    (_S.IDLE, _T.END): _S.IDLE,
    (_S.HEARING, _T.HEAR): _S.HEARING,
    (_S.HEARING, _T.ASK): _S.ANSWERING,
    (_S.HEARING, _T.END): _S.IDLE,
    (_S.ANSWERING, _T.HEAR): _S.HEARING,
    (_S.ANSWERING, _T.ASK): _S.ANSWERING,
    (_S.ANSWERING, _T.CONSULT): _S.CONSULTED,
    (_S.ANSWERING, _T.WORK): _S.WORKING,
    (_S.ANSWERING, _T.TELL): _S.TELLING,
    (_S.ANSWERING, _T.END): _S.IDLE,
    (_S.CONSULTED, _T.HEAR): _S.HEARING,
    (_S.CONSULTED, _T.ASK): _S.ANSWERING,
    (_S.CONSULTED, _T.END): _S.IDLE,
    (_S.WORKING, _T.HEAR): _S.HEARING,
    (_S.WORKING, _T.ASK): _S.ANSWERING,
    (_S.WORKING, _T.TELL): _S.TELLING,
    (_S.WORKING, _T.END): _S.IDLE,
    (_S.TELLING, _T.HEAR): _S.HEARING,
    (_S.TELLING, _T.ASK): _S.ANSWERING,
    (_S.TELLING, _T.END): _S.IDLE,
}


@frozen(kw_only=True)
class Drain:
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
    def completed(self) -> Note:
        """The client said so."""
        return Note("voice.playback_drain.completed", {"call_id": self.call_id, "reason": self.reason})

    @property
    def timed_out(self) -> Emit:
        """The client has not said in time that it played to the end."""
        fields = {"call_id": self.call_id, "reason": self.reason, "timeout_ms": DRAIN_MS}
        return Emit("voice.playback_drain.timeout", fields)


@define(eq=False)
class Floor:
    """See the module. Times are monotonic seconds; `due` is when the state has lasted too long."""

    state: FloorState = field(default=FloorState.IDLE, init=False)
    due: float | None = field(default=None, init=False)
    drain: Drain | None = field(default=None, init=False)  # what has to be played before it goes on
    responses: ProviderResponses = field(factory=ProviderResponses, init=False)
    tail: str | None = field(default=None, init=False)  # a response that called the run function: what it still says
    spoke: bool = field(default=False, init=False)  # whether the current response had audio

    def go(self, trigger: FloorTrigger, due: float | None = None) -> None:
        """Move along the table."""
        self.state = step(FLOOR_TABLE, self.state, trigger)
        self.due = due
        if self.state is FloorState.IDLE:
            self.drain = None

    def postpone(self, seconds: float) -> None:
        """The client took nothing for so long, so nobody else was heard either: that is nobody's silence."""
        self.due = None if self.due is None else self.due + seconds

    def respond(self, now: float) -> list[Order]:
        """The provider has the floor: ask it for one response."""
        self.drain = None
        self.spoke = False
        self.go(FloorTrigger.ASK, now + ANSWERED_WITHIN)
        return self.responses.ask(Respond(), now)

    def wait_for_playback(self, call_id: str | None, tool_name: str | None, reason: str = RESULT) -> Order:
        """Go on when the client has played what it was sent."""
        self.drain = Drain(call_id=call_id, tool_name=tool_name, reason=reason)
        return self.drain.requested

    def hush(self) -> list[Order]:
        """Stop the provider, if it may be saying something."""
        return [CancelResponse()] if self.responses.talking else []

    def quiet(self, now: float) -> str | None:
        """Have nothing to do any more with what is spoken; the response that it was."""
        response_id = self.responses.current
        self.responses.give_up(now)
        self.tail = self.drain = None
        return response_id
