from collections.abc import Iterator

import pytest

from tests.loops.simulated_environment import SimulatedEnvironment


@pytest.fixture
def virtual() -> Iterator[SimulatedEnvironment]:
    """Yield a simulated world whose time passes only on request."""
    world = SimulatedEnvironment()
    yield world
    world.close()
