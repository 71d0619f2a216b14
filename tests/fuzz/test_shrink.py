"""Tests of the minimization: a failing script is made smaller in all ways, in bounded time."""

from itertools import count

import pytest

from fuzz.simulation.scenario_runner import ScenarioFailure, run_script
from fuzz.simulation.script import Script
from fuzz.simulation.script_generator import generate_script
from fuzz.simulation.shrink import shrink, smaller
from fuzz.steps import CutConnection, Fault, KillProgram, PairDevice, RefuseSessionRecord, SendCommand, Step
from svc_proto.machines import auth_rate_limiter


def test_a_failure_is_made_smaller() -> None:
    script = generate_script(1)
    culprit = next(step for step in script.steps if isinstance(step, SendCommand))
    small = shrink(script, lambda smaller: culprit in smaller.steps)
    assert small.steps == (culprit,)


def test_faults_go_first() -> None:
    steps = (SendCommand.of(1.0), CutConnection.of(2.0), SendCommand.of(3.0), KillProgram.of(4.0))
    small = shrink(Script(1, steps), lambda smaller: True, tries=3)
    assert not any(isinstance(step, Fault) for step in small.steps)


def test_steps_after_the_failure_are_removed_first() -> None:
    steps = tuple(SendCommand.of(float(at)) for at in range(100))
    small = shrink(Script(1, steps), lambda smaller: steps[0] in smaller.steps, tries=1, until=10.0)
    assert small.steps == steps[:11]


@pytest.mark.parametrize(
    ("matters", "least"),
    [
        (lambda step: True, RefuseSessionRecord(1.0, 0, 0, 0.0)),
        (lambda step: step.seconds > 2.5, RefuseSessionRecord(1.0, 0, 0, 3.0)),
        (lambda step: step.session % 4 == 1, RefuseSessionRecord(1.0, 1, 0, 0.0)),
        (lambda step: step.request > 20, RefuseSessionRecord(1.0, 0, 31, 0.0)),
        (lambda step: step.at > 30.0, RefuseSessionRecord(34.25, 0, 0, 0.0)),
    ],
)
def test_amounts_numbers_and_times_are_made_smaller(matters: object, least: Step) -> None:
    assert callable(matters)
    script = Script(1, (RefuseSessionRecord(137.0, 45, 62, 12.7),))
    assert shrink(script, lambda smaller: any(map(matters, smaller.steps))).steps == (least,)


def test_long_pauses_go_and_the_order_stays() -> None:
    steps = (PairDevice.of(1.0), CutConnection.of(641.0), KillProgram.of(641.5))
    small = shrink(Script(1, steps), lambda smaller: len(smaller.steps) == 3)
    assert [type(step) for step in small.steps] == [PairDevice, CutConnection, KillProgram]
    assert [step.at for step in small.steps] == [1.0, 2.0, 2.5]


def test_no_script_is_tried_twice_and_none_is_when_the_time_is_over() -> None:
    script, tried = generate_script(1), list[Script]()

    def fails(smaller: Script) -> bool:
        tried.append(smaller)
        return len(smaller.steps) > 20

    shrink(script, fails)
    assert len(tried) == len(set(tried)) <= 200
    tried.clear()
    clock = count(0.0, 1.0)
    shrink(script, fails, seconds=10.0, clock=lambda: next(clock))
    assert len(tried) == 9


@pytest.mark.full
def test_a_world_that_fails_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth_rate_limiter, "MAX_FAILURES", 6)
    failure = run_script(generate_script(1))
    assert isinstance(failure, ScenarioFailure)
    assert len(smaller(failure, 80).script.steps) <= 12
