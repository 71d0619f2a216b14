"""Tests of failures that the simulation has found, in minimized form."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import define

from fuzz.simulation.actors.run_watchers import UNREAD_TIMEOUT, RunWatchers
from fuzz.simulation.actors.terminal_users import TerminalUsers
from fuzz.simulation.invariants import Violation
from fuzz.simulation.models.reference_model import AddressBlockModel, ChatModel, TurnModel
from fuzz.simulation.scenario_runner import ScenarioReport, run_script
from fuzz.simulation.script import Script
from fuzz.steps import (
    DegradeDisk,
    ExtendSession,
    KillProgram,
    LeaveEarly,
    PairDevice,
    RegisterCode,
    SendChatMessage,
    SetWallClock,
    StartRun,
    TypeInTerminal,
    UseMcp,
)
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


@define(eq=False)
class _Device:
    name: str
    talker: SimpleNamespace


def test_an_mcp_session_ends_whose_client_left_before_the_answer() -> None:
    steps = (
        RegisterCode(at=0.6, grants=0, lifetime=0.0),
        PairDevice(at=1.0, device=0, code=0),
        LeaveEarly(at=2.0, ending=0, seconds=0.0039),
        LeaveEarly(at=2.0, ending=0, seconds=0.0),
        UseMcp(at=2.297, session=0, action=0, seconds=0.0),
        UseMcp(at=2.724, session=0, action=0, seconds=0.0),
    )
    outcome = run_script(Script(seed=9003002, steps=steps))
    assert isinstance(outcome, ScenarioReport), outcome


@pytest.mark.parametrize("refused", [True, False])
def test_a_line_without_a_terminal_may_reach_another_one_if_the_attach_failed(refused: bool) -> None:
    numbers = iter(range(1, 10))
    talker = SimpleNamespace(send_envelope=lambda *_: None)
    device = _Device("device", talker)
    world = SimpleNamespace(sim=SimpleNamespace(now=1.0), home=SimpleNamespace(programs={}))
    crowd = SimpleNamespace(world=world, listeners=[], open=[device], next_number=lambda: next(numbers))
    users = TerminalUsers(cast("Any", crowd))
    step = users.handlers[TypeInTerminal]
    for action in (14, 4):  # attach "side", then "main", and type a line without a name in each
        step(TypeInTerminal(at=1.0, socket=0, action=action))
    (listener,) = crowd.listeners
    if refused:
        listener(device, {"channel": "terminal", "type": "terminal.error", "payload": {"session_name": "main"}})
    shown = {"session_name": "side", "data": "say line-1-\nsay line-2-\n"}
    output = {"channel": "terminal", "type": "terminal.output", "payload": shown}
    if refused:
        listener(device, output)
    else:
        with pytest.raises(Violation, match="typed line 2 in main"):
            listener(device, output)


def test_an_agent_whose_shortened_session_expires_by_a_clock_step_gets_401() -> None:
    steps = (
        RegisterCode(at=1.0, grants=0, lifetime=0.0),
        PairDevice(at=1.249, device=0, code=0),
        RegisterCode(at=2.857, grants=0, lifetime=0.0),
        DegradeDisk(at=3.416, kind=2, seconds=0.2),  # the answer to the next request comes after the clock step
        ExtendSession(at=3.417, session=0, grants=0, lifetime=1.0),
        SendChatMessage(at=3.417, chat=1, manner=0, leave_after=0.0),
        SetWallClock(at=3.467, seconds=1.0),
        PairDevice(at=3.857, device=0, code=1),
    )
    outcome = run_script(Script(seed=20022691, steps=steps))
    assert isinstance(outcome, ScenarioReport), outcome


@pytest.mark.parametrize("seed", [3, 4])
def test_a_relay_that_starts_on_a_faulty_disk_accepts_the_operator_when_the_disk_works_again(seed: int) -> None:
    steps = (DegradeDisk(at=1.0, kind=1, seconds=3.0), KillProgram(at=1.5, program=0, seconds=1.0))
    outcome = run_script(Script(seed=seed, steps=steps))
    assert isinstance(outcome, ScenarioReport), outcome


@pytest.mark.parametrize(
    ("interrupted", "results", "agrees"),
    [
        (False, ["1"], True),
        (False, ["1", "2"], False),
        (True, ["1"], True),
        (True, ["1", "2"], True),
        (True, ["2"], False),
        (True, ["1", "2", "2"], False),
        (True, ["1", "3"], False),
    ],
)
def test_a_stopped_turn_may_store_one_result_of_each_call_that_it_started(
    interrupted: bool, results: list[str], agrees: bool
) -> None:
    turn = TurnModel(ChatModel("chat"), "question", started=["1", "2"], called=["1"], interrupted=interrupted)
    assert turn.may_store(results) is agrees


@pytest.mark.parametrize("delayed", [True, False])
def test_a_request_that_a_fault_delays_may_find_the_events_of_its_run_dropped(delayed: bool) -> None:
    sim = SimpleNamespace(now=1.0, after=lambda _, callback: callback())
    world = SimpleNamespace(sim=sim, outages=0, left=False, count=lambda _: None, is_unaffected=lambda _: not delayed)
    requests: list[Any] = []

    def request(method: str, path: str, body: object, done: object, piece: object = None) -> SimpleNamespace:
        requests.append(SimpleNamespace(method=method, began=sim.now, status=0, head=None, done=done))
        return cast("SimpleNamespace", requests[-1])

    chats = SimpleNamespace(
        world=world, runs=[], reading={}, number=lambda: 1, pick=lambda _: ChatModel("chat"), request=request
    )
    RunWatchers(cast("Any", chats)).handlers[StartRun](StartRun(at=1.0, chat=0, manner=0, watch_after=1.0))
    start = requests[0]
    start.status, start.answer = 202, SimpleNamespace(json={"run_id": "run_1"})
    start.done(start)
    watch = requests[1]
    watch.status, sim.now = 404, 1.0 + UNREAD_TIMEOUT
    if delayed:
        watch.done(watch)
    else:
        with pytest.raises(Violation, match="missing for its first reader"):
            watch.done(watch)
