"""Runs in the background, and whoever is away, comes back, cancels, is asked, listens again (wire 6.9)."""

from __future__ import annotations

import pytest

from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.calls import CancelCall, ConfirmCall
from svc_proto.voice.realtime.floor import FloorState
from svc_proto.voice.realtime.orders import AnswerCall, Approve, CloseClient, Emit, Note, Order, Render
from svc_proto.voice.realtime.run import BackgroundRules
from svc_proto.voice.realtime.story import ApprovalAsked
from tests.voice.realtime.book import ANSWER, PIECE, RULES, Talk, answered, heard, names

# --- whoever is away ------------------------------------------------------------------------------------------------


def test_an_answer_waits_for_whoever_is_away() -> None:
    talk = Talk(rules=RULES)
    talk.working()
    talk.broker.runs.leave(talk.now)
    left = talk.now
    orders = talk.after(6.0)
    assert names(orders) == ["svc.run.progress", "svc.run.promoted", "AnswerCall"]  # there is nobody to talk to
    assert talk.broker.kept_until(30.0, 360.0) == left + 360.0
    talk.after(20.0)
    assert answered(talk)[-1] == Note("voice.realtime_agent.result_deferred", {"run_id": "n1"})
    assert talk.broker.kept_until(30.0, 360.0) == talk.now + 30.0
    assert talk.broker.kept_until(90.0, 360.0) == left + 90.0
    assert talk.broker.kept_until(90.0, 10.0) == left + 90.0
    assert names(talk.after(25.0)) == []
    assert talk.broker.runs.unheard == ["n1"]
    talk.broker.runs.come_back(talk.now)
    talk.broker.runs.hear(talk.now)
    assert names(talk.after(1.5)) == ["playback_drain.requested"]
    talk.broker.runs.come_back(talk.now)  # by another socket
    assert names(heard(talk))[-1] == "response.done"
    assert talk.broker.runs.unheard == []


@pytest.mark.parametrize("idle", [False, True])
def test_an_answer_is_shown_when_the_provider_leaves_before_it(idle: bool) -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.broker.runs.hear(talk.now)
    answered(talk)
    gone = "timed out due to inactivity"
    broker = talk.broker
    orders = broker.problem(gone, talk.now, idle=True) if idle else broker.provider_lost(gone, talk.now)
    assert names(orders) == ["response.started", "response.delta", "response.done", "CloseClient"]
    assert isinstance(orders[-1], CloseClient)
    assert orders[-1].code == 1000
    assert talk.broker.runs.unheard == []


def test_an_answer_is_shown_when_the_provider_leaves_in_another_turn() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.answering("r3")
    answered(talk)
    orders = talk.broker.provider_lost("gone", talk.now)  # first: clients leave after an error
    shown = ["response.started", "response.delta", "response.done"]
    assert names(orders) == [*shown, "error", "response.done", "CloseClient"]


def test_nothing_is_shown_to_nobody() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.broker.runs.leave(talk.now)
    answered(talk)
    assert names(talk.broker.provider_lost("gone", talk.now)) == ["CloseClient"]
    assert talk.broker.runs.unheard == ["n1"]  # whoever closes the session tells


# --- the person -----------------------------------------------------------------------------------------------------


def test_a_cancel_stops_what_is_in_the_background() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.ask("k2", background=True)
    orders = talk.broker.cancel(talk.now)
    assert names(orders) == ["StopRun", "svc.run.cancelled", "CancelResponse", "ClearInput", "response.done"]
    assert isinstance(orders[-1], Emit)
    assert orders[-1].fields["run_id"] == "n1"
    assert not talk.broker.busy


def test_a_cancel_forgets_answers_that_wait() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    answered(talk)
    assert names(talk.broker.cancel(talk.now)) == ["CancelResponse", "ClearInput", "response.done"]
    assert talk.broker.due is None


def test_a_cancel_by_word() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.aside()
    talk.broker.say("stop all that", talk.now)
    talk.broker.response_started("r9", talk.now)
    orders = talk.broker.call("r9", CancelCall("k9"), talk.now)
    assert names(orders) == [
        *("StopRun", "svc.run.cancelled", "AnswerCall"),
        *("StopRun", "svc.run.cancelled"),
        *("AnswerCall", "playback_drain.requested"),
    ]
    assert not talk.broker.runs.rules.is_slow("web")
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.broker.say("stop that", talk.now)
    talk.broker.response_started("r9", talk.now)
    orders = talk.broker.call("r9", CancelCall("k9"), talk.now)
    assert AnswerCall("k9", {"ok": True, "run_id": "n1", "status": "cancelled", "session_id": "c1"}) in orders


