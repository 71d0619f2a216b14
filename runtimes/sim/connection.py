"""One TCP-like connection: two ends, ordered bytes in each direction, a window, half closing, reset.

Bytes ordered at one end wait in its outbox until the other end's window has room, then fly as segments of random
sizes and arrive in order after the link's delay. What has arrived waits until the owner takes it. `window` bounds
what flies and what waits together, so an owner that does not take stops the other side's `sent` reports.
"""

from __future__ import annotations

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

__all__ = ["EOF", "READ_SIZE", "SimConnection", "SimEnd", "OutboxFile", "SimEndHandler"]

READ_SIZE = 64 * 1024  # bytes taken at once, as real runtimes read
EOF: Final = b""  # what `SimEnd.read` gives for a FIN
CUTS = 4  # places at which one write is cut into segments, at most

_FIN: Final = "FIN"
_RST: Final = "RST"


class SimEndHandler(Protocol):
    """Who is told what happens at an end. They may take what has arrived, but not write or close before they return."""

    def on_sent(self, n: int) -> None:
        """`n` bytes left for the other end."""

    def on_readable(self) -> None:
        """`SimEnd.read` has something."""

    def on_closed(self, why: str) -> None:
        """The end is gone; nothing more will be told."""


class OutboxFile:
    """Bytes of a file in an outbox: reported at once when the last has left, or when the channel closed before."""

    def __init__(self, n: int, over: Callable[[Failure | None], None]) -> None:
        self.n = n
        self.over = over


