"""Driver of one core: any fact that the contract permits, in any order, with operations answered at any time.

The driver checks the core's commands, logs, deadlines, unsent bytes and number of pending operations.
"""

from __future__ import annotations

from typing import Any

from attrs import define, field

from fuzz.cores.clients import CoreClient
from svc_proto import facts
from svc_proto.commands import Connect, Log, OpenFile, Operation, Query, SendFile, Spawn, Spawned
from svc_proto.engine.core import Service
from svc_proto.wire.limits import Limits
from tests.support.core_harness import CoreHarness, HarnessNode, PassiveEnd
from tests.support.playbook import Logs

__all__ = ["LIMITS", "CoreDriver", "FuzzPeer"]

LIMITS = Limits(max_unsent=64 * 1024, max_message=32 * 1024, high_water=16 * 1024, low_water=4 * 1024)
ONE_WRITE = 160 * 1024  # bytes that one fact may add when a channel was just under its limit
MAX_OPERATIONS = 500  # under way
MAX_CHANNELS = 12  # opened by peers
HERE = facts.Address("10.0.0.1", 8767)
LOCAL, REMOTE = facts.Address("127.0.0.1", 40_000), facts.Address("203.0.113.7", 40_000)
A_FILE = bytes(1000)  # content of each file that the core opens and has not written


@define(eq=False)
class FuzzPeer(PassiveEnd):
    """Far end of a channel of the core. The driver decides when it reads and closes."""

    client: CoreClient | None = None
    child: Spawn | None = None
    reads: bool = False
    read_closed: bool = False
    waiting: bytearray = field(factory=bytearray)  # bytes for the core

    def feed(self, data: bytes) -> None:
        """Check that the unread bytes are within their limit, and pass the data to the client, if there is one."""
        assert self.unread <= LIMITS.max_unsent + ONE_WRITE, f"{self.unread} bytes wait at a channel"
        if self.client is not None:
            self.client.feed(data)


class SecretCheckingLog(Logs):
    """Receiver of log records, which raises for a record with a bug or a secret, and stores none."""

    def __init__(self, driver: CoreDriver) -> None:
        self._driver = driver

    def append(self, record: Log) -> None:
        assert record.event != "bug", f"a bug was logged: {record.fields}"
        text = f"{record.event} {record.fields}"
        assert not any(word in text for word in self._driver.secrets), f"a secret is in a log record: {record.event}"


