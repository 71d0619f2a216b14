"""The broker in any order of things: each state with each event, and long random dialogues.

Whatever happens, nothing raises, every turn comes to its end, and no function call begins two runs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.machines.broker_calls import Call, CancelCall, ConfirmCall, RunCall, StatusCall, UnknownCall
from svc_proto.machines.broker_orders import CloseClient, Emit, EmitAudio, Order, StartRun
from svc_proto.machines.confirmations import Question
from svc_proto.machines.run_story import (
    AnswerComplete,
    AnswerDelta,
    ApprovalAsked,
    MessageBegan,
    RunBegan,
    RunEvent,
    SessionBound,
    ThoughtDelta,
    ToolBegan,
    ToolFailed,
    ToolSaid,
    ToolSucceeded,
    ToolWaits,
)
from svc_proto.machines.voice_turn import TurnState
from tests.machines.broker_book import ANSWER, Talk

Step = Callable[[Talk], list[Order]]
RESPONSES = ("r1", "r2", "r3", "forced-summary-fallback-1")
CALLS: tuple[Call, ...] = (
    RunCall(call_id="k1", text="df"),
    RunCall(call_id="k2", text="df", session_id="c9", profile="work"),
    StatusCall("k3"),
    CancelCall("k4"),
    ConfirmCall("k5", "t1", "allow"),
    UnknownCall("k6", {"ok": False}),
)
RUN_EVENTS: tuple[RunEvent, ...] = (
    SessionBound("c2", None, "session_not_found"),
    RunBegan("n1"),
    MessageBegan("m1"),
    AnswerDelta(ANSWER),
    ThoughtDelta("Hm."),
    ToolWaits(call_id="t1", name="phone_call"),
    ToolBegan(call_id="t1", name="phone_call"),
    ToolSaid(call_id="t2", name="web", delta="…"),
    ToolSucceeded(call_id="t1", name="phone_call"),
    ToolFailed(call_id="t1", name="phone_call", error="no"),
    ApprovalAsked(Question("t1", "Allow?")),
    AnswerComplete(ANSWER),
    AnswerComplete("so far", interrupted=True),
)


def postpone(talk: Talk) -> list[Order]:
    talk.broker.postpone(1.0)
    return []


def event_steps() -> dict[str, Step]:
    steps: dict[str, Step] = {
        "commit": lambda talk: talk.broker.commit(talk.now),
        "commit nothing": lambda talk: talk.broker.commit(talk.now, heard=False),
        "say": lambda talk: talk.broker.say("hello", talk.now),
        "cancel": lambda talk: talk.broker.cancel(talk.now),
        "drained": lambda talk: talk.broker.drained(None, talk.now),
        "confirm": lambda talk: talk.broker.confirm("t1", "deny", talk.now),
        "transcribed": lambda talk: talk.broker.transcribed("words", talk.now),
        "notice": lambda talk: talk.broker.problem("no active response", talk.now, benign=True),
        "error": lambda talk: talk.broker.problem("quota", talk.now),
        "idle": lambda talk: talk.broker.problem("inactivity", talk.now, idle=True),
        "lost": lambda talk: talk.broker.provider_lost("gone", talk.now),
        "postpone": postpone,
    }
    for response in RESPONSES:
        steps |= of_response(response)
    for call_id in ("k1", "k2"):
        steps |= of_run(call_id)
    for seconds in (0.1, 0.75, 2.5, 5.0, 30.0, 45.0):
        steps[f"after {seconds}"] = passing(seconds)
    return steps


def of_response(name: str) -> dict[str, Step]:
    piece = EmitAudio(response_id=name, data=b"\0\0")
    steps: dict[str, Step] = {
        f"started {name}": lambda talk: talk.broker.response_started(name, talk.now),
        f"text {name}": lambda talk: talk.broker.text(name, ANSWER + ANSWER, talk.now),
        f"other text {name}": lambda talk: talk.broker.text(name, "Sorry?", talk.now),
        f"audio {name}": lambda talk: talk.broker.audio(name, b"\0\0", talk.now),
        f"audio done {name}": lambda talk: talk.broker.audio_done(name, talk.now),
        f"rendered audio {name}": lambda talk: talk.broker.rendered_audio(name, piece, talk.now),
        f"rendered {name}": lambda talk: talk.broker.rendered(name, {}, talk.now),
        f"not rendered {name}": lambda talk: talk.broker.render_failed(name, "no", talk.now),
    }

    def done(status: str) -> Step:
        return lambda talk: talk.broker.response_done(name, status, talk.now)

    def called(call: Call) -> Step:
        return lambda talk: talk.broker.call(name, call, talk.now)

    steps |= {f"{status} {name}": done(status) for status in ("completed", "cancelled", "failed")}
    return steps | {f"{call} of {name}": called(call) for call in CALLS}


def of_run(call_id: str) -> dict[str, Step]:
    def told(event: RunEvent) -> Step:
        return lambda talk: talk.broker.run_event(call_id, event, talk.now)

    steps: dict[str, Step] = {
        f"ended {call_id}": lambda talk: talk.broker.run_ended(call_id, talk.now),
        f"failed {call_id}": lambda talk: talk.broker.run_failed(call_id, "no", talk.now),
        f"approved {call_id}": lambda talk: talk.broker.approved(call_id, "t1", "allow", talk.now),
    }
    return steps | {f"{event} of {call_id}": told(event) for event in RUN_EVENTS}


def passing(seconds: float) -> Step:
    return lambda talk: talk.after(seconds)


STEPS = event_steps()


def types(orders: list[Order]) -> list[str]:
    return [order.type for order in orders if isinstance(order, Emit)]


def settle(talk: Talk) -> list[Order]:
    """Whatever is going on comes to its end: time passes, and a run that was begun ends."""
    orders = talk.after(60.0)
    for call_id in ("k1", "k2"):
        orders += talk.broker.run_ended(call_id, talk.now)
    return orders + talk.after(120.0)


@pytest.mark.parametrize("name", STEPS)
def test_each_state_with_each_event(name: str) -> None:
    for state in TurnState:
        talk = Talk()
        talk.ways()[state]()
        assert talk.state is state
        orders = [*talk.told, *STEPS[name](talk), *settle(talk)]
        assert talk.state is TurnState.IDLE, state
        assert talk.broker.due is None
        told = types(orders)
        if state is not TurnState.IDLE:
            assert told.count("voice.response.done") >= 1, state


@given(st.sampled_from(TurnState), st.lists(st.sampled_from(sorted(STEPS)), max_size=60))
def test_any_dialogue(state: TurnState, names: list[str]) -> None:
    talk = Talk()
    talk.ways()[state]()
    begun = False  # a turn is open
    orders = [*talk.told]
    for name in names:
        brought = STEPS[name](talk)
        orders += brought
        if any(isinstance(order, CloseClient) for order in brought):
            break
        assert (talk.broker.due is None) <= (talk.state in (TurnState.IDLE, TurnState.WORKING))
        begun = begun or talk.state is not TurnState.IDLE
        if talk.state is TurnState.IDLE and begun:
            assert "voice.response.done" in types(orders)
            begun = False
    orders += settle(talk)
    assert talk.state is TurnState.IDLE
    assert talk.broker.due is None
    starts = [order.call_id for order in orders if isinstance(order, StartRun)]
    assert len(starts) == len(set(starts))
    told = types(orders)
    if "voice.response.started" in told:  # whatever was begun was ended after it
        assert "voice.response.done" in told[len(told) - told[::-1].index("voice.response.started") :]
