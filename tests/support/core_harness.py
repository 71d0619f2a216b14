"""Test harness of a whole core in memory, with the host and the operations of `runtimes.sim`.

    book = RelayHarness()                     # a `CoreHarness` with a service in it
    book.feed(Stopping(5.0))                  # post a fact, and run until idle
    book.after(30.0)                          # time passes, with a call of the cores at each deadline

Nothing takes time by itself: operations are executed at once. `hold` names the types of operations that wait in
`held` until `release()`, `refuse` those that fail. `runtimes.sim.contract` checks the commands of each node.
"""

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, TypeVar, cast

from runtimes.sim.cost import HandleCost
from runtimes.sim.disk import SimDisk
from runtimes.sim.faults import Faults
from runtimes.sim.host import SimHost
from svc_proto import commands, facts
from svc_proto.basics.moment import Moment
from svc_proto.engine.core import Engine, Service
from svc_proto.engine.flow import Flow
from tests.support.channel_ends import CableEnd, FarEnd, HarnessNode, PassiveEnd
from tests.support.playbook import LOCAL, PEER, START, Logs, counting_entropy

__all__ = ["HOME", "SECRET", "SPOOL", "CoreHarness", "PassiveEnd", "FarEnd", "HarnessNode"]

HOME = "/home/svc"
SPOOL = f"{HOME}/spool"
T = TypeVar("T")
SECRET = bytes(range(32))  # of the host for all purposes
STALLED = 100  # rounds at one instant after which time stands still
REFUSED = facts.Failure(facts.FailureKind.UNREACHABLE, "connection refused")


class InstantSimulation:
    """Simulation without faults: each callback runs at once, and the test sets the clock."""

    faults = Faults.NONE
    cost = HandleCost.NONE

    def __init__(self) -> None:
        self.now = START.mono
        self.rng = Random(0)

    def wall(self) -> float:
        return START.wall + self.now - START.mono

    def draw(self, probability: float) -> bool:
        return False

    def at(self, when: float, callback: Callable[[], object]) -> None:
        callback()


