"""An agent on strings: each turn waits for what a test has it do.

book = TurnBook()
session = book.session()
call = book.call("POST", f"/api/sessions/{session}/chat/stream", {"message": "Hi"})
hand = book.hand                          # of the turn that began last
hand.tell(TextDelta("Hel"), TextDelta("lo"))
hand.finish()
assert names(call)[-1] == "done"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from svc_proto.agent.interface import AgentHost, ToolCall, Turn, TurnEvent, TurnOutcome
from svc_proto.api.config import ApiConfig
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import OperationId
from tests.api.harness import KEY, ApiCall, ApiHarness
from tests.support.core_harness import HarnessNode

FOREVER = 1e9  # s
NOBODY = OperationId(0)


def names(call: ApiCall) -> list[str]:
    """The names of the events of a stream so far."""
    return [event.event for event in call.stream()]


def streamed_text(call: ApiCall) -> str:
    """The text that the deltas of a session's stream make."""
    return "".join(data["delta"] for name, data in call.named_events() if name == "assistant.delta")


def call_of(name: str = "terminal", identity: str = "call_7", **args: object) -> ToolCall:
    """A tool call."""
    return ToolCall(id=identity, name=name, args=args, arguments="{}", preview=f"{name} it")


@define(eq=False)
class ScriptedTurn:
    """One turn of the puppet."""

    node: HarnessNode  # whose agent has it
    turn: Turn
    host: AgentHost
    outcome: TurnOutcome | None = None
    cancelled: bool = False
    answers: list[object] = field(factory=list)  # of the flows that it was made to run
    todo: list[Callable[[], Flow[Any]]] = field(factory=list)
    ticket: OperationId = NOBODY

    def emit(self, *events: TurnEvent) -> None:
        """All in one go, as events of one read of an upstream are."""

        def act() -> Flow[None]:
            for event in events:
                self.host.emit(event)
            yield from ()

        self.do(act)

    def is_reader_behind(self) -> bool:
        """Whether the agent is held."""
        return self.host.reader_behind

    def do(self, act: Callable[[], Flow[Any]]) -> None:
        """Run a flow of the host."""
        self.todo.append(act)
        self._go_on()

    def store_calls(self, *calls: ToolCall, text: str = "", reasoning: str = "") -> None:
        self.do(lambda: self.host.store_calls(text, reasoning, calls))

    def store_result(self, call: ToolCall, output: str) -> None:
        self.do(lambda: self.host.store_result(call, output))

    def finish(self, finish: str = "stop", **members: Any) -> None:
        """The agent is done."""
        self.outcome = TurnOutcome(finish=finish, **members)
        self._go_on()

    def crash(self, error: Exception) -> None:
        """The agent has a bug."""

        def act() -> Flow[None]:
            yield from ()
            raise error

        self.do(act)

    def _go_on(self) -> None:
        if self.node.alive:
            self.node.book.within(lambda: self.node.engine.resume(self.ticket, None), self.node)


class ScriptedAgent:
    """The agent of a node."""

    node: HarnessNode

    def __init__(self) -> None:
        self.hands: list[ScriptedTurn] = []

    def run(self, turn: Turn, host: AgentHost) -> Flow[TurnOutcome]:
        engine = self.node.engine
        hand = ScriptedTurn(self.node, turn, host)
        self.hands.append(hand)
        try:
            while hand.outcome is None:
                while hand.todo:
                    hand.answers.append((yield from hand.todo.pop(0)()))
                if hand.outcome is None:
                    hand.ticket = engine.new_op()
                    yield from wait(hand.ticket, engine.now.mono + FOREVER)
            return hand.outcome
        finally:
            hand.cancelled = hand.outcome is None


class TurnHarness(ApiHarness):
    """An API whose agent is a puppet."""

    def __init__(self, config: ApiConfig | None = None, **options: Any) -> None:
        self.puppet = ScriptedAgent()
        super().__init__(config or ApiConfig(key=KEY), agent=self.puppet, **options)
        self.puppet.node = self.node

    @property
    def hand(self) -> ScriptedTurn:
        """The turn that began last."""
        return self.puppet.hands[-1]

    @property
    def turns(self) -> int:
        """How many have begun."""
        return len(self.puppet.hands)

    def chat(self, session: str | None = None, body: object = None, **options: Any) -> ApiCall:
        """Post a message to a session's stream; without one to a new session."""
        message = {"message": "Hi"} if body is None else body
        return self.call("POST", f"/api/sessions/{session or self.session()}/chat/stream", message, **options)


def chatting(**options: Any) -> tuple[TurnHarness, str, ApiCall]:
    """A turn has begun: where, of which session, and its stream."""
    book = TurnHarness(**options)
    session = book.session()
    return book, session, book.chat(session)
