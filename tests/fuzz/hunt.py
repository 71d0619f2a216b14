"""Hunts for planted bugs: world after world until one fails.

`python -m tests.fuzz.hunt [PART_OF_A_NAME]` hunts from seed 0, and writes into the plants the seeds that it finds.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
import pytest

from fuzz.draw import draw
from fuzz.game import Failure, play
from fuzz.invariants import Invariant
from fuzz.shrink import smaller
from runtimes.sim.cost import HandleCost
from tests.fuzz.plant import Plant
from tests.fuzz.plants import PLANTS

__all__ = ["SEEDS", "find", "make_small", "noticed_by"]

SEEDS = 300  # worlds within which a planted bug must be found


def find(name: str, *, anew: bool = False) -> Failure | None:
    """Plant one, and play worlds until one fails: that of its own seed first, unless it is found `anew`."""
    plant = _named(name)
    with pytest.MonkeyPatch.context() as patch:
        plant.plant(patch)
        patch.setattr(HandleCost, "draw", lambda seed, host: HandleCost.NONE)  # as when the seeds were recorded
        outcomes = (play(draw(seed)) for seed in (*([] if anew else [plant.seed]), *range(SEEDS)))
        return next((outcome for outcome in outcomes if isinstance(outcome, Failure)), None)


def noticed_by(plant: Plant[Invariant]) -> tuple[Invariant, ...]:
    """Its signs, and what may come first: the books, and who looks through the house in the end."""
    return (*plant.found_by, Invariant.BOOKS, Invariant.AS_TOLD)


def make_small(name: str, tries: int) -> int:
    """Plant one, find it and make the script smaller; the number of its steps."""
    failure = find(name)
    assert failure is not None
    with pytest.MonkeyPatch.context() as patch:
        _named(name).plant(patch)
        patch.setattr(HandleCost, "draw", lambda seed, host: HandleCost.NONE)
        return len(smaller(failure, tries).script.steps)


def _named(name: str) -> Plant[Invariant]:
    return next(plant for plant in PLANTS if plant.name == name)


def _refresh(part: str) -> None:
    for plant in PLANTS:
        if part not in plant.name:
            continue
        failure = find(plant.name, anew=True)
        click.echo(f"{plant.name}: {failure and (failure.script.seed, failure.invariant.name)}")
        if failure is not None and failure.invariant in noticed_by(plant):
            place = re.compile(rf'(\.\w+\(\s*)\d+((?:,\s*"{plant.name}"|[^@]*?\ndef {plant.name}\())')
            for path in Path(__file__).parent.glob("plants*.py"):
                path.write_text(place.sub(rf"\g<1>{failure.script.seed}\g<2>", path.read_text()))


if __name__ == "__main__":
    _refresh("".join(sys.argv[1:]))
