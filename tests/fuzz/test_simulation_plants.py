"""The simulation finds bugs: each of those that are planted here, within so many seeds, by the right invariant.

The seed that a plant names is played first, so that most take one world. Those that are quick are found each time; with
`--full` all are, each hunted from seed 0.
"""

from __future__ import annotations

import pytest

from fuzz.invariants import Invariant
from tests.fuzz.hunt import SEEDS, find, make_small, noticed_by
from tests.fuzz.plant import Plant
from tests.fuzz.plants import PLANTS

SMALL = 12  # steps that the smallest script for one of them has at most
TRIES = 80
EACH_TIME = [plant for plant in PLANTS if plant.quick]
MORE = [plant for plant in PLANTS if plant not in EACH_TIME]
SHRUNK = ("a_code_works_twice", "params_are_not_redacted", "a_late_reply_is_accepted")

pytestmark = pytest.mark.timeout(1_500)


@pytest.mark.parametrize(
    "plant",
    [*EACH_TIME, *(pytest.param(plant, marks=pytest.mark.full) for plant in MORE)],
    ids=lambda plant: plant.name,
)
def test_a_planted_bug_is_found(plant: Plant[Invariant], full: bool) -> None:
    failure = find(plant.name, anew=full)
    assert failure is not None, f"not found in {SEEDS} worlds"
    assert failure.invariant in noticed_by(plant), f"seed {failure.script.seed}: {failure.invariant}: {failure.detail}"


def test_each_invariant_is_shown_each_time() -> None:
    shown = {invariant for plant in EACH_TIME for invariant in plant.found_by}
    assert [plant.name for plant in PLANTS if plant.found_by[0] not in shown] == []


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.full) for name in SHRUNK])
def test_their_scripts_are_made_small(name: str) -> None:
    assert make_small(name, TRIES) <= SMALL
