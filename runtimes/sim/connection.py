"""A TCP-like connection: two ends, ordered bytes in each direction, a window, half-closing and reset.

Bytes sent at one end wait in its outbox until the other end's window has room. Then they travel as segments, cut at
random, and arrive in order after the link's delay. Arrived bytes wait until the owner reads them. `window` limits the
bytes in flight and those waiting together, so an owner that does not read stops the other side's `on_sent` calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from runtimes.sim.faults import SPIKE
from svc_proto.facts import Address, Failure, FailureKind

if TYPE_CHECKING:
    from runtimes.sim.host import SimHost
    from runtimes.sim.network import SimNetwork

__all__ = ["EOF", "Inbox", "SimConnection", "SimEnd", "OutboxFile", "SimEndHandler"]

READ_SIZE = 64 * 1024  # bytes of one read, as in real runtimes
EOF: Final = b""  # result of `SimEnd.read` for a FIN
CUTS = 4  # most cuts of one write into segments

_FIN: Final = "FIN"
_RST: Final = "RST"


class SimEndHandler(Protocol):
    """Owner of an end. Its methods may read what has arrived, but not write or close before they return."""

    def on_sent(self, n: int) -> None:
        """Count `n` bytes that left for the other end."""

    def on_readable(self) -> None:
        """Handle that `SimEnd.read` has something."""

    def on_closed(self, why: str) -> None:
        """Handle the end's closing; no further call follows."""


class OutboxFile:
    """Bytes of a file in an outbox; `over` is called when the last byte has left or the channel closes before.

    It is not called for a file that is dropped.
    """

    def __init__(self, n: int, over: Callable[[Failure | None], None]) -> None:
        self.n = n
        self.over = over


class Inbox(ABC):
    """Arrived bytes of a channel until its owner, if it has one, reads them; reading can be paused."""

    exit_status: int | None = None  # only children have one

    def __init__(self) -> None:
        self.owner: SimEndHandler | None = None
        self.gone = False
        self.paused = False
        self.eof = False  # nothing follows
        self.eof_taken = False
        self._spare = 0  # reads that are permitted although paused
        self._inbox: deque[bytes] = deque()

    def read(self) -> bytes | None:
        """Return the next bytes, `EOF` once, or None: nothing has arrived, reading is paused, or the end is closed."""
        if not self.has_more:
            return None
        self._spare = 0
        if self._inbox:
            return self._take()
        self.eof_taken = True
        self._close_if_done()
        return EOF

    def pause(self, *, spare: int = 0) -> None:
        """Let `read` return None until `resume`; with a `spare` other than 0, one more read succeeds first."""
        if not self.paused:
            self.paused = True
            self._spare = spare

    def resume(self) -> None:
        """Resume reading."""
        if self.paused:
            self.paused = False
            self._notify_owner()

    @property
    def has_more(self) -> bool:
        """Report whether `read` would return something."""
        if self.gone or (self.paused and not self._spare):
            return False
        return bool(self._inbox) or (self.eof and not self.eof_taken)

    @abstractmethod
    def _take(self) -> bytes:
        """Remove and return bytes of the inbox, which is not empty."""

    @abstractmethod
    def _close_if_done(self) -> None:
        """Close the channel if the owner has read everything and nothing else keeps it open."""

    def _join(self) -> bytes:
        """Remove and return the pieces that fit into one read."""
        data = self._inbox.popleft()
        while self._inbox and len(data) + len(self._inbox[0]) <= READ_SIZE:
            data += self._inbox.popleft()
        return data

    def _notify_owner(self) -> None:
        if self.owner is not None and self.has_more:
            self.owner.on_readable()


