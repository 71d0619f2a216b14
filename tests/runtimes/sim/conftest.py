"""Fixtures of the simulator's tests: a toy core on a network, and one connection to it."""

import pytest

from runtimes.sim.raw_peer import RawPeer
from runtimes.sim.simulation import Simulation
from tests.runtimes.sim.toy_cores import ToyNetwork, connected


@pytest.fixture
def bench() -> ToyNetwork:
    return ToyNetwork(Simulation())


@pytest.fixture
def wire(bench: ToyNetwork) -> RawPeer:
    """Return the phone's end of a connection that the toy core has accepted."""
    return connected(bench)
