"""How the answer of a run reaches the ear, and what interrupts it."""

from __future__ import annotations

import pytest

from svc_proto.voice.realtime.calls import RunCall
from svc_proto.voice.realtime.floor import FloorState
from svc_proto.voice.realtime.mouth import ALARM, MAX_HELD
from svc_proto.voice.realtime.orders import (
    AnswerCall,
    CancelResponse,
    CommitInput,
    Emit,
    EmitAudio,
    Note,
    ReadAloud,
    Render,
    StopRendering,
    Summarize,
)
from svc_proto.voice.realtime.runs import ONE_TASK
from tests.voice.realtime.book import ANSWER, Talk, names

PIECE = b"\x01\x00" * 100


@pytest.mark.parametrize(
    ("delivery", "text", "order"),
    [
        ("speak_verbatim", ANSWER, ReadAloud(ANSWER)),
        ("speak_verbatim", '{"used": 62}', Summarize('{"used": 62}')),
        ("speak_when_idle", ANSWER, Summarize(ANSWER)),
        ("notify_then_speak", ANSWER, Summarize(ANSWER)),
    ],
)
def test_how_an_answer_is_asked_for(delivery: str, text: str, order: ReadAloud | Summarize) -> None:
    talk = Talk(result_delivery=delivery)
    talk.delivering(text)
    assert talk.told[-1] == order


def test_an_answer_that_is_only_shown() -> None:
    talk = Talk(result_delivery="visual_only")
    talk.delivering()
    assert names(talk.told[-3:]) == ["response.started", "response.delta", "response.done"]
    assert talk.state is FloorState.IDLE


def test_an_answer_that_is_streamed() -> None:
    talk = Talk()
    talk.delivering()
    assert talk.broker.audio("r2", PIECE, talk.now) == []
    told = names(talk.broker.text("r2", f"I looked, and {ANSWER} Anything else?", talk.now))
    assert told == ["response.started", "EmitAudio", "response.delta"]
    talk.after(ALARM - 1)
    assert names(talk.broker.audio("r2", PIECE, talk.now)) == ["EmitAudio"]
    assert names(talk.after(ALARM - 1)) == []  # it is heard: the alarm begins anew
    assert names(talk.after(1.0)) == ["CancelResponse", "output_audio.done", "response.done"]


def test_the_relay_speaks_for_a_provider_that_does_not() -> None:
    talk = Talk()
    talk.rendering()
    render = talk.told[-1]
    assert render == Render("forced-summary-fallback-1", ANSWER)
    piece = EmitAudio(response_id="", data=PIECE, sample_rate=24_000)
    assert talk.broker.rendered_audio("another", piece, talk.now) == []
    assert names(talk.broker.rendered_audio("forced-summary-fallback-1", piece, talk.now)) == [
        "response.started",
        "response.delta",
        "EmitAudio",
    ]
    assert talk.broker.rendered("another", {}, talk.now) == []
    assert names(talk.broker.rendered("forced-summary-fallback-1", {}, talk.now)) == [
        "output_audio.done",
        "response.done",
    ]
    assert talk.state is FloorState.IDLE


def test_nobody_can_speak_it() -> None:
    talk = Talk()
    talk.rendering()
    assert talk.broker.render_failed("another", "no key", talk.now) == []
    orders = talk.broker.render_failed("forced-summary-fallback-1", "no key", talk.now)
    assert orders[0] == Note("voice.response.forced_summary_failed", {"message": "no key"})
    assert names(orders) == ["response.started", "response.delta", "response.done"]
    assert talk.state is FloorState.IDLE


def test_nobody_speaks_it_in_time() -> None:
    talk = Talk()
    talk.delivering()
    talk.broker.response_started("r2", talk.now)
    assert names(talk.after(ALARM)) == ["CancelResponse", "response.started", "response.delta", "response.done"]
    talk = Talk()
    talk.rendering()
    assert names(talk.after(ALARM)) == ["StopRendering", "response.started", "response.delta", "response.done"]


def test_a_flood_of_sound_in_place_of_the_answer() -> None:
    talk = Talk()
    talk.delivering()
    assert names(talk.broker.audio("r2", bytes(MAX_HELD + 2), talk.now)) == ["CancelResponse", "Render"]
    assert talk.broker.audio("r2", PIECE, talk.now) == []


def test_a_function_in_place_of_the_answer() -> None:
    talk = Talk()
    talk.delivering()
    talk.broker.response_started("r2", talk.now)
    assert talk.broker.call("r2", RunCall(call_id="k2", text="again"), talk.now) == [
        AnswerCall("k2", {"ok": False, "error": ONE_TASK})
    ]
    assert names(talk.broker.response_done("r2", "completed", talk.now)) == ["Render"]


# --- interruptions --------------------------------------------------------------------------------------------------


def test_the_person_speaks_up() -> None:
    talk = Talk()
    talk.answering()
    assert talk.broker.commit(talk.now) == [
        CancelResponse(),
        Emit("voice.response.done", {"response_id": "r1", "cancelled": True}),
        CommitInput(),
    ]
    assert talk.broker.text("r1", "and", talk.now) == []
    talk.broker.response_done("r1", "cancelled", talk.now)
    assert names(talk.broker.say("no, wait", talk.now)) == [
        "response.done",
        "input_transcript.final",
        "SayText",
        "Respond",
    ]
    assert talk.broker.say("or", talk.now)[0] == CancelResponse()
    assert talk.broker.response_started("orphan", talk.now) == [CancelResponse()]
    assert talk.broker.response_done("orphan", "cancelled", talk.now) == []
    assert names(talk.broker.response_started("r2", talk.now)) == ["response.started"]


def test_the_person_speaks_up_while_a_small_function_is_answered() -> None:
    talk = Talk()
    talk.consulted()
    assert talk.broker.say("stop", talk.now)[0] == Emit("voice.response.done", {"response_id": None, "cancelled": True})


@pytest.mark.parametrize("way", ["settling", "delivering", "rendering"])
def test_the_person_speaks_up_before_the_answer(way: str) -> None:
    talk = Talk()
    getattr(talk, way)()
    orders = talk.broker.commit(talk.now)
    shown = [order for order in orders if isinstance(order, Emit)]
    assert names(list(shown)) == ["response.started", "response.delta", "response.done"]
    assert {order.fields["delivery"] for order in shown} == {"visual_only"}
    assert orders[-1] == CommitInput()
    assert (StopRendering() in orders) is (way == "rendering")
    assert (CancelResponse() in orders) is (way == "delivering")
    assert talk.state is FloorState.HEARING
