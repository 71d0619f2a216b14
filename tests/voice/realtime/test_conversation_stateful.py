"""The broker in any order of things: each state with each event, and long random dialogues.

Whatever happens, nothing raises, every turn comes to its end, no function call begins two runs, one run at a time is in
the background, and each of those is told to be over.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.calls import Call, CancelCall, ConfirmCall, RunCall, StatusCall, UnknownCall
from svc_proto.voice.realtime.floor import FloorState
from svc_proto.voice.realtime.orders import CloseClient, Emit, EmitAudio, Order, Render, StartRun
from svc_proto.voice.realtime.run import FOREGROUND, BackgroundRules
from svc_proto.voice.realtime.runs import MAX_QUEUED, MAX_RESULTS
from svc_proto.voice.realtime.story import (
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
from tests.voice.realtime.book import ANSWER, Talk

Step = Callable[[Talk], list[Order]]
RULES = BackgroundRules(slow_tools=("web",))
SEVERAL = BackgroundRules(promote_after=2.0, progress_after=1.0, progress_repeat=4.0, max_runs=3)
SILENT = BackgroundRules(promote_after=2.0, spoken_handoff=False, progress_after=5.0)
RUNS = ("k1", "k2", "k7", "k1:queued", "k2:queued", "k7:queued")
RESPONSES = ("r1", "r2", "r3", "forced-summary-fallback-1", "respeak-1", "progress-1")
CALLS: tuple[Call, ...] = (
    RunCall(call_id="k1", text="df"),
    RunCall(call_id="k2", text="ls", session_id="c9", profile="work"),
    RunCall(call_id="k7", text="du", background=True),
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
    talk.broker.floor.postpone(1.0)
    return []


def listen(talk: Talk) -> list[Order]:
    talk.broker.runs.hear(talk.now)
    return []


def leave(talk: Talk) -> list[Order]:
    talk.broker.runs.leave(talk.now)
    assert talk.broker.kept_until(30.0, 360.0) >= talk.now + 30.0
    return []


def come_back(talk: Talk) -> list[Order]:
    talk.broker.runs.come_back(talk.now)
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
        "listen": listen,
        "leave": leave,
        "come back": come_back,
        "respeak": lambda talk: talk.broker.respeak(talk.now),
    }
    for response in RESPONSES:
        steps |= of_response(response)
    for call_id in ("k1", "k2", "k7:queued"):
        steps |= of_run(call_id)
    for seconds in (0.0, 0.1, 0.75, 2.5, 5.0, 12.0, 45.0, 300.0):
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
STATES = tuple(Talk().ways())  # of a turn


def emits(orders: list[Order]) -> list[Emit]:
    return [order for order in orders if isinstance(order, Emit)]


def types(orders: list[Order]) -> list[str]:
    return [order.type for order in emits(orders)]


def ends(order: Order) -> bool:
    """Whether a client takes it for the end of a turn (wire terminal-voice 6.5)."""
    if not isinstance(order, Emit):
        return False
    return order.type == "voice.response.done" or order.fields.get("spoken_handoff") is False


def settle(talk: Talk) -> list[Order]:
    """Whatever is going on comes to its end: somebody listens, time passes, and runs that were begun end."""
    orders = come_back(talk)
    for _ in range(8):  # one detached, three in line, four answers
        orders += talk.after(60.0)
        for call_id in RUNS:
            orders += talk.broker.run_ended(call_id, talk.now)
    return orders + talk.after(120.0)


def check_runs(orders: list[Order], most: int) -> None:
    """No call begins two runs, and each that was promoted is told to be over once."""
    starts = [order.call_id for order in orders if isinstance(order, StartRun)]
    assert len(starts) == len(set(starts))
    surely = perhaps = 0  # in the background; a run that was cancelled may have been that of the turn
    for order in emits(orders):
        if order.type == "svc.run.promoted":
            assert surely < most, "too many runs in the background"
            surely, perhaps = surely + 1, min(perhaps + 1, most)
        elif order.type == "svc.run.background_completed":
            assert perhaps > 0, "told twice"
            surely, perhaps = max(surely - 1, 0), perhaps - 1
        elif order.type == "svc.run.cancelled":
            surely = max(surely - 1, 0)
        assert order.fields.get("queued_count") in (None, *range(MAX_QUEUED + 1))
    assert surely == 0, "not told to be over"


def scenes() -> dict[str, tuple[BackgroundRules, str]]:
    """Each state of a turn where runs just block and where they do not, and what there may be in the background."""
    blocking = {
        f"{state.value}, blocking": (FOREGROUND, state.value) for state in STATES if state is not FloorState.IDLE
    }
    promoting = {state.value: (RULES, state.value) for state in STATES}
    background = ("quiet", "unheard", "aside", "in line", "away", "answered while away")
    several = {f"{state.value}, several": (SEVERAL, state.value) for state in STATES}
    several |= {f"{name}, several": (SEVERAL, name) for name in ("quiet", "aside", "in line")}
    return {
        **blocking,
        **promoting,
        **several,
        **{name: (SILENT if "w" in name else RULES, name) for name in background},
    }


def play(scene: str) -> Talk:
    """Bring a broker there."""
    rules, name = SCENES[scene]
    talk = Talk(rules=rules)
    ways = {state.value: way for state, way in talk.ways().items()}
    if name in ways:
        ways[name]()
        return talk
    talk.quiet()
    match name:
        case "unheard":
            talk.told += talk.finished()
        case "aside":
            talk.aside()
        case "in line":
            talk.told += talk.ask("k7", background=True)
        case "away" | "answered while away":
            talk.broker.runs.leave(talk.now)
            talk.told += [] if name == "away" else talk.finished()
    return talk


SCENES = scenes()


@pytest.mark.parametrize("name", STEPS)
def test_each_state_with_each_event(name: str) -> None:
    for scene in SCENES:
        talk = play(scene)
        begun = talk.state is not FloorState.IDLE
        told = len(talk.told)
        orders = [*talk.told, *STEPS[name](talk), *settle(talk)]
        assert talk.state is FloorState.IDLE, scene
        assert talk.broker.due is None, scene
        assert not talk.broker.busy, scene
        if begun:
            assert any(map(ends, orders[told:])), scene
        check_runs(orders, SCENES[scene][0].max_runs)


@given(st.sampled_from(sorted(SCENES)), st.lists(st.sampled_from(sorted(STEPS)), max_size=60))
def test_any_dialogue(scene: str, names: list[str]) -> None:
    talk = play(scene)
    orders = [*talk.told]
    begun = talk.state is not FloorState.IDLE  # a turn is open
    for name in names:
        brought = STEPS[name](talk)
        orders += brought
        assert len(talk.broker.runs.unheard) <= MAX_RESULTS + 1
        filled = any(isinstance(order, Render) and order.response_id.startswith("progress-") for order in brought)
        assert not filled or talk.broker.floor.state in (FloorState.IDLE, FloorState.WORKING)
        if any(isinstance(order, CloseClient) for order in brought):
            break
        assert (talk.broker.due is None) <= (talk.state in (FloorState.IDLE, FloorState.WORKING))
        if talk.state is FloorState.IDLE and begun:
            assert any(map(ends, brought)), name
        begun = talk.state is not FloorState.IDLE
    orders += settle(talk)
    assert talk.state is FloorState.IDLE
    assert talk.broker.due is None
    assert not talk.broker.busy
    check_runs(orders, SCENES[scene][0].max_runs)
    told = types(orders)
    if "voice.response.started" in told:  # whatever was begun was ended after it
        last = max(place for place, order in enumerate(orders) if types([order]) == ["voice.response.started"])
        assert any(map(ends, orders[last:]))
