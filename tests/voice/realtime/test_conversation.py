"""Whole turns of the broker as dialogues, and what interrupts them."""

from __future__ import annotations

import pytest

from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.calls import ConfirmCall, RunCall, StatusCall, UnknownCall
from svc_proto.voice.realtime.conversation import TRANSCRIBED_WITHIN
from svc_proto.voice.realtime.floor import ANSWERED_WITHIN, FloorState
from svc_proto.voice.realtime.orders import (
    AnswerCall,
    Approve,
    CancelResponse,
    CommitInput,
    Emit,
    EmitAudio,
    Note,
    ReadAloud,
    Respond,
    StartRun,
)
from svc_proto.voice.realtime.runs import MAX_CALLS, ONE_TASK
from svc_proto.voice.realtime.story import (
    AnswerComplete,
    ApprovalAsked,
    RunBegan,
    ToolBegan,
    ToolSucceeded,
)
from tests.voice.realtime.book import ANSWER, Talk, names

PIECE = b"\x01\x00" * 100
SUMMARY = {"response_id": "r2", "delivery": "forced_summary"}


@pytest.mark.parametrize("word", ["svc", "hermes"])
def test_the_golden_turn(word: str) -> None:
    """The example at the end of wire terminal-voice 6.6."""
    talk = Talk(word=word)
    broker, run = talk.broker, {"session_id": "c1", "run_id": "n1"}
    assert broker.commit(talk.now) == [CommitInput()]
    assert broker.transcribed("how full is the disk", talk.now) == [
        Emit("voice.input_transcript.final", {"text": "how full is the disk"}),
        Respond(),
    ]
    assert broker.response_started("r1", talk.now) == [Emit("voice.response.started", {"response_id": "r1"})]
    assert broker.response_started("r1", talk.now) == []
    assert broker.audio("r1", PIECE, talk.now) == [EmitAudio(response_id="r1", data=PIECE)]
    drain = {"call_id": "k1", "tool_name": f"{word}_run_task", "timeout_ms": 2500}
    assert broker.call("r1", RunCall(call_id="k1", text="df -h"), talk.now) == [
        Emit("voice.playback_drain.requested", {**drain, "reason": f"pre_{word}_ack"})
    ]
    assert broker.response_done("r1", "completed", talk.now) == [
        Note("voice.response.intermediate_done", {"response_id": "r1"})
    ]
    (completed, progress) = broker.drained("k1", talk.now)
    assert completed == Note("voice.playback_drain.completed", {"call_id": "k1", "reason": f"pre_{word}_ack"})
    assert isinstance(progress, Emit)
    assert (progress.type, progress.fields["status_key"]) == (f"{word}.run.progress", f"run:checking_{word}")
    assert talk.after(0.75) == [StartRun(call_id="k1", text="df -h", session_id="c1")]
    assert broker.run_event("k1", RunBegan("n1"), talk.now) == [Emit(f"{word}.run.started", run)]
    tool = {**run, "tool_call_id": "t1", "tool_name": "terminal"}
    began = ToolBegan(call_id="t1", name="terminal", arguments={"command": "df -h"})
    assert broker.run_event("k1", began, talk.now) == [
        Emit(f"{word}.tool.started", {**tool, "arguments": {"command": "df -h"}})
    ]
    ended = {**tool, "result_preview": "62% used", "success": True, "message": "Command finished."}
    assert broker.run_event("k1", ToolSucceeded(call_id="t1", name="terminal", preview="62% used"), talk.now) == [
        Emit(f"{word}.tool.completed", ended)
    ]
    assert broker.run_event("k1", AnswerComplete(ANSWER), talk.now) == []
    output = {
        "ok": True,
        "status": "completed",
        **run,
        "profile": None,
        "text": ANSWER,
        "answer": ANSWER,
        "summary": ANSWER,
        "raw_text_omitted": False,
        "tool_count": 1,
        "last_tool_name": "terminal",
        "spoken_response": ANSWER,
        "provider_instruction": "You will be asked to speak this result in a moment. Say nothing before that.",
    }
    assert broker.run_ended("k1", talk.now) == [
        Emit(f"{word}.run.completed", run),
        AnswerCall("k1", output),
        Emit("voice.playback_drain.requested", {**drain, "reason": "tool_result_summary"}),
    ]
    assert broker.drained("any", talk.now) == [
        Note("voice.playback_drain.completed", {"call_id": "k1", "reason": "tool_result_summary"}),
        ReadAloud(ANSWER),
    ]
    assert broker.response_started("r2", talk.now) == []
    assert broker.text("r2", ANSWER, talk.now) == []
    assert broker.audio_done("r2", talk.now) == []
    assert broker.response_done("r2", "completed", talk.now) == [
        Emit("voice.response.started", SUMMARY),
        Emit("voice.response.delta", {"delta": ANSWER, "source": "provider", **SUMMARY}),
        Emit("voice.output_audio.done", SUMMARY),
        Emit("voice.response.done", SUMMARY),
    ]
    assert talk.state is FloorState.IDLE
    assert broker.due is None


