"""The simulated network: names, links with delays, listeners, handshakes and partitions.

Connecting to a port without listener fails as `UNREACHABLE` after one round trip, and to a name that does not exist
without a round trip. Connecting to an address without a host, or to a host behind a partition, fails as `TIMED_OUT`
after `connect_timeout`, unless the host is reachable when a SYN is retransmitted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from runtimes.sim.connection import SimConnection, SimEnd
from svc_proto.facts import Address, Failure, FailureKind

if TYPE_CHECKING:
    from runtimes.sim.host import SimHost
    from runtimes.sim.simulation import Simulation

__all__ = ["SimHandshake", "SimLink", "SimListener", "SimNetwork"]

WINDOW = 64 * 1024  # bytes, a receive window without scaling (RFC 9293 section 3.1)
CONNECT_TIMEOUT = 20.0  # s
SYN_AGAIN = 1.0  # s until an unanswered SYN is sent again, doubled each time (RFC 6298 section 2)
LOOPBACK = "127.0.0.1"
LOOPBACK_NAMES = frozenset({LOOPBACK, "localhost", "::1"})
LOOPBACK_LATENCY = 0.00005  # s


@frozen
class SimLink:
    """Link between two hosts: a segment takes `latency` plus up to `jitter` seconds, evenly distributed."""

    latency: float
    jitter: float


class SimListener(Protocol):
    """Acceptor of the connections to a port."""

    tls: bool
    alpn: str | None

    def accepted(self, end: SimEnd) -> None:
        """Adopt the server's end of a new connection."""


Outcome = Callable[[SimEnd | Failure], None]


class SimNetwork:
    """Connections, links and listeners of all hosts.

    `jitter` is a multiple of a link's latency; `chunking` is the probability that a write is cut into several segments.
    """

    def __init__(
        self,
        *,
        jitter: float = 1.0,
        window: int = WINDOW,
        chunking: float = 0.5,
        connect_timeout: float = CONNECT_TIMEOUT,
    ) -> None:
        self.window = window
        self.chunking = chunking
        self.connect_timeout = connect_timeout
        self._jitter = jitter
        self._default = SimLink(0.0, 0.0)
        self._links: dict[tuple[str, str], SimLink] = {}
        self._partitions: dict[tuple[str, str], None] = {}
        self._names: dict[str, str] = {}
        self._listeners: dict[tuple[str, int], SimListener] = {}
        self._connections: dict[int, SimConnection] = {}
        self._count = 0
        self.world: Simulation

    def attach(self, world: Simulation, latency: float) -> None:
        """Attach to the simulation, which calls this once; `latency` is in seconds."""
        self.world = world
        self._default = SimLink(latency, latency * self._jitter)

    # --- for tests -----------------------------------------------------------------------------------------------

    @property
    def connections(self) -> tuple[SimConnection, ...]:
        """Return the connections with at least one open end, oldest first."""
        return tuple(self._connections.values())

    def link(self, a: SimHost, b: SimHost, *, latency: float, jitter: float | None = None) -> None:
        """Set the delay in seconds between two hosts, for later connections."""
        self._links[_pair(a, b)] = SimLink(latency, latency * self._jitter if jitter is None else jitter)

    def name(self, name: str, address: str) -> None:
        """Let a DNS name resolve to an address. Each host's name does so already."""
        self._names[name.lower()] = address

    def partition(self, a: SimHost, b: SimHost) -> None:
        """Block everything between two hosts. Connections stay, and continue after `heal`."""
        self._partitions[_pair(a, b)] = None

    def heal(self) -> None:
        """End every partition and mend every hung connection."""
        self._partitions.clear()
        for connection in self.connections:
            connection.heal()

    def heal_between(self, a: SimHost, b: SimHost) -> None:
        """End the partition between two hosts. Hung connections stay hung."""
        self._partitions.pop(_pair(a, b), None)
        for connection in self.connections:
            if {connection.client.host, connection.server.host} == {a, b}:
                connection.resume()

    # --- for hosts, processes and wires --------------------------------------------------------------------------

    def listen(self, host: SimHost, port: int, listener: SimListener) -> None:
        """Register the listener of a port. Raises ValueError when the port is taken."""
        if (host.name, port) in self._listeners:
            raise ValueError(f"port {port} of {host.name} is taken")
        self._listeners[host.name, port] = listener

    def unlisten(self, host: SimHost, port: int, listener: SimListener) -> None:
        """Remove a listener; do nothing if it is not registered."""
        if self._listeners.get((host.name, port)) is listener:
            del self._listeners[host.name, port]

    def resolve(self, source: SimHost, name: str) -> tuple[SimHost | None, str] | None:
        """Return the host of a name or address (None: no host has the address), and the address.

        Return None in place of both for a name that does not exist.
        """
        if name.lower() in LOOPBACK_NAMES:
            return source, LOOPBACK
        address = self._names.get(name.lower(), name)
        host = self.world.host_at(address)
        if host is None and not _is_address(address):
            return None
        return host, address

    def listener(self, host: SimHost, port: int) -> SimListener | None:
        """Return the listener of a port, or None."""
        return self._listeners.get((host.name, port))

    def link_between(self, a: SimHost, b: SimHost) -> SimLink:
        """Return the link between two hosts, which has the delays."""
        if a is b:
            return SimLink(LOOPBACK_LATENCY, LOOPBACK_LATENCY)
        return self._links.get(_pair(a, b), self._default)

    def parted(self, a: SimHost, b: SimHost) -> bool:
        """Report whether a partition is between two hosts."""
        return bool(self._partitions) and _pair(a, b) in self._partitions

    def establish(self, client: tuple[SimHost, Address], server: tuple[SimHost, Address]) -> SimConnection:
        """Create a connection whose handshake is done on the server's side."""
        self._count += 1
        connection = self._connections[self._count] = SimConnection(self, self._count, client, server)
        return connection

    def forget(self, connection: SimConnection) -> None:
        """Remove a connection whose ends are both closed."""
        self._connections.pop(connection.number, None)


