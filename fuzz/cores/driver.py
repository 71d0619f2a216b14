"""Drives one core by hand: any fact that the contract allows, in any order, answers when and how it pleases.

Held to, after every fact
  `handle` does not raise, and every command is one that the contract of `runtimes.sim.check` allows
  no bug is logged, and no secret is in a log
  what waits at a channel is within its limit, and so is the number of operations under way
  time does not stand still: a deadline that was met is followed by a later one
  whoever speaks well is spoken to in HTTP
"""

from __future__ import annotations

from typing import Any

from attrs import define, field

from fuzz.cores.answers import Answers
from fuzz.cores.clients import Client
from runtimes.sim.check import Contract
from svc_proto.basics.entropy import Entropy
from svc_proto.basics.moment import Moment
from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    Connect,
    Exit,
    Level,
    Log,
    Operation,
    PauseReading,
    Query,
    ResumeReading,
    Send,
    SendFile,
    Spawn,
)
from svc_proto.engine.core import Engine, Service
from svc_proto.facts import (
    Accepted,
    Address,
    ChannelId,
    Closed,
    Done,
    Fact,
    Failed,
    Failure,
    FailureKind,
    OperationId,
    ReadClosed,
    Received,
    Sent,
    Started,
    Stopping,
)
from svc_proto.wire.limits import Limits

__all__ = ["LIMITS", "Driver", "Peer"]

LIMITS = Limits(max_unsent=64 * 1024, max_message=32 * 1024, high_water=16 * 1024, low_water=4 * 1024)
ONE_WRITE = 160 * 1024  # bytes that one fact may add when a channel was just under its limit
MOST_OPERATIONS = 500  # under way
MOST_CHANNELS = 12  # that peers have open
STALLED = 100  # calls at one instant after which time stands still
START = Moment(1000.0, 1_800_000_000.0)
HERE, LOCAL, REMOTE = Address("10.0.0.1", 8767), Address("127.0.0.1", 40_000), Address("203.0.113.7", 40_000)


@define(eq=False)
class Peer:
    """The other side of a channel."""

    ch: ChannelId
    client: Client | None = None
    child: Spawn | None = None
    unsent: int = 0  # bytes that the core has sent and not been told of
    paused: bool = False
    deaf: bool = False  # the core has let go of it
    read_closed: bool = False
    waiting: bytearray = field(factory=bytearray)  # for the core


