"""Fixtures of the voice tests."""

import pytest

from tests.loops.simulated_environment import SimulatedEnvironment
from tests.voice.harness import VoiceHarness


@pytest.fixture
def rig() -> VoiceHarness:
    """Return an idle voice harness."""
    return VoiceHarness()


@pytest.fixture
def world() -> SimulatedEnvironment:
    """Return a simulated world without programs."""
    return SimulatedEnvironment()
