"""What many tests of voice begin with."""

from __future__ import annotations

import pytest

from tests.loops.simulated_environment import SimulatedEnvironment
from tests.voice.harness import VoiceHarness


@pytest.fixture
def rig() -> VoiceHarness:
    """A voice side and its world, at rest."""
    return VoiceHarness()


@pytest.fixture
def world() -> SimulatedEnvironment:
    """A simulated world without programs."""
    return SimulatedEnvironment()
