"""Bad days, in the simulator: connections are cut, hang, come in crumbs and out of step, disks and stores are slow.

Whatever happened, when it is over everything works again: the phone is back, callers are answered.
"""

from __future__ import annotations

import pytest

from runtimes.sim.faults import Faults
from runtimes.sim.network import Network
from runtimes.sim.world import World as Simulation
from tests.loops.virtual import VirtualWorld
from tests.loops.wires import Asked
from tests.loops.world import REMOTE, bearer
from tests.plan import some

SEEDS = range(30)
ROUNDS = 12
CALM = 150.0  # s: a hung socket is found after 50 s, and a phone rests for up to 38 s before it tries again


def opened(seed: int, faults: Faults) -> tuple[VirtualWorld, str]:
    """A world whose relay and phone were set up in peace, and the token of a caller; then the faults begin."""
    simulation = Simulation(seed, network=Network(chunking=0.9, jitter=20.0))
    world = VirtualWorld(seed, simulation=simulation)
    world.start_relay(durable=True)
    world.phone()
    token = world.pair("Caller").token
    simulation.faults = faults
    return world, token


def begin(world: VirtualWorld, token: str, number: int) -> Asked | None:
    """A command on a connection of its own; None if none can be had."""
    try:
        client = world.client(REMOTE if number % 2 else "127.0.0.1")
    except ConnectionError:
        return None
    return client.begin("GET", "/screen" if number % 3 else "/ping", headers=bearer(token))


def everything_works(world: VirtualWorld, token: str) -> None:
    """The relay serves, the phone answers, a new device can pair, and nobody waits for anything."""
    assert world.http("GET", "/health").json["status"] == "ok"
    answer = world.http("GET", "/ping?device=Reference%20phone", headers=bearer(token))
    assert answer.status == 200, answer
    assert world.pair("Late").token
    assert world.http("GET", "/relay/info").json["pending_commands"] == 0


def close_in_peace(world: VirtualWorld) -> None:
    """End it; what the faults themselves made the relay log does not count."""
    for relay in world._relays:
        assert not [line for line in relay.logs if line.event == "bug"]
    for phone in world._phones:
        assert not [line for line in phone.logs if line.event == "bug"]
        assert phone.stop() == 0
    assert world.relay.stop(5.0) == 0


@pytest.mark.parametrize("seed", some(SEEDS))
def test_after_a_storm(seed: int) -> None:
    world, token = opened(seed, Faults.some(5.0))
    callers: list[Asked] = []
    for number in range(ROUNDS):
        caller = begin(world, token, number)
        if caller is not None:
            callers.append(caller)
        world.pass_time(world.simulation.rng.uniform(0.0, 3.0))
    outcomes: list[int | type[Exception]] = []
    for caller in callers:
        try:
            outcomes.append(caller.finish(120.0).status)
        except (ConnectionError, TimeoutError) as error:
            outcomes.append(type(error))
    assert all(outcome in (200, 401, 502, 503, 504, 408) or isinstance(outcome, type) for outcome in outcomes), outcomes
    world.simulation.calm()
    world.pass_time(CALM)
    everything_works(world, token)
    close_in_peace(world)


@pytest.mark.parametrize("seed", some(range(100, 115)))
def test_kills_in_a_storm(seed: int) -> None:
    world, token = opened(seed, Faults.some(3.0))
    for number in range(6):
        begin(world, token, number)
        world.pass_time(world.simulation.rng.uniform(0.0, 4.0))
        if number % 2:
            world.relay.kill()
            world.simulation.run_for(world.simulation.rng.uniform(0.0, 20.0))
            world.revive(world.relay)
    world.simulation.calm()
    world.pass_time(CALM)
    everything_works(world, token)
    close_in_peace(world)


@pytest.mark.parametrize("seed", some(range(200, 210)))
def test_a_phone_behind_a_partition(seed: int) -> None:
    world, token = opened(seed, Faults.NONE)
    phone_host = world.simulation.hosts["phone-1"]
    for _ in range(3):
        world.simulation.network.partition(world.relay_host, phone_host)
        caller = begin(world, token, 0)
        assert caller is not None
        assert caller.finish(60.0).status in (502, 503, 504)
        world.pass_time(world.simulation.rng.uniform(0.0, 200.0))
        world.simulation.network.heal()
        world.pass_time(CALM)
        everything_works(world, token)
    close_in_peace(world)


def test_a_storm_can_be_replayed() -> None:
    def digest(seed: int) -> str:
        world, token = opened(seed, Faults.some(5.0))
        for number in range(ROUNDS):
            begin(world, token, number)
            world.pass_time(1.0)
        return world.simulation.trace_digest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)
