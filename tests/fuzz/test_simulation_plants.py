"""The simulation finds bugs: each of those that are planted here, within so many seeds, by the right invariant.

The seed that a plant names is played first, so that most take one world. With `--full` each is hunted from seed 0.
"""

from __future__ import annotations

import pytest

from tests.fuzz.hunt import SEEDS, find, make_small
from tests.fuzz.plant import Plant
from tests.fuzz.plants import PLANTS

SMALL = 12  # steps that the smallest script for one of them has at most
TRIES = 80
SHRUNK = ("a_code_works_twice", "params_are_not_redacted", "a_late_reply_is_accepted")

pytestmark = pytest.mark.timeout(1_500)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_bug_is_found(plant: Plant, full: bool) -> None:
    failure = find(plant.name, anew=full)
    assert failure is not None, f"not found in {SEEDS} worlds"
    assert failure.invariant in plant.found_by, f"seed {failure.script.seed}: {failure.invariant}: {failure.detail}"


@pytest.mark.parametrize(
    "name", [SHRUNK[0], *(pytest.param(name, marks=pytest.mark.repetition) for name in SHRUNK[1:])]
)
def test_their_scripts_are_made_small(name: str) -> None:
    assert make_small(name, TRIES) <= SMALL
