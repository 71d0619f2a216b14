"""Tests of a simulated relay cluster with many sessions, and a Redis that restarts."""

import pytest

from fuzz.cluster.deployment import ClusterDeployment
from fuzz.cluster.invariants import BACK, ClusterViolation
from runtimes.sim.cost import HandleCost
from svc_proto.cluster.node import LEASE
from svc_proto.cluster.redis_connection import REPLY_TIMEOUT

NODES = 3
BUSY = HandleCost.MEASURED.times(2.0)  # three nodes, Redis, a store and their clients share two processors
JOINED = 3.0  # s after which the nodes have no more messages for each other
AWAY = 1.0  # s for which Redis is stopped
STAYS = 3 * max(REPLY_TIMEOUT, LEASE)  # s, longer than the detection of a missing answer or node takes


def losses(world: ClusterDeployment) -> int:
    """Return how often the nodes have logged that they lost Redis."""
    return sum(line.event == "cluster lost" for process in world.nodes for line in process.logs)


def restart_redis(sessions: int, cost: HandleCost) -> None:
    """Restart Redis under a cluster with many sessions; check that all nodes find each other and stay connected."""
    world = ClusterDeployment(0, NODES)
    for host in world.hosts:
        host.cost = HandleCost.NONE  # until all sessions are added
    world.start()
    world.sim.run_for(JOINED)
    world.add_sessions(sessions)
    for host in world.hosts:
        host.cost = cost
    world.kill_redis()
    world.sim.run_for(AWAY)
    world.restart_redis()
    before = losses(world)
    assert before == NODES

    def is_whole() -> bool:
        return all(world.count_known_nodes(n) == NODES - 1 for n in range(NODES))

    within = BACK + 2 * sessions * cost.per_record
    world.run(lambda: is_whole() or losses(world) > before, within)
    if losses(world) == before:
        world.sim.run_for(STAYS)
    if losses(world) > before:
        raise ClusterViolation("a node has dropped its connection to a Redis that is well")
    assert is_whole()
    phone = world.pair_phone("P", 0, at=1)
    call = world.send_command(2, phone.token, device=phone.device)
    world.run(lambda: call.is_closed)
    assert call.status == 200


def test_a_few_thousand_sessions_survive_a_restart_of_redis() -> None:
    restart_redis(2_000, BUSY)


@pytest.mark.full
@pytest.mark.timeout(240)
def test_fifty_thousand_sessions_survive_a_restart_of_redis() -> None:
    restart_redis(50_000, BUSY)