def test_a_question_from_the_background() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    talk.broker.run_event("k1", ApprovalAsked(Question("q1", "May I?")), talk.now)
    talk.broker.say("yes", talk.now)
    talk.broker.response_started("r9", talk.now)
    orders = talk.broker.call("r9", ConfirmCall("k9", "q1", "allow"), talk.now)
    assert orders[0] == Approve(call_id="k1", run_id="n1", confirmation_id="q1", choice="once", answer="allow")
    assert names(talk.broker.approved("k1", "q1", "allow", talk.now)) == ["svc.confirmation.forwarded"]


def test_to_hear_an_answer_again() -> None:
    talk = Talk(rules=RULES)
    unavailable = [Emit("svc.result.respeak_unavailable")]
    assert talk.broker.respeak(talk.now) == unavailable
    talk.quiet()
    assert talk.broker.respeak(talk.now) == unavailable
    answered(talk)
    talk.after(0.0)
    assert talk.broker.respeak(talk.now) == unavailable  # it is about to be said
    heard(talk)
    (render,) = talk.broker.respeak(talk.now)
    assert render == Render("respeak-1", ANSWER)
    assert names(talk.broker.rendered_audio("respeak-1", PIECE, talk.now)) == [
        "response.started",
        "response.delta",
        "EmitAudio",
    ]
    said = talk.broker.rendered("respeak-1", {}, talk.now)
    kind = {"response_id": "respeak-1", "source": "svc", "delivery": "respeak"}
    assert said == [
        Emit("voice.output_audio.done", kind),
        Emit("voice.response.done", {**kind, "final_text": ANSWER, "audio_path": ""}),
    ]
    assert talk.state is FloorState.IDLE


def test_an_answer_that_cannot_be_heard_again_is_shown() -> None:
    talk = Talk(rules=RULES)
    talk.quiet()
    answered(talk)
    talk.after(0.0)
    heard(talk)
    talk.broker.respeak(talk.now)
    orders = talk.broker.render_failed("respeak-1", "no key", talk.now)
    assert names(orders) == ["response.started", "response.delta", "response.done"]


def test_progress_is_not_spoken_over_an_answer() -> None:
    talk = Talk(rules=BackgroundRules(spoken_handoff=False, progress_after=1.0))
    talk.quiet()
    talk.ask("k2", background=True)
    talk.broker.runs.leave(talk.now)
    answered(talk)
    talk.after(4.0)
    talk.broker.runs.come_back(talk.now)
    orders = talk.after(1.0)
    talk.broker.drained(None, talk.now)
    orders += talk.after(5.0)
    talk.broker.response_done("b1", "completed", talk.now)  # it has said nothing
    orders += talk.after(5.0)
    assert talk.broker.mouth.renders is not None
    talk.broker.rendered(talk.broker.mouth.renders, {}, talk.now)
    orders += talk.after(5.0)
    beats = [order for order in orders if isinstance(order, Emit) and order.type == "svc.run.progress"]
    assert [(beat.fields["floor"], beat.fields["should_speak"]) for beat in beats] == [
        ("result_pending", False),
        ("provider_speaking", False),
        ("svc_filler", False),
        ("idle", True),
    ]


def test_when_progress_may_be_spoken() -> None:
    def spoken(rules: BackgroundRules) -> list[object]:
        talk = Talk(rules=rules)
        talk.quiet()
        orders: list[Order] = []
        for _ in range(60):
            orders += talk.after(1.0)
            if talk.broker.answer.filler.speaks is not None:
                talk.broker.rendered(talk.broker.answer.filler.speaks, {}, talk.now)
        beats = [order for order in orders if isinstance(order, Emit) and order.fields.get("should_speak")]
        assert len([order for order in orders if isinstance(order, Render)]) == len(beats)
        return [beat.fields["elapsed_ms"] for beat in beats]

    assert spoken(RULES) == []
    assert spoken(BackgroundRules(progress_after=10.0, progress_repeat=20.0)) == [10_000, 30_000, 50_000]
    assert spoken(BackgroundRules(progress_after=12.0, progress_repeat=0.0)) == [15_000]
