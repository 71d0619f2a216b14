"""The simulation: an agenda of events on a virtual clock, one random generator, hosts and the network."""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random

from runtimes.sim.connection import SimConnection
from runtimes.sim.cost import HandleCost
from runtimes.sim.faults import Faults
from runtimes.sim.host import SimHost
from runtimes.sim.network import SimNetwork
from runtimes.sim.raw_peer import RawPeer, RawPeerListener, connect_raw_peer
from runtimes.sim.trace import Trace, TraceRecord

__all__ = ["SimulationLimitError", "Simulation"]

START_MONO = 1000.0  # s, monotonic clock at the beginning
START_WALL = 1_800_000_000.0  # epoch s at the beginning: 2027-01-15T08:00:00Z
LATENCY = 0.001  # s between two hosts, one way
LIMIT = 60.0  # virtual s that `run_until` waits
MAX_EVENTS = 100_000  # events at one instant after which the simulation counts as a livelock


class SimulationLimitError(AssertionError):
    """A condition did not become true in time, or time stands still; the message has the last events."""


class Simulation:
    """A simulated world of hosts. `latency` is one way, in seconds; `trace` keeps every fact and command in `records`.

    `cost` is that of hosts made later; each may have another (`SimHost.cost`).
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        latency: float = LATENCY,
        network: SimNetwork | None = None,
        faults: Faults = Faults.NONE,
        cost: HandleCost = HandleCost.NONE,
        trace: bool = False,
    ) -> None:
        self.seed = seed
        self.cost = cost
        self.rng = Random(seed)
        self.faults = faults
        self.now = START_MONO
        self.events = 0  # number of events so far
        self.trace = Trace(keep=trace)
        self.network = network or SimNetwork()
        self.network.attach(self, latency)
        self.hosts: dict[str, SimHost] = {}
        self._addresses: dict[str, SimHost] = {}
        self._agenda: list[tuple[float, int, bool, Callable[[], object]]] = []
        self._filed = 0
        self._moving = 0  # scheduled events that are not timers

    # --- the scene -----------------------------------------------------------------------------------------------

    def host(
        self,
        name: str,
        address: str = "10.0.0.1",
        *,
        state: str = "/home/user/.svc",
        spool: str = "/tmp/svc-uploads",
    ) -> SimHost:
        """Create a machine; its name is a DNS name too. Raises ValueError when the name or address is taken."""
        if name in self.hosts or address in self._addresses:
            raise ValueError(f"host {name} or address {address} is there already")
        host = self.hosts[name] = self._addresses[address] = SimHost(self, name, address, state=state, spool=spool)
        self.network.name(name, address)
        return host

    def host_at(self, address: str) -> SimHost | None:
        """Return the host with an address, or None."""
        return self._addresses.get(address)

    def connect(self, source: SimHost, address: str, port: int, *, tls: bool = False, limit: float = LIMIT) -> RawPeer:
        """Open a raw connection for a test from a host. Raises `ConnectFailed` when the handshake fails."""
        return connect_raw_peer(self, source, (address, port), tls=tls, limit=limit)

    def listen(self, host: SimHost, port: int, *, tls: bool = False, alpn: str | None = None) -> RawPeerListener:
        """Open a port on which the test acts as the server."""
        return RawPeerListener(self, host, port, tls=tls, alpn=alpn)

    def cut(self, connection: SimConnection) -> None:
        """Break a connection: bytes in flight are lost, and both ends are closed after a delay."""
        connection.cut()

    def heal_all(self) -> None:
        """End random faults, partitions and hangs of connections; a broken connection stays broken."""
        self.faults = Faults.NONE
        self.network.heal()

    # --- time ----------------------------------------------------------------------------------------------------

    def wall(self) -> float:
        """Return the epoch seconds of the simulation, without the error of any host's clock."""
        return START_WALL + (self.now - START_MONO)

    def at(self, when: float, callback: Callable[[], object], *, timer: bool = False) -> None:
        """Call back at a monotonic time. Timers do not keep `run_idle` waiting."""
        self._filed += 1
        if not timer:
            self._moving += 1
        heappush(self._agenda, (when, self._filed, timer, callback))

    def after(self, seconds: float, callback: Callable[[], object], *, timer: bool = False) -> None:
        """Call back in `seconds` of simulated time."""
        self.at(self.now + seconds, callback, timer=timer)

    def step(self) -> bool:
        """Advance to the next event and perform it; return False when there is none."""
        if not self._agenda:
            return False
        when, _, timer, callback = heappop(self._agenda)
        self.events += 1
        if when > self.now:
            self.now = when
        if not timer:
            self._moving -= 1
        callback()
        return True

    def run_for(self, seconds: float) -> None:
        """Run the simulation for `seconds` of simulated time."""
        until = self.now + seconds
        self._run(until, None)
        self.now = until

    def run_until(self, predicate: Callable[[], bool], limit: float = LIMIT) -> None:
        """Run until the predicate holds, checked at the start and after every event.

        Raises `SimulationLimitError` after `limit` seconds, or if time stands still.
        """
        until = self.now + limit
        if predicate() or self._run(until, predicate):
            return
        self.now = until
        raise SimulationLimitError(
            f"still not so after {limit} s (seed {self.seed}); the last events:\n{self.trace.tail()}"
        )

    def run_idle(self, limit: float = LIMIT) -> None:
        """Run until only timers are scheduled. Raises `SimulationLimitError` as `run_until`."""
        self.run_until(lambda: not self._moving, limit)

    # --- chance and records --------------------------------------------------------------------------------------

    def draw(self, probability: float) -> bool:
        """Return True with a probability. Nothing is drawn for 0."""
        return probability > 0.0 and self.rng.random() < probability

    @property
    def records(self) -> list[TraceRecord]:
        """Return the records of all processes. Raises ValueError unless made with `trace=True`."""
        if self.trace.records is None:
            raise ValueError("make the world with trace=True to keep its records")
        return self.trace.records

    def trace_digest(self) -> str:
        """Return a hex digest of the events so far, equal for equal runs; see `Trace.digest`."""
        return self.trace.digest()

    def _run(self, until: float, stop: Callable[[], bool] | None) -> bool:
        agenda = self._agenda
        instant, events = self.now, self.events
        while agenda and agenda[0][0] <= until:
            self.step()
            if self.now != instant:
                instant, events = self.now, self.events
            elif self.events - events > MAX_EVENTS:
                raise SimulationLimitError(f"time stands still at {instant}; the last events:\n{self.trace.tail()}")
            if stop is not None and stop():
                return True
        return False
