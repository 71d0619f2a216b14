"""What ends a turn of the broker before its time."""

from __future__ import annotations

import pytest

from svc_proto.voice.realtime.calls import CancelCall
from svc_proto.voice.realtime.floor import FloorState
from svc_proto.voice.realtime.mouth import MouthState
from svc_proto.voice.realtime.orders import (
    AnswerCall,
    CancelResponse,
    ClearInput,
    CloseClient,
    Emit,
    EmitAudio,
    LeaveRun,
    Note,
    Respond,
    SayText,
    StopRendering,
    StopRun,
)
from svc_proto.voice.realtime.story import (
    AnswerComplete,
    AnswerDelta,
    SessionBound,
)
from tests.voice.realtime.book import Talk, names

PIECE = b"\x01\x00" * 100


def test_cancel() -> None:
    talk = Talk()
    done = Emit("voice.response.done", {"response_id": None, "cancelled": True})
    assert talk.broker.cancel(talk.now) == [CancelResponse(), ClearInput(), done]
    talk.working()
    output = {"ok": False, "cancelled": True, "run_id": "n1", "session_id": "c1"}
    assert talk.broker.cancel(talk.now) == [
        StopRun("k1", "n1"),
        Emit("svc.run.cancelled", {"session_id": "c1", "run_id": "n1"}),
        AnswerCall("k1", output),
        CancelResponse(),
        ClearInput(),
        Emit("voice.response.done", {"response_id": None, "cancelled": True, "run_id": "n1"}),
    ]
    assert talk.broker.run_event("k1", AnswerDelta("late"), talk.now) == []
    assert talk.broker.run_ended("k1", talk.now) == []
    assert talk.broker.run_failed("k1", "late", talk.now) == []


def test_cancel_before_the_run() -> None:
    talk = Talk()
    talk.acknowledging()
    assert names(talk.broker.cancel(talk.now)) == ["AnswerCall", "CancelResponse", "ClearInput", "response.done"]


def test_cancel_while_the_relay_speaks() -> None:
    talk = Talk()
    talk.rendering()
    talk.broker.rendered_audio("forced-summary-fallback-1", EmitAudio(response_id="", data=PIECE), talk.now)
    orders = talk.broker.cancel(talk.now)
    assert orders[0] == StopRendering()
    assert orders[-1] == Emit("voice.response.done", {"response_id": "forced-summary-fallback-1", "cancelled": True})


def test_cancel_by_word() -> None:
    talk = Talk()
    talk.working()
    talk.broker.say("stop it", talk.now)
    talk.broker.response_started("r2", talk.now)
    orders = talk.broker.call("r2", CancelCall("k2"), talk.now)
    assert names(orders) == [
        "StopRun",
        "svc.run.cancelled",
        "AnswerCall",
        "AnswerCall",
        "playback_drain.requested",
    ]
    assert orders[3] == AnswerCall("k2", {"ok": True, "run_id": "n1", "status": "cancelled", "session_id": "c1"})
    assert names(talk.broker.call("r2", CancelCall("k3"), talk.now)) == ["svc.run.cancelled", "AnswerCall"]


def test_cancel_of_an_answer_that_waits() -> None:
    talk = Talk()
    talk.working()
    talk.broker.say("stop it", talk.now)
    talk.broker.response_started("r2", talk.now)
    talk.finished()
    assert names(talk.broker.call("r2", CancelCall("k2"), talk.now)) == [
        "svc.run.cancelled",
        "AnswerCall",
        "playback_drain.requested",
    ]
    assert talk.after(60.0)[-1] == Emit("voice.response.done", {"response_id": None})


def test_a_run_that_is_called_and_cancelled_at_once() -> None:
    talk = Talk()
    talk.answering()
    talk.called()
    orders = talk.broker.call("r1", CancelCall("k2"), talk.now)
    assert names(orders) == ["svc.run.cancelled", "AnswerCall", "response.done", "AnswerCall"]
    assert talk.state is FloorState.IDLE


def test_a_run_that_somebody_else_stops() -> None:
    talk = Talk()
    talk.working()
    talk.broker.run_event("k1", AnswerComplete("so far", interrupted=True), talk.now)
    orders = talk.broker.run_ended("k1", talk.now)
    assert names(orders) == ["svc.run.cancelled", "AnswerCall", "response.done"]
    assert talk.state is FloorState.IDLE