def test_the_provider_answers_by_itself() -> None:
    talk = Talk()
    broker = talk.broker
    assert names(broker.say("hello", talk.now)) == ["input_transcript.final", "SayText", "Respond"]
    assert names(broker.text("r1", "Hi.", talk.now)) == ["response.started", "response.delta"]
    assert broker.audio_done("r1", talk.now) == [Emit("voice.output_audio.done", {"response_id": "r1"})]
    assert broker.response_done("r1", "completed", talk.now) == [Emit("voice.response.done", {"response_id": "r1"})]
    assert talk.state is FloorState.IDLE
    assert broker.text("r1", "late", talk.now) == []


def test_one_response_for_one_utterance() -> None:
    talk = Talk()
    talk.hearing()
    assert names(talk.broker.commit(talk.now)) == ["CommitInput"]  # the same turn
    assert names(talk.broker.transcribed("first", talk.now)) == ["input_transcript.final", "Respond"]
    assert names(talk.broker.transcribed("second", talk.now)) == ["input_transcript.final"]


def test_a_response_needs_no_transcript() -> None:
    talk = Talk()
    talk.hearing()
    assert talk.after(TRANSCRIBED_WITHIN) == [Respond()]
    assert names(talk.broker.transcribed("late", talk.now)) == ["input_transcript.final"]


def test_nothing_was_said() -> None:
    talk = Talk()
    nothing = [
        Emit("voice.input_transcript.final", {"text": ""}),
        Emit("voice.response.done", {"response_id": None}),
    ]
    assert talk.broker.commit(talk.now, heard=False) == nothing
    talk.answering()
    assert talk.broker.commit(talk.now, heard=False) == []
    assert talk.state is FloorState.ANSWERING


def test_a_provider_that_says_nothing() -> None:
    talk = Talk()
    talk.answering()
    error, done = talk.after(ANSWERED_WITHIN)
    assert error == Emit("voice.error", {"message": "The voice provider did not answer."})
    assert done == Emit("voice.response.done", {"response_id": "r1"})
    assert talk.state is FloorState.IDLE


def test_time_in_which_the_client_took_nothing_does_not_count() -> None:
    talk = Talk()
    talk.broker.floor.postpone(5.0)
    talk.answering()
    talk.broker.floor.postpone(ANSWERED_WITHIN)
    assert talk.after(ANSWERED_WITHIN) == []
    assert names(talk.after(ANSWERED_WITHIN)) == ["error", "response.done"]


@pytest.mark.parametrize(
    ("status", "orders"),
    [
        ("cancelled", [Emit("voice.response.done", {"response_id": "r1", "cancelled": True})]),
        ("incomplete", [Emit("voice.response.done", {"response_id": "r1"})]),
        (
            "failed",
            [
                Emit("voice.error", {"message": "The voice provider could not answer."}),
                Emit("voice.response.done", {"response_id": "r1"}),
            ],
        ),
    ],
)
def test_how_a_response_may_end(status: str, orders: list[Emit]) -> None:
    talk = Talk()
    talk.answering()
    assert talk.broker.response_done("r1", status, talk.now) == orders
    assert talk.state is FloorState.IDLE


# --- functions ------------------------------------------------------------------------------------------------------


def test_a_run_without_words_before_it_begins_at_once() -> None:
    talk = Talk()
    talk.answering()
    talk.called()
    assert names(talk.told[-1:]) == ["svc.run.progress"]
    assert talk.broker.text("r1", "One moment.", talk.now) == [
        Emit("voice.response.delta", {"delta": "One moment.", "source": "provider", "response_id": "r1"})
    ]  # what else that response says is passed on
    assert names(talk.broker.audio("r1", PIECE, talk.now)) == ["EmitAudio"]
    assert names(talk.broker.audio_done("r1", talk.now)) == ["output_audio.done"]
    assert names(talk.after(0.75)) == ["StartRun"]


