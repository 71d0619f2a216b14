"""A scripted agent: each turn waits for the steps of a test.

book = TurnHarness()
session = book.session()
call = book.call("POST", f"/api/sessions/{session}/chat/stream", {"message": "Hi"})
hand = book.hand                          # the turn that began last
hand.emit(TextDelta("Hel"), TextDelta("lo"))
hand.finish()
assert names(call)[-1] == "done"
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from svc_proto.agent import interface
from svc_proto.api.config import ApiConfig
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import OperationId
from tests.api.harness import KEY, ApiCall, ApiHarness
from tests.support.core_harness import HarnessNode

FOREVER = 1e9  # seconds
NO_TICKET = OperationId(0)


def names(call: ApiCall) -> list[str]:
    """Return the names of the stream's events so far."""
    return [event.event for event in call.stream()]


def streamed_text(call: ApiCall) -> str:
    """Return the concatenated deltas of a session's stream."""
    return "".join(data["delta"] for name, data in call.named_events() if name == "assistant.delta")


def call_of(name: str = "terminal", identity: str = "call_7", **args: object) -> interface.ToolCall:
    """Build a tool call with this name and id."""
    return interface.ToolCall(id=identity, name=name, args=args, arguments="{}", preview=f"{name} it")


@define(eq=False)
class ScriptedTurn:
    """Turn of the scripted agent, whose events and end a test orders."""

    node: HarnessNode  # node of the agent
    turn: interface.Turn
    host: interface.AgentHost
    outcome: interface.TurnOutcome | None = None
    cancelled: bool = False
    answers: list[object] = field(factory=list)  # results of the flows that ran
    todo: list[Callable[[], Flow[Any]]] = field(factory=list)
    ticket: OperationId = NO_TICKET

    def emit(self, *events: interface.TurnEvent) -> None:
        """Emit events without a pause between them, like those from one read of an upstream."""

        def act() -> Flow[None]:
            for event in events:
                self.host.emit(event)
            yield from ()

        self.do(act)

    def is_reader_behind(self) -> bool:
        """Report whether the client of the turn is slow, so that the agent should wait."""
        return self.host.reader_behind

    def do(self, act: Callable[[], Flow[Any]]) -> None:
        """Let the agent run a flow, after the earlier ones have ended; its result is appended to `answers`."""
        self.todo.append(act)
        self._go_on()

    def store_calls(self, *calls: interface.ToolCall, text: str = "", reasoning: str = "", **extra: object) -> None:
        self.do(lambda: self.host.store_calls(text, reasoning, calls, extra))

    def store_result(self, call: interface.ToolCall, output: str, *pictures: interface.StoredPicture) -> None:
        self.do(lambda: self.host.store_result(call, output, pictures))

    def respond(self, text: str) -> None:
        """Emit a text and end the turn."""
        self.emit(interface.TextDelta(text))
        self.finish()

    def request_approval(self, call: interface.ToolCall | None = None, **members: Any) -> list[str]:
        """Let the agent request approval of a tool call without waiting; return the list that receives the answer."""
        asked = {"call": call or call_of(), "command": "rm x", "description": "Remove", "pattern": "rm x", **members}
        return self.node.book.spawn(self.host.request_approval(interface.ApprovalRequested(**asked)))

    def finish(self, finish: str = "stop", **members: Any) -> None:
        """End the turn with this finish reason, once the flows of `do` have ended."""
        self.outcome = interface.TurnOutcome(finish=finish, **members)
        self._go_on()

    def crash(self, error: Exception) -> None:
        """Raise an error in the agent's flow, as a bug would, after the earlier flows of `do`."""

        def act() -> Flow[None]:
            yield from ()
            raise error

        self.do(act)

    def _go_on(self) -> None:
        if self.node.alive:
            self.node.book.within(lambda: self.node.engine.resume(self.ticket, None), self.node)


class ScriptedAgent:
    """Agent of a node whose turns (`hands`) emit the events and end as a test orders."""

    node: HarnessNode

    def __init__(self) -> None:
        self.hands: list[ScriptedTurn] = []

    def run(self, turn: interface.Turn, host: interface.AgentHost) -> Flow[interface.TurnOutcome]:
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
    """API harness with a scripted agent."""

    def __init__(self, config: ApiConfig | None = None, **options: Any) -> None:
        self.scripted = ScriptedAgent()
        super().__init__(config or ApiConfig(key=KEY), agent=self.scripted, **options)
        self.scripted.node = self.node

    @property
    def hand(self) -> ScriptedTurn:
        """Return the turn that began last."""
        return self.scripted.hands[-1]

    @property
    def turns(self) -> int:
        """Return the number of turns that have begun."""
        return len(self.scripted.hands)

    def chat(self, session: str | None = None, body: object = None, **options: Any) -> ApiCall:
        """Post a message to a session's stream; the default is a new session."""
        message = {"message": "Hi"} if body is None else body
        return self.call("POST", f"/api/sessions/{session or self.session()}/chat/stream", message, **options)

    def finish_two_turns(self, call: interface.ToolCall, settle: Callable[[], None]) -> None:
        """Report a tool call, store its result and finish the turn, then answer the queued prompt.

        `settle` is called after each step.
        """
        first = self.hand
        steps: list[Callable[[], None]] = [
            lambda: first.emit(interface.ToolCallStarted(call)),
            lambda: first.store_result(call, "done"),
            lambda: first.emit(interface.ToolCallFinished(call=call, output="done", preview="done")),
            lambda: first.emit(interface.TextDelta("It is gone.")),
            first.finish,
            lambda: self.hand.emit(interface.TextDelta("Nothing.")),
            lambda: self.hand.finish(),
        ]
        for step in steps:
            step()
            settle()


def chatting(**options: Any) -> tuple[TurnHarness, str, ApiCall]:
    """Start a turn; return the harness, the session and the stream."""
    book = TurnHarness(**options)
    session = book.session()
    return book, session, book.chat(session)