class CoreDriver(CoreHarness):
    """Harness of one core from its start. Calls that do not apply are ignored, so any sequence of calls is valid."""

    def __init__(self, service: Service, secrets: tuple[str, ...] = ()) -> None:
        super().__init__(service)
        self.logs = SecretCheckingLog(self)
        self.given = secrets
        self.clients: list[CoreClient] = []  # all that ever connected
        self.pending: dict[facts.OperationId, Operation[Any]] = {}
        self._stopping = False
        # Files stay open: an operation may be answered although its reader has given up.
        handlers = self.node.operations.handlers
        self.node.operations.handlers = {kind: handlers[kind] for kind in handlers if issubclass(kind, Operation)}
        self.feed(facts.Started())
        self.answer_all()

    # --- peers ---------------------------------------------------------------------------------------------------

    @property
    def peers(self) -> dict[facts.ChannelId, FuzzPeer]:
        """Return the far ends of all channels."""
        return self.node.ends

    @property
    def accepted_peers(self) -> list[FuzzPeer]:
        """Return the peers that connected to the core."""
        return [peer for peer in self.peers.values() if peer.ch % 2 == 0]

    @property
    def secrets(self) -> list[str]:
        """Return the texts that must not be logged."""
        return [*self.given, *(token for client in self.clients for token in client.tokens)]

    @property
    def tokens(self) -> list[str]:
        """Return the tokens of all connected clients."""
        return [token for peer in self.accepted_peers if peer.client is not None for token in peer.client.tokens]

    def connect_client(self, client: CoreClient | None, *, local: bool) -> FuzzPeer | None:
        """Connect a client, or a peer without a client; return the peer.

        Return None if the process is stopping or has ended, or has `MAX_CHANNELS` accepted peers.
        """
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
        """Pass up to `most` waiting bytes of a peer to the core, if the channel is open and the core reads it."""
        if peer.client is not None:
            peer.waiting += peer.client.outgoing
            peer.client.outgoing.clear()
        data = bytes(peer.waiting[:most])
        if data and not (peer.gone or peer.held or peer.aborted or peer.read_closed):
            del peer.waiting[: len(data)]
            self.feed(facts.Received(peer.ch, data))

    def deliver(self, peer: FuzzPeer, data: bytes) -> None:
        """Append bytes to those that wait at a peer, and pass them to the core if it reads the channel."""
        peer.waiting += data
        self.deliver_waiting(peer)

    def close_read(self, peer: FuzzPeer) -> None:
        """Report to the core that the peer sends no more, unless the channel is closed or not read."""
        if not (peer.gone or peer.read_closed or peer.aborted or peer.held):
            peer.read_closed = True
            self.feed(facts.ReadClosed(peer.ch))

    def drain(self, peer: FuzzPeer, share: float) -> None:
        """Let the peer read a share of the core's unsent bytes, at least one byte if there are any."""
        n = min(peer.unread, max(1, round(peer.unread * share)))
        if n and not (peer.gone or peer.aborted):
            peer.unread -= n
            self.feed(facts.Sent(peer.ch, n))

    def close(self, peer: FuzzPeer, status: int | None = None) -> None:
        """Close the channel from the peer's side, with the exit status `status` if the peer is a child process.

        Files that are being sent to the peer fail, and a child's standard error is closed too.
        """
        child = peer.child if peer.child is not None and peer.child.ch == peer.ch else None
        if child is not None and child.stderr in self.peers:
            self.close(self.peers[child.stderr])
        for operation in [one for one in self.pending.values() if isinstance(one, SendFile) and one.ch == peer.ch]:
            self.fail(operation.op, facts.FailureKind.CANCELLED)
        peer.finish("", None if child is None else status)
        self.run_until_idle()

    # --- operations ----------------------------------------------------------------------------------------------

    def on_operation(self, node: HarnessNode, operation: Operation[Any]) -> None:
        """Store the operation as pending."""
        self.pending[operation.op] = operation

    def cancel(self, node: HarnessNode, op: facts.OperationId) -> None:
        """Ignore the cancellation: the operation is answered nevertheless."""

    def answer(self, op: facts.OperationId) -> None:
        """Execute a pending operation. For a store request, execute the oldest pending store request instead."""
        operation = self.pending.get(op)
        if isinstance(operation, Query):
            operation = next(one for one in self.pending.values() if isinstance(one, Query))
        if operation is not None:
            del self.pending[operation.op]
            self.execute(self.node, operation)
            self.run_until_idle()

    def execute(self, node: HarnessNode, operation: Operation[Any]) -> None:
        """Execute an operation: a child starts without a program, and a missing file is created when it is opened."""
        match operation:
            case Spawn(op=op, ch=ch, stderr=errors):
                for number in (ch, errors):
                    if number is not None:
                        self.peers[number] = FuzzPeer(node, number, child=operation)
                node.post(facts.Done(op, Spawned(self.host.pid())))
                return
            case OpenFile(path=path) if not self.disk.exists(path):
                self.disk.put(path, A_FILE)
        super().execute(node, operation)

    def connect(self, node: HarnessNode, order: Connect) -> FuzzPeer:
        """Return a far end for a connection that the core opens."""
        return FuzzPeer(node, order.ch)

    def fail(self, op: facts.OperationId, kind: facts.FailureKind) -> None:
        """Report to the core that a pending operation has failed."""
        if self.pending.pop(op, None) is not None:
            self.feed(facts.Failed(op, facts.Failure(kind)))

    def answer_all(self) -> None:
        """Execute pending operations until none is left. Raise `AssertionError` after `MAX_OPERATIONS` of them."""
        for _ in range(MAX_OPERATIONS):
            if not self.pending:
                return
            self.answer(next(iter(self.pending)))
        raise AssertionError("the core never stops asking")

    # --- time ----------------------------------------------------------------------------------------------------

    def stop(self, grace: float = 5.0) -> None:
        """Request the end of the process; do nothing in later calls."""
        if not self._stopping:
            self._stopping = True
            super().stop(grace)

    def finish(self) -> None:
        """Close all peers, execute all operations, and stop the process, which must end in time."""
        for peer in list(self.peers.values()):
            self.close(peer)
        self.answer_all()
        self.stop()
        self.after(6.0)
        assert self.exits, "the core does not end within its grace"

    def handle(self, node: HarnessNode, fact: facts.Fact | None) -> None:
        """Implement `CoreHarness.handle`, and check deadline and operations."""
        super().handle(node, fact)
        deadline = self.engine.next_deadline()
        assert deadline is None or deadline == deadline, "a deadline is no number"
        assert len(self.pending) <= MAX_OPERATIONS, f"{len(self.pending)} operations are under way"
