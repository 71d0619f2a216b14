"""A `CoreHarness` that does nothing at once: any fact that the contract allows, in any order, answers when it pleases.

Held to, after every fact
  `handle` does not raise, and every command is one that the contract of `runtimes.sim.contract` allows
  no bug is logged, and no secret is in a log
  what waits at a channel is within its limit, and so is the number of operations under way
  time does not stand still: a deadline that was met is followed by a later one
  whoever speaks well is spoken to in HTTP
"""

from __future__ import annotations

from typing import Any

from attrs import define, field

from fuzz.cores.clients import CoreClient
from svc_proto.commands import Connect, Log, OpenFile, Operation, Query, SendFile, Spawn, Spawned
from svc_proto.engine.core import Service
from svc_proto.facts import (
    Address,
    ChannelId,
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
)
from svc_proto.wire.limits import Limits
from tests.support.core_harness import CoreHarness, HarnessNode, PassiveEnd
from tests.support.playbook import Logs

__all__ = ["LIMITS", "CoreDriver", "FuzzPeer"]

LIMITS = Limits(max_unsent=64 * 1024, max_message=32 * 1024, high_water=16 * 1024, low_water=4 * 1024)
ONE_WRITE = 160 * 1024  # bytes that one fact may add when a channel was just under its limit
MAX_OPERATIONS = 500  # under way
MAX_CHANNELS = 12  # that peers have open
HERE, LOCAL, REMOTE = Address("10.0.0.1", 8767), Address("127.0.0.1", 40_000), Address("203.0.113.7", 40_000)
A_FILE = bytes(1000)  # what is in each that the core asks for and has not written


@define(eq=False)
class FuzzPeer(PassiveEnd):
    """The other side of a channel: it reads, and goes, when the driver says so."""

    client: CoreClient | None = None
    child: Spawn | None = None
    reads: bool = False
    read_closed: bool = False
    waiting: bytearray = field(factory=bytearray)  # for the core

    def feed(self, data: bytes) -> None:
        """What is unread is within its limit."""
        assert self.unread <= LIMITS.max_unsent + ONE_WRITE, f"{self.unread} bytes wait at a channel"
        if self.client is not None:
            self.client.feed(data)


class SecretCheckingLog(Logs):
    """Log records, each of which is looked at: no bug, and no secret."""

    def __init__(self, driver: CoreDriver) -> None:
        self._driver = driver

    def append(self, record: Log) -> None:
        assert record.event != "bug", f"a bug was logged: {record.fields}"
        text = f"{record.event} {record.fields}"
        assert not any(word in text for word in self._driver.secrets), f"a secret is in a log record: {record.event}"


