"""The broker of a realtime voice session: a provider hears and speaks, a chat run does the work (terminal-voice 6.6).

The life of a turn is in `svc_proto.machines.voice_turn`, that of a run in `svc_proto.machines.voice_job`; what is heard
is in `svc_proto.machines.broker_speech`, what becomes of runs in `svc_proto.machines.broker_runs`.

Each turn ends with `voice.response.done`, or with `run.promoted` that says that no words follow, whatever happens:
every state but idle has a deadline, except while a run lives, which has its heartbeat. A cancel that finds nothing ends
with one, too. Beside a run the person may talk: the answer of the run then waits until that is over.
"""

from __future__ import annotations

from attrs import define, field

from svc_proto.machines.broker_calls import Call, RunCall, cancelled_output
from svc_proto.machines.broker_orders import (
    AnswerCall,
    CancelResponse,
    ClearInput,
    CloseClient,
    CommitInput,
    Note,
    Order,
    SayText,
)
from svc_proto.machines.broker_runs import BrokerRuns
from svc_proto.machines.playback import DRAIN_WITHIN
from svc_proto.machines.voice_turn import TurnState, TurnTrigger

__all__ = ["Broker"]

TRANSCRIBED_WITHIN = 10.0  # s; the response needs no transcript, the provider has heard the person
MAX_CALLS = 256  # ids of function calls that are remembered; the oldest is forgotten


