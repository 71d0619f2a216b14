"""Runs that a turn does not wait for, as dialogues: promoted, queued, answered later, heard again (wire 6.9)."""

from __future__ import annotations

import pytest

from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.calls import (
    RunCall,
    StatusCall,
    background_output,
    busy_output,
    queued_output,
)
from svc_proto.voice.realtime.floor import FloorState
from svc_proto.voice.realtime.orders import (
    AnswerCall,
    AskAboutApproval,
    Emit,
    LeaveRun,
    Note,
    ReadAloud,
    Respond,
    StartRun,
    StopRun,
)
from svc_proto.voice.realtime.run import SLOW_AFTER, BackgroundRules
from svc_proto.voice.realtime.runs import MAX_QUEUED, MAX_RESULTS, ONE_TASK, TOO_LONG
from svc_proto.voice.realtime.story import (
    AnswerComplete,
    AnswerDelta,
    ApprovalAsked,
    RunBegan,
    SessionBound,
    ToolBegan,
    ToolWaits,
)
from tests.voice.realtime.book import ANSWER, RULES, Talk, answered, heard, names

SILENT = BackgroundRules(spoken_handoff=False)
PROMOTED = {
    "session_id": "c1",
    "run_id": "n1",
    "tier": "promoted",
    "promote_after_ms": 6000,
    "spoken_handoff": True,
    "provider_acknowledged": False,
    "result_delivery": "speak_verbatim",
    "call_id": "k1",
    "queued_count": 0,
    "origin": "provider_tool_call",
}


@pytest.mark.parametrize("word", ["svc", "hermes"])
def test_a_run_that_takes_long(word: str) -> None:
    talk = Talk(rules=RULES, word=word)
    talk.working()
    assert names(talk.after(5.9)) == [f"{word}.run.progress"]
    assert talk.after(0.1) == [
        Note(f"voice.{word}_run.promoted", {"run_id": "n1", "tier": "promoted"}),
        Emit(f"{word}.run.promoted", PROMOTED),
        AnswerCall("k1", background_output()),
        Respond(),
    ]
    assert names(talk.broker.text("h1", "I go on with that.", talk.now)) == ["response.started", "response.delta"]
    assert names(talk.broker.response_done("h1", "completed", talk.now)) == ["response.done"]
    assert talk.state is FloorState.IDLE
    (beat,) = talk.after(4.0)
    assert isinstance(beat, Emit)
    assert (beat.fields["tier"], beat.fields["elapsed_ms"]) == ("promoted", 10_000)
    run = {"session_id": "c1", "run_id": "n1"}
    assert answered(talk) == [
        Emit(f"{word}.run.completed", run),
        Emit(f"{word}.run.background_completed", {**run, "queued_count": 0, "ok": True, "tool_count": 0}),
    ]
    drain = {"call_id": None, "tool_name": None, "reason": "forced_summary", "timeout_ms": 2500}
    assert talk.after(0.0) == [Emit("voice.playback_drain.requested", drain)]
    assert ReadAloud(ANSWER) in talk.broker.drained(None, talk.now)
    talk.broker.text("b1", ANSWER, talk.now)
    done = Emit("voice.response.done", {"response_id": "b1", "delivery": "forced_summary"})
    assert talk.broker.response_done("b1", "completed", talk.now)[-1] == done
    assert talk.state is FloorState.IDLE
    assert talk.broker.due is None
    assert not talk.broker.busy


def test_a_run_that_is_quick_enough() -> None:
    talk = Talk(rules=RULES)
    talk.working()
    talk.after(5.9)
    assert names(talk.finished()) == ["svc.run.completed", "AnswerCall", "playback_drain.requested"]


def test_nothing_is_promoted_when_that_is_off() -> None:
    talk = Talk()
    talk.answering()
    talk.told += talk.broker.call("r1", RunCall(call_id="k1", text="df", background=True), talk.now)
    assert names(talk.after(600.0)) == ["StartRun", *["svc.run.progress"] * 119]
    assert talk.state is FloorState.WORKING


def test_a_turn_that_ends_without_words() -> None:
    talk = Talk(rules=SILENT)
    talk.working()
    talk.after(5.0)
    orders = talk.after(1.0)
    assert names(orders) == ["svc.run.promoted", "AnswerCall"]
    assert isinstance(orders[1], Emit)
    assert orders[1].fields["spoken_handoff"] is False
    assert talk.state is FloorState.IDLE


