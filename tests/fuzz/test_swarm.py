"""Tests of swarm configurations: which kinds of steps a script leaves out."""

from collections import Counter
from functools import cache

from fuzz.simulation.script import Script
from fuzz.simulation.script_generator import ALWAYS, KINDS
from fuzz.simulation.script_generator import generate_script as draw_anew
from fuzz.simulation.swarm import SwarmConfig, swarm_config
from fuzz.steps import INDEX, PairDevice, RegisterCode, Step

SEEDS = range(300)


@cache
def draw(seed: int) -> Script:
    return draw_anew(seed)


def of(seed: int) -> SwarmConfig[type[Step]]:
    return swarm_config(seed, KINDS, ALWAYS)


def test_every_world_begins_with_two_devices_that_pair() -> None:
    for seed in SEEDS:
        first = [step for step in draw(seed).steps if type(step) in ALWAYS][:4]
        assert [(step.at, type(step), step.value(INDEX)) for step in first[:1] + first[2:]] == [
            (0.5, RegisterCode, 0),
            (1.0, PairDevice, 0),
            (1.1, PairDevice, 1),
        ]


def test_each_kind_is_left_out_of_some_worlds_and_happens_in_more() -> None:
    worlds = Counter(kind for seed in SEEDS for kind in {type(step) for step in draw(seed).steps})
    for kind in KINDS:
        assert worlds[kind] >= len(SEEDS) // 10, kind
        assert worlds[kind] < len(SEEDS) or kind in ALWAYS, kind


def test_left_out_kinds_do_not_occur() -> None:
    for seed in SEEDS:
        assert not {type(step) for step in draw(seed).steps} & {*of(seed).left_out}