class SimHandshake:
    """A handshake: SYN, answer, outcome. It has exactly one outcome, unless it is cancelled.

    `outcome` gets the client's end, to be adopted at once, or the failure. `alpn` is the client's offer; with None
    nothing is negotiated.
    """

    def __init__(
        self,
        network: SimNetwork,
        source: SimHost,
        target: tuple[str, int],
        *,
        tls: bool,
        outcome: Outcome,
        alpn: tuple[str, ...] | None = None,
    ) -> None:
        self._network = network
        self._alpn = alpn
        self._world = network.world
        self._source = source
        self._tls = tls
        self._outcome: Outcome | None = outcome
        self._connection: SimConnection | None = None
        self._deadline = network.world.now + network.connect_timeout
        name, self._port = target
        found = network.resolve(source, name)
        if found is None:
            link = network.link_between(source, source)
            self._world.after(link.latency, lambda: self._fail(FailureKind.UNREACHABLE, "name not found"))
            return
        self._target, self._address = found
        self._world.at(self._deadline, lambda: self._fail(FailureKind.TIMED_OUT, "connecting timed out"), timer=True)
        self._syn(SYN_AGAIN)

    def cancel(self) -> None:
        """Cancel: there is no outcome, and a server that accepted already gets a reset."""
        self._outcome = None
        if self._connection is not None:
            self._connection.client.abort()

    def _syn(self, again: float) -> None:
        if self._outcome is None:
            return
        target = self._target
        if target is None or self._network.parted(self._source, target):
            self._world.after(again, lambda: self._syn(2 * again), timer=True)
            return
        link = self._network.link_between(self._source, target)
        self._world.after(link.latency + link.jitter * self._world.rng.random(), lambda: self._arrived(target, link))

    def _arrived(self, target: SimHost, link: SimLink) -> None:
        if self._outcome is None:
            return
        back = self._world.now + link.latency + link.jitter * self._world.rng.random()
        listener = self._network.listener(target, self._port)
        if listener is None:
            self._world.at(back, lambda: self._fail(FailureKind.UNREACHABLE, "connection refused"))
            return
        if self._tls and not listener.tls:
            self._world.at(back, lambda: self._fail(FailureKind.TLS, "the peer does not speak TLS"))
            return
        here = LOOPBACK if self._address == LOOPBACK else self._source.address
        client = Address(here, self._source.ephemeral_port())
        connection = self._connection = self._network.establish(
            (self._source, client), (target, Address(self._address, self._port))
        )
        connection.tls = self._tls
        offered = listener.alpn in (self._alpn or ())
        connection.alpn = listener.alpn if self._tls and offered else None
        connection.server.after_handshake(back)
        if listener.tls and not self._tls:
            connection.server.abort("not TLS")
        else:
            listener.accepted(connection.server)
        self._world.at(back, self._established)

    def _established(self) -> None:
        connection, outcome = self._connection, self._outcome
        if outcome is None or connection is None:
            return
        if connection.blocked:
            self._world.after(SYN_AGAIN, self._established, timer=True)
        elif connection.client.gone:
            self._fail(FailureKind.UNREACHABLE, "connection reset")
        else:
            self._outcome = None
            outcome(connection.client)

    def _fail(self, kind: FailureKind, why: str) -> None:
        outcome = self._outcome
        if outcome is not None:
            self.cancel()
            outcome(Failure(kind, why))


def _pair(a: SimHost, b: SimHost) -> tuple[str, str]:
    return (a.name, b.name) if a.name <= b.name else (b.name, a.name)


def _is_address(text: str) -> bool:
    return ":" in text or text.replace(".", "").isdigit()
