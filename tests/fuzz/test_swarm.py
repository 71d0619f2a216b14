"""Tests of swarm configurations: each script leaves out some kinds of steps and overdoes others."""

from __future__ import annotations

from collections import Counter
from functools import cache

from fuzz.simulation.script import Script
from fuzz.simulation.script_generator import ALWAYS, KINDS, WEIGHTS
from fuzz.simulation.script_generator import generate_script as draw_anew
from fuzz.simulation.swarm import HEAVY_FAULTS, SLOW_PACE, SwarmConfig, swarm_config
from fuzz.steps import INDEX, STEP_KINDS, GuessCredentials, PairDevice, RegisterCode, Step

SEEDS = range(300)


@cache
def draw(seed: int) -> Script:
    return draw_anew(seed)


def of(seed: int) -> SwarmConfig[type[Step]]:
    return swarm_config(seed, KINDS, ALWAYS)


def test_configuration_depends_on_the_seed() -> None:
    assert of(7) == of(7)
    assert len({of(seed).left_out for seed in SEEDS}) > 150


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


def test_overdone_kinds_are_more_frequent() -> None:
    shares = dict[bool, list[float]]({True: [], False: []})
    for seed in SEEDS:
        steps = draw(seed).steps
        commands = sum(isinstance(step, GuessCredentials) for step in steps)
        shares[GuessCredentials in of(seed).overdone].append(commands / len(steps))
    often, ordinary = (sum(shares[overdone]) / len(shares[overdone]) for overdone in (True, False))
    assert often > 3 * ordinary


def test_script_without_kinds_has_the_usual_weights() -> None:
    nothing = SwarmConfig[type[Step]](SLOW_PACE, tuple(STEP_KINDS.values()), {}, (1,), (1,))
    assert nothing.weights(WEIGHTS) == WEIGHTS


def test_calm_worlds_are_long_and_stormy_ones_are_short() -> None:
    ends = {
        pace: [draw(seed).steps[-1].at for seed in SEEDS if of(seed).pace is pace] for pace in (SLOW_PACE, HEAVY_FAULTS)
    }
    typical = {pace: sorted(times)[len(times) // 2] for pace, times in ends.items()}
    assert typical[SLOW_PACE] > 5 * typical[HEAVY_FAULTS]
    faults = {
        pace: [draw(seed).faults for seed in SEEDS if of(seed).pace is pace] for pace in (SLOW_PACE, HEAVY_FAULTS)
    }
    assert sum(faults[HEAVY_FAULTS]) > 5 * sum(faults[SLOW_PACE])


def test_some_scripts_have_few_clients() -> None:
    assert 30 < sum(len(of(seed).people) <= 3 for seed in SEEDS) < 150
