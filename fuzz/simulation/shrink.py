"""Minimization of a failing script: fewer steps, shorter times, smaller numbers, with the same failure."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any, TypeAlias

from attrs import evolve

from fuzz.simulation.scenario_runner import ScenarioFailure, run_script
from fuzz.simulation.script import Script
from fuzz.steps import AMOUNT, CHOICE, INDEX, Fault, Step, slots

SECONDS = 120.0  # time limit
SHORT = 1.0  # s between two steps, if a longer pause is not needed

Fails: TypeAlias = Callable[[Script], bool]
Candidates: TypeAlias = Callable[[Script, int], Iterator[Script]]


def smaller(failure: ScenarioFailure, tries: int) -> ScenarioFailure:
    """Return a failure of the same invariant with a smaller script, or `failure` itself if none is found in time."""
    found = failure

    def fails(script: Script) -> bool:
        nonlocal found
        outcome = run_script(script)
        if not isinstance(outcome, ScenarioFailure) or outcome.invariant is not failure.invariant:
            return False
        found = outcome
        return True

    shrink(failure.script, fails, tries=tries, until=failure.at)
    return found


def shrink(
    script: Script,
    fails: Fails,
    *,
    tries: int = 200,
    seconds: float = SECONDS,
    until: float = inf,
    clock: Callable[[], float] = time.monotonic,
) -> Script:
    """Return the smallest script found within the limits that `fails`.

    `until` is the time of the failure, in seconds from the script's start: later steps are left out first.
    """
    hunt = _ShrinkBudget(fails, tries, clock() + seconds, clock)
    script = hunt.first(script, [_cut(script, until)])
    for only_faults in (True, False):
        script = hunt.fewer(script, only_faults=only_faults)
    script = hunt.first(script, [_hurried(script)])
    for candidates in (_calmer, _sooner, _plainer):
        for place in range(len(script.steps)):
            script = hunt.exhaust(script, candidates, place)
    return hunt.fewer(script, only_faults=False)


class _ShrinkBudget:
    """Remaining tries and time of a minimization."""

    def __init__(self, fails: Fails, tries: int, end: float, clock: Callable[[], float]) -> None:
        self._fails = fails
        self._tries = tries
        self._end = end
        self._clock = clock
        self._known: dict[Script, bool] = {}

    def first(self, script: Script, candidates: Iterable[Script]) -> Script:
        """Return the first candidate that fails too; the script if none does, or no tries or time are left."""
        for candidate in candidates:
            if candidate == script:
                continue
            if candidate not in self._known:
                if self._tries <= 0 or self._clock() >= self._end:
                    break
                self._tries -= 1
                self._known[candidate] = self._fails(candidate)
            if self._known[candidate]:
                return candidate
        return script

    def exhaust(self, script: Script, candidates: Candidates, how: int) -> Script:
        """Repeat `first` with the smaller script, until it finds no other; return the last script."""
        while (smaller := self.first(script, candidates(script, how))) is not script:
            script = smaller
        return script

    def fewer(self, script: Script, *, only_faults: bool) -> Script:
        """Return the script without steps that the failure does not need, as far as tries and time are left.

        Halves of the steps are left out first, then quarters, and at last single steps; with `only_faults` only faults.
        """
        size = max(1, len(script.steps) // 2)
        while size:
            script = self.exhaust(script, _without_faults if only_faults else _without, size)
            size //= 2
        return script


def _cut(script: Script, until: float) -> Script:
    return evolve(script, steps=tuple(step for step in script.steps if step.at <= until))


def _without(script: Script, size: int) -> Iterator[Script]:
    return _less(script, range(len(script.steps)), size)


def _without_faults(script: Script, size: int) -> Iterator[Script]:
    return _less(script, [place for place, step in enumerate(script.steps) if isinstance(step, Fault)], size)


def _less(script: Script, places: Sequence[int], size: int) -> Iterator[Script]:
    for start in range(0, len(places), size):
        gone = dict.fromkeys(places[start : start + size])
        yield evolve(script, steps=tuple(step for place, step in enumerate(script.steps) if place not in gone))


def _hurried(script: Script) -> Script:
    """Return the script with each pause shortened to `SHORT` seconds at most."""
    at, before, steps = 0.0, 0.0, list[Step]()
    for step in script.steps:
        at, before = round(at + min(step.at - before, SHORT), 3), step.at
        steps.append(step.changed(at=at))
    return evolve(script, steps=tuple(steps))


def _calmer(script: Script, place: int) -> Iterator[Script]:
    """Yield the script with each amount of a step set to 0, rounded down, or halved and rounded down."""
    step = script.steps[place]
    for name, now in _numbers(step, AMOUNT):
        for amount in (0.0, float(int(now)), float(int(now / 2))):
            if amount != now:
                yield _with(script, place, step.changed(**{name: amount}))


def _sooner(script: Script, place: int) -> Iterator[Script]:
    """Yield the script with a shorter pause before a step."""
    steps = script.steps
    pause = steps[place].at - (steps[place - 1].at if place else 0.0)
    for less in (pause - SHORT, pause / 2):
        if less > SHORT / 2:
            later = tuple(step.changed(at=round(step.at - less, 3)) for step in steps[place:])
            yield evolve(script, steps=steps[:place] + later)


def _plainer(script: Script, place: int) -> Iterator[Script]:
    """Yield the script with smaller numbers in a step: 0, 1, or half."""
    step = script.steps[place]
    for name, now in [*_numbers(step, INDEX), *_numbers(step, CHOICE)]:
        for number in (0, 1, now // 2):
            if abs(number) < abs(now):
                yield _with(script, place, step.changed(**{name: number}))


def _numbers(step: Step, slot: str) -> list[tuple[str, Any]]:
    """Return names and values of the fields of a step that have one kind of number: index, choice or amount."""
    return [(name, getattr(step, name)) for name, each in slots(type(step)).items() if each == slot]


def _with(script: Script, place: int, step: Step) -> Script:
    return evolve(script, steps=(*script.steps[:place], step, *script.steps[place + 1 :]))
