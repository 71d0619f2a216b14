"""Simulated environment with three nodes for a relay and for an API server: `--loop nodes`.

The nodes of a server are processes of one host with one store; their Redis is simulated. Each connection to
the port of a server reaches its next node.
"""

from typing import Any

from attrs import evolve

from runtimes.sim.connection import SimEnd
from runtimes.sim.redis_server import redis_core
from svc_proto.api.config import ApiConfig
from svc_proto.relay_config import RelayConfig
from svc_proto.settings import RedisAddress
from tests.loops.clients import HttpClient
from tests.loops.environment import RELAY_PORT, RelayHandle, ServiceLaunch
from tests.loops.simulated_environment import STRIDE, ServerGroup, SimulatedEnvironment, VirtualRelay

NODES = 3
REDIS = RedisAddress("127.0.0.1", password="redis-password-4711", db=1)
OWN = RELAY_PORT + 2 * STRIDE  # first of the relays' own ports, from which other nodes fetch
SERVERS = ("relay", "servers.relay", "api", "servers.api")  # the servers with three nodes


class ClusterEnvironment(SimulatedEnvironment):
    """Simulated environment whose relay and API server have three nodes each."""

    name = "nodes"

    def __init__(self) -> None:
        super().__init__()
        redis = [REDIS.port]
        self.redis = self.relay_host.start(lambda entropy: redis_core(entropy, password=REDIS.password), redis)

    def launch(self, service: ServiceLaunch) -> RelayHandle:
        if service.name not in SERVERS:
            return super().launch(service)
        parts: list[VirtualRelay] = []
        for n in range(NODES):
            own = [OWN + n] if service.port == RELAY_PORT else []
            node = evolve(service, durable=service.durable or n > 0)
            parts.append(self.run(node, service.port + STRIDE + n, *own))
        return NodeGroup(self, parts, service.port, tls=service.tls)

    def relay_config(self, port: int, home: str, **config: Any) -> RelayConfig:
        n = (port - RELAY_PORT) % STRIDE
        own = {"cluster": REDIS, "node_url": f"http://127.0.0.1:{OWN + n}", "begins": not n}
        return super().relay_config(RELAY_PORT, home, **own, **config)

    def api_config(self, port: int, home: str, **config: Any) -> ApiConfig:
        return super().api_config(port, home, **{"cluster": REDIS, **config})

    def clients(self) -> int:
        nodes = [HttpClient(self.connect(port=OWN + n), self.authority(), self.entropy) for n in range(NODES)]
        return sum(node.request("GET", "/health").json["clients"] for node in nodes)


class NodeGroup(ServerGroup):
    """Nodes of one server and their common listener, which gives each connection to the next node."""

    def __init__(self, world: ClusterEnvironment, parts: list[VirtualRelay], port: int, *, tls: bool = False) -> None:
        super().__init__(parts, port)
        self.tls = tls
        self.alpn = "h2" if tls else None
        self._world = world
        self._network, self._host = world.simulation.network, world.relay_host
        self._next = 0
        self._network.listen(self._host, port, self)

    def restart(self) -> None:
        if self.port == RELAY_PORT:
            # the program that starts the workers also starts their Redis
            self._world.redis = self._world.redis.restart()
        super().restart()
        self._network.listen(self._host, self.port, self)

    def begin_stop(self, grace: float = 5.0) -> None:
        self._network.unlisten(self._host, self.port, self)
        super().begin_stop(grace)

    def kill(self) -> None:
        self._network.unlisten(self._host, self.port, self)
        super().kill()

    def accepted(self, end: SimEnd) -> None:
        self._next = (self._next + 1) % NODES
        listener = self._network.listener(self._host, self.port + STRIDE + self._next)
        assert listener is not None
        listener.accepted(end)