class SimEnd(Inbox):
    """A side of a connection. `peer` and `local` are the addresses as its owner sees them.

    A client's end has no owner before its handshake is over.
    """

    other: SimEnd

    def __init__(self, connection: SimConnection, host: SimHost, local: Address, peer: Address) -> None:
        super().__init__()
        self.connection = connection
        self.host = host
        self.local = local
        self.peer = peer
        self.fin_sent = False
        self._fin = False  # `close_write` was called
        self._outbox: deque[tuple[memoryview, OutboxFile | None]] = deque()
        self.left = 0  # bytes that have left so far
        self._unsent = 0
        self._in_window = 0  # bytes sent by this end that are in flight or not read by the other end
        self._flight: deque[tuple[float, bytes | str]] = deque()
        self._last = 0.0  # arrival time of the last segment
        self._acking = False

    # --- writing -------------------------------------------------------------------------------------------------

    @property
    def unsent(self) -> int:
        """Return the number of bytes that wait for room in the window."""
        return self._unsent

    def send(self, data: bytes, file: OutboxFile | None = None) -> None:
        """Write after earlier sends. Does nothing if the end is closed or `close_write` was called."""
        if self.gone or self._fin:
            return
        self._outbox.append((memoryview(data), file))
        self._unsent += len(data)
        self._flush()

    def drop_file(self, file: OutboxFile) -> None:
        """Stop sending a file; the bytes queued after it follow."""
        kept = deque(entry for entry in self._outbox if entry[1] is not file)
        self._unsent = sum(len(data) for data, _ in kept)
        self._outbox = kept
        self._flush()

    def close_write(self) -> None:
        """Send a FIN after earlier sends."""
        if not self.gone and not self._fin:
            self._fin = True
            self._flush()

    # --- ends ----------------------------------------------------------------------------------------------------

    def abort(self, why: str = "aborted") -> None:
        """Close this end, with RST unless a FIN was sent and nothing is unread.

        Without RST, bytes in flight still arrive.
        """
        if not self.gone:
            if self._inbox or not self.fin_sent:
                self._reset()
            self.finish(why)

    def vanish(self, *, reset: bool) -> None:
        """Close after the process's end: with RST if `reset` or data is unread, as kernels do, otherwise with FIN."""
        if self.gone:
            return
        self.owner = None
        if reset or self._inbox:
            self._reset()
        elif not self.fin_sent:
            self._launch(_FIN)
        self.finish("")

    def finish(self, why: str) -> None:
        """Close this end and report it to the owner."""
        if self.gone:
            return
        self.gone = True
        outbox, self._outbox = self._outbox, deque()
        self._unsent = 0
        self._inbox.clear()
        for _, file in outbox:
            if file is not None:
                file.over(Failure(FailureKind.CANCELLED, "the channel closed"))
        if self.owner is not None:
            self.owner.on_closed(why)
        if self.other.gone:
            self.connection.network.forget(self.connection)

    # --- for the connection --------------------------------------------------------------------------------------

    def after_handshake(self, when: float) -> None:
        """Delay all bytes of this end until `when`."""
        self._last = when

    def adopt(self, owner: SimEndHandler) -> None:
        """Set the owner, and report what has arrived already."""
        self.owner = owner
        self._notify_owner()

    def lose_flight(self) -> None:
        """Drop the segments in flight."""
        self._flight.clear()

    def land(self) -> None:
        """Deliver the segments that are due; while the connection is blocked, all stay in flight."""
        flight, other = self._flight, self.other
        now = self.connection.world.now
        while flight and flight[0][0] <= now and not self.connection.blocked:
            other._arrive(flight.popleft()[1])

    def reschedule(self, when: float) -> None:
        """Schedule overdue segments for `when`, after the connection was healed."""
        if self._flight:
            self.connection.world.at(when, self.land)

    # --- helpers -------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        outbox, connection = self._outbox, self.connection
        told = 0
        through: list[OutboxFile] = []
        while outbox:
            data, file = outbox[0]
            room = connection.network.window - self._in_window
            if room <= 0 and len(data):
                break
            size = len(data)
            whole = size <= room
            if whole:
                outbox.popleft()
            else:
                outbox[0] = (data[room:], file)
                data, size = data[:room], room
            self.left += size
            self._unsent -= size
            self._in_window += size
            for piece in split(bytes(data), connection.rng, connection.network.chunking):
                self._launch(piece)
            told += size
            if file is not None and whole:
                through.append(file)
        if told and self.owner is not None:
            self.owner.on_sent(told)
        for file in through:
            file.over(None)
        if self._fin and not self.fin_sent and not outbox and not self.gone:
            self._launch(_FIN)
            self.fin_sent = True
            self._close_if_done()

    def _launch(self, segment: bytes | str) -> None:
        connection = self.connection
        if connection.dead:
            return
        world, rng, faults = connection.world, connection.rng, connection.world.faults
        if faults.cut and rng.random() < faults.cut:
            connection.cut()
            return
        if faults.hang and rng.random() < faults.hang:
            connection.hang()
        when = world.now + connection.delay()
        if faults.spike and rng.random() < faults.spike:
            when += rng.uniform(*SPIKE)
        if self._flight and when <= self._last:  # segments that arrive together need only one event
            self._flight.append((self._last, segment))
            return
        self._last = when = max(when, self._last)
        self._flight.append((when, segment))
        world.at(when, self.land)

    def _reset(self) -> None:
        self._flight.clear()
        if not self.other.gone:
            self._launch(_RST)

    def _arrive(self, segment: bytes | str) -> None:
        if self.gone:
            if isinstance(segment, bytes) and not self.connection.dead:
                self._reset()  # a closed end answers with RST
            return
        if segment is _RST:
            self.finish("reset by the peer")
        elif segment is _FIN:
            self.eof = True
            self._notify_owner()
        else:
            assert isinstance(segment, bytes)
            self._inbox.append(segment)
            self._notify_owner()

    def _take(self) -> bytes:
        joins = len(self._inbox) > 1 and self.connection.rng.random() >= self.connection.network.chunking
        data = self._join() if joins else self._inbox.popleft()
        self.other._acknowledge(len(data))
        return data

    def _acknowledge(self, n: int) -> None:
        self._in_window -= n
        if self._outbox and not self._acking:
            self._acking = True
            self.connection.world.at(self.connection.world.now + self.connection.delay(), self._acknowledged)

    def _acknowledged(self) -> None:
        self._acking = False
        self._flush()

    def _close_if_done(self) -> None:
        if self.fin_sent and self.eof_taken:
            self.finish("")