@pytest.mark.parametrize(("bound", "session"), [("c1", "c1"), (None, "c9")])
def test_where_a_run_goes(bound: str | None, session: str) -> None:
    talk = Talk()
    talk.broker.runs.session_id, talk.broker.runs.profile = bound, "work"
    talk.answering()
    talk.broker.call("r1", RunCall(call_id="k1", text="df", session_id="c9"), talk.now)
    assert talk.after(0.75) == [StartRun(call_id="k1", text="df", profile="work", session_id=session)]


def test_a_client_that_does_not_say_that_it_has_played() -> None:
    talk = Talk()
    talk.acknowledging()
    assert names(talk.after(2.5)) == ["playback_drain.timeout", "svc.run.progress"]
    assert names(talk.after(0.75)) == ["StartRun"]
    assert talk.broker.drained("k1", talk.now) == []  # too late
    assert names(talk.finished()) == ["svc.run.completed", "AnswerCall", "playback_drain.requested"]
    assert names(talk.after(2.5)) == ["playback_drain.timeout"]  # r1 is not over: the provider takes no order
    assert talk.after(2.5) == [ReadAloud(ANSWER)]


def test_a_call_id_counts_once() -> None:
    talk = Talk()
    talk.working()
    again = RunCall(call_id="k1", text="df")
    assert talk.broker.call("r1", again, talk.now) == []
    assert talk.broker.call("unknown", RunCall(call_id="k2", text="df"), talk.now) == [CancelResponse()]
    for number in range(MAX_CALLS):
        talk.broker.call("unknown", StatusCall(f"x{number}"), talk.now)
    assert talk.broker.call("r1", again, talk.now) == []  # forgotten, but of a response that is over


def test_as_many_call_ids_as_are_known() -> None:
    talk = Talk()
    talk.answering()
    first = UnknownCall("k0", {"ok": False})
    assert talk.broker.call("r1", first, talk.now) != []
    for number in range(MAX_CALLS - 1):
        talk.broker.call("unknown", StatusCall(f"x{number}"), talk.now)
    assert talk.broker.call("r1", first, talk.now) == []
    talk.broker.call("unknown", StatusCall("x"), talk.now)
    assert talk.broker.call("r1", first, talk.now) != []


def test_a_second_task_in_the_same_response() -> None:
    talk = Talk()
    talk.answering()
    talk.called()
    assert talk.broker.call("r1", RunCall(call_id="k2", text="rm"), talk.now) == [
        AnswerCall("k2", {"ok": False, "error": ONE_TASK})
    ]


def test_a_small_function() -> None:
    talk = Talk()
    talk.answering()
    answer, drain = talk.broker.call("r1", StatusCall("k0"), talk.now)
    assert isinstance(answer, AnswerCall)
    assert (answer.output["status"], answer.output["run_id"]) == ("idle", None)
    assert names([drain]) == ["playback_drain.requested"]
    assert talk.broker.call("r1", UnknownCall("k2", {"ok": False}), talk.now) == [AnswerCall("k2", {"ok": False})]
    assert names(talk.broker.drained(None, talk.now)) == []  # the response is not over
    assert names(talk.broker.response_done("r1", "completed", talk.now)) == ["Respond"]
    assert names(talk.broker.text("r2", "Nothing.", talk.now)) == ["response.started", "response.delta"]


def test_a_small_function_whose_words_are_never_played() -> None:
    talk = Talk()
    talk.consulted()
    assert names(talk.after(2.5)) == ["playback_drain.timeout", "Respond"]