def test_a_run_that_somebody_else_stops_while_the_person_talks() -> None:
    talk = Talk()
    talk.working()
    talk.broker.commit(talk.now)
    talk.broker.run_event("k1", AnswerComplete("", interrupted=True), talk.now)
    assert names(talk.broker.run_ended("k1", talk.now)) == ["svc.run.cancelled", "AnswerCall"]
    assert talk.state is FloorState.HEARING


@pytest.mark.parametrize("code", [None, "svc_broker_auth_failed"])
def test_a_run_that_fails(code: str | None) -> None:
    talk = Talk()
    talk.working()
    fields = {"message": "No.", "call_id": "k1"} | ({} if code is None else {"error_code": code})
    assert talk.broker.run_failed("k1", "No.", talk.now, error_code=code) == [
        AnswerCall("k1", {"ok": False, "error": "No.", "run_id": "n1", "session_id": "c1"}),
        Emit("voice.error", fields),
        Emit("voice.response.done", {"response_id": None}),
    ]
    assert talk.state is FloorState.IDLE


def test_another_chat_session() -> None:
    talk = Talk()
    talk.working()
    assert names(talk.broker.run_event("k1", SessionBound("c2"), talk.now)) == ["svc.session.bound"]
    assert talk.broker.runs.session_id == "c2"
    drafting, *_ = talk.broker.run_event("k1", AnswerDelta("The"), talk.now)
    assert isinstance(drafting, Emit)
    assert drafting.fields["session_id"] == "c2"


# --- trouble --------------------------------------------------------------------------------------------------------


def test_notices_are_logged() -> None:
    talk = Talk()
    talk.answering()
    assert talk.broker.problem("no active response", talk.now, benign=True) == [
        Note("voice.realtime_agent.provider_notice", {"message": "no active response"})
    ]
    assert talk.state is FloorState.ANSWERING


def test_an_idle_session_is_closed_by_the_provider() -> None:
    talk = Talk()
    orders = talk.broker.problem("timed out by inactivity", talk.now, idle=True)
    assert names(orders) == ["CloseClient"]
    assert CloseClient(1000, "the voice provider has closed an idle session") in orders
    talk.working()
    orders = talk.broker.problem("timed out by inactivity", talk.now, idle=True)
    assert names(orders) == ["LeaveRun", "response.done", "CloseClient"]


def test_an_error_ends_the_turn() -> None:
    talk = Talk()
    assert talk.broker.problem("quota", talk.now) == [Emit("voice.error", {"message": "quota"})]
    talk.working()
    assert talk.broker.problem("quota", talk.now) == [
        Emit("voice.error", {"message": "quota"}),
        LeaveRun("k1"),
        Emit("voice.response.done", {"response_id": None}),
    ]
    talk = Talk()
    talk.acknowledging()
    assert names(talk.broker.problem("quota", talk.now)) == ["error", "response.done"]


def test_an_answer_is_shown_before_an_error() -> None:
    talk = Talk()
    talk.delivering()
    assert names(talk.broker.problem("quota", talk.now)) == [
        "CancelResponse",
        "response.started",
        "response.delta",
        "response.done",
        "error",
    ]
    assert talk.state is FloorState.IDLE


def test_the_provider_is_gone() -> None:
    talk = Talk()
    assert talk.broker.provider_lost("gone", talk.now) == [
        CloseClient(1000, "the voice provider has closed the session")
    ]
    talk.hearing()
    assert talk.broker.provider_lost("gone", talk.now) == [
        Emit("voice.error", {"message": "gone"}),
        Emit("voice.response.done", {"response_id": None}),
        CloseClient(1011, "the voice provider is gone"),
    ]


@pytest.mark.parametrize("state", Talk().ways())
def test_without_a_provider_no_session_goes_on(state: FloorState | MouthState) -> None:
    talk = Talk()
    talk.ways()[state]()
    assert talk.state is state
    orders = talk.broker.provider_lost("gone", talk.now)
    assert isinstance(orders[-1], CloseClient)
    assert orders[-1].code == (1000 if state is FloorState.IDLE else 1011)
    assert talk.state is FloorState.IDLE
    assert not talk.broker.busy


def test_text_turns() -> None:
    talk = Talk()
    assert talk.broker.say("hello", talk.now) == [
        Emit("voice.input_transcript.final", {"text": "hello", "source": "client_text"}),
        SayText("hello"),
        Respond(),
    ]
