"""A native conversation in any order of events: each state with each event, and long random dialogues."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.voice.realtime.actions import CloseClient, ConversationAction, Emit, LogEvent, Render, StartRun
from svc_proto.voice.realtime.voice_run import FOREGROUND, BackgroundPolicy
from svc_proto.voice.realtime.voice_runs import MAX_QUEUED, MAX_RESULTS
from tests.support.scenario_plan import some
from tests.voice.realtime.dialogue import STATES, ConversationDialogue

RULES = BackgroundPolicy(slow_tools=("web",))
SEVERAL = BackgroundPolicy(promote_after=2.0, progress_after=1.0, progress_repeat=4.0, max_runs=3)
SILENT = BackgroundPolicy(promote_after=2.0, spoken_handoff=False, progress_after=5.0)
RUNS = ("k1", "k2", "k7", "k1:queued", "k2:queued", "k7:queued")
RESPONSES = ("r1", "r2", "r3", "forced-summary-fallback-1", "respeak-1", "progress-1")
ANYTIME = """
commit; commit nothing; add_user_text hello; cancel; on_client_drained -; confirm t1 deny; transcribed words; respeak;
on_user_speech; on_client_left; on_client_back; problem 'no active response' benign; problem quota;
problem inactivity idle; provider_lost gone; postpone 1
"""
OF_A_RESPONSE = """
response_started {0}; text {0} 'ANSWER ANSWER'; text {0} Sorry?; audio {0}; audio_done {0}; rendered_audio {0};
rendered {0}; rendered {0} no; response_done {0} completed; response_done {0} cancelled; response_done {0} failed;
call {0} run k1 df; call {0} run k2 ls; call {0} run k7 du background; call {0} status k3; call {0} cancel k4;
call {0} confirm k5 t1 allow; call {0} unknown k6
"""
OF_A_RUN = """
run_ended {0}; run_failed {0} no; approved {0} t1 allow; run_event {0} ChatSessionBound c2 - session_not_found;
run_event {0} ApiRunStarted n1; run_event {0} MessageBegan m1; run_event {0} AnswerDelta ANSWER;
run_event {0} ThoughtDelta Hm;
run_event {0} ToolWaits t1 phone_call; run_event {0} ToolBegan t1 phone_call; run_event {0} ToolSaid t2 web;
run_event {0} ToolSucceeded t1 phone_call; run_event {0} ToolFailed t1 phone_call; run_event {0} ApprovalAsked t1;
run_event {0} AnswerComplete ANSWER; run_event {0} Interrupted 'so far'
"""
STEPS = [step.strip() for step in ANYTIME.split(";")]
STEPS += [step.strip().format(name) for name in RESPONSES for step in OF_A_RESPONSE.split(";")]
STEPS += [step.strip().format(name) for name in ("k1", "k2", "k7:queued") for step in OF_A_RUN.split(";")]
STEPS += [f"after {seconds}" for seconds in (0.0, 0.1, 0.75, 2.5, 5.0, 12.0, 45.0, 300.0)]
SCENES = [(FOREGROUND, way) for way in STATES if way != "idle"]
SCENES += [(RULES, way) for way in (*STATES, "quiet", "unheard", "aside", "queued")]
SCENES += [(SEVERAL, way) for way in (*STATES, "quiet", "aside", "queued")]
SCENES += [(SILENT, way) for way in ("away", "answered while away")]


def emits(orders: list[ConversationAction]) -> list[Emit]:
    return [order for order in orders if isinstance(order, Emit)]


def ends(order: ConversationAction) -> bool:
    """Report whether a client counts the action as the end of a turn (wire terminal-voice 6.5)."""
    if not isinstance(order, Emit):
        return False
    return order.type == "voice.response.done" or order.fields.get("spoken_handoff") is False


def settle(talk: ConversationDialogue) -> list[ConversationAction]:
    """Bring everything to its end: the client reconnects, time passes, and the started runs end."""
    orders = talk.do("on_client_back")
    for _ in range(8):  # one detached run, three queued runs, four answers
        orders += talk.do("after 60")
        for call_id in RUNS:
            orders += talk.do(f"run_ended {call_id}")
    orders += talk.do("after 120")
    talk.do("is over")
    return orders


def check_playback(orders: list[ConversationAction]) -> None:
    """Require that speech with a call is played or times out before its run starts (wire terminal-voice 6.6)."""
    waits: set[object] = set()
    for order in orders:
        match order:
            case Emit(type="voice.playback_drain.requested", fields={"reason": "pre_svc_ack", "call_id": call_id}):
                waits.add(call_id)
            case (Emit(type="voice.playback_drain.timeout") | LogEvent(type="voice.playback_drain.completed")) as over:
                waits.discard(over.fields["call_id"])
            case StartRun(call_id=call_id):
                assert call_id not in waits
            case _:
                pass


def check_runs(orders: list[ConversationAction], most: int) -> None:
    """Require that no call starts two runs, and that at most `most` runs are in the background and each one ends."""
    check_playback(orders)
    starts = [order.call_id for order in orders if isinstance(order, StartRun)]
    assert len(starts) == len(set(starts))
    surely = perhaps = 0  # background runs; a cancelled run may have been that of the turn
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


@pytest.mark.unmeasured
@pytest.mark.parametrize("share", some(range(3)))
@pytest.mark.parametrize("step", STEPS)
def test_each_state_with_each_event(step: str, share: int) -> None:
    for rules, way in SCENES[share::3]:
        talk = ConversationDialogue(rules=rules)
        orders = talk.do(way)
        begun = talk.state != "idle"
        brought = [*talk.do(step), *settle(talk)]
        assert not begun or any(map(ends, brought)), way
        check_runs(orders + brought, rules.max_runs)


@given(st.sampled_from(SCENES), st.lists(st.sampled_from(STEPS), max_size=60))
def test_any_dialogue(scene: tuple[BackgroundPolicy, str], steps: list[str]) -> None:
    rules, way = scene
    talk = ConversationDialogue(rules=rules)
    orders = talk.do(way)
    begun = talk.state != "idle"  # a turn is open
    for step in steps:
        brought = talk.do(step)
        orders += brought
        assert len(talk.broker.runs.undelivered) <= MAX_RESULTS + 1
        assert step != "on_client_left" or talk.broker.kept_until(30.0, 360.0) >= talk.now + 30.0
        filled = any(isinstance(order, Render) and order.response_id.startswith("progress-") for order in brought)
        assert not filled or talk.state in ("idle", "working")
        if any(isinstance(order, CloseClient) for order in brought):
            break
        assert (talk.broker.due is None) <= (talk.state in ("idle", "working"))
        assert not (talk.state == "idle" and begun) or any(map(ends, brought)), step
        begun = talk.state != "idle"
    orders += settle(talk)
    check_runs(orders, rules.max_runs)
    started = [place for place, order in enumerate(emits(orders)) if order.type == "voice.response.started"]
    assert not started or any(map(ends, emits(orders)[started[-1] :]))  # each start is followed by an end
