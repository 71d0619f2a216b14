"""Worlds as a story that a mutant is shown: the first of those that `make test` plays, in the process that has it."""

from __future__ import annotations

import pytest

from fuzz.simulation.scenario_runner import ScenarioFailure, run_seed

WORLDS = 20


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_world_of_the_simulator_holds(seed: int) -> None:
    """No promise is broken in it."""
    outcome = run_seed(seed)
    assert not isinstance(outcome, ScenarioFailure), outcome