class SimEnd:
    """One side of a connection. `peer` and `local` are the addresses as its owner sees them."""

    other: SimEnd
    exit_status: int | None = None  # as children have

    def __init__(self, connection: SimConnection, host: SimHost, local: Address, peer: Address) -> None:
        self.connection = connection
        self.host = host
        self.local = local
        self.peer = peer
        self.owner: SimEndHandler | None = None  # a client's end has none before its handshake is over
        self.gone = False
        self.paused = False
        self.eof = False  # the FIN of the other side has arrived
        self.eof_taken = False
        self.fin_sent = False
        self._fin = False  # `close_write` was called
        self._spare = 0  # reads that go through although paused
        self._outbox: deque[tuple[memoryview, OutboxFile | None]] = deque()
        self.left = 0  # bytes that have left so far
        self._unsent = 0
        self._in_window = 0  # bytes of ours that fly, or wait at the other end
        self._flight: deque[tuple[float, bytes | str]] = deque()
        self._last = 0.0  # when the last of them arrives
        self._inbox: deque[bytes] = deque()
        self._acking = False

    # --- writing -------------------------------------------------------------------------------------------------

    @property
    def unsent(self) -> int:
        """Bytes that wait for room in the window."""
        return self._unsent

    def send(self, data: bytes, file: OutboxFile | None = None) -> None:
        """Write after what was sent before. Nothing happens at an end that is gone or has sent its FIN."""
        if self.gone or self._fin:
            return
        self._outbox.append((memoryview(data), file))
        self._unsent += len(data)
        self._flush()

    def drop_file(self, file: OutboxFile) -> None:
        """Send no more of a file."""
        kept = deque(entry for entry in self._outbox if entry[1] is not file)
        self._unsent = sum(len(data) for data, _ in kept)
        self._outbox = kept
        self._flush()

    def close_write(self) -> None:
        """Send a FIN after what was sent before."""
        if not self.gone and not self._fin:
            self._fin = True
            self._flush()

    # --- reading -------------------------------------------------------------------------------------------------

    def read(self) -> bytes | None:
        """The next bytes, `EOF`, or None when nothing has arrived or reading is paused."""
        if self.gone or (self.paused and not self._spare):
            return None
        if self._inbox:
            self._spare = 0
            data = self._inbox.popleft()
            if self._inbox and self.connection.rng.random() >= self.connection.network.chunking:
                data = self._join(data)
            self.other._acknowledge(len(data))
            return data
        if not self.eof or self.eof_taken:
            return None
        self._spare = 0
        self.eof_taken = True
        self._maybe_over()
        return EOF

    def pause(self, *, spare: int = 0) -> None:
        """Let `read` give nothing, after `spare` more reads."""
        if not self.paused:
            self.paused = True
            self._spare = spare

    def resume(self) -> None:
        """Read again."""
        if self.paused:
            self.paused = False
            self._tell_readable()

    @property
    def has_more(self) -> bool:
        """Whether `read` would give something."""
        if self.gone or (self.paused and not self._spare):
            return False
        return bool(self._inbox) or (self.eof and not self.eof_taken)

    # --- ends ----------------------------------------------------------------------------------------------------

    def abort(self, why: str = "aborted") -> None:
        """Drop everything, what flies included, and send RST; behind a FIN, with nothing unread, what flies arrives."""
        if not self.gone:
            if self._inbox or not self.fin_sent:
                self._reset()
            self.finish(why)

    def vanish(self, *, reset: bool) -> None:
        """The owner's process is over. With `reset` (or unread data, as kernels do) RST, else FIN after what flies."""
        if self.gone:
            return
        self.owner = None
        if reset or self._inbox:
            self._reset()
        elif not self.fin_sent:
            self._launch(_FIN)
        self.finish("")

    def finish(self, why: str) -> None:
        """Be gone, and say so."""
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
        """Nothing of ours arrives before `when`."""
        self._last = when

    def adopt(self, owner: SimEndHandler) -> None:
        """Have an owner, and tell it what is here already."""
        self.owner = owner
        self._tell_readable()

    def lose_flight(self) -> None:
        """What flies never arrives."""
        self._flight.clear()

    def land(self) -> None:
        """Deliver what should have arrived by now; while the connection is blocked everything stays in the air."""
        flight, other = self._flight, self.other
        now = self.connection.world.now
        while flight and flight[0][0] <= now and not self.connection.blocked:
            other._arrive(flight.popleft()[1])

    def reschedule(self, when: float) -> None:
        """The connection is mended: what is overdue lands at `when`."""
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
            self._maybe_over()

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
        if self._flight and when <= self._last:  # several segments may arrive together: then one landing is enough
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
                self._reset()  # nobody is here to read
            return
        if segment is _RST:
            self.finish("reset by the peer")
        elif segment is _FIN:
            self.eof = True
            self._tell_readable()
        else:
            assert isinstance(segment, bytes)
            self._inbox.append(segment)
            self._tell_readable()

    def _tell_readable(self) -> None:
        if self.owner is not None and self.has_more:
            self.owner.on_readable()

    def _join(self, first: bytes) -> bytes:
        parts, size = [first], len(first)
        while self._inbox and size + len(self._inbox[0]) <= READ_SIZE:
            size += len(self._inbox[0])
            parts.append(self._inbox.popleft())
        return b"".join(parts)

    def _acknowledge(self, n: int) -> None:
        self._in_window -= n
        if self._outbox and not self._acking:
            self._acking = True
            self.connection.world.at(self.connection.world.now + self.connection.delay(), self._acknowledged)

    def _acknowledged(self) -> None:
        self._acking = False
        self._flush()

    def _maybe_over(self) -> None:
        if self.fin_sent and self.eof_taken:
            self.finish("")


class SimConnection:
    """Two ends and what lies between them."""

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
        self.alpn: str | None = None  # what TLS negotiated
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
        """Whether segments stay in the air."""
        return self.hung or self.network.parted(self.client.host, self.server.host)

    def delay(self) -> float:
        """Seconds that one segment takes."""
        return self.link.latency + self.link.jitter * self.rng.random()

    def cut(self) -> None:
        """Break the connection: what flies is lost, and each end finds out for itself."""
        if self.dead:
            return
        self.dead = True
        for end in (self.client, self.server):
            end.lose_flight()
            self.world.at(self.world.now + self.delay(), partial(end.finish, "the connection was cut"))

    def hang(self) -> None:
        """Become a black hole: nothing arrives until `heal`."""
        self.hung = True

    def heal(self) -> None:
        """Let what was held back arrive."""
        self.hung = False
        for end in (self.client, self.server):
            end.reschedule(self.world.now + self.delay())


def split(data: bytes, rng: Random, chunking: float) -> list[bytes]:
    """Cut a write into one to `CUTS` + 1 segments, never empty unless `data` is; with probability `chunking` at all."""
    if not data:
        return []
    if len(data) == 1 or not chunking or rng.random() >= chunking:
        return [data]
    places = sorted({rng.randrange(1, len(data)) for _ in range(rng.randint(1, CUTS))})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]
