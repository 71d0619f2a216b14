"""Swarm configuration of one script: some kinds of steps are left out and others overdone, by its seed.

After "Swarm testing" (Groce et al., ISSTA 2012).
"""

from collections.abc import Iterable, Mapping
from random import Random
from typing import Generic, TypeVar

from attrs import frozen

Kind = TypeVar("Kind")

PLAIN = 0.3  # share of all scripts without a swarm configuration
LEFT_OUT = (0.15, 0.35, 0.6)  # share of the kinds, in the other scripts
OVERDONE = 3  # kinds at most
TIMES = (4, 4, 12)  # the usual frequency of an overdone kind
FEW = 0.4  # share of scripts with few clients
SAME = 0.3  # share of scripts with few variants of each kind
NUMBERS = 64  # numbers of clients
KEPT_APART = (1, 2, 3)  # number of clients, if few; one client has one chat, one session and one socket


@frozen
class Pace:
    """Number of steps, pauses between them (s at most), and share of faults.

    `rests` is the share of long pauses.
    """

    fewest: int
    most: int
    pauses: tuple[float, ...]
    faulty: float
    rests: float


ORDINARY = Pace(30, 70, (0.0, 0.01, 0.3, 1.5, 4.0), 0.15, 0.04)
SLOW_PACE = Pace(15, 35, (0.3, 15.0, 60.0, 200.0), 0.05, 0.04)
HEAVY_FAULTS = Pace(40, 90, (0.0, 0.01, 0.1, 0.5), 0.4, 0.0)
PACES = (ORDINARY, ORDINARY, ORDINARY, SLOW_PACE, HEAVY_FAULTS)


@frozen
class SwarmConfig(Generic[Kind]):
    """Swarm configuration of one script: pace, kinds of steps left out and overdone, and the numbers in steps."""

    pace: Pace
    left_out: tuple[Kind, ...]
    overdone: Mapping[Kind, int]  # with their factor
    people: tuple[int, ...]
    varieties: tuple[int, ...]

    def weights(self, ordinary: Mapping[Kind, int]) -> dict[Kind, int]:
        """Return the weights of the kinds that occur; all of them, if none would be left."""
        mine = {kind: w * self.overdone.get(kind, 1) for kind, w in ordinary.items() if kind not in self.left_out}
        return mine or dict(ordinary)

    def has(self, kind: Kind) -> bool:
        """Report whether steps of a kind may occur in the script."""
        return kind not in self.left_out


def swarm_config(seed: int, kinds: Iterable[Kind], always: Iterable[Kind]) -> SwarmConfig[Kind]:
    """Return the swarm configuration of a seed; kinds in `always` are never left out."""
    rng = Random(f"swarm {seed}")
    everything, needed = range(NUMBERS), dict.fromkeys(always)
    if rng.random() < PLAIN:
        return SwarmConfig(ORDINARY, (), {}, tuple(everything), tuple(everything))
    share, some = rng.choice(LEFT_OUT), list(kinds)
    left_out = tuple(kind for kind in some if rng.random() < share and kind not in needed)
    left = [kind for kind in some if kind not in left_out]
    overdone = {kind: rng.choice(TIMES) for kind in rng.sample(left, min(len(left), rng.randint(0, OVERDONE)))}
    people = rng.sample(everything, rng.choice(KEPT_APART)) if rng.random() < FEW else everything
    varieties = rng.sample(everything, 4) if rng.random() < SAME else everything
    return SwarmConfig(rng.choice(PACES), left_out, overdone, tuple(people), tuple(varieties))
