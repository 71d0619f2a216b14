"""Tests of the narration: its texts are readable and have no secrets."""

from __future__ import annotations

import pytest

from fuzz.simulation.actors.status_reporters import StatusReporters
from fuzz.simulation.invariants import Invariant
from fuzz.simulation.narration import describe_step, in_words, narrate
from fuzz.simulation.scenario_runner import ScenarioFailure, ScenarioReport, run_script
from fuzz.simulation.script import Script
from fuzz.steps import (
    STEP_KINDS,
    DisconnectSocket,
    InspectServer,
    KillProgram,
    PairDevice,
    RegisterCode,
    Step,
)
from runtimes.sim.trace import TraceRecord
from svc_proto import facts
from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    Connect,
    Level,
    Log,
    PauseReading,
    Ready,
    ResumeReading,
    Send,
)
from svc_proto.facts import Address, ChannelId, Fact, FailureKind, OperationId

CH, OP = ChannelId(4), OperationId(7)
MASKED_HELLO = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"  # RFC 6455 section 5.7


def test_every_kind_of_step_is_described() -> None:
    for kind in STEP_KINDS.values():
        words = describe_step(kind.of(1.0, 1, 2, 3.0))
        assert words, kind
        assert "{" not in words, kind


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (PairDevice.of(12.3, 6, 3), "device-2 pairs with code 3"),
        (KillProgram.of(12.3, 2, 0, 4.1), "the relay is killed for 4.1 s"),
        (DisconnectSocket.of(12.3, 2, 1), "socket 2 is left with a reset"),
    ],
)
def test_a_step_in_words(step: Step, words: str) -> None:
    assert describe_step(step) == words


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (None, "time passes"),
        ("killed", "killed"),
        (facts.Accepted(CH, Address("10.0.0.4", 49152), Address("10.0.0.1", 8767)), "10.0.0.4 connects to port 8767"),
        (facts.Received(CH, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "received 27 bytes: GET / HTTP/1.1 Host: x"),
        (facts.Received(CH, MASKED_HELLO), "received 11 bytes: Hello"),
        (facts.Received(CH, b"\x00\x00\x04\x08"), "received 4 bytes, no text"),
        (Send(CH, b'\x81\x0b{"type": 1}'), 'send 13 bytes: {"type": 1}'),
        (facts.Sent(CH, 120), "120 bytes have left"),
        (facts.ReadClosed(CH), "the peer says no more"),
        (facts.Closed(CH, "reset by the peer"), "closed, reset by the peer"),
        (facts.Closed(CH), "channel 4: closed"),
        (CloseWrite(CH), "say no more"),
        (Abort(CH), "drop it"),
        (PauseReading(CH), "read no more"),
        (ResumeReading(CH), "read on"),
        (facts.Done(OP, None), "operation 7 is done: None"),
        (facts.Failed(OP, facts.Failure(FailureKind.NOT_FOUND, "no such file")), "7 failed: NOT_FOUND, no such file"),
        (Cancel(OP), "give up operation 7"),
        (Log(Level.INFO, "paired", {"device": "d"}), "log INFO: paired {'device': 'd'}"),
        (Connect(OP, CH, "10.0.0.1", 80, tls=False), "operation 7: Connect("),
        (Ready(), "Ready()"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fact_or_a_command_in_words(what: Fact | Command | str | None, words: str) -> None:
    assert words in in_words(what)


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
        "     3.000 s  relay#1   channel 4: 544 bytes have left",
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
    assert outcome.place.startswith(
        "at 2.000 s, 0.000 s after step 3 of 4 (3. the operator looks into inspector 3), in run"
    )
    lines = outcome.story.splitlines()
    assert lines[-1] == "     2.000 s  step      3. the operator looks into inspector 3"
    assert any("relay#1   log INFO: paired {'device': 'device-0'" in line for line in lines)
    assert max(sum(f" {program} " in line for line in lines) for program in ("relay#1", "api#2", "phone#1")) == 30
    assert outcome.place in str(outcome)


def test_trace_has_the_whole_narration() -> None:
    script = Script(1, (RegisterCode.of(0.5), PairDevice.of(1.0)))
    brief, whole = run_script(script), run_script(script, trace=True)
    assert isinstance(brief, ScenarioReport)
    assert isinstance(whole, ScenarioReport)
    assert brief.digest == whole.digest
    assert brief.story == ""
    lines = whole.story.splitlines()
    assert lines[0].endswith("relay#1   started")
    assert lines[-1].endswith("   exited 0")
    assert sum("  step  " in line for line in lines) == 2
