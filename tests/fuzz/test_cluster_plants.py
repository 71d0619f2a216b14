"""Bugs that are put into the cluster on purpose: a storm finds each."""

from __future__ import annotations

import pytest

from fuzz.cluster_law import Violated
from fuzz.cluster_storm import storm
from runtimes.sim.cost import HandleCost
from tests.fuzz.plant import Plant
from tests.fuzz.plants_cluster import CLUSTER


@pytest.mark.parametrize("plant", CLUSTER.plants, ids=lambda plant: plant.name)
def test_a_storm_finds_it(plant: Plant[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plant.plant(monkeypatch)
    monkeypatch.setattr(HandleCost, "draw", lambda seed, host: HandleCost.NONE)  # as when the seed was recorded
    with pytest.raises(Violated, match="|".join(plant.found_by)):
        storm(plant.seed)
