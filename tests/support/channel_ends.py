"""A core in memory on the simulator's host, and test ends of its channels, for `tests.support.core_harness`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from attrs import define, field

from runtimes.sim.connection import OutboxFile
from runtimes.sim.contract import Contract
from runtimes.sim.host import SimHost
from runtimes.sim.operations import SimOperations
from svc_proto import commands
from svc_proto.basics.strict_json import escaped
from svc_proto.engine.core import Engine
from svc_proto.facts import ChannelId, Closed, Fact, ReadClosed, Received, Sent

if TYPE_CHECKING:
    from tests.support.core_harness import CoreHarness


@define(eq=False)
class FarEnd:
    """Test end of a node's channel: it records the node's output and posts facts about the channel to the node."""

    node: HarnessNode
    ch: ChannelId
    reads: bool = True
    gone: bool = False
    held: bool = False  # the node has paused reading
    aborted: bool = False
    unread: int = 0  # bytes
    heard: bytearray = field(factory=bytearray)  # all output of the node

    def wrote(self, data: bytes) -> None:
        """Receive bytes that the node has sent; they count as unread unless `reads` is set."""
        self.heard += data
        self.unread += len(data)
        if self.reads:
            self.read_on()
        self.feed(data)

    def read_on(self) -> None:
        """Read all unread bytes now, and later ones as they arrive."""
        self.reads = True
        n, self.unread = self.unread, 0
        if n:
            self.node.post(Sent(self.ch, n))

    def read(self) -> None:
        self.read_on()
        self.node.book.run_until_idle()

    def finish(self, why: str = "", status: int | None = None) -> None:
        """Close the channel, unless it is closed: cancel its held `SendFile` operations, and post `Closed`."""
        if not self.gone:
            self.gone = True
            del self.node.ends[self.ch]
            self.node.book.give_up(self.ch)
            self.node.post(Closed(self.ch, why, status))

    # --- hooks of subclasses ---

    def set_held(self, held: bool) -> None:
        self.held = held

    def feed(self, data: bytes) -> None:
        pass

    def close_write(self) -> None:
        """Close the channel, since the node has ended its output."""
        self.finish("done")

    def abort(self) -> None:
        """Close the channel, since the node has aborted it."""
        self.aborted = True
        self.finish("done")


class PassiveEnd(FarEnd):
    """Far end that neither closes nor sends by itself."""

    def close_write(self) -> None:
        pass

    def abort(self) -> None:
        """Record the abort and keep the channel open: the node receives no `Closed`."""
        self.aborted = True


@define(eq=False)
class HarnessChild(PassiveEnd):
    """Test end of a child process that the node spawned; a test writes its output and ends it."""

    order: commands.Spawn = field(kw_only=True)
    pid: int = 0
    errors: FarEnd | None = None  # far end of its standard error
    signals: list[commands.SignalName] = field(factory=list)
    size: commands.TerminalSize | None = None

    def write_output(self, data: bytes) -> None:
        """Send bytes to the node as standard output, escaped if the child is detached, and run until idle."""
        self.node.book.feed(Received(self.ch, escaped(data) if self.order.detached else data))

    def complain(self, data: bytes) -> None:
        """Send bytes to the node as standard error of the child, and run until idle."""
        assert self.errors is not None
        self.node.book.feed(Received(self.errors.ch, data))

    def exit(self, status: int | None = 0) -> None:
        """Exit with `status`: post `ReadClosed`, close standard error and then the channel, and run until idle."""
        self.node.post(ReadClosed(self.ch))
        self.vanish(f"exit status {status}", status)

    def vanish(self, why: str, status: int | None = None) -> None:
        """Close standard error, then the child's channel with `why` and `status`, and run until idle."""
        self.end(why, status)
        self.node.book.run_until_idle()

    def end(self, why: str = "", status: int | None = None) -> None:
        """Close standard error, then the child's channel with `why` and `status`; the facts are queued."""
        if self.errors is not None:
            self.errors.finish()
        self.finish(why, status)

    def abort(self) -> None:
        self.end()


class CableEnd(FarEnd):
    """End of an in-memory connection between two nodes; `other` is the end at the second node."""

    other: CableEnd
    shut = False
    waiting = b""  # bytes for the other end, whose node has paused reading

    def wrote(self, data: bytes) -> None:
        if not self.other.held:
            super().wrote(data)
            return
        self.heard += data
        self.unread += len(data)
        self.waiting += data

    def feed(self, data: bytes) -> None:
        self.other.node.post(Received(self.other.ch, data))

    def set_held(self, held: bool) -> None:
        super().set_held(held)
        if not held:
            self.other.deliver()

    def deliver(self) -> None:
        """Deliver the bytes that have waited for the other end; drop them if this end is closed."""
        data, self.waiting = self.waiting, b""
        if data and not self.gone:
            self.read_on()
            self.feed(data)

    def close_write(self) -> None:
        self.deliver()
        self.shut = True
        if self.other.shut:
            self.other.finish("done")
            self.finish("done")
        elif not self.other.gone:
            self.other.node.post(ReadClosed(self.other.ch))

    def abort(self) -> None:
        self.finish("reset")
        self.other.finish("reset")


@define(eq=False)
class HarnessNode:
    """A node of the harness: an engine with its channel ends. For `SimOperations` it stands for a simulated process."""

    book: CoreHarness
    engine: Engine
    host: SimHost
    name: str
    ends: dict[ChannelId, Any] = field(factory=dict)  # `FarEnd`s
    alive: bool = True
    tls_ports: int = 0
    operations: SimOperations = field(init=False)
    contract: Contract = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.operations = SimOperations(cast("Any", self))
        self.contract = Contract(self.name)

    def post(self, fact: Fact) -> None:
        self.book.facts.append((self, fact))

    def end_of(self, ch: ChannelId) -> Any:
        """Return the adapter of a channel's end for file operations, or None if the channel is closed."""
        return _FileEnd(self.ends[ch]) if ch in self.ends else None

    def carry_out(self, command: commands.Command) -> None:
        """Carry out a command of the core in memory.

        Commands to send on, pause, resume or close a closed channel are ignored, and so are commands without a handler,
        unless they are operations.
        """
        match command:
            case commands.Send(ch=ch, data=data) if ch in self.ends:
                self.ends[ch].wrote(data)
            case commands.CloseWrite(ch=ch) if ch in self.ends:
                self.ends[ch].close_write()
            case commands.Abort(ch=ch) if ch in self.ends:
                self.ends[ch].abort()
            case commands.PauseReading(ch=ch) | commands.ResumeReading(ch=ch) if ch in self.ends:
                self.ends[ch].set_held(isinstance(command, commands.PauseReading))
            case commands.Cancel(op=op):
                self.book.cancel(self, op)
            case commands.Operation():
                self.book.on_operation(self, command)
            case _ if type(command) in self.operations.handlers:
                self.operations.handlers[type(command)](command)
            case _:
                pass


@define
class _FileEnd:
    """Adapter that gives a `FarEnd` the interface which the simulator's file operations use."""

    end: FarEnd
    gone: bool = False

    def send(self, data: bytes, file: OutboxFile) -> None:
        self.end.wrote(data)
        file.over(None)
