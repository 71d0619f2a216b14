"""All checks, and which of them a world runs after its script."""

from __future__ import annotations

from random import Random

from fuzz.simulation.checks.api_checks import ROOMS_OF_API
from fuzz.simulation.checks.check_context import Kind
from fuzz.simulation.checks.operations import persistence
from fuzz.simulation.checks.sessions import lifecycle
from fuzz.simulation.script import Script

ROUND = 10  # worlds, from one tenth seed to the next, of which one runs each check

ROOMS: tuple[Kind, ...] = (
    *lifecycle.CHECKS,
    *persistence.CHECKS,
    *ROOMS_OF_API,
)
"""Each runs in as many worlds of a round as it is listed here."""


def rooms_of(script: Script) -> list[Kind]:
    """Return the checks of a world, in the order in which they run.

    The worlds of a check, and its place among the others, are drawn from its own name: a new check changes neither.
    """
    if script.rooms:
        return [kind for kind in dict.fromkeys(ROOMS) if kind.__name__ in script.rooms]
    seed, there = script.seed, dict[str, Kind]()
    for turn, kind in enumerate(ROOMS):
        name = kind.__name__
        again = sum(before is kind for before in ROOMS[:turn])
        first = Random(f"{name} {seed // ROUND}").randrange(ROUND)
        if (first + again * ROUND // 3) % ROUND == seed % ROUND:
            there[name] = kind
    return [there[name] for name in sorted(there, key=lambda name: Random(f"{name} at {seed}").random())]
