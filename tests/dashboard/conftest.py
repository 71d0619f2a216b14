from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.loops.simulated_environment import VirtualWorld


@pytest.fixture
def virtual() -> Iterator[VirtualWorld]:
    """A simulated world: no loop, and time that passes when it has to."""
    world = VirtualWorld()
    yield world
    world.close()
