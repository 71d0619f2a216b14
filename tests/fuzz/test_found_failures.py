"""Tests of failures that the simulation has found, in minimized form."""

import pytest

from fuzz import steps
from fuzz.simulation.scenario_runner import ScenarioReport, run_script
from fuzz.simulation.script import Script
from svc_proto.basics.moment import Moment
from svc_proto.commands import Cancel, ReadConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import run_operation
from svc_proto.facts import Done, OperationId, Started
from tests.support.playbook import FlowService


def test_answer_at_the_deadline_is_not_cancelled() -> None:
    life = FlowService(lambda engine: run_operation(engine, ReadConfig(engine.new_op(), "greeting"), within=5.0))
    core = Engine(life, entropy=bytes)
    core.handle(Started(), Moment(0.0, 0.0))
    commands = core.handle(Done(OperationId(1), "hello"), Moment(5.1, 5.1))
    assert Cancel(OperationId(1)) not in commands


def test_an_mcp_session_ends_whose_client_left_before_the_answer() -> None:
    script = (
        steps.RegisterCode(at=0.6, grants=0, lifetime=0.0),
        steps.PairDevice(at=1.0, device=0, code=0),
        steps.LeaveEarly(at=2.0, ending=0, seconds=0.0039),
        steps.LeaveEarly(at=2.0, ending=0, seconds=0.0),
        steps.UseMcp(at=2.297, session=0, action=0, seconds=0.0),
        steps.UseMcp(at=2.724, session=0, action=0, seconds=0.0),
    )
    outcome = run_script(Script(seed=9003002, steps=script))
    assert isinstance(outcome, ScenarioReport), outcome


def test_an_agent_whose_shortened_session_expires_by_a_clock_step_gets_401() -> None:
    script = (
        steps.RegisterCode(at=1.0, grants=0, lifetime=0.0),
        steps.PairDevice(at=1.249, device=0, code=0),
        steps.RegisterCode(at=2.857, grants=0, lifetime=0.0),
        steps.DegradeDisk(at=3.416, kind=2, seconds=0.2),  # the answer to the next request comes after the clock step
        steps.ExtendSession(at=3.417, session=0, grants=0, lifetime=1.0),
        steps.SendChatMessage(at=3.417, chat=1, manner=0, leave_after=0.0),
        steps.SetWallClock(at=3.467, seconds=1.0),
        steps.PairDevice(at=3.857, device=0, code=1),
    )
    outcome = run_script(Script(seed=20022691, steps=script))
    assert isinstance(outcome, ScenarioReport), outcome


@pytest.mark.parametrize("seed", [3, 4])
def test_a_relay_that_starts_on_a_faulty_disk_accepts_the_operator_when_the_disk_works_again(seed: int) -> None:
    script = (steps.DegradeDisk(at=1.0, kind=1, seconds=3.0), steps.KillProgram(at=1.5, program=0, seconds=1.0))
    outcome = run_script(Script(seed=seed, steps=script))
    assert isinstance(outcome, ScenarioReport), outcome