def test_the_person_talks_beside_a_run() -> None:
    talk = Talk()
    talk.working()
    talk.broker.run_event("k1", ToolBegan(call_id="t1", name="terminal"), talk.now)
    assert names(talk.broker.commit(talk.now)) == ["CommitInput"]
    assert names(talk.broker.transcribed("how far are you", talk.now)) == ["input_transcript.final", "Respond"]
    talk.broker.response_started("r2", talk.now)
    assert names(talk.after(5.0)) == ["svc.run.progress"]  # the heart beats on
    answer, _ = talk.broker.call("r2", StatusCall("k2"), talk.now)
    assert isinstance(answer, AnswerCall)
    assert answer.output == {
        "ok": True,
        "run_id": "n1",
        "status": "running",
        "session_id": "c1",
        "pending_confirmation_id": None,
        "active_tool_name": "terminal",
        "last_tool_name": "terminal",
        "last_tool_status": "running",
        "last_tool_message": "Running command.",
        "completed_tool_count": 0,
        "queued_count": 0,
        "queued_items": [],
    }
    talk.broker.response_done("r2", "completed", talk.now)
    talk.broker.drained("k2", talk.now)
    assert names(talk.broker.text("r3", "Nearly done.", talk.now)) == ["response.started", "response.delta"]
    assert names(talk.finished()) == ["svc.run.completed", "AnswerCall"]  # its answer waits
    answer, _ = talk.broker.call("r3", StatusCall("k3"), talk.now)
    assert isinstance(answer, AnswerCall)
    assert answer.output["status"] == "completed"
    talk.broker.response_done("r3", "completed", talk.now)
    talk.broker.drained("k3", talk.now)
    talk.broker.response_started("r4", talk.now)
    assert names(talk.broker.response_done("r4", "completed", talk.now)) == [
        "response.done",
        "playback_drain.requested",
    ]
    assert names(talk.broker.drained("k1", talk.now)) == ["ReadAloud"]


def test_talk_that_ends_before_the_run() -> None:
    talk = Talk()
    talk.working()
    assert names(talk.broker.say("never mind", talk.now)) == ["input_transcript.final", "SayText", "Respond"]
    talk.broker.response_started("r2", talk.now)
    assert names(talk.broker.response_done("r2", "completed", talk.now)) == ["response.done"]
    assert talk.state is FloorState.WORKING
    assert talk.broker.commit(talk.now, heard=False)  # nothing said, beside the run
    assert talk.state is FloorState.WORKING
    talk.broker.say("and now?", talk.now)
    talk.broker.response_started("r3", talk.now)
    answer = talk.broker.call("r3", RunCall(call_id="k2", text="x"), talk.now)[0]
    assert answer == AnswerCall("k2", {"ok": False, "error": ONE_TASK})


def test_the_status_before_the_run() -> None:
    talk = Talk()
    talk.acknowledging()
    talk.broker.response_done("r1", "completed", talk.now)
    talk.broker.say("what?", talk.now)
    talk.broker.response_started("r2", talk.now)
    answer = talk.broker.call("r2", StatusCall("k2"), talk.now)[0]
    assert isinstance(answer, AnswerCall)
    assert answer.output["status"] == "starting"


# --- questions ------------------------------------------------------------------------------------------------------


def asked(talk: Talk, *ids: str) -> None:
    for identity in ids:
        talk.broker.run_event("k1", ApprovalAsked(Question(identity, "?")), talk.now)


def test_a_question_is_answered_by_hand() -> None:
    talk = Talk()
    nobody = Emit("svc.confirmation.forwarded", {"confirmation_id": "q1", "answer": None})
    assert talk.broker.confirm("q1", "allow", talk.now) == [nobody]
    talk.working()
    asked(talk, "q1", "q2")
    assert talk.broker.confirm("q1", "allow", talk.now) == [
        Approve(call_id="k1", run_id="n1", confirmation_id="q1", choice="once", answer="allow")
    ]
    assert talk.broker.confirm("q1", "allow", talk.now) == [nobody]
    assert names(talk.broker.approved("k1", "q1", "allow", talk.now)) == [
        "svc.confirmation.forwarded",
        "svc.confirmation.requested",
    ]
    assert names(talk.broker.approved("other run", "q1", None, talk.now)) == ["svc.confirmation.forwarded"]


def test_a_question_is_answered_by_word() -> None:
    talk = Talk()
    talk.working()
    asked(talk, "q1")
    talk.broker.say("yes, do it", talk.now)
    talk.broker.response_started("r2", talk.now)
    orders = talk.broker.call("r2", ConfirmCall("k2", "q1", "allow_once"), talk.now)
    assert names(orders) == ["Approve", "AnswerCall", "playback_drain.requested"]
    assert orders[1] == AnswerCall("k2", {"ok": True, "confirmation_id": "q1", "status": "forwarded"})
    assert talk.broker.call("r2", ConfirmCall("k3", "q1", "allow"), talk.now) == [
        AnswerCall("k3", {"ok": False, "confirmation_id": "q1", "status": "not_pending"})
    ]
