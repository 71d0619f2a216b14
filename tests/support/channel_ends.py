"""A core on the simulator's host, and the far ends of its channels; `tests.support.core_harness` drives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from attrs import define, field

from runtimes.sim.connection import OutboxFile
from runtimes.sim.contract import Contract
from runtimes.sim.host import SimHost
from runtimes.sim.operations import SimOperations
from svc_proto.basics.strict_json import escaped
from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    Operation,
    PauseReading,
    ResumeReading,
    Send,
    SignalName,
    Spawn,
    TerminalSize,
)
from svc_proto.engine.core import Engine
from svc_proto.facts import ChannelId, Closed, Fact, ReadClosed, Received, Sent

if TYPE_CHECKING:
    from tests.support.core_harness import CoreHarness


@define(eq=False)
class FarEnd:
    """Far end of a node's channel: it receives the node's output, and posts facts about the channel."""

    node: HarnessNode
    ch: ChannelId
    reads: bool = True
    gone: bool = False
    held: bool = False  # the node has paused reading
    aborted: bool = False
    unread: int = 0  # bytes
    heard: bytearray = field(factory=bytearray)  # all output of the node

    def wrote(self, data: bytes) -> None:
        """Receive bytes that the node has sent; they stay unread unless this end reads by itself."""
        self.heard += data
        self.unread += len(data)
        if self.reads:
            self.read_on()
        self.feed(data)

    def read_on(self) -> None:
        """Read all unread bytes, and all later ones."""
        self.reads = True
        n, self.unread = self.unread, 0
        if n:
            self.node.post(Sent(self.ch, n))

    def read(self) -> None:
        """Read all unread bytes, and run until idle."""
        self.read_on()
        self.node.book.run_until_idle()

    def finish(self, why: str = "", status: int | None = None) -> None:
        """Close the channel, unless it is closed."""
        if not self.gone:
            self.gone = True
            del self.node.ends[self.ch]
            self.node.book.give_up(self.ch)
            self.node.post(Closed(self.ch, why, status))

    # --- hooks of subclasses ---

    def feed(self, data: bytes) -> None:
        """Handle bytes of the node, here by doing nothing; a hook for subclasses."""

    def close_write(self) -> None:
        """React to the end of the node's output: close the channel."""
        self.finish("done")

    def abort(self) -> None:
        """React to the node's abort: close the channel."""
        self.aborted = True
        self.finish("done")


class PassiveEnd(FarEnd):
    """Far end that neither closes nor sends by itself."""

    def close_write(self) -> None:
        """Keep the channel open."""

    def abort(self) -> None:
        """Keep the channel open: the node sees no end yet."""
        self.aborted = True


@define(eq=False)
class HarnessChild(PassiveEnd):
    """Child process that the node spawned."""

    order: Spawn = field(kw_only=True)
    pid: int = 0
    errors: FarEnd | None = None  # far end of its standard error
    signals: list[SignalName] = field(factory=list)
    size: TerminalSize | None = None

    def write_output(self, data: bytes) -> None:
        """Write to standard output."""
        self.node.book.feed(Received(self.ch, escaped(data) if self.order.detached else data))

    def complain(self, data: bytes) -> None:
        """Write to standard error."""
        assert self.errors is not None
        self.node.book.feed(Received(self.errors.ch, data))

    def exit(self, status: int | None = 0) -> None:
        """Exit with `status`: report the end of the output and `Closed`, and run until idle."""
        self.node.post(ReadClosed(self.ch))
        self.vanish(f"exit status {status}", status)

    def vanish(self, why: str, status: int | None = None) -> None:
        """End with any reason, and run until idle."""
        self.end(why, status)
        self.node.book.run_until_idle()

    def end(self, why: str = "", status: int | None = None) -> None:
        """End with any reason, and post the facts."""
        if self.errors is not None:
            self.errors.finish()
        self.finish(why, status)

    def abort(self) -> None:
        self.end()


class CableEnd(FarEnd):
    """End of a connection between two nodes; `other` is the end at the other node."""

    other: CableEnd
    shut = False

    def feed(self, data: bytes) -> None:
        self.other.node.post(Received(self.other.ch, data))

    def close_write(self) -> None:
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
    """Engine under test, which the simulator's file operations see as a process of the host."""

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
        """Queue a fact for the node."""
        self.book.facts.append((self, fact))

    def end_of(self, ch: ChannelId) -> Any:
        """Implement `runtimes.sim.process.SimProcess.end_of`, for files."""
        return _FileEnd(self.ends[ch]) if ch in self.ends else None

    def carry_out(self, command: Command) -> None:
        """Carry out a command of the core, as a runtime does."""
        match command:
            case Send(ch=ch, data=data) if ch in self.ends:
                self.ends[ch].wrote(data)
            case CloseWrite(ch=ch) if ch in self.ends:
                self.ends[ch].close_write()
            case Abort(ch=ch) if ch in self.ends:
                self.ends[ch].abort()
            case PauseReading(ch=ch) | ResumeReading(ch=ch) if ch in self.ends:
                self.ends[ch].held = isinstance(command, PauseReading)
            case Cancel(op=op):
                self.book.cancel(self, op)
            case Operation():
                self.book.on_operation(self, command)
            case _ if type(command) in self.operations.handlers:
                self.operations.handlers[type(command)](command)
            case _:
                pass


@define
class _FileEnd:
    """Adapter of a far end to the interface that the simulator's file operations use."""

    end: FarEnd
    gone: bool = False

    def send(self, data: bytes, file: OutboxFile) -> None:
        self.end.wrote(data)
        file.over(None)
