"""Who is around several nodes: phones that do what they are told, callers with commands, and strangers who guess."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from attrs import define, field

from tests.support.sim_http import WebSocketClient

if TYPE_CHECKING:
    from fuzz.cluster.deployment import ClusterDeployment


@define(eq=False)
class ClusterPhone:
    """A phone at a node: it does what it is told after a while, and writes it down."""

    world: ClusterDeployment
    name: str
    node: int
    code: str = ""  # that it shows
    talker: WebSocketClient | None = None
    token: str = ""
    refused: str = ""  # why it was not let in
    in_at: float = inf
    closed: bool = False
    closed_at: float = inf
    performed: list[str] = field(factory=list)  # request ids
    delay: float = 0.0  # s before it answers
    mute: bool = False
    quiet: bool = False
    began: float = 0.0  # when it set out
    left_at: float | None = None  # when it came elsewhere, and left this socket as it was
    arrived: Callable[[], None] = field(default=lambda: None)  # called when it is in

    @property
    def device(self) -> str:
        """What it is named by."""
        return f"device-{self.name}"

    @property
    def is_authenticated(self) -> bool:
        """Whether a node has it."""
        return bool(self.token) and not self.closed and not self.refused and self.left_at is None

    def on_message(self, talker: WebSocketClient, envelope: dict[str, Any]) -> None:
        """What its node has told it."""
        payload = envelope["payload"]
        match envelope["channel"], envelope["type"]:
            case "system", "auth.ok":
                self.token, self.in_at = payload["session_token"], self.world.sim.now
                self.world.law.note_pairing(self)
                for other in self.world.pockets:
                    if other is not self and other.token == self.token and other.left_at is None:
                        # the same phone; of two that were under way at once either may be the last to its node
                        other.left_at = self.world.sim.now if other.in_at <= self.began else inf
                        if not self.quiet:
                            other.disconnect()
                self.arrived()
            case "system", "auth.fail":
                self.refused = payload["reason"]
            case "bridge", "bridge.command":
                self.world.law.note_performed(self, payload)
                self.performed.append(payload["request_id"])
                if not self.mute:
                    self.world.sim.after(self.delay, lambda: self.answer(talker, payload["request_id"]))
            case _:
                pass

    def answer(self, talker: WebSocketClient, request_id: str) -> None:
        """Say that it is done."""
        answer = {"request_id": request_id, "status": 200, "result": {"by": self.name, "id": request_id}}
        talker.send_envelope("bridge", "bridge.response", answer)

    def disconnect(self, *, reset: bool = True) -> None:
        """Go without a word."""
        if self.talker is not None:
            self.talker.disconnect(reset=reset)


@define(eq=False)
class PendingCommand:
    """A command that somebody asks for; what it carries is its number."""

    number: int
    node: int
    token: str
    device: str  # that is named; empty: any
    began: float
    apart: int  # see `Law`
    over_at: float | None = None
    told: str = ""
    done: int = 0  # times


@define(eq=False)
class GuessingClient:
    """Somebody who shows a code that is none."""

    refused: bool = False  # by a node that has looked at the code
    over: bool = False
