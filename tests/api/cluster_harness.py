"""API servers as nodes of one service, in memory: one store, the simulated Redis, and a scripted agent.

book = ApiClusterHarness()
book.at(1)                                    # from now on requests go to that node
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

from runtimes.sim.redis_server import RedisService
from svc_proto.api.cluster.session_ownership import ClusterSessionOwnership
from svc_proto.api.config import ApiConfig
from svc_proto.api.service import Api
from svc_proto.cluster.forwarding import VIA_NAME
from svc_proto.commands import Connect, Level
from svc_proto.facts import Started, Stopping
from svc_proto.settings import RedisAddress
from tests.api.harness import KEY, ApiCall
from tests.api.scripted_agent import ScriptedAgent, ScriptedTurn, TurnHarness
from tests.support.channel_ends import CableEnd
from tests.support.core_harness import REFUSED, HarnessNode
from tests.support.playbook import counting_entropy

PORT = 8642  # of the first node; the next nodes have the next ports
REDIS = 6379
DATABASE = 1
UNAVAILABLE = (503, "cluster_unavailable")
VIA = ((b"via", VIA_NAME),)


def node_entropy(number: int) -> Callable[[int], bytes]:
    """Return an entropy function whose results of two or more bytes begin with the byte `number`."""
    count = counting_entropy()
    return lambda size: (bytes([number]) + count(size))[:size] if size > 1 else count(size)


class ApiClusterHarness(TurnHarness):
    """Harness of several nodes; `members` are all nodes, `api` is the service of the selected one."""

    def __init__(self, count: int = 2, *, started: bool = True, under: str = "", **config: Any) -> None:
        self.town = RedisService()
        self.apart: set[HarnessNode] = set()  # nodes that do not reach Redis
        base = ApiConfig(key=KEY, cluster=RedisAddress("redis.example", db=DATABASE), **config)
        configs = [evolve(base, node_url=f"http://127.0.0.1:{PORT + n}{under}") for n in range(count)]
        super().__init__(configs[0], started=False, entropy=node_entropy(1))
        self.serve(REDIS, self.town)
        self.members: list[tuple[HarnessNode, Api]] = [(self.node, self.api)]
        self._lives = 1  # number of nodes started so far
        self.servers[PORT] = self.node
        for each in configs[1:]:
            self.members.append(self._new(each.node_url))
        if started:
            for node, _ in self.members:
                self.handle_on(node, Started())
            self.after(2.0)

    def _new(self, node_url: str) -> tuple[HarnessNode, Api]:
        self._lives += 1
        scripted = ScriptedAgent()
        scripted.hands = self.scripted.hands
        api = Api(evolve(self.config, node_url=node_url), agent=scripted)
        node = self._node(api, node_entropy(self._lives), Level.DEBUG)
        scripted.node = node
        self.servers[int(node_url.rpartition(":")[2].partition("/")[0])] = node
        return node, api

    def start_node(self, n: int) -> None:
        """Start a new node in the place of a killed one."""
        self.members[n] = self._new(f"http://127.0.0.1:{PORT + n}")
        self.handle_on(self.members[n][0], Started())

    def at(self, n: int) -> ApiClusterHarness:
        """Select node `n` for the next requests; its later commands and logs are added to `commands` and `logs`."""
        self.node, self.api = self.members[n]
        return self

    @property
    def ownership(self) -> ClusterSessionOwnership:
        """Return the ownership of the selected node."""
        assert isinstance(self.api.ownership, ClusterSessionOwnership)
        return self.api.ownership

    def kill(self, n: int) -> None:
        """Kill a node: it accepts no more connections, and those that it has are reset."""
        node, _ = self.members[n]
        node.alive = False
        del self.servers[PORT + n]
        for end in list(node.ends.values()):
            end.finish("reset")
            other = getattr(end, "other", None)
            if other is not None:
                other.finish("reset")
        self.run_until_idle()

    def cut(self, n: int | None = None) -> None:
        """Cut one node off from Redis; without a number cut off all and clear Redis."""
        if n is None:
            self.town.keys.clear()
        self.apart |= {node for node, _ in (self.members if n is None else [self.members[n]])}
        for node in self.apart:
            for end in list(node.ends.values()):
                if isinstance(end, CableEnd) and end.other.node is self.servers[REDIS]:
                    end.abort()
        self.run_until_idle()

    def mend(self, n: int | None = None) -> None:
        """Let one node, or all, reach Redis again."""
        self.apart -= {node for node, _ in (self.members if n is None else [self.members[n]])}

    def connect(self, node: HarnessNode, order: Connect) -> Any:
        """Connect, but refuse connections to Redis from a node that is cut off."""
        return REFUSED if order.port == REDIS and node in self.apart else super().connect(node, order)

    def end(self, n: int) -> None:
        """Send a node the signal to stop."""
        self.handle_on(self.members[n][0], Stopping(5.0))


def chatting_nodes(message: str = "Hi") -> tuple[ApiClusterHarness, str, ApiCall, ScriptedTurn]:
    """Start two nodes, and a turn at the first one; return the harness, the session, the stream and the turn."""
    book = ApiClusterHarness()
    session = book.session()
    call = book.chat(session, {"message": message})
    return book, session, call, book.hand


def code(call: ApiCall) -> tuple[int, str]:
    """Return status and code of a refusal."""
    answer = call.result
    return answer.status, answer.json["error"]["code"]


def lease(book: ApiClusterHarness, session: str) -> str:
    """Return the value of a session's lease in Redis; an empty text means that there is none."""
    value, _ = book.town.keys.get(redis_key(f"lease:{session}"), (b"", 0.0))
    return value.decode()


def redis_key(name: str) -> tuple[int, bytes]:
    """Return the Redis database and the key in which the API servers store `name`."""
    return DATABASE, f"svc:{DATABASE}:api:{name}".encode()
