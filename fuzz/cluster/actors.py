"""Phones, pending commands and guessing clients of a simulated cluster."""

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
    """Simulated phone that signs in at one node, records bridge commands and, unless it is `mute`, answers them."""

    world: ClusterDeployment
    name: str
    node: int
    code: str = ""  # used to pair
    talker: WebSocketClient | None = None
    token: str = ""
    refused: str = ""  # reason of the refusal
    in_at: float = inf
    closed: bool = False
    closed_at: float = inf
    performed: list[str] = field(factory=list)  # request ids
    delay: float = 0.0  # s before it answers
    mute: bool = False
    quiet: bool = False
    began: float = 0.0  # when it connected
    left_at: float | None = None  # when it reconnected elsewhere, with this socket still open
    arrived: Callable[[], None] = field(default=lambda: None)  # called when it is authenticated

    @property
    def device(self) -> str:
        """Return the device id."""
        return f"device-{self.name}"

    @property
    def is_authenticated(self) -> bool:
        """Report whether the phone is connected and authenticated, and has not reconnected elsewhere."""
        return bool(self.token) and not self.closed and not self.refused and self.left_at is None

    def on_message(self, talker: WebSocketClient, envelope: dict[str, Any]) -> None:
        """Handle the answer to the sign-in, or a bridge command; ignore other messages.

        Once accepted, the phone's earlier sockets count as left and, unless it is `quiet`, are disconnected.
        """
        payload = envelope["payload"]
        match envelope["channel"], envelope["type"]:
            case "system", "auth.ok":
                self.token, self.in_at = payload["session_token"], self.world.sim.now
                self.world.invariants.note_pairing(self)
                for other in self.world.phones:
                    if other is not self and other.token == self.token and other.left_at is None:
                        # the same phone; of two concurrent sign-ins either may be the last at its node
                        other.left_at = self.world.sim.now if other.in_at <= self.began else inf
                        if not self.quiet:
                            other.disconnect()
                self.arrived()
            case "system", "auth.fail":
                self.refused = payload["reason"]
            case "bridge", "bridge.command":
                self.world.invariants.note_performed(self, payload)
                self.performed.append(payload["request_id"])
                if not self.mute:
                    self.world.sim.after(self.delay, lambda: self.answer(talker, payload["request_id"]))
            case _:
                pass

    def answer(self, talker: WebSocketClient, request_id: str) -> None:
        """Answer a command with status 200 and the phone's name."""
        answer = {"request_id": request_id, "status": 200, "result": {"by": self.name, "id": request_id}}
        talker.send_envelope("bridge", "bridge.response", answer)

    def disconnect(self, *, reset: bool = True) -> None:
        """Disconnect without a close frame."""
        if self.talker is not None:
            self.talker.disconnect(reset=reset)


@define(eq=False)
class PendingCommand:
    """A command that a client sends, and its outcome; the body of its request contains `number`."""

    number: int
    node: int
    token: str
    device: str  # selected device; empty: any
    began: float
    apart: int  # see `ClusterInvariants`
    over_at: float | None = None
    told: str = ""
    done: int = 0  # times


@define(eq=False)
class GuessingClient:
    """Client that tries a wrong pairing code."""

    refused: bool = False  # by a node that has checked the code
    over: bool = False
