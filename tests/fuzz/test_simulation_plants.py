"""The simulation finds bugs: each of those that are planted here, within so many seeds, by the right invariant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from multiprocessing.pool import AsyncResult, Pool

import pytest

from fuzz.game import Failure
from tests.fuzz.conftest import unmeasured_pool
from tests.fuzz.plant import Plant
from tests.fuzz.plants import PLANTS, SEEDS, find, make_small

SMALL = 12  # steps that the smallest script for one of them has at most
TRIES = 80
SHRUNK = ("a_code_works_twice", "params_are_not_redacted", "a_late_reply_is_accepted")
PATIENCE = 280.0  # s

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def workers() -> Iterator[Pool]:
    with unmeasured_pool() as pool:
        yield pool


@pytest.fixture(scope="module")
def hunts(workers: Pool) -> Mapping[str, AsyncResult[Failure | None]]:
    return {plant.name: workers.apply_async(find, (plant.name,)) for plant in PLANTS}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_bug_is_found(plant: Plant, hunts: Mapping[str, AsyncResult[Failure | None]]) -> None:
    failure = hunts[plant.name].get(PATIENCE)
    assert failure is not None, f"not found in {SEEDS} worlds"
    assert failure.invariant in plant.found_by, f"seed {failure.script.seed}: {failure.invariant}: {failure.detail}"


def test_their_scripts_are_made_small(workers: Pool) -> None:
    sizes = [workers.apply_async(make_small, (name, TRIES)) for name in SHRUNK]
    assert all(size.get(PATIENCE) <= SMALL for size in sizes)
