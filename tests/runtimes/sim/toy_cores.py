"""Small cores for tests of the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from runtimes.sim.host import SimHost, SimPort
from runtimes.sim.process import SimProcess
from runtimes.sim.raw_peer import RawPeer
from runtimes.sim.simulation import Simulation
from svc_proto.basics.entropy import Entropy
from svc_proto.basics.moment import Moment
from svc_proto.commands import CloseWrite, Command, Connect, Operation, Ready, Send
from svc_proto.facts import Accepted, ChannelId, Done, Fact, Failed, Failure, OperationId, ReadClosed, Received, Started

F = TypeVar("F")
OUT = ChannelId(1)  # the channel of `connect`


class ToyCore:
    """Core that collects facts; `react(toy, fact)` may `emit` commands, or a test puts them into `orders`."""

    def __init__(self, entropy: Entropy, react: Callable[[ToyCore, Fact | None], None] | None = None) -> None:
        self.entropy = entropy
        self.react = react
        self.facts: list[Fact | None] = []
        self.times: list[Moment] = []
        self.now = Moment(0.0, 0.0)
        self.deadline: float | None = None
        self.out: list[Command] = []
        self.orders: list[Command] = []
        self.ops = 0

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        self.now = now
        self.facts.append(fact)
        self.times.append(now)
        self.out = []
        if self.deadline is not None and self.deadline <= now.mono:
            self.deadline = None
        if isinstance(fact, Started):
            self.emit(Ready())
        self.out.extend(self.orders)
        self.orders = []
        if self.react is not None:
            self.react(self, fact)
        return self.out

    def next_deadline(self) -> float | None:
        return self.deadline

    def emit(self, *commands: Command) -> None:
        self.out.extend(commands)

    def new_op(self) -> OperationId:
        self.ops += 1
        return OperationId(self.ops)

    def of(self, kind: type[F]) -> list[F]:
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def received(self, ch: int = 2) -> bytes:
        return b"".join(fact.data for fact in self.of(Received) if fact.ch == ch)

    def answer(self, op: int) -> object:
        """Return `("done", result)` or the failure of an operation; None while there is no answer."""
        for fact in self.facts:
            if isinstance(fact, Done) and fact.op == op:
                return ("done", fact.result)
            if isinstance(fact, Failed) and fact.op == op:
                return fact.error
        return None


def echo(toy: ToyCore, fact: Fact | None) -> None:
    """Send back received bytes, and answer a FIN with a FIN."""
    match fact:
        case Received(ch=ch, data=data):
            toy.emit(Send(ch, data))
        case ReadClosed(ch=ch):
            toy.emit(CloseWrite(ch))
        case _:
            pass


class ToyNetwork:
    """Two simulated hosts, `relay` and `phone`; a toy core runs on the relay, by default at port 80."""

    def __init__(
        self,
        world: Simulation,
        react: Callable[[ToyCore, Fact | None], None] | None = None,
        *,
        listen: tuple[int | SimPort, ...] = (80,),
    ) -> None:
        self.world = world
        self.toys: list[ToyCore] = []
        self.relay: SimHost = world.host("relay", "10.0.0.1")
        self.phone: SimHost = world.host("phone", "10.0.0.2")

        def factory(entropy: Entropy) -> ToyCore:
            toy = ToyCore(entropy, react)
            self.toys.append(toy)
            return toy

        self.process: SimProcess = self.relay.start(factory, listen)
        world.run_idle()

    @property
    def toy(self) -> ToyCore:
        return self.toys[-1]

    def order(self, *commands: Command) -> None:
        """Make the toy core return `commands` now, and run until it has."""
        self.toy.orders.extend(commands)
        self.toy.deadline = self.world.now
        self.process.nudge()
        self.world.run_until(lambda: not self.toy.orders)

    def run(self, *commands: Command) -> None:
        """Make the toy core return `commands` now, and run until only timers are left."""
        self.order(*commands)
        self.world.run_idle()

    def run_operation(self, make: Callable[[OperationId], Operation[Any]]) -> Any:
        """Order an operation and run until its answer; return the result, or the `Failure`."""
        op = self.toy.new_op()
        self.order(make(op))
        self.world.run_until(lambda: self.toy.answer(op) is not None, 60.0)
        answer = self.toy.answer(op)
        return answer if isinstance(answer, Failure) else answer[1]  # type: ignore[index]


def connected(bench: ToyNetwork) -> RawPeer:
    """Connect from the phone, run until the toy core has accepted a connection, and return the phone's end."""
    wire = bench.world.connect(bench.phone, "relay", 80)
    bench.world.run_until(lambda: bool(bench.toy.of(Accepted)))
    return wire


def connect(bench: ToyNetwork, host: str, port: int, *, tls: bool = False) -> object:
    """Connect the toy core to a host on channel `OUT`; return the answer as `ToyCore.answer` does."""
    bench.order(Connect(OperationId(901), OUT, host, port, tls))
    bench.world.run_until(lambda: bench.toy.answer(901) is not None, 60.0)
    return bench.toy.answer(901)