def test_a_slow_tool_is_not_waited_for() -> None:
    talk = Talk(rules=RULES)
    talk.working()
    talk.broker.run_event("k1", ToolBegan(call_id="t1", name="web_search"), talk.now)
    talk.after(1.0)
    talk.broker.run_event("k1", ToolBegan(call_id="t2", name="open_terminal"), talk.now)
    talk.after(1.0)
    talk.broker.run_event("k1", ToolBegan(call_id="t3", name="spawn_agent"), talk.now)  # the first one counts
    assert names(talk.after(SLOW_AFTER - 1.0)) == ["svc.run.promoted", "AnswerCall", "Respond"]


def test_a_run_that_nobody_wants_to_wait_for() -> None:
    talk = Talk(rules=RULES)
    talk.answering()
    talk.broker.audio("r1", b"\0\0", talk.now)
    orders = talk.broker.call("r1", RunCall(call_id="k1", text="df", background=True), talk.now)
    assert names(orders) == ["StartRun", "svc.run.promoted", "AnswerCall", "playback_drain.requested"]
    assert isinstance(orders[2], Emit)
    assert orders[2].fields == {**PROMOTED, "run_id": "", "tier": "durable", "provider_acknowledged": True}
    assert talk.state is FloorState.CONSULTED
    talk.broker.response_done("r1", "completed", talk.now)
    assert names(talk.broker.drained("k1", talk.now)) == ["Respond"]
    assert names(talk.finished()) == ["svc.run.completed", "svc.run.background_completed"]


def test_the_same_without_words() -> None:
    talk = Talk(rules=SILENT)
    talk.answering()
    orders = talk.broker.call("r1", RunCall(call_id="k1", text="df", background=True), talk.now)
    assert names(orders) == ["StartRun", "svc.run.promoted", "AnswerCall"]
    assert talk.state is FloorState.IDLE
    assert names(talk.broker.text("r1", "I will see.", talk.now)) == ["response.delta"]


def test_no_turn_is_cut_short_by_a_promotion() -> None:
    talk = Talk(rules=RULES)
    talk.working()
    talk.after(5.0)
    talk.broker.say("how far?", talk.now)
    talk.broker.response_started("r2", talk.now)
    assert names(talk.after(3.0)) == []
    assert names(talk.broker.response_done("r2", "completed", talk.now)) == ["response.done"]
    assert names(talk.after(0.0)) == ["svc.run.promoted", "AnswerCall", "Respond"]


# --- the answer -----------------------------------------------------------------------------------------------------


def test_an_answer_waits_until_the_microphone_is_quiet() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    answered(talk)
    talk.broker.runs.hear(talk.now + 0.5)
    assert names(talk.after(1.9)) == []
    assert names(talk.after(0.1)) == ["playback_drain.requested"]


def test_an_answer_does_not_wait_for_ever() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    answered(talk)
    for _ in range(12):
        talk.broker.runs.hear(talk.now)
        assert names(talk.after(0.99)) == []
    talk.broker.runs.hear(talk.now)
    assert names(talk.after(0.13)) == ["playback_drain.requested"]


def test_an_answer_waits_for_the_end_of_a_turn() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.broker.say("what is the time", talk.now)
    talk.broker.response_started("r3", talk.now)
    assert answered(talk)[-1] == Note("voice.realtime_agent.result_deferred", {"run_id": "n1"})
    assert names(talk.after(20.0)) == []
    talk.broker.response_done("r3", "completed", talk.now)
    assert names(talk.after(0.0)) == ["playback_drain.requested"]


def test_an_answer_that_is_only_shown() -> None:
    talk = Talk(rules=RULES, result_delivery="visual_only")
    talk.quiet()
    talk.broker.runs.hear(talk.now)
    answered(talk)
    orders = talk.after(0.0)
    assert names(orders) == ["response.started", "response.delta", "response.done"]
    assert isinstance(orders[0], Emit)
    assert str(orders[0].fields["response_id"]).startswith("background-visual-")
    assert talk.state is FloorState.IDLE


def test_the_person_speaks_up_before_the_answer() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    answered(talk)
    talk.after(0.0)
    orders = talk.broker.say("and another thing", talk.now)
    assert names(orders[1:4]) == ["response.started", "response.delta", "response.done"]
    assert isinstance(orders[1], Emit)
    assert orders[1].fields["delivery"] == "visual_only"


def test_a_run_that_fails() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    failed = {"session_id": "c1", "run_id": "n1", "queued_count": 0, "ok": False, "error": "No."}
    assert talk.broker.run_failed("k1", "No.", talk.now, error_code="svc_broker_auth_failed") == [
        Emit("svc.run.background_completed", failed),
        Emit("voice.error", {"message": "No.", "call_id": "k1", "error_code": "svc_broker_auth_failed"}),
    ]
    assert not talk.broker.busy
    assert talk.broker.run_failed("k1", "No.", talk.now) == []


