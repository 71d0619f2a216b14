"""What both kinds of conversation do with a question of a run."""

from __future__ import annotations

from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.calls import RunCall
from svc_proto.voice.realtime.orders import Approve, Emit, Order
from svc_proto.voice.realtime.runs import VoiceRuns
from svc_proto.voice.realtime.talk import Talk


def test_a_question_is_answered_once() -> None:
    runs = VoiceRuns(word="svc", speakable=str)
    talk = Talk(runs, lambda: 1.0)
    run = runs.new(RunCall(call_id="k1", text="df"))
    run.pause(0.0)
    run.begin(0.75)
    for name in ("q1", "q2"):
        run.story.take(Question(name, "May I?"))
    talk.confirm("q2", "yes")
    talk.confirm("q1", "yes")
    talk.confirm("q1", "yes")
    talk.approved("k1", "q1", "yes")
    talk.approved("another", "q2", None)
    approve = Approve(call_id="k1", run_id="", confirmation_id="q1", choice="once", answer="yes")
    shown = {"session_id": None, "run_id": "", "confirmation_id": "q2", "message": "May I?"}
    assert list(talk.out) == [
        forwarded("q2", None),
        approve,
        forwarded("q1", None),
        forwarded("q1", "yes"),
        Emit("svc.confirmation.requested", shown),
        forwarded("q2", None),
    ]


def forwarded(confirmation_id: str, answer: str | None) -> Order:
    return Emit("svc.confirmation.forwarded", {"confirmation_id": confirmation_id, "answer": answer})
