"""Failures that the simulation has found, minimized."""

from __future__ import annotations

import pytest

from fuzz.simulation.invariants import Violation
from fuzz.simulation.models.reference_model import AddressBlockModel
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


@pytest.mark.parametrize("sure", [True, False])
def test_a_registration_without_an_answer_may_have_cleared_nothing(sure: bool) -> None:
    addresses = AddressBlockModel()
    for sent in range(5):
        addresses.attempt("10.0.1.2", float(sent)).told = sent + 0.5
    addresses.forget(6.0, 8.0, sure=sure)
    if sure:
        with pytest.raises(Violation, match="NOT_BLOCKED"):
            addresses.check_refused("10.0.1.2", 20.0, 20.1)
    else:
        addresses.check_refused("10.0.1.2", 20.0, 20.1)