@define(eq=False, kw_only=True)
class Broker(BrokerRuns):
    """One session's broker. Every call gives the orders that follow from it, to be carried out in that order.

    Times are monotonic seconds; whoever owns the broker calls `advance` at `due`.
    """

    _calls: dict[str, None] = field(factory=dict, init=False)

    # --- time ---

    @property
    def due(self) -> float | None:
        """When to call `advance`."""
        times = (self._due, self._responses.due, *self._runs_due)
        return min((when for when in times if when is not None), default=None)

    def advance(self, now: float) -> list[Order]:
        """Time has passed."""
        out = self._begin(now)
        asking = self._responses.due
        if asking is not None and now >= asking:
            out += self._responses.assume_free()
        if self._due is not None and now >= self._due:
            self._due = None
            self._overdue()
        self._advance_runs()
        return out

    def postpone(self, seconds: float) -> None:
        """The client took nothing for so long, so nobody else was heard either: that is nobody's silence."""
        self._due = None if self._due is None else self._due + seconds

    # --- the person ---

    def commit(self, now: float, *, heard: bool = True) -> list[Order]:
        """An utterance is complete. `heard`: there was audio; an empty one is answered by nobody."""
        out = self._begin(now)
        if heard:
            self._interrupt()
            out.append(CommitInput())
            self._go(TurnTrigger.HEAR, TRANSCRIBED_WITHIN)
        elif self.state in (TurnState.IDLE, TurnState.WORKING):
            self._emit("voice.input_transcript.final", text="")
            self._emit("voice.response.done", response_id=None)
        return out

    def say(self, text: str, now: float) -> list[Order]:
        """A text turn."""
        out = self._begin(now)
        if self.state is TurnState.HEARING:
            self._emit("voice.response.done", response_id=None, cancelled=True)
        self._interrupt()
        self._emit("voice.input_transcript.final", text=text, source="client_text")
        out.append(SayText(text))
        self._respond()
        return out

    def cancel(self, now: float) -> list[Order]:
        """Stop whatever is going on, on the API server too."""
        out = self._begin(now)
        job, detached = self._job, self._background.job
        live = [job for job in (job, detached) if job is not None and job.live]
        extra: dict[str, object] = {"run_id": live[0].story.run_id} if live else {}
        out += job.stop() if job is not None and job.live else []
        out += self._background.cancel(now)
        self._drop_job(cancelled_output)
        response_id = self._quiet()
        out += [CancelResponse(), ClearInput()]
        self._emit("voice.response.done", response_id=response_id, cancelled=True, **extra)
        self._go(TurnTrigger.END)
        return out

    def confirm(self, confirmation_id: str | None, answer: str, now: float) -> list[Order]:
        """The person answers a question of the run."""
        out = self._begin(now)
        if not self._approve(confirmation_id, answer):
            self._emit(f"{self.word}.confirmation.forwarded", confirmation_id=confirmation_id, answer=None)
        return out

    def drained(self, call_id: str | None, now: float) -> list[Order]:
        """The client has played what it was sent, for this call or another."""
        out = self._begin(now)
        job = self._job
        if job is not None and job.drain is not None:
            out += [job.drain.completed, job.pause(now)]
        if self._drain is not None:
            out.append(self._drain.completed)
            self._go_on()
        return out

    # --- the provider ---

    def transcribed(self, text: str, now: float) -> list[Order]:
        """What the person said. ONE response is asked for; a second transcript asks for no other."""
        out = self._begin(now)
        self._emit("voice.input_transcript.final", text=text)
        if self.state is TurnState.HEARING:
            self._respond()
        return out

    def call(self, response_id: str, call: Call, now: float) -> list[Order]:
        """The provider calls a function: each call id counts once."""
        out = self._begin(now)
        if call.call_id in self._calls or self._background.knows(call.call_id):
            return out
        self._calls[call.call_id] = None
        if len(self._calls) > MAX_CALLS:
            del self._calls[next(iter(self._calls))]
        current = self._is_current(response_id)
        if not current and response_id != self._tail:
            return out
        if current and self.state is TurnState.ANSWERING:
            self._tail = response_id
            self._responses.bury(response_id)
            if isinstance(call, RunCall) and self._job is None and not self._background.has_task(call.text):
                self._take(call)
                return out
            out.append(AnswerCall(call.call_id, self._output(call)))
            self._go(TurnTrigger.CONSULT, DRAIN_WITHIN)
            self._wait_for_playback(call.call_id, None)
        else:
            out.append(AnswerCall(call.call_id, self._output(call)))
        return out

    def response_done(self, response_id: str, status: str, now: float) -> list[Order]:
        """A response is over: `completed`, `cancelled`, `incomplete` or `failed`."""
        out = self._begin(now)
        current = self._is_current(response_id)
        out += self._responses.over(response_id)
        if not current:
            if response_id == self._tail:
                self._tail = None
                out.append(Note("voice.response.intermediate_done", {"response_id": response_id}))
            return out
        self._responses.bury(response_id)
        if self._delivery is not None:
            self._delivered(self._delivery, response_id)
        elif status == "failed":
            self._fail("The voice provider could not answer.", response_id)
        else:
            cancelled: dict[str, object] = {"cancelled": True} if status == "cancelled" else {}
            self._emit("voice.response.done", response_id=response_id, **cancelled)
            self._rest()
        return out

    def problem(self, message: str, now: float, *, benign: bool = False, idle: bool = False) -> list[Order]:
        """The provider has sent an error."""
        out = self._begin(now)
        if idle:
            out.append(Note("voice.realtime_agent.provider_idle_close", {"message": message}))
            self._end_turn()
            self._show_results()
            out.append(CloseClient(1000, "the voice provider has closed an idle session"))
        elif benign:
            out.append(Note("voice.realtime_agent.provider_notice", {"message": message}))
        else:
            self._fail(message)
        return out

    def provider_lost(self, message: str, now: float) -> list[Order]:
        """The provider's socket has ended."""
        out = self._begin(now)
        self._show_results()
        if self.state is TurnState.IDLE:
            out.append(CloseClient(1000, "the voice provider has closed the session"))
        else:
            self._fail(message)
            out.append(CloseClient(1011, "the voice provider is gone"))
        return out

    # --- turns ---

    def _overdue(self) -> None:
        if self._drain is not None:
            self._out.append(self._drain.timed_out)
            self._go_on()
        elif self._delivery is not None:
            self._out.append(Note("voice.realtime_agent.delivery_unconfirmed", {}))
            self._give_up(self._delivery)
            self._go(TurnTrigger.END)
        elif self.state is TurnState.HEARING:
            self._respond()
        else:
            self._fail("The voice provider did not answer.")
