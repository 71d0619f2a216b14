"""Simulations as tests of a mutant: the first seeds of those in `make test`, in the process with the mutant."""

import pytest

from fuzz.simulation.scenario_runner import ScenarioFailure, run_seed

WORLDS = 20


@pytest.mark.parametrize("seed", range(WORLDS))
def test_a_world_of_the_simulator_holds(seed: int) -> None:
    """Check that the simulation of a seed violates no invariant."""
    outcome = run_seed(seed)
    assert not isinstance(outcome, ScenarioFailure), outcome
