"""List of all checks, and the selection of those that run after a script."""

from random import Random

from fuzz.simulation.checks.chat import approvals, deviating_peers, deviating_servers
from fuzz.simulation.checks.check_context import Kind
from fuzz.simulation.checks.operations import persistence
from fuzz.simulation.checks.sessions import lifecycle
from fuzz.simulation.script import Script

ROUND = 10  # scripts, from one tenth seed to the next; one of them runs each check

ALL_CHECKS: tuple[Kind, ...] = (
    *lifecycle.CHECKS,
    *persistence.CHECKS,
    *approvals.CHECKS,
    *deviating_servers.CHECKS,
    *deviating_peers.CHECKS,
)
"""Each runs in as many worlds of a round as it is listed here."""


def select_checks(script: Script) -> list[Kind]:
    """Return the checks that a script names, or those that its seed selects, in the order in which they run."""
    if script.checks:
        return [kind for kind in dict.fromkeys(ALL_CHECKS) if kind.__name__ in script.checks]
    seed, there = script.seed, dict[str, Kind]()
    for turn, kind in enumerate(ALL_CHECKS):
        name = kind.__name__
        again = sum(before is kind for before in ALL_CHECKS[:turn])
        first = Random(f"{name} {seed // ROUND}").randrange(ROUND)
        if (first + again * ROUND // 3) % ROUND == seed % ROUND:
            there[name] = kind
    return [there[name] for name in sorted(there, key=lambda name: Random(f"{name} at {seed}").random())]
