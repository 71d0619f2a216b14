"""Tests of simulated clusters under faults."""

import pytest

from fuzz.cluster.run import run_seed


@pytest.mark.parametrize("seed", [0, 1, 3, 34, 37])
def test_a_storm_breaks_nothing(seed: int) -> None:
    told = run_seed(seed)
    assert told["told 200"] >= 10


def test_a_storm_over_more_nodes() -> None:
    assert run_seed(1, nodes=6)["told 200"] >= 10