def test_a_run_that_takes_too_long() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    orders = talk.after(294.0)
    assert names(orders[-4:]) == ["svc.run.progress", "LeaveRun", "svc.run.background_completed", "error"]
    assert orders[-3] == LeaveRun("k1")
    assert orders[-1] == Emit("voice.error", {"message": TOO_LONG})
    assert names(answered(talk)) == []
    assert talk.broker.due is None


def test_a_run_that_somebody_else_stops() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.broker.run_event("k1", AnswerComplete("so far", interrupted=True), talk.now)
    assert names(talk.broker.run_ended("k1", talk.now)) == ["svc.run.cancelled"]
    assert not talk.broker.busy


# --- a second task --------------------------------------------------------------------------------------------------


def test_a_quick_task_beside_a_run() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.aside()
    assert talk.told[-1] == StartRun(call_id="k2", text="ls")  # in a chat session of its own
    assert talk.broker.run_event("k2", SessionBound("side"), talk.now) == []
    (began,) = talk.broker.run_event("k2", RunBegan("n2"), talk.now)
    assert isinstance(began, Emit)
    assert began.fields == {"session_id": "c1", "run_id": "n2"}  # clients stay where they are
    assert names(answered(talk, "k2")) == ["svc.run.completed", "AnswerCall", "playback_drain.requested"]
    assert names(heard(talk, response_id="b2"))[-1] == "response.done"
    talk.aside("k3")
    assert talk.told[-1] == StartRun(call_id="k3", text="ls", session_id="side")
    assert talk.broker.runs.session_id == "c1"


def test_a_slow_task_beside_a_run_waits_in_line() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.aside(text="ls -R " + "x" * 100)
    talk.broker.run_event("k2", SessionBound("side"), talk.now)
    talk.broker.run_event("k2", RunBegan("n2"), talk.now)
    orders = [order for order in talk.after(6.0) if "progress" not in repr(order)]
    preview = ("ls -R " + "x" * 100)[:80]
    queued = {"queued_count": 1, "queue_position": 1, "transcript_preview": preview}
    assert orders == [
        StopRun("k2", "n2"),
        Emit("svc.run.queued", {"session_id": "c1", "run_id": "", **queued}),
        AnswerCall("k2", queued_output(1)),
        Respond(),
    ]
    assert talk.broker.run_event("k2", RunBegan("late"), talk.now) == []
    status = talk.broker.call("r-k2", RunCall(call_id="k1", text="again"), talk.now)
    assert status == []  # that one is known
    talk.broker.response_started("h2", talk.now)
    answer = talk.broker.call("h2", StatusCall("k9"), talk.now)[0]
    assert isinstance(answer, AnswerCall)
    assert (answer.output["run_id"], answer.output["queued_count"]) == ("n1", 1)
    assert answer.output["queued_items"] == [{"position": 1, "request_preview": preview}]
    talk.broker.response_done("h2", "completed", talk.now)
    talk.broker.drained("k9", talk.now)
    talk.broker.response_started("h3", talk.now)
    assert names(answered(talk)) == ["svc.run.completed", "svc.run.background_completed"]
    assert names(talk.after(3.0)) == []  # not in the middle of a turn
    talk.broker.response_done("h3", "completed", talk.now)
    orders = talk.after(0.0)
    assert names(orders) == ["StartRun", "svc.run.promoted", "playback_drain.requested"]
    assert orders[0] == StartRun(call_id="k2:queued", text="ls -R " + "x" * 100, session_id="c1")
    about = {"call_id": None, "origin": "queued", "spoken_handoff": False, "run_id": ""}
    assert orders[2] == Emit("svc.run.promoted", {**PROMOTED, **about})
    heard(talk)
    assert names(answered(talk, "k2:queued")) == ["svc.run.completed", "svc.run.background_completed"]
    talk.aside("k4")
    assert talk.told[-1] == StartRun(call_id="k4", text="ls", session_id="c1")  # nothing else is under way


def test_a_task_that_has_waited_can_ask() -> None:
    talk = Talk(rules=SILENT)
    talk.quiet()
    talk.ask("k2", background=True)
    answered(talk)
    talk.after(0.0)
    told = talk.broker.run_event("k2:queued", ToolWaits(call_id="t1", name="terminal"), talk.now)
    (ask,) = [order for order in told if isinstance(order, AskAboutApproval)]
    asked = ApprovalAsked(Question(ask.tool_call_id, ask.message))
    assert names(talk.broker.run_event(ask.call_id, asked, talk.now)) == ["svc.confirmation.requested"]


def test_a_task_that_has_waited_does_not_begin_while_the_person_speaks() -> None:
    talk = Talk(rules=SILENT)
    talk.quiet()
    talk.ask("k2", background=True)
    talk.broker.runs.hear(talk.now)
    answered(talk)
    assert names(talk.after(1.4)) == []  # a client would take it for the end of what was just begun
    assert names(talk.after(0.1)) == ["StartRun", "svc.run.promoted", "playback_drain.requested"]


