"""The simulated world again, with three nodes for a relay: `--loop nodes`.

They are the workers of one host (docs/scale.md), and their Redis is simulated, too. Each connection lands on another of
them than the one before, so nothing of a story happens where the last of it has: its phone is at one node, who drives
it at another, and who looks on at the third. Where `tests.plan.NODES` says so a client keeps to the node that it found
first, as behind the balancer of that page.
"""

from __future__ import annotations

import json

from attrs import evolve

from runtimes.sim.connection import End
from runtimes.sim.redis import redis_core
from svc_proto.config import RelayConfig
from svc_proto.settings import RedisAddress
from svc_proto.wire.limits import Limits
from tests.loops.virtual import PORT, Together, VirtualRelay, VirtualWorld
from tests.loops.wires import HttpClient
from tests.loops.world import RelayHandle

__all__ = ["NODES", "NodesWorld"]

NODES = 3
REDIS = RedisAddress("127.0.0.1", password="redis-password-4711")
SHARED = PORT + 10  # where the nodes have what comes to `PORT`, by their number
OWN = PORT + 20  # the same, of the doors where others fetch files


class NodesWorld(VirtualWorld):
    """See the module."""

    name = "nodes"

    def __init__(self, *, kept: bool = False) -> None:
        super().__init__()
        self.kept = kept
        redis = [REDIS.port]
        self.redis = self.relay_host.start(lambda entropy: redis_core(entropy, password=REDIS.password), redis)

    def launch(self, config: RelayConfig, limits: Limits, *, tls: bool, durable: bool) -> RelayHandle:
        parts: list[VirtualRelay] = []
        for n in range(NODES):
            node = evolve(config, cluster=REDIS, node_url=f"http://127.0.0.1:{OWN + n}", begins=not n)
            parts.append(self.run(node, limits, SHARED + n, OWN + n, tls=tls, durable=durable or n > 0))
        return Nodes(self, parts, tls=tls)

    def clients(self) -> int:
        each = (json.loads(self._at(n).ask("GET", "/health").body)["clients"] for n in range(NODES))
        return sum(each)

    def _at(self, n: int) -> HttpClient:
        return HttpClient(self.connect(port=OWN + n), self.authority(), self.entropy)


class Nodes(Together):
    """Them, behind a kernel that gives each connection to another of them; a `Listener`."""

    def __init__(self, world: NodesWorld, parts: list[VirtualRelay], *, tls: bool) -> None:
        super().__init__(parts, PORT)
        self.tls = tls
        self.alpn = "h2" if tls else None
        self._world = world
        self._network, self._host = world.simulation.network, world.relay_host
        self._next = 0
        self._places: dict[str, int] = {}  # of clients that keep to theirs, by address
        self._network.listen(self._host, PORT, self)

    def restart(self) -> None:
        self._world.redis = self._world.redis.restart()  # who starts the workers starts theirs with them
        super().restart()
        self._network.listen(self._host, PORT, self)

    def begin_stop(self, grace: float = 5.0) -> None:
        self._network.unlisten(self._host, PORT, self)
        super().begin_stop(grace)

    def kill(self) -> None:
        self._network.unlisten(self._host, PORT, self)
        super().kill()

    def accepted(self, end: End) -> None:
        """The next has it, or the one that had the last from there."""
        self._next = (self._next + 1) % NODES
        place = self._places.setdefault(end.peer.host, self._next) if self._world.kept else self._next
        door = self._network.listener(self._host, SHARED + place)
        assert door is not None
        door.accepted(end)