class CoreDriver(CoreHarness):
    """One core from its start on. Whatever is out of place is passed over, so any sequence of calls is a valid one."""

    def __init__(self, service: Service, secrets: tuple[str, ...] = ()) -> None:
        super().__init__(service)
        self.logs = SecretCheckingLog(self)
        self.given = secrets
        self.clients: list[CoreClient] = []  # all that ever came
        self.pending: dict[OperationId, Operation[Any]] = {}
        self._stopping = False
        handlers = self.node.operations.handlers  # files stay open: who has given up reading may be answered yet
        self.node.operations.handlers = {kind: handlers[kind] for kind in handlers if issubclass(kind, Operation)}
        self.feed(Started())
        self.answer_all()

    # --- peers ---------------------------------------------------------------------------------------------------

    @property
    def peers(self) -> dict[ChannelId, FuzzPeer]:
        """Everybody who has a channel."""
        return self.node.ends

    @property
    def accepted_peers(self) -> list[FuzzPeer]:
        """Those who came to the core."""
        return [peer for peer in self.peers.values() if peer.ch % 2 == 0]

    @property
    def secrets(self) -> list[str]:
        """What may not be logged."""
        return [*self.given, *(token for client in self.clients for token in client.tokens)]

    @property
    def tokens(self) -> list[str]:
        """All that anybody was given and that still has a connection."""
        return [token for peer in self.accepted_peers if peer.client is not None for token in peer.client.tokens]

    def connect_client(self, client: CoreClient | None, *, local: bool) -> FuzzPeer | None:
        """Somebody comes; None when nobody can."""
        if not self.node.alive or self._stopping or len(self.accepted_peers) >= MAX_CHANNELS:
            return None
        if client is not None:
            self.clients.append(client)
        peer: FuzzPeer = self.accept(
            lambda node, ch: FuzzPeer(node, ch, client=client), LOCAL if local else REMOTE, HERE
        )
        self.deliver_waiting(peer)
        return peer

    def deliver_waiting(self, peer: FuzzPeer, most: int = 1 << 30) -> None:
        """Have the core read what a peer has for it, up to so many bytes."""
        if peer.client is not None:
            peer.waiting += peer.client.outgoing
            peer.client.outgoing.clear()
        data = bytes(peer.waiting[:most])
        if data and not (peer.gone or peer.held or peer.aborted or peer.read_closed):
            del peer.waiting[: len(data)]
            self.feed(Received(peer.ch, data))

    def deliver(self, peer: FuzzPeer, data: bytes) -> None:
        """Have the core read some bytes behind what waits already."""
        peer.waiting += data
        self.deliver_waiting(peer)

    def close_read(self, peer: FuzzPeer) -> None:
        """The peer sends no more."""
        if not (peer.gone or peer.read_closed or peer.aborted or peer.held):
            peer.read_closed = True
            self.feed(ReadClosed(peer.ch))

    def drain(self, peer: FuzzPeer, share: float) -> None:
        """A share of what the core has sent leaves."""
        n = min(peer.unread, max(1, round(peer.unread * share)))
        if n and not (peer.gone or peer.aborted):
            peer.unread -= n
            self.feed(Sent(peer.ch, n))

    def close(self, peer: FuzzPeer, status: int | None = None) -> None:
        """The channel ends."""
        child = peer.child if peer.child is not None and peer.child.ch == peer.ch else None
        if child is not None and child.stderr in self.peers:
            self.close(self.peers[child.stderr])
        for operation in [one for one in self.pending.values() if isinstance(one, SendFile) and one.ch == peer.ch]:
            self.fail(operation.op, FailureKind.CANCELLED)
        peer.finish("", None if child is None else status)
        self.run_until_idle()

    # --- operations ----------------------------------------------------------------------------------------------

    def on_operation(self, node: HarnessNode, operation: Operation[Any]) -> None:
        """It waits."""
        self.pending[operation.op] = operation

    def cancel(self, node: HarnessNode, op: OperationId) -> None:
        """It is answered nevertheless."""

    def answer(self, op: OperationId) -> None:
        """Carry an operation out. The store keeps its order: what was asked of it before is answered first."""
        operation = self.pending.get(op)
        if isinstance(operation, Query):
            operation = next(one for one in self.pending.values() if isinstance(one, Query))
        if operation is not None:
            del self.pending[operation.op]
            self.execute(self.node, operation)
            self.run_until_idle()

    def execute(self, node: HarnessNode, operation: Operation[Any]) -> None:
        """Nearly everything can be had."""
        match operation:
            case Spawn(op=op, ch=ch, stderr=errors):
                for number in (ch, errors):
                    if number is not None:
                        self.peers[number] = FuzzPeer(node, number, child=operation)
                node.post(Done(op, Spawned(self.host.pid())))
                return
            case OpenFile(path=path) if not self.disk.exists(path):
                self.disk.put(path, A_FILE)
        super().execute(node, operation)

    def connect(self, node: HarnessNode, order: Connect) -> FuzzPeer:
        """Somebody is there."""
        return FuzzPeer(node, order.ch)

    def fail(self, op: OperationId, kind: FailureKind) -> None:
        """An operation fails."""
        if self.pending.pop(op, None) is not None:
            self.feed(Failed(op, Failure(kind)))

    def answer_all(self) -> None:
        """Carry out everything, and what follows from it."""
        for _ in range(MAX_OPERATIONS):
            if not self.pending:
                return
            self.answer(next(iter(self.pending)))
        raise AssertionError("the core never stops asking")

    # --- time ----------------------------------------------------------------------------------------------------

    def stop(self, grace: float = 5.0) -> None:
        """Somebody wants the process to end."""
        if not self._stopping:
            self._stopping = True
            super().stop(grace)

    def finish(self) -> None:
        """Everybody leaves and the process stops: it ends in time, with nothing under way but what was given up."""
        for peer in list(self.peers.values()):
            self.close(peer)
        self.answer_all()
        self.stop()
        self.after(6.0)
        assert self.exits, "the core does not end within its grace"

    def handle(self, node: HarnessNode, fact: Fact | None) -> None:
        """See `CoreHarness`."""
        super().handle(node, fact)
        deadline = self.engine.next_deadline()
        assert deadline is None or deadline == deadline, "a deadline is no number"
        assert len(self.pending) <= MAX_OPERATIONS, f"{len(self.pending)} operations are under way"
