"""What a realtime session says and how it stops: a turn's response, and the answer of a run on its way to the ear.

`svc_proto.machines.broker.Broker` stands on it. The provider speaks, and the relay where the provider does not say what
it should.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, field

from svc_proto.machines.broker_orders import (
    CancelResponse,
    Emit,
    EmitAudio,
    Note,
    Order,
    ReadAloud,
    Respond,
    StopRendering,
    Summarize,
)
from svc_proto.machines.delivery import ALARM, Delivery, Held, Verdict, passed_on
from svc_proto.machines.playback import DRAIN_WITHIN, RESULT, Drain
from svc_proto.machines.responses import ProviderResponses, Start
from svc_proto.machines.table import step
from svc_proto.machines.voice_turn import TURN_TABLE, TurnState, TurnTrigger

__all__ = ["ANSWERED_WITHIN", "BrokerSpeech"]

ANSWERED_WITHIN = 45.0  # s without a word of a provider that was asked: half of a phone's patience (6.5)


@define(eq=False, kw_only=True)
class BrokerSpeech:
    """`word` is the product's word on this wire, `new_id` gives what no other response of the session has in its id."""

    word: str
    new_id: Callable[[], str]
    result_delivery: str = "speak_verbatim"
    state: TurnState = field(default=TurnState.IDLE, init=False)
    _now: float = field(default=0.0, init=False)
    _out: list[Order] = field(factory=list, init=False)
    _due: float | None = field(default=None, init=False)  # of the state
    _responses: ProviderResponses = field(factory=ProviderResponses, init=False)
    _tail: str | None = field(default=None, init=False)  # a response that called the run function: what it still says
    _spoke: bool = field(default=False, init=False)  # whether the current response had audio
    _drain: Drain | None = field(default=None, init=False)
    _delivery: Delivery | None = field(default=None, init=False)  # settling, delivering, rendering: of this answer

    # --- the provider ---

    def response_started(self, response_id: str, now: float) -> list[Order]:
        """A response has begun."""
        out = self._begin(now)
        self._is_current(response_id)
        return out

    def text(self, response_id: str, delta: str, now: float) -> list[Order]:
        """A piece of what the provider says."""
        return self._hear(response_id, Held(text=delta), now)

    def audio(self, response_id: str, data: bytes, now: float) -> list[Order]:
        """A piece of the provider's speech, to be heard."""
        return self._hear(response_id, Held(audio=data), now)

    def audio_done(self, response_id: str, now: float) -> list[Order]:
        """The audio of a response is complete."""
        out = self._begin(now)
        current = self._is_current(response_id)
        if current and self._delivery is not None:
            out += self._delivery.audio_done(response_id)
        elif current or response_id == self._tail:
            self._emit("voice.output_audio.done", response_id=response_id)
        return out

    # --- the renderer ---

    def rendered_audio(self, response_id: str, audio: EmitAudio, now: float) -> list[Order]:
        """A piece of the answer as the relay has it spoken."""
        out = self._begin(now)
        delivery = self._rendered(response_id)
        if delivery is not None:
            out += delivery.rendered_audio(audio)
            self._due = now + ALARM
        return out

    def rendered(self, response_id: str, fields: Mapping[str, object], now: float) -> list[Order]:
        """That was all of it; `fields` are for the end of the response."""
        out = self._begin(now)
        delivery = self._rendered(response_id)
        if delivery is not None:
            out += delivery.rendered(fields)
            self._go(TurnTrigger.END)
        return out

    def render_failed(self, response_id: str, message: str, now: float) -> list[Order]:
        """It cannot be had spoken, or not to its end."""
        if self._rendered(response_id) is None:
            return []
        return [
            Note("voice.response.forced_summary_failed", {"message": message}),
            *self.rendered(response_id, {}, now),
        ]

    # --- turns ---

    def _begin(self, now: float) -> list[Order]:
        self._now = now
        self._out = []
        return self._out

    def _emit(self, kind: str, **fields: object) -> None:
        self._out.append(Emit(kind, fields))

    def _go(self, trigger: TurnTrigger, within: float | None = None) -> None:
        self.state = step(TURN_TABLE, self.state, trigger)
        self._due = None if within is None else self._now + within
        if self.state is TurnState.IDLE:
            self._delivery = self._drain = None

    def _respond(self) -> None:
        self._drain = None
        self._go(TurnTrigger.ASK, ANSWERED_WITHIN)
        self._spoke = False
        self._out += self._responses.ask(Respond(), self._now)

    def _is_current(self, response_id: str) -> bool:
        """Whether a word of a response is of the one that was asked for; its first word starts it."""
        meaning = self._responses.start(response_id, self._now)
        if meaning is Start.STRAY:
            self._out.append(CancelResponse())
        if meaning in (Start.STRAY, Start.IGNORED):
            return False
        if self.state is TurnState.ANSWERING:
            self._due = self._now + ANSWERED_WITHIN
            if meaning is Start.OURS:
                self._emit("voice.response.started", response_id=response_id)
        elif self._delivery is not None and self._delivery.speaking is not None:
            self._due = self._now + ALARM
        return True

    def _interrupt(self) -> None:
        """The person begins something new: end what is going on, but for a run."""
        if self._delivery is not None:
            self._out.append(Note("voice.realtime_agent.delivery_preempted", {}))
            self._give_up(self._delivery, cancelled=True)
        elif self.state in (TurnState.ANSWERING, TurnState.CONSULTED):
            self._hush()
            self._emit("voice.response.done", response_id=self._quiet(), cancelled=True)

    def _hush(self) -> None:
        """Stop the provider, if it may be saying something."""
        if self._responses.talking:
            self._out.append(CancelResponse())

    def _quiet(self) -> str | None:
        """Have nothing to do any more with what is spoken; the response that it was."""
        response_id = self._responses.current
        if self._delivery is not None and self._delivery.speaking is not None:
            response_id = self._delivery.speaking
        self._responses.give_up(self._now)
        self._tail = self._drain = None
        if self.state is TurnState.RENDERING:
            self._out.append(StopRendering())
        return response_id

    def _wait_for_playback(self, call_id: str | None, tool_name: str | None, reason: str = RESULT) -> None:
        self._drain = Drain(call_id=call_id, tool_name=tool_name, reason=reason, until=self._now + DRAIN_WITHIN)
        self._out.append(self._drain.requested)

    def _go_on(self) -> None:
        """What was said is played."""
        self._drain = None
        if self._delivery is None:
            self._respond()
        else:
            self._deliver(self._delivery)

    # --- the answer on its way to the ear ---

    def _deliver(self, delivery: Delivery) -> None:
        if self.result_delivery == "visual_only":
            self._out += delivery.show(wanted=True)
            self._go(TurnTrigger.END)
            return
        answer = delivery.answer
        self._go(TurnTrigger.DELIVER, ALARM)
        verbatim = self.result_delivery == "speak_verbatim" and not answer.structured
        order = ReadAloud(answer.spoken) if verbatim else Summarize(answer.text)
        self._out += self._responses.ask(order, self._now)

    def _hear(self, response_id: str, held: Held, now: float) -> list[Order]:
        out = self._begin(now)
        current, delivery = self._is_current(response_id), self._delivery
        if current and delivery is not None:
            out += delivery.hear(response_id, held)
            if delivery.verdict is Verdict.OFF_SCRIPT:
                self._fall_back(delivery)
        elif current or response_id == self._tail:
            self._spoke = self._spoke or bool(held.audio)
            out += passed_on(response_id, held)
        return out

    def _delivered(self, delivery: Delivery, response_id: str) -> None:
        self._out += delivery.end(response_id)
        if delivery.verdict is Verdict.OFF_SCRIPT:
            self._fall_back(delivery)
        else:
            self._go(TurnTrigger.END)

    def _fall_back(self, delivery: Delivery) -> None:
        """The provider says something else: the relay has the answer spoken itself. The alarm stays as it is set."""
        self._out.append(Note("voice.response.forced_summary_off_script", {"call_id": delivery.answer.call_id}))
        self._hush()
        self._quiet()
        alarm = self._due
        self._go(TurnTrigger.RENDER)
        self._due = alarm
        self._out.append(delivery.render())

    def _rendered(self, response_id: str) -> Delivery | None:
        """What the renderer is at, if it speaks this kind of words."""
        delivery = self._delivery
        rendering = self.state is TurnState.RENDERING and delivery is not None and delivery.rendering == response_id
        return delivery if rendering else None

    def _give_up(self, delivery: Delivery, *, cancelled: bool = False) -> None:
        """End what is heard of an answer; what was not heard is shown."""
        self._hush()
        self._quiet()
        self._delivery = None
        self._out += delivery.give_up(cancelled=cancelled)
