from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.loops.simulated_environment import SimulatedEnvironment


@pytest.fixture
def virtual() -> Iterator[SimulatedEnvironment]:
    """A simulated world: no loop, and time that passes when it has to."""
    world = SimulatedEnvironment()
    yield world
    world.close()