class SimConnection:
    """Two ends and the link between them."""

    def __init__(
        self, network: SimNetwork, number: int, client: tuple[SimHost, Address], server: tuple[SimHost, Address]
    ) -> None:
        self.network = network
        self.world = network.world
        self.rng = network.world.rng
        self.number = number
        self.dead = False  # cut: nothing passes any more
        self.hung = False
        self.tls = False
        self.alpn: str | None = None  # negotiated protocol of TLS
        (a, here), (b, there) = client, server
        self.link = network.link_between(a, b)
        self.client = SimEnd(self, a, here, there)
        self.server = SimEnd(self, b, there, here)
        self.client.other = self.server
        self.server.other = self.client

    def __repr__(self) -> str:
        return f"<connection {self.number} {self.client.host.name} -> {self.server.host.name}:{self.server.local.port}>"

    @property
    def blocked(self) -> bool:
        """Report whether segments stay in flight, because the connection hangs or its hosts are partitioned."""
        return self.hung or self.network.parted(self.client.host, self.server.host)

    def delay(self) -> float:
        """Return the seconds that the next segment takes, drawn from the link's latency and jitter."""
        return self.link.latency + self.link.jitter * self.rng.random()

    def cut(self) -> None:
        """Break the connection: bytes in flight are lost, and each end is closed after a delay."""
        if self.dead:
            return
        self.dead = True
        for end in (self.client, self.server):
            end.lose_flight()
            self.world.at(self.world.now + self.delay(), partial(end.finish, "the connection was cut"))

    def hang(self) -> None:
        """Stop delivery in both directions until `heal`."""
        self.hung = True

    def heal(self) -> None:
        """End a hang; the segments that were held back arrive after a delay, unless the hosts are partitioned."""
        self.hung = False
        self.resume()

    def resume(self) -> None:
        """Let the segments that were held back arrive after a delay, unless the connection is still blocked."""
        for end in (self.client, self.server):
            end.reschedule(self.world.now + self.delay())


def split(data: bytes, rng: Random, chunking: float) -> list[bytes]:
    """Cut a write with probability `chunking` into up to `CUTS` + 1 segments; only empty data gives no segment."""
    if not data:
        return []
    if len(data) == 1 or not chunking or rng.random() >= chunking:
        return [data]
    places = sorted({rng.randrange(1, len(data)) for _ in range(rng.randint(1, CUTS))})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
