"""Fixture `world`: an agent without a relay, whose model has no answers."""

import pytest

from tests.agent.harness import AgentHarness


@pytest.fixture
def world() -> AgentHarness:
    return AgentHarness()
