"""The run behind a spoken turn: its states and its heartbeat. The table is tested beside that of the floor."""

from __future__ import annotations

import pytest

from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.orders import Approve, Emit, StartRun, StopRun
from svc_proto.voice.realtime.run import (
    FOREGROUND,
    HEARTBEAT,
    MAX_SPOKEN,
    PAUSE,
    SILENT,
    BackgroundRules,
    VoiceRun,
    VoiceRunState,
)
from svc_proto.voice.realtime.story import AnswerDelta, ApprovalAsked, RunBegan, ToolBegan


def made_run(*, spoke: bool = False) -> VoiceRun:
    made = VoiceRun("svc", "k1", text="df", session_id="c1", profile=None)
    made.take(10.0, spoke=spoke)
    return made


def test_what_was_said_is_played_first() -> None:
    made = VoiceRun("svc", "k1", text="df", session_id="c1", profile="work")
    (requested,) = made.take(10.0, spoke=True)
    assert isinstance(requested, Emit)
    assert requested.fields["reason"] == "pre_svc_ack"
    assert (made.state, made.due) == (VoiceRunState.ASKED, 12.5)
    timeout, progress = made.on_due(12.5, "idle")
    assert isinstance(timeout, Emit)
    assert timeout.type == "voice.playback_drain.timeout"
    assert isinstance(progress, Emit)
    assert progress.fields == {
        "session_id": "c1",
        "run_id": None,
        "status": "starting",
        "message": "Checking.",
        "status_key": "run:checking_svc",
        "should_speak": False,
        "call_id": "k1",
        "active_tool_name": None,
        "last_tool_name": None,
        "completed_tool_count": 0,
    }
    assert made.due == 12.5 + PAUSE
    assert made.on_due(12.5 + PAUSE, "idle") == [StartRun(call_id="k1", text="df", profile="work", session_id="c1")]
    assert made.live


def test_the_heartbeat() -> None:
    made = made_run()
    made.on_due(10.75, "idle")
    made.story.take(RunBegan("n1"))
    made.story.take(ToolBegan(call_id="t", name="terminal"))
    (beat,) = made.on_due(10.75 + HEARTBEAT, "provider_speaking")
    assert isinstance(beat, Emit)
    assert beat.type == "svc.run.progress"
    assert beat.fields == {
        "session_id": "c1",
        "run_id": "n1",
        "status": "running",
        "message": "Running command.",
        "status_key": "tool:terminal:running",
        "should_speak": False,
        "floor": "provider_speaking",
        "tier": "foreground",
        "elapsed_ms": 5000,
        "active_tool_name": "terminal",
        "last_tool_name": "terminal",
        "completed_tool_count": 0,
    }
    assert made.due == 10.75 + 2 * HEARTBEAT
    (drafting,) = made.draft()
    assert drafting.fields["status_key"] == "run:drafting"
    assert made.draft() == []


@pytest.mark.parametrize(
    ("text", "spoken", "structured"),
    [
        ("It is *fine*.", "It is *fine*.", False),
        ('{"used": 62}', '{"used": 62}', True),
        ("[1]", "[1]", True),
        ("{not json", "{not json", False),
        ("", SILENT, False),
        ("x" * 2000, "x" * MAX_SPOKEN, False),
    ],
)
def test_its_answer(text: str, spoken: str, structured: bool) -> None:
    made = made_run()
    made.on_due(10.75, "idle")
    made.story.take(AnswerDelta(text))
    answer = made.finish(str)
    assert (answer.spoken, answer.structured) == (spoken, structured)
    assert made.due is None
    assert not made.live


def test_an_answer_that_nothing_can_be_said_of() -> None:
    made = made_run()
    made.on_due(10.75, "idle")
    made.story.take(AnswerDelta("```code```"))
    assert made.finish(lambda text: "").spoken == SILENT


def test_it_is_stopped() -> None:
    made = made_run()
    assert made.stop() == [Emit("svc.run.cancelled", {"session_id": "c1", "run_id": ""})]
    made.on_due(10.75, "idle")
    made.story.take(RunBegan("n1"))
    assert made.stop()[0] == StopRun("k1", "n1")


def test_its_questions() -> None:
    made = made_run()
    assert made.approve(None, "yes") is None
    made.story.take(ApprovalAsked(Question("q", "?")))
    assert made.approve("q", "yes") == Approve(
        call_id="k1", run_id="", confirmation_id="q", choice="once", answer="yes"
    )
    assert made.approve("q", "yes") is None


def test_when_its_progress_may_be_spoken() -> None:
    made = VoiceRun(
        "svc",
        "k1",
        text="df",
        session_id="c1",
        profile=None,
        rules=BackgroundRules(progress_after=5, progress_repeat=2),
    )
    made.take(10.0, spoke=False)
    made.on_due(10.75, "idle")
    beats = [
        made.beat(made.began + elapsed, floor)
        for elapsed, floor in ((4.5, "idle"), (5, "provider_speaking"), (5, "idle"), (6.5, "idle"), (7, "idle"))
    ]
    assert [beat.fields["should_speak"] for beat in beats] == [False, False, True, False, True]


def test_which_tools_are_slow() -> None:
    rules = BackgroundRules(slow_tools=("terminal", "spawn"))
    assert [rules.is_slow(tool) for tool in ("open_terminal", "spawn", "web")] == [True, True, False]
    assert not FOREGROUND.is_slow("terminal")