class Driver:
    """One core from its start on. Whatever is out of place is passed over, so any sequence of calls is a valid one."""

    def __init__(self, service: Service, secrets: tuple[str, ...] = ()) -> None:
        self.engine = Engine(service, entropy=counting(), log_level=Level.DEBUG)
        self.secrets: dict[str, None] = dict.fromkeys(secrets)
        self.peers: dict[ChannelId, Peer] = {}
        self.pending: dict[OperationId, Operation[Any]] = {}
        self.cancelled: dict[OperationId, None] = {}
        self.exited: Exit | None = None
        self.handled = 0
        self.now = START
        self._contract = Contract("core")
        self._answers = Answers()
        self._opened = 0
        self._stopping = False
        self._told(Started())
        self.answer_all()

    # --- peers ---------------------------------------------------------------------------------------------------

    @property
    def visitors(self) -> list[Peer]:
        """Those who came to the core."""
        return [peer for peer in self.peers.values() if peer.ch % 2 == 0]

    @property
    def tokens(self) -> list[str]:
        """All that anybody was given and that still has a connection."""
        return [token for peer in self.visitors if peer.client is not None for token in peer.client.tokens]

    def accept(self, client: Client | None, *, local: bool) -> Peer | None:
        """Somebody comes; None when nobody can."""
        if self.exited or self._stopping or len(self.visitors) >= MOST_CHANNELS:
            return None
        self._opened += 2
        peer = self.peers[ChannelId(self._opened)] = Peer(ChannelId(self._opened), client)
        self._told(Accepted(peer.ch, LOCAL if local else REMOTE, HERE))
        self.let_speak(peer)
        return peer

    def let_speak(self, peer: Peer, most: int = 1 << 30) -> None:
        """Have the core read what a peer has for it, up to so many bytes."""
        if peer.client is not None:
            peer.waiting += peer.client.outgoing
            peer.client.outgoing.clear()
        data = bytes(peer.waiting[:most])
        if data and peer.ch in self.peers and not (peer.paused or peer.deaf or peer.read_closed):
            del peer.waiting[: len(data)]
            self._told(Received(peer.ch, data))

    def deliver(self, peer: Peer, data: bytes) -> None:
        """Have the core read some bytes behind what waits already."""
        peer.waiting += data
        self.let_speak(peer)

    def close_read(self, peer: Peer) -> None:
        """The peer sends no more."""
        if peer.ch in self.peers and not (peer.read_closed or peer.deaf or peer.paused):
            peer.read_closed = True
            self._told(ReadClosed(peer.ch))

    def take(self, peer: Peer, share: float) -> None:
        """A share of what the core has sent leaves."""
        n = min(peer.unsent, max(1, round(peer.unsent * share)))
        if n and peer.ch in self.peers and not peer.deaf:
            peer.unsent -= n
            self._told(Sent(peer.ch, n))

    def close(self, peer: Peer, status: int | None = None) -> None:
        """The channel ends."""
        child = peer.child
        if child is not None and child.ch == peer.ch and child.errors in self.peers:
            self.close(self.peers[child.errors])
        for operation in [one for one in self.pending.values() if isinstance(one, SendFile) and one.ch == peer.ch]:
            self.fail(operation.op, FailureKind.CANCELLED)
        if self.peers.pop(peer.ch, None) is not None:
            is_child = child is not None and child.ch == peer.ch
            self._told(Closed(peer.ch, "", status if is_child else None))

    # --- operations ----------------------------------------------------------------------------------------------

    def answer(self, op: OperationId) -> None:
        """Carry an operation out. The store keeps its order: what was asked of it before is answered first."""
        operation = self.pending.get(op)
        if operation is None:
            return
        if isinstance(operation, Query):
            op, operation = next((n, one) for n, one in self.pending.items() if isinstance(one, Query))
        result = self._answers.to(operation)
        if isinstance(result, Failure):
            self.fail(op, result.kind)
            return
        del self.pending[op]
        if isinstance(operation, Connect):
            self.peers[operation.ch] = Peer(operation.ch)
        elif isinstance(operation, Spawn):
            for ch in (operation.ch, operation.errors):
                if ch is not None:
                    self.peers[ch] = Peer(ch, child=operation)
        self._told(Done(op, result))

    def fail(self, op: OperationId, kind: FailureKind) -> None:
        """An operation fails."""
        if self.pending.pop(op, None) is not None:
            self._told(Failed(op, Failure(kind)))

    def answer_all(self) -> None:
        """Carry out everything, and what follows from it."""
        for _ in range(MOST_OPERATIONS):
            if not self.pending:
                return
            self.answer(next(iter(self.pending)))
        raise AssertionError("the core never stops asking")

    # --- time ----------------------------------------------------------------------------------------------------

    def wait(self, seconds: float, *, late: bool = False) -> None:
        """Let time pass, with the core woken up whenever it wants to be, or only at the end."""
        until = self.now.mono + seconds
        calls, last = 0, -1.0
        while not late and (due := self.engine.next_deadline()) is not None and due <= until:
            self._move(max(due, self.now.mono))
            calls = calls + 1 if self.now.mono == last else 0
            last = self.now.mono
            assert calls < STALLED, f"next_deadline() stays at {due}"
            self._told(None)
        self._move(until)
        self._told(None)

    def stop(self, grace: float) -> None:
        """Somebody wants the process to end."""
        if not self._stopping:
            self._stopping = True
            self._told(Stopping(grace))

    def finish(self) -> None:
        """Everybody leaves and the process stops: it ends in time, with nothing under way but what was given up."""
        for peer in list(self.peers.values()):
            self.close(peer)
        self.answer_all()
        self.stop(5.0)
        self.wait(6.0)
        assert self.exited is not None, "the core does not end within its grace"

    # --- helpers -------------------------------------------------------------------------------------------------

    def _move(self, mono: float) -> None:
        self.now = Moment(mono, START.wall + mono - START.mono)

    def _told(self, fact: Fact | None) -> None:
        if self.exited is not None:
            return
        self.handled += 1
        self._contract.fact(fact)
        for command in self.engine.handle(fact, self.now):
            self._contract.command(command)
            self._carry_out(command)
        deadline = self.engine.next_deadline()
        assert deadline is None or deadline == deadline, "a deadline is no number"
        assert len(self.pending) <= MOST_OPERATIONS, f"{len(self.pending)} operations are under way"

    def _carry_out(self, command: Command) -> None:
        match command:
            case Send(ch=ch, data=data):
                self._sent(ch, data)
            case PauseReading(ch=ch) | ResumeReading(ch=ch):
                if ch in self.peers:
                    self.peers[ch].paused = isinstance(command, PauseReading)
            case Abort(ch=ch):
                if ch in self.peers:
                    self.peers[ch].deaf = True
            case Log():
                self._logged(command)
            case Exit():
                self.exited = command
            case Operation():
                self.pending[command.op] = command
            case Cancel(op=op):
                self.cancelled[op] = None
            case CloseWrite() | _:
                pass

    def _sent(self, ch: ChannelId, data: bytes) -> None:
        peer = self.peers.get(ch)
        if peer is None:
            return
        peer.unsent += len(data)
        assert peer.unsent <= LIMITS.max_unsent + ONE_WRITE, f"{peer.unsent} bytes wait at a channel"
        if peer.client is not None:
            peer.client.hear(data)
            self.secrets.update(dict.fromkeys(peer.client.tokens))

    def _logged(self, log: Log) -> None:
        assert log.event != "bug", f"a bug was logged: {log.fields}"
        text = f"{log.event} {log.fields}"
        assert not any(secret in text for secret in self.secrets), f"a secret is in a log record: {log.event}"


def counting() -> Entropy:
    """Entropy that counts: never the same twice, which is all that is needed to tell secrets apart."""
    count = 0

    def entropy(n: int) -> bytes:
        nonlocal count
        if n > 64:  # for many things at once
            return b"".join(entropy(16) for _ in range(n // 16))
        count += 1
        return (count.to_bytes(8, "big")[::-1] * (n // 8 + 1))[:n]

    return entropy
