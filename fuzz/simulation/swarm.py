"""What is peculiar to one world: some kinds of events are left out of it and others overdone, by its seed.

After "Swarm testing" (Groce et al., ISSTA 2012): where everything happens in every test, what one kind of event undoes
can never pile up. A queue that is emptied now and then never fills. So one world has no restarts, another has half of
its people reconnect all the time, one is an afternoon of calm, and one a storm of half a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Generic, TypeVar

from attrs import frozen

Kind = TypeVar("Kind")

PLAIN = 0.3  # of all worlds: nothing is left out, and nothing overdone
LEFT_OUT = (0.15, 0.35, 0.6)  # of all kinds, in the other worlds
OVERDONE = 3  # kinds at most
TIMES = (4, 4, 12)  # that an overdone kind is as frequent as it was
FEW = 0.4  # of all worlds: a few people do everything
SAME = 0.3  # of all worlds: the kinds of events have few varieties
NUMBERS = 64  # that people are named by
KEPT_APART = (1, 2, 3)  # numbers that a few people go by; of one there is one chat, one session and one socket


@frozen
class Pace:
    """How many steps there are, how long it is from each to the next (s at most), and what share of them are faults.

    `rests` is the share of long pauses, over the limits of codes, blocks and sessions.
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
    """One world's."""

    pace: Pace
    left_out: tuple[Kind, ...]
    overdone: Mapping[Kind, int]  # and how many times
    people: tuple[int, ...]
    varieties: tuple[int, ...]

    def weights(self, ordinary: Mapping[Kind, int]) -> dict[Kind, int]:
        """How frequent the kinds are that happen at all: all of them, if none would be left."""
        mine = {kind: w * self.overdone.get(kind, 1) for kind, w in ordinary.items() if kind not in self.left_out}
        return mine or dict(ordinary)

    def has(self, kind: Kind) -> bool:
        """Whether it happens."""
        return kind not in self.left_out


def swarm_config(seed: int, kinds: Iterable[Kind], always: Iterable[Kind]) -> SwarmConfig[Kind]:
    """Of a seed. What is in `always` is never left out."""
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
