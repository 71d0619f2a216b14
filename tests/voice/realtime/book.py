"""A broker, a clock, and ways to bring it anywhere: what its tests are written with.

talk = Talk()
talk.working()
assert talk.orders(talk.broker.run_ended("k1", talk.now)) == [...]
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from svc_proto.voice.realtime.calls import RunCall, StatusCall
from svc_proto.voice.realtime.conversation import VoiceConversation
from svc_proto.voice.realtime.floor import FloorState
from svc_proto.voice.realtime.mouth import MouthState
from svc_proto.voice.realtime.orders import Emit, EmitAudio, Note, Order
from svc_proto.voice.realtime.run import FOREGROUND, BackgroundRules
from svc_proto.voice.realtime.story import AnswerComplete, RunBegan

__all__ = ["ANSWER", "PIECE", "RULES", "Talk", "answered", "heard", "names"]

ANSWER = "The disk is 62 percent used."
RULES = BackgroundRules(slow_tools=("terminal", "spawn"))
PIECE = EmitAudio(response_id="", data=b"\x01\x00" * 100)


def names(orders: list[Order]) -> list[str]:
    """Orders as words: the type of what is told, the name of what is ordered; notes left out."""
    return [
        order.type.removeprefix("voice.") if isinstance(order, Emit) else type(order).__name__
        for order in orders
        if not isinstance(order, Note)
    ]


class Talk:
    """See the module."""

    def __init__(
        self, *, result_delivery: str = "speak_verbatim", word: str = "svc", rules: BackgroundRules = FOREGROUND
    ) -> None:
        numbers = count(1)
        self.broker = VoiceConversation(
            word=word,
            speakable=str,
            new_id=lambda: str(next(numbers)),
            result_delivery=result_delivery,
            session_id="c1",
            rules=rules,
        )
        self.now = 100.0
        self.told: list[Order] = []

    @property
    def state(self) -> FloorState | MouthState:
        """Whose turn it is, and while an answer is told how far that is."""
        floor = self.broker.floor.state
        return self.broker.mouth.state if floor is FloorState.TELLING else floor

    def after(self, seconds: float) -> list[Order]:
        """Let time pass, waking the broker at each of its deadlines."""
        end, orders = self.now + seconds, []
        while (due := self.broker.due) is not None and due <= end:
            self.now = max(self.now, due)
            orders += self.broker.advance(self.now)
        self.now = end
        return orders

    # --- ways to a state; what they bring is in `told` ---

    def hearing(self) -> None:
        """Somebody has said something."""
        self.told += self.broker.commit(self.now)

    def answering(self, response_id: str = "r1") -> None:
        """The provider answers."""
        self.told += self.broker.say("how full is the disk", self.now)
        self.told += self.broker.response_started(response_id, self.now)

    def consulted(self) -> None:
        """It called something small."""
        self.answering()
        self.told += self.broker.call("r1", StatusCall("k0"), self.now)
        self.told += self.broker.response_done("r1", "completed", self.now)

    def acknowledging(self) -> None:
        """It said something and called the run function."""
        self.answering()
        self.told += self.broker.audio("r1", b"\0\0", self.now)
        self.called()

    def called(self) -> None:
        """It calls the run function."""
        self.told += self.broker.call("r1", RunCall(call_id="k1", text="df"), self.now)

    def working(self) -> None:
        """The run is under way."""
        self.answering()
        self.called()
        self.told += self.broker.response_done("r1", "completed", self.now)
        self.told += self.after(0.75)
        self.told += self.broker.run_event("k1", RunBegan("n1"), self.now)

    def finished(self, text: str = ANSWER) -> list[Order]:
        """The run has answered."""
        self.broker.run_event("k1", AnswerComplete(text), self.now)
        return self.broker.run_ended("k1", self.now)

    def settling(self, text: str = ANSWER) -> None:
        """What was said before is being played."""
        self.working()
        self.told += self.finished(text)

    def delivering(self, text: str = ANSWER) -> None:
        """The provider was asked to speak the answer."""
        self.settling(text)
        self.told += self.broker.drained("k1", self.now)

    def rendering(self) -> None:
        """It said something else, and the relay has the answer spoken."""
        self.delivering()
        self.told += self.broker.text("r2", "What was the question?", self.now)
        self.told += self.broker.response_done("r2", "completed", self.now)

    def quiet(self) -> None:
        """One run is in the background, and nobody says anything."""
        self.working()
        self.told += self.after(6.0)
        self.told += self.broker.response_started("h1", self.now)
        self.told += self.broker.response_done("h1", "completed", self.now)

    def ask(self, call_id: str, text: str = "ls", *, background: bool = False) -> list[Order]:
        """Something else is wanted: what the call of it brings."""
        self.broker.say(text, self.now)
        response = f"r-{call_id}"
        self.broker.response_started(response, self.now)
        orders = self.broker.call(response, RunCall(call_id=call_id, text=text, background=background), self.now)
        return orders + self.broker.response_done(response, "completed", self.now)

    def aside(self, call_id: str = "k2", text: str = "ls") -> None:
        """Something else is wanted beside a run in the background, and tried."""
        self.told += self.ask(call_id, text)
        self.told += self.after(0.75)

    def ways(self) -> dict[FloorState | MouthState, Callable[[], None]]:
        """How to get to each state."""
        return {
            FloorState.IDLE: lambda: None,
            FloorState.HEARING: self.hearing,
            FloorState.ANSWERING: self.answering,
            FloorState.CONSULTED: self.consulted,
            FloorState.WORKING: self.working,
            MouthState.WAITING: self.settling,
            MouthState.JUDGING: self.delivering,
            MouthState.RENDERING: self.rendering,
        }


def answered(talk: Talk, call_id: str = "k1", text: str = ANSWER) -> list[Order]:
    talk.broker.run_event(call_id, AnswerComplete(text), talk.now)
    return talk.broker.run_ended(call_id, talk.now)


def heard(talk: Talk, text: str = ANSWER, response_id: str = "b1") -> list[Order]:
    """What was said before is played, and the provider reads the answer."""
    orders = talk.broker.drained(None, talk.now)
    orders += talk.broker.text(response_id, text, talk.now)
    return orders + talk.broker.response_done(response_id, "completed", talk.now)
