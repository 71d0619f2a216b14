"""Tests of the narration of a simulation: its texts are readable and have no secrets."""

import pytest

from fuzz.simulation.actors.status_reporters import StatusReporters
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.narration import describe_step, narrate
from fuzz.simulation.scenario_runner import ScenarioFailure, run_script
from fuzz.simulation.script import Script
from fuzz.steps import STEP_KINDS, InspectServer, PairDevice, RegisterCode
from runtimes.sim.trace import TraceRecord
from svc_proto import facts
from svc_proto.commands import Send
from svc_proto.facts import ChannelId, OperationId

CH, OP = ChannelId(4), OperationId(7)


def test_every_kind_of_step_is_described() -> None:
    for kind in STEP_KINDS.values():
        words = describe_step(kind.of(1.0, 1, 2, 3.0))
        assert words, kind
        assert "{" not in words, kind


def test_narration_is_in_order_short_and_without_secrets() -> None:
    records = [
        TraceRecord(1002.0, "relay#1", Send(CH, b'Bearer key-1 {"session_token":"0123456789"} ' + b"x" * 500)),
        TraceRecord(1003.0, "relay#1", facts.Sent(CH, 544)),
    ]
    lines = narrate(records, [(1003.0, "7. socket 3 is left")], {"key-1": "the API's key"}, 1000.0).splitlines()
    assert lines[0].startswith(
        '     2.000 s  relay#1   channel 4: send 544 bytes: Bearer [the API\'s key] {"session_token":"..."}'
    )
    assert lines[0].endswith("xxx...")
    assert len(lines[0]) < 200
    assert lines[1:] == [
        "     3.000 s  step      7. socket 3 is left",
        "     3.000 s  relay#1   channel 4: 544 bytes were sent",
    ]


def test_failure_reports_its_place_and_the_steps_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: StatusReporters, path: str) -> None:
        raise ValueError("this is broken")

    monkeypatch.setattr(StatusReporters, "_inspect", broken)
    steps = (RegisterCode.of(0.5), PairDevice.of(1.0), InspectServer.of(2.0, 3), PairDevice.of(3.0))
    outcome = run_script(Script(1, steps))
    assert isinstance(outcome, ScenarioFailure)
    assert outcome.invariant is Invariant.NO_BUG
    assert outcome.at == 2.0
    assert "ValueError: this is broken" in outcome.detail
    assert outcome.place.startswith("at 2.000 s, 0.000 s after step 3 of 4 (3. the operator reads inspector 3), in run")
    lines = outcome.story.splitlines()
    assert lines[-1] == "     2.000 s  step      3. the operator reads inspector 3"
    assert any("relay#1   log INFO: paired {'device': 'device-0'" in line for line in lines)
    assert max(sum(f" {program} " in line for line in lines) for program in ("relay#1", "api#2", "phone#1")) == 30
    assert outcome.place in str(outcome)
