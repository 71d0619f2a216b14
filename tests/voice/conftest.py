"""What many tests of voice begin with."""

from __future__ import annotations

import pytest

from tests.loops.virtual import VirtualWorld
from tests.voice.harness import Rig


@pytest.fixture
def rig() -> Rig:
    """A voice side and its world, at rest."""
    return Rig()


@pytest.fixture
def world() -> VirtualWorld:
    """A simulated world without programs."""
    return VirtualWorld()