class CoreHarness:
    """Test harness of a core, `node`: it records commands and logs of the core, and executes operations in memory."""

    def __init__(
        self,
        service: Service,
        *,
        files: Mapping[str, bytes | str] | None = None,
        entropy: Callable[[int], bytes] | None = None,
        log_level: commands.Level = commands.Level.DEBUG,
    ) -> None:
        self.clock = InstantSimulation()
        self.host = SimHost(cast("Any", self.clock), "here", "192.0.2.10", state=HOME, spool=SPOOL)
        self.host.rooms = ("",)  # files of the state may have absolute paths
        for path, data in (files or {}).items():
            self.disk.put(path, data.encode() if isinstance(data, str) else data)
        self.peers_user: bool | None = None  # of the next accepted connections: whether their user is ours
        self.hold: tuple[type[object], ...] = ()
        self.refuse: tuple[type[object], ...] = ()
        self.refuse_with = facts.FailureKind.NO_SPACE
        self.held: list[commands.Operation[Any]] = []
        self.commands: list[commands.Command] = []
        self.logs = Logs()
        self.facts: deque[tuple[HarnessNode, facts.Fact]] = deque()
        self.nodes: list[HarnessNode] = []
        self.servers: dict[int, HarnessNode] = {}  # by port, on any host
        self._next_channel = 0
        self.node = self._node(service, entropy, log_level)

    @property
    def engine(self) -> Engine:
        return self.node.engine

    @property
    def disk(self) -> SimDisk:
        return self.host.disk

    @property
    def files(self) -> dict[str, bytes]:
        """Return the contents of all files, by path."""
        return {path: self.disk.get(path) for path in self.disk.paths()}

    @property
    def now(self) -> Moment:
        return self.host.moment()

    @now.setter
    def now(self, now: Moment) -> None:
        self.clock.now = now.mono

    def serve(self, port: int, service: Service) -> Engine:
        """Start another service that connections of the node to `port` reach; return its engine."""
        node = self.servers[port] = self._node(service, None, commands.Level.INFO)
        self.handle_on(node, facts.Started())
        return node.engine

    # --- time and facts ---

    def feed(self, fact: facts.Fact) -> None:
        self.handle_on(self.node, fact)

    def handle_on(self, node: HarnessNode, fact: facts.Fact) -> None:
        """Post a fact to any node, and run until idle."""
        node.post(fact)
        self.run_until_idle()

    def run_until_idle(self) -> None:
        while self.facts:
            node, fact = self.facts.popleft()
            self.handle(node, fact)

    def after(self, seconds: float) -> None:
        """Advance the clock by `seconds`; all live nodes are called at each deadline until then, and at the end."""
        end, rounds = self.clock.now + seconds, 0
        while (due := self.next_deadline()) is not None and due <= end:
            rounds = rounds + 1 if due == self.clock.now else 0
            assert rounds < STALLED, f"next_deadline() stays at {due}"
            self.wake(due)
        self.wake(end)

    def next_deadline(self) -> float | None:
        """Return the earliest deadline of all live nodes, at least the current time; None if there is none."""
        due = [when for node in self.nodes if node.alive and (when := node.engine.next_deadline()) is not None]
        return max(min(due), self.clock.now) if due else None

    def wake(self, mono: float) -> None:
        """Set the monotonic clock to `mono`, call each live node without a fact, and run until idle."""
        self.clock.now = mono
        for node in self.nodes:
            self.handle(node, None)
            self.run_until_idle()

    def step_clock(self, seconds: float) -> None:
        """Move the wall clock by `seconds`; the monotonic clock does not change."""
        self.host.step_wall(seconds)

    def stop(self, grace: float = 5.0) -> None:
        self.feed(facts.Stopping(grace))

    def spawn(self, flow: Flow[T]) -> list[T]:
        """Start a flow on the engine, run until idle, and return a list that receives the flow's result.

        Raise an exception that the flow has raised until then.
        """
        results: list[T] = []
        problems: list[Exception] = []
        self.within(lambda: self.engine.spawn(flow, on_done=results.append, on_error=problems.append))
        for problem in problems:
            raise problem
        return results

    def within(self, call: Callable[[], T], node: HarnessNode | None = None) -> T:
        """Call a function inside `handle` of a node; return its result, or raise its exception."""
        outcome: list[T] = []
        problems: list[Exception] = []

        def carry_out() -> None:
            try:
                outcome.append(call())
            except Exception as error:  # noqa: BLE001, RUF100 - passed on below
                problems.append(error)

        (node or self.node).engine.timers.timer(carry_out).set(self.clock.now)
        self.wake(self.clock.now)
        for problem in problems:
            raise problem
        return outcome[0]

    def accept(
        self,
        kind: Callable[[HarnessNode, facts.ChannelId], Any],
        peer: facts.Address = PEER,
        local: facts.Address = LOCAL,
        *,
        tls: bool = False,
    ) -> Any:
        """Connect a client to the node; return the client's end, an instance of `kind`."""
        end = self.plug_in(self.node, kind)
        self.feed(facts.Accepted(end.ch, peer, local, tls, own_user=self.peers_user))
        return end

    def plug_in(self, node: HarnessNode, kind: Callable[[HarnessNode, facts.ChannelId], Any]) -> Any:
        """Return the test end, an instance of `kind`, of a new channel of a node; the node receives no fact."""
        self._next_channel += 2
        end = node.ends[facts.ChannelId(self._next_channel)] = kind(node, facts.ChannelId(self._next_channel))
        return end

    # --- results ---

    @property
    def ready(self) -> bool:
        return commands.Ready() in self.commands

    @property
    def exits(self) -> list[commands.Exit]:
        return [command for command in self.commands if isinstance(command, commands.Exit)]

    def events(self, level: commands.Level = commands.Level.DEBUG) -> list[str]:
        """Return the names of the log records of at least that level."""
        return [log.event for log in self.logs if log.level >= level]

    def release(self, *, fail: bool = False) -> None:
        """Execute the held operations, or with `fail` report them as failed with NO_SPACE."""
        held, self.held = self.held, []
        for operation in held:
            if fail:
                self.node.post(facts.Failed(operation.op, facts.Failure(facts.FailureKind.NO_SPACE)))
            else:
                self.execute(self.node, operation)
            self.run_until_idle()

    # --- the runtime ---

    def on_operation(self, node: HarnessNode, operation: commands.Operation[Any]) -> None:
        """Execute an operation, or hold or refuse it if its type is in `hold` or `refuse`.

        For a `Query`, the type of its request counts, and it waits behind a held query. Operations of other nodes than
        `node` are always executed.
        """
        subject = operation.request if isinstance(operation, commands.Query) else operation
        # Queries are executed in order.
        behind = isinstance(operation, commands.Query) and any(isinstance(held, commands.Query) for held in self.held)
        if node is self.node and (behind or isinstance(subject, self.hold)):
            self.held.append(operation)
        elif node is self.node and isinstance(subject, self.refuse):
            node.post(facts.Failed(operation.op, facts.Failure(self.refuse_with)))
        else:
            self.execute(node, operation)

    def cancel(self, node: HarnessNode, op: facts.OperationId) -> None:
        """Report a held operation as cancelled; an executed operation is not changed."""
        held = [operation for operation in self.held if operation.op == op]
        if held and node is self.node:
            self.held.remove(held[0])
            node.post(facts.Failed(op, facts.Failure(facts.FailureKind.CANCELLED)))

    def give_up(self, ch: facts.ChannelId) -> None:
        """Cancel the held `SendFile` operations of a closed channel."""
        for operation in [each for each in self.held if isinstance(each, commands.SendFile) and each.ch == ch]:
            self.cancel(self.node, operation.op)

    def execute(self, node: HarnessNode, operation: commands.Operation[Any]) -> None:
        """Execute an operation in memory, and post its outcome; a `Connect` without an answer stays pending."""
        match operation:
            case commands.Connect():
                end = self.connect(node, operation)
                if isinstance(end, facts.Failure):
                    node.post(facts.Failed(operation.op, end))
                elif end is not None:
                    node.ends[operation.ch] = end
                    node.post(
                        facts.Done(operation.op, commands.Connected(facts.Address(operation.host, operation.port)))
                    )
            case commands.EnsureSecret():
                node.post(facts.Done(operation.op, SECRET))
            case _:
                node.operations.handlers[type(operation)](operation)

    def connect(self, node: HarnessNode, order: commands.Connect) -> Any:
        """Connect a node to the service at the port; return the node's end, or a `Failure` if there is no service."""
        server = self.servers.get(order.port)
        if server is None:
            return REFUSED
        near, far = CableEnd(node, order.ch), self.plug_in(server, CableEnd)
        near.other, far.other = far, near
        server.post(facts.Accepted(far.ch, PEER, facts.Address("127.0.0.1", order.port)))
        return near

    def _node(self, service: Service, entropy: Callable[[int], bytes] | None, log_level: commands.Level) -> HarnessNode:
        engine = Engine(service, entropy=entropy or counting_entropy(), log_level=log_level)
        node = HarnessNode(self, engine, self.host, type(service).__name__)
        self.nodes.append(node)
        return node

    def handle(self, node: HarnessNode, fact: facts.Fact | None) -> None:
        """Call a node, unless it has exited, with a fact or None for the time; check and carry out its commands."""
        if not node.alive:
            return
        node.contract.fact(fact)
        ours = node is self.node
        for command in node.engine.handle(fact, self.now):
            node.contract.command(command)
            if not isinstance(command, commands.Log):
                if ours:
                    self.commands.append(command)
                node.alive = node.alive and not isinstance(command, commands.Exit)
                node.carry_out(command)
            elif ours:
                self.logs.append(command)
