"""What the functions are told in return: summaries are short, and no id is where a model would read it aloud."""

from __future__ import annotations

from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.calls import MAX_SUMMARY, completed_output, ended_output, status_output
from svc_proto.voice.realtime.mouth import SpokenAnswer
from svc_proto.voice.realtime.run import VoiceRun


def begun() -> VoiceRun:
    made = VoiceRun("svc", "k1", text="df", session_id="c1", profile="work")
    made.take(0.0, spoke=False)
    made.on_due(0.75, "idle")
    return made


def test_a_long_answer() -> None:
    spoken = "word " * 400
    output = completed_output(begun(), SpokenAnswer(call_id="k1", run_id="n1", text="# " + spoken, spoken=spoken))
    assert output["raw_text_omitted"] is True
    assert len(str(output["summary"])) == MAX_SUMMARY
    assert output["profile"] == "work"


def test_other_ends() -> None:
    assert ended_output(begun(), error="No.") == {"ok": False, "error": "No.", "run_id": "", "session_id": "c1"}
    assert ended_output(begun(), cancelled=True) == {"ok": False, "cancelled": True, "run_id": "", "session_id": "c1"}


def test_status() -> None:
    assert status_output(None)["status"] == "idle"
    made = begun()
    assert (status_output(made)["status"], status_output(made)["run_id"]) == ("running", None)
    made.story.take(Question("q1", "May I?"))
    asked = status_output(made)
    assert (asked["status"], asked["pending_confirmation_id"]) == ("waiting_for_confirmation", "q1")
    made.finish(str)
    assert status_output(made)["status"] == "completed"
