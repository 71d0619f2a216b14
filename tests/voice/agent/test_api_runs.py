import sys
from collections.abc import Callable
from functools import partial
from types import FrameType, SimpleNamespace
from typing import Any, cast

import pytest
from attrs import evolve

from svc_proto.basics.moment import Moment
from svc_proto.commands import Command
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep, wait
from svc_proto.facts import Fact, Received
from svc_proto.relay.service import Relay
from svc_proto.voice.agent.api_runs import ApiRuns
from svc_proto.voice.principal import Principal
from svc_proto.voice.provider_interface import ProviderError
from svc_proto.voice.realtime.actions import StartRun
from svc_proto.voice.realtime.run_events import ChatSessionBound
from tests.loops.realtime_agent import RealtimeAgentSetup, ends, of, play, run, talk
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.servers.realtime_server import SpokenTurn
from tests.voice.harness import PHONE, VoiceHarness

UNCALLED_AGENT = cast("Any", SimpleNamespace(run_event=pytest.fail, drafts=pytest.fail))  # must not be called


def test_run_stopped_before_its_request(rig: VoiceHarness) -> None:
    ended: list[bool] = []

    def credential(principal: Principal) -> Flow[str | None]:
        try:
            yield from wait(rig.engine.new_op(), rig.engine.now.mono + 60.0)
        finally:
            ended.append(True)
        return None

    rig.voice.api_credential = credential  # type: ignore[method-assign]  # slow on purpose
    holder = ApiRuns(rig.voice, PHONE, UNCALLED_AGENT, cast("Any", pytest.fail))
    rig.within(lambda: holder.detach("k1"))
    rig.within(lambda: holder.stop("k1"))
    rig.within(lambda: holder.start(StartRun(call_id="k1", text="x"), ""))
    rig.within(lambda: holder.stop("k1"))
    assert ended == [True]
    rig.after(120.0)


def test_device_without_chats_continues_those_that_its_session_began(rig: VoiceHarness) -> None:
    talk = cast("Any", SimpleNamespace(run_event=lambda *_: None, drafts=lambda *_: False))
    rig.voice.api_credential = lambda principal: sleep(rig.engine, 1.0)  # type: ignore[method-assign]  # slow
    holder = ApiRuns(rig.voice, evolve(PHONE, withheld=lambda: ("chat",)), talk, lambda: None)
    rig.within(lambda: holder._on_run_event("k1", ChatSessionBound("c9")))
    for session_id, used in (("c9", "c9"), ("c1", None)):
        rig.within(partial(holder.start, StartRun(call_id="k2", text="x", session_id=session_id), ""))
        assert holder._runs["k2"]._order.session_id == used
        rig.within(lambda: holder.detach("k2"))


def test_detached_run_reports_no_failure(rig: VoiceHarness) -> None:

    def credential(principal: Principal) -> Flow[str | None]:
        holder.detach("k1")  # before the run has a task
        yield from sleep(rig.engine, 1.0)
        raise ProviderError("too late to matter")

    rig.voice.api_credential = credential  # type: ignore[method-assign]  # there is none
    holder = ApiRuns(rig.voice, PHONE, UNCALLED_AGENT, cast("Any", pytest.fail))
    rig.within(lambda: holder.start(StartRun(call_id="k1", text="x"), ""))
    rig.after(2.0)


@pytest.mark.fast_path
def test_unreported_delta_costs_twenty_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Require at most 20 Python function calls for a received fact with one whole delta, except for at most four."""
    world, words = SimulatedEnvironment(), "It goes on with many more words than any listener would like to hear"

    def piece(engine: Engine, fact: Fact | None) -> bool:
        data = fact.data if isinstance(fact, Received) else b""
        return b"event: assistant.delta\n" in data and data.endswith(b"\n\n\r\n") and data.count(b"event: ") == 1

    counts = counted(monkeypatch, piece)
    agent = RealtimeAgentSetup(world, run(f"/echo {words}"), SpokenTurn(words))
    events = play(agent.start_turn("go on"), ends)
    assert of(events, "voice.response.delta")["delivery"] == "forced_summary"
    assert agent.outputs()[0]["text"] == words
    few = [count for count in counts if count <= 20]
    assert len(few) > 5
    assert len(counts) - len(few) < 5  # the first delta is reported, and a delta cut in two is read as before


@pytest.mark.fast_path
def test_spoken_task_costs_six_thousand_calls_of_the_relay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Require between 2,000 and 6,000 Python function calls in the relay from the first audio to the answer's end."""
    words = "The disk is 62 percent used and that is how it stands"
    agent = RealtimeAgentSetup(SimulatedEnvironment(), run(f"/echo {words}"), SpokenTurn(words))
    client = agent.open()
    counts = counted(monkeypatch, lambda engine, fact: isinstance(engine._service, Relay))
    talk(client)
    assert of(play(client, ends), "voice.response.delta")["delivery"] == "forced_summary"
    assert 2_000 < sum(counts) < 6_000


def counted(monkeypatch: pytest.MonkeyPatch, wanted: Callable[[Engine, Fact | None], bool]) -> list[int]:
    """Return a list to which each matching fact adds the number of Python function calls that it caused."""
    counts: list[int] = []
    handle = Engine.handle

    def counting(self: Engine, fact: Fact | None, now: Moment) -> list[Command]:
        if not wanted(self, fact):
            return handle(self, fact, now)
        counts.append(0)

        def count(frame: FrameType, event: str, arg: object) -> None:
            counts[-1] += event == "call"

        sys.setprofile(count)
        try:
            return handle(self, fact, now)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(Engine, "handle", counting)
    return counts
