"""Two nodes in memory, each with a relay and an API server; they share one store and one Redis.

deployment = AuthorityDeployment()
deployment.at(1)                             # from now on requests go to that relay
deployment.at_api(0)                         # or to that API server
"""

from typing import Any, cast

from runtimes.sim.host import SimHost
from runtimes.sim.redis_server import RedisService
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.commands import Level
from svc_proto.facts import Address, Started
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.settings import RedisAddress
from tests.api.cluster_harness import node_entropy
from tests.api.harness import CONFIG, KEY
from tests.api.scripted_agent import ScriptedAgent, ScriptedTurn
from tests.relay.harness import RelayHarness
from tests.support.core_harness import HOME, SPOOL, HarnessNode
from tests.support.playbook import PATIENT, PEER

REDIS_PORT = 6379
NODES = 2


class AuthorityDeployment(RelayHarness):
    """Harness of the nodes. `relay` is the relay that was selected last with `at`."""

    def __init__(self) -> None:
        config = RelayConfig(home=HOME, config_path=CONFIG, cluster=RedisAddress("redis.example"))
        keys = [PairingApiKeys() for _ in range(NODES)]
        super().__init__(config, keys=keys[0], entropy=node_entropy(1), started=False)
        self.redis = RedisService()
        self.published: list[list[bytes]] = []  # channel and text of each message between the nodes
        publish = self.redis.commands[b"PUBLISH"]

        def record(client: Any, words: list[bytes]) -> object:
            self.published.append(words)
            return publish(client, words)

        self.redis.commands[b"PUBLISH"] = record
        self.serve(REDIS_PORT, self.redis)
        self.relays: list[tuple[HarnessNode, Relay]] = [(self.node, self.relay)]
        self.apis: list[HarnessNode] = []
        self.agents: list[ScriptedAgent] = []
        self._services: list[Api] = []
        first = self.host
        for n, known in enumerate(keys):
            if n:
                self.host = SimHost(cast("Any", self.clock), f"host-{n}", f"192.0.2.{n + 10}", state=HOME, spool=SPOOL)
                self.host.store, self.host.rooms, self.host.compute = first.store, first.rooms, first.compute
                relay = Relay(config, limits=PATIENT, keys=known)
                self.relays.append((self._node(relay, node_entropy(n + 1), Level.WARNING), relay))
            agent = ScriptedAgent()
            api = Api(ApiConfig(key=KEY, home=HOME, config_path=CONFIG), limits=PATIENT, agent=agent, keys=known)
            self._services.append(api)
            agent.node = self._node(api, node_entropy(n + 11), Level.WARNING)
            self.agents.append(agent)
            self.apis.append(agent.node)
        self.host = first
        for node in (*(node for node, _ in self.relays), *self.apis):
            self.handle_on(node, Started())
        self.after(1.0)

    def at(self, n: int) -> None:
        """Send the next requests to the relay of node `n`."""
        self.node, self.relay = self.relays[n]

    def at_api(self, n: int) -> None:
        """Send the next requests to the API server of node `n`."""
        self.node = self.apis[n]

    def api(self, n: int) -> Api:
        """Return the service of the API server of node `n`."""
        return self._services[n]

    def publish(self, channel: bytes, text: bytes) -> None:
        """Publish a message on a Redis channel, as a program with access to Redis does."""
        self.within(lambda: self.redis.publish(channel, text), self.servers[REDIS_PORT])

    @staticmethod
    def address(host: str) -> Address:
        """Return the address of a client at the IP address `host`, or of a local program if that is empty."""
        return Address(host, 50_000) if host else PEER

    @property
    def turns(self) -> list[ScriptedTurn]:
        """Return the scripted turns of the agents of all API servers."""
        return [turn for agent in self.agents for turn in agent.hands]

    def status(self, method: str, path: str, body: object = None, *, token: str = "", host: str = "") -> int:
        """Send a request from the IP address `host`, or from the relay's host if that is empty; return the status.

        The status is 0 without a response.
        """
        call = self.call(method, path, body, token=token or None, peer=self.address(host))
        status = 0 if call.reader.head is None else call.head.status
        call.vanish()
        return status