@pytest.mark.parametrize("event", [ToolBegan(call_id="t1", name="web"), AnswerDelta("It")])
def test_nothing_is_begun_twice(event: ToolBegan | AnswerDelta) -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.aside()
    talk.broker.run_event("k2", event, talk.now)
    assert set(names(talk.after(10.0))) == {"svc.run.progress"}
    assert talk.state is FloorState.WORKING
    answered(talk)
    assert names(talk.after(0.0))[0] == "svc.run.promoted"  # there is room now


@pytest.mark.parametrize("late", [False, True])
def test_a_task_beside_a_run_that_is_not_in_the_chat(late: bool) -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.aside()
    if not late:
        talk.broker.run_event("k2", SessionBound("side"), talk.now)
    talk.broker.run_event("k2", ToolBegan(call_id="t1", name="web"), talk.now)
    talk.after(10.0)
    answered(talk)
    assert names(talk.after(0.0))[0] == "svc.run.promoted"
    if late:
        talk.broker.run_event("k2", SessionBound("side"), talk.now)
    talk.broker.response_started("h2", talk.now)
    talk.broker.response_done("h2", "completed", talk.now)
    talk.aside("k3", "du")
    assert talk.told[-1] == StartRun(call_id="k3", text="du", session_id="c1")  # the chat is free
    answered(talk, "k2")
    answered(talk, "k3")
    for response_id in ("b1", "b2", "b3"):
        heard(talk, response_id=response_id)
        talk.after(0.0)
    talk.ask("k4", "first", background=True)
    talk.broker.drained("k4", talk.now)
    talk.broker.response_started("h4", talk.now)
    talk.broker.response_done("h4", "completed", talk.now)
    talk.aside("k5", "second")
    assert talk.told[-1] == StartRun(call_id="k5", text="second")  # "side" was taken


def test_a_task_that_is_asked_for_again_while_it_goes_on() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    orders = talk.ask("k2", "df")
    assert orders[0] == AnswerCall("k2", {"ok": False, "error": ONE_TASK})
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.ask("k2", background=True)
    assert AnswerCall("k3", {"ok": False, "error": ONE_TASK}) in talk.ask("k3", background=True)
    assert names(talk.ask("k4", "another", background=True))[0] == "svc.run.queued"


def test_a_task_for_the_background_waits_in_line_at_once() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    orders = talk.ask("k2", background=True)
    assert names(orders) == ["svc.run.queued", "AnswerCall", "playback_drain.requested"]
    assert talk.state is FloorState.CONSULTED


def test_the_queue_has_an_end() -> None:
    talk = Talk(rules=SILENT)
    talk.quiet()
    for number in range(MAX_QUEUED):
        orders = talk.ask(f"q{number}", f"ls {number}", background=True)
        assert names(orders) == ["svc.run.queued", "AnswerCall", "response.done"]
        assert talk.state is FloorState.IDLE
    orders = talk.ask("q9", background=True)
    assert AnswerCall("q9", busy_output()) in orders
    assert names(orders) == ["AnswerCall", "playback_drain.requested"]  # that is an answer: it is said in any case
    talk.broker.drained("q9", talk.now)
    talk.broker.response_started("h9", talk.now)
    talk.broker.response_done("h9", "completed", talk.now)
    tiers = []
    for number in range(MAX_QUEUED):
        answered(talk, f"q{number - 1}:queued" if number else "k1")
        told = [order for order in talk.after(0.0) if isinstance(order, Emit)]
        tiers += [order.fields["tier"] for order in told if order.type == "svc.run.promoted"]
        heard(talk, response_id=f"b{number}")
    assert tiers == ["durable"] * MAX_QUEUED


def test_answers_that_nobody_hears_hold_up_the_queue() -> None:
    talk = Talk(rules=SILENT)
    talk.quiet()
    talk.broker.runs.leave(talk.now)
    for number in range(MAX_QUEUED):
        talk.ask(f"q{number}", f"ls {number}", background=True)
    answered(talk)
    for number in range(MAX_RESULTS - 1):
        assert "StartRun" in names(talk.after(0.0))
        answered(talk, f"q{number}:queued")
    assert talk.broker.due is None
    assert len(talk.broker.runs.unheard) == MAX_RESULTS
    talk.ask("q7", background=True)
    assert names(talk.after(60.0)) == []
    talk.broker.runs.come_back(talk.now)
    assert names(talk.after(0.0)) == ["playback_drain.requested"]
    assert names(heard(talk))[-1] == "response.done"
    assert names(talk.after(0.0)) == ["StartRun", "svc.run.promoted", "playback_drain.requested"]
