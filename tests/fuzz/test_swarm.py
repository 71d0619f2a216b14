"""Test of swarm configurations: the kinds of steps that scripts leave out."""

from collections import Counter

from fuzz.simulation.script_generator import ALWAYS, KINDS, generate_script

SEEDS = range(300)


def test_each_kind_is_left_out_of_some_worlds_and_happens_in_more() -> None:
    worlds = Counter(kind for seed in SEEDS for kind in {type(step) for step in generate_script(seed).steps})
    for kind in KINDS:
        assert worlds[kind] >= len(SEEDS) // 10, kind
        assert worlds[kind] < len(SEEDS) or kind in ALWAYS, kind
