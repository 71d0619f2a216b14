"""Mutants in the simulation: single deployments, or clusters under faults, in a process that starts with the mutant."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from multiprocessing.connection import Connection
from unittest.mock import patch

from fuzz.mutants.source_tree import SourceTree
from fuzz.mutants.trial_process import answer_of, begin, change


def find_seed(
    tree: SourceTree,
    module: str,
    text: bytes,
    scratch: str,
    seeds: Sequence[int],
    breaks: str,
    *,
    storm: bool,
    sessions: int = 0,
    limit: float,
) -> int | None:
    """Return the first of `seeds` whose run finds the mutant; None if none does within `limit` seconds.

    A simulation does so if it reports the `Invariant` with the name `breaks`. A cluster run does so if its report
    contains `breaks`. With `sessions` that many are stored, and computing costs simulated time.
    """
    play = partial(_play_storm, sessions=sessions) if storm else _play_world
    costs = sessions > 0
    answer = answer_of(_play, tree, module, text, scratch, list(seeds), breaks, play, costs, limit=limit)
    return int(answer) if answer is not None and answer.isdigit() else None


def _play(
    answer: Connection,
    tree: SourceTree,
    module: str,
    text: bytes,
    scratch: str,
    seeds: Sequence[int],
    breaks: str,
    play: Callable[[int, str], bool],
    costs: bool,
) -> None:
    begin(tree, scratch)
    change(tree, module, text)
    from runtimes.sim.cost import HandleCost

    with nullcontext() if costs else patch.object(HandleCost, "draw", return_value=HandleCost.NONE):
        answer.send(next((str(seed) for seed in seeds if play(seed, breaks)), None))


def _play_world(seed: int, breaks: str) -> bool:
    from fuzz.simulation.scenario_runner import ScenarioFailure, run_seed

    outcome = run_seed(seed)
    return isinstance(outcome, ScenarioFailure) and outcome.invariant.name == breaks


def _play_storm(seed: int, breaks: str, sessions: int) -> bool:
    from fuzz.cluster.invariants import ClusterViolation
    from fuzz.cluster.run import run_seed

    try:
        run_seed(seed, sessions=sessions)
    except ClusterViolation as violated:
        return breaks in str(violated)
    return False
