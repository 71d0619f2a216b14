"""A script that fails is made small in every way there is, and in bounded time."""

from __future__ import annotations

from itertools import count

import pytest

from fuzz.draw import draw
from fuzz.game import Failure, play
from fuzz.script import FAULTS, Deed, Script, Step
from fuzz.shrink import shrink, smaller
from svc_proto.machines import limiter


def test_a_failure_is_made_smaller() -> None:
    script = draw(1)
    culprit = next(step for step in script.steps if step.deed is Deed.COMMAND)
    small = shrink(script, lambda smaller: culprit in smaller.steps)
    assert small.steps == (culprit,)


def test_faults_go_first() -> None:
    steps = (Step(1.0, Deed.COMMAND), Step(2.0, Deed.CUT), Step(3.0, Deed.COMMAND), Step(4.0, Deed.KILL))
    small = shrink(Script(1, steps), lambda smaller: True, tries=3)
    assert not any(step.deed in FAULTS for step in small.steps)


def test_what_comes_after_the_failure_goes_at_once() -> None:
    steps = tuple(Step(float(at), Deed.COMMAND) for at in range(100))
    small = shrink(Script(1, steps), lambda smaller: steps[0] in smaller.steps, tries=1, until=10.0)
    assert small.steps == steps[:11]


@pytest.mark.parametrize(
    ("matters", "least"),
    [
        (lambda step: True, Step(1.0, Deed.KILL, 0, 0, 0.0)),
        (lambda step: step.amount > 2.5, Step(1.0, Deed.KILL, 0, 0, 3.0)),
        (lambda step: step.who % 4 == 1, Step(1.0, Deed.KILL, 1, 0, 0.0)),
        (lambda step: step.other > 20, Step(1.0, Deed.KILL, 0, 31, 0.0)),
        (lambda step: step.at > 30.0, Step(34.25, Deed.KILL, 0, 0, 0.0)),
    ],
)
def test_amounts_numbers_and_times_are_made_smaller(matters: object, least: Step) -> None:
    assert callable(matters)
    script = Script(1, (Step(137.0, Deed.KILL, 45, 62, 12.7),))
    assert shrink(script, lambda smaller: any(map(matters, smaller.steps))).steps == (least,)


def test_long_pauses_go_and_the_order_stays() -> None:
    steps = (Step(1.0, Deed.PAIR), Step(641.0, Deed.CUT), Step(641.5, Deed.KILL))
    small = shrink(Script(1, steps), lambda smaller: len(smaller.steps) == 3)
    assert [step.deed for step in small.steps] == [Deed.PAIR, Deed.CUT, Deed.KILL]
    assert [step.at for step in small.steps] == [1.0, 2.0, 2.5]


def test_no_script_is_tried_twice_and_none_is_when_the_time_is_over() -> None:
    script, tried = draw(1), list[Script]()

    def fails(smaller: Script) -> bool:
        tried.append(smaller)
        return len(smaller.steps) > 20

    shrink(script, fails)
    assert len(tried) == len(set(tried)) <= 200
    tried.clear()
    clock = count(0.0, 1.0)
    shrink(script, fails, seconds=10.0, clock=lambda: next(clock))
    assert len(tried) == 9


@pytest.mark.repetition
def test_a_world_that_fails_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter, "MAX_FAILURES", 6)
    failure = play(draw(1))
    assert isinstance(failure, Failure)
    assert len(smaller(failure, 80).script.steps) <= 12
