"""The run behind a spoken turn: what it tells, and its life beside a plain one, where it is begun once, after what was
said is played and a pause, and is never silent for long. Its table is tested beside that of the floor.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.machines.confirmations import Question
from svc_proto.voice.realtime.orders import Emit, Order, StartRun
from svc_proto.voice.realtime.run import (
    FOREGROUND,
    HEARTBEAT,
    MAX_SPOKEN,
    PAUSE,
    SILENT,
    BackgroundRules,
    VoiceRun,
    VoiceRunState,
    VoiceRunTrigger,
)
from svc_proto.voice.realtime.story import RunBegan, RunStory
from tests.voice.realtime.book import EVENTS

A_MOMENT = 0.125  # s; times are sums of eighths, which floats hold exactly
STEPS = ("asked", "pausing", "running", "detached", "answered", "waiting", "over")
LIVE = ("running", "detached")


class RunAgainstAModel(RuleBasedStateMachine):
    """`at` is the model's state; `due` when something must be said, `orders` all that was ordered.

    A run that is over makes room for the next.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self._called(spoke=True)

    def _called(self, *, spoke: bool) -> None:
        self.run = VoiceRun(story=RunStory("svc", "k1", "c1"), text="df", profile=None)
        self.at = "asked" if spoke else "pausing"
        self.due: float | None = self.now + (2.5 if spoke else 0.75)
        self.orders: list[Order] = self.run.take(self.now, spoke=spoke)
        self.began = 0.0
        self.text = ""
        self.question = ""
        self.approving = False
        self.ended: set[str] = set()
        assert self._types(self.orders) == ["voice.playback_drain.requested" if spoke else "svc.run.progress"]

    # --- what may happen ---

    @rule(spoke=st.booleans())
    def is_called(self, spoke: bool) -> None:
        if self.at == "over":
            self._called(spoke=spoke)

    @rule(before=st.sampled_from((0.0, A_MOMENT)))
    def time_passes(self, before: float) -> None:
        """To exactly the deadline, or just before it."""
        if self.due is not None and self.due - before > self.now:
            self.now = self.due - before
            self._wake()

    @rule(late=st.integers(1, 80))
    def more_time_passes(self, late: int) -> None:
        """Somebody looks late at the clock."""
        self.now += late * A_MOMENT
        self._wake()

    @rule()
    def has_played(self) -> None:
        if self.at == "asked":
            (_, order) = self.run.drained(self.now)
            self.orders.append(order)
            self.at, self.due = "pausing", self.now + 0.75

    @rule(piece=st.sampled_from(("It is ", "fine.", '{"a": 1}', "x" * 2000)))
    def tells(self, piece: str) -> None:
        """The agent passes on what a run tells while it lives."""
        if self.at in LIVE:
            first = not self.text
            self.text += piece
            self.orders += (told := self.run.draft())
            assert [order.fields["status_key"] for order in told] == ["run:drafting"] * first
            self.run.story.take(RunBegan("n1"))
            self.run.story.take(EVENTS["AnswerDelta"](piece))

    @rule(name=st.sampled_from(("q1", "q2")), over=st.booleans())
    def asks(self, name: str, over: bool) -> None:
        if self.at not in LIVE:
            return
        if over:
            self.ended.add(name)
            self.run.story.take(EVENTS["ToolSucceeded"](name, "sms"))
            if name == self.question:
                self.question, self.approving = "", False
        elif not self.question and name not in self.ended:
            self.run.story.take(Question(name, "May I?"))
            self.question = name

    @rule(name=st.sampled_from((None, "q1", "q2")), answer=st.sampled_from(("yes", "no", "perhaps")))
    def is_answered(self, name: str | None, answer: str) -> None:
        order = self.run.approve(name, answer)
        meant = bool(self.question) and not self.approving and name in (None, self.question)
        assert (order is not None) is meant
        if order is not None:
            self.approving = True
            assert (order.confirmation_id, order.choice) == (self.question, "once" if answer == "yes" else "deny")

    @rule()
    def is_stopped(self) -> None:
        types = self._types(self.run.stop())
        # Wire terminal-voice 6.8: nothing to stop on the API server unless a run lives; always told.
        assert types == [*(["StopRun"] if self.at in LIVE else []), "svc.run.cancelled"]

    @rule(trigger=st.sampled_from(VoiceRunTrigger))
    def is_moved(self, trigger: VoiceRunTrigger) -> None:
        """The broker drops a run at any time, and lets go of one that has finished."""
        if trigger is VoiceRunTrigger.FINISH:
            self._finish()
        elif trigger is VoiceRunTrigger.DROP and self.at != "over":
            self.run.step(trigger)
            self.at, self.due = "over", None
        elif trigger is VoiceRunTrigger.DETACH and self.at == "running":
            self.run.step(trigger)
            self.at = "detached"
        elif trigger is VoiceRunTrigger.TELL and self.at in ("answered", "waiting"):
            self.run.step(trigger)
            self.at = "over"
        elif trigger in (VoiceRunTrigger.DETACH, VoiceRunTrigger.TELL) or self.at not in ("asked", "pausing"):
            with pytest.raises(LocalProtocolError):
                self.run.step(trigger)

    def _finish(self) -> None:
        if self.at not in LIVE:
            with pytest.raises(LocalProtocolError):
                self.run.finish(str)
            return
        answer = self.run.finish(str.upper)
        self.at, self.due = "waiting" if self.at == "detached" else "answered", None
        text = self.text.strip() or "The task is done, but it gave no answer."
        assert answer.text == text
        # Wire terminal-voice 6.6: "text made speech-safe, 1800 chars"; summed up "always for JSON answers".
        assert answer.spoken == text.upper()[:1800].strip()
        assert answer.structured is (text == '{"a": 1}')

    # --- what must hold ---

    @invariant()
    def it_is_where_the_table_says(self) -> None:
        assert self.run.state is VoiceRunState(self.at)
        assert self.run.live is (self.at in LIVE)
        assert (self.run.drain is not None) is (self.at == "asked") or self.at == "over"
        if self.at != "over":
            assert self.run.due == self.due

    @invariant()
    def it_is_begun_once_and_not_before_its_time(self) -> None:
        # Wire terminal-voice 6.6 steps 1 to 3: drain request, progress `starting`, a pause, then the chat run.
        starts = [order for order in self.orders if isinstance(order, StartRun)]
        assert len(starts) <= 1
        assert (STEPS.index(self.at) < 2) <= (not starts)

    @invariant()
    def it_is_never_silent_for_long(self) -> None:
        # Wire terminal-voice 6.5: "Sent every 5 s while a run lives"; "90 s without any event during a turn = stall".
        if self.at in ("asked", "pausing", *LIVE):
            assert self.due is not None
            assert self.now < self.due <= self.now + 5.0

    # --- the model ---

    def _wake(self) -> None:
        """Whoever owns it calls `on_due` when it is due; a late one goes on from then."""
        if self.due is None or self.now < self.due:
            return
        orders = self.run.on_due(self.now, "idle")
        self.orders += orders
        types = self._types(orders)
        match self.at:
            case "asked":
                assert types == ["voice.playback_drain.timeout", "svc.run.progress"]
                self.at, self.due = "pausing", self.now + 0.75
            case "pausing":
                assert types == ["StartRun"]
                self.at, self.due, self.began = "running", self.now + 5.0, self.now
            case _:
                (beat,) = orders
                assert isinstance(beat, Emit)
                assert beat.fields["elapsed_ms"] == (self.now - self.began) * 1000
                assert (beat.fields["status"] == "waiting_for_confirmation") is bool(self.question)
                self.due = self.now + 5.0

    @staticmethod
    def _types(orders: list[Order]) -> list[str]:
        return [order.type if isinstance(order, Emit) else type(order).__name__ for order in orders]


TestRunAgainstAModel = RunAgainstAModel.TestCase
TestRunAgainstAModel.settings = settings(max_examples=50, stateful_step_count=30)


def made_run(*, spoke: bool = False) -> VoiceRun:
    made = VoiceRun(story=RunStory("svc", "k1", "c1"), text="df", profile=None)
    made.take(10.0, spoke=spoke)
    return made


def test_what_was_said_is_played_first() -> None:
    made = VoiceRun(story=RunStory("svc", "k1", "c1"), text="df", profile="work")
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
    made.story.take(EVENTS["ToolBegan"]("t", "terminal"))
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
    made.story.take(EVENTS["AnswerDelta"](text))
    answer = made.finish(str)
    assert (answer.spoken, answer.structured) == (spoken, structured)
    assert made.due is None
    assert not made.live


def test_when_its_progress_may_be_spoken() -> None:
    made = VoiceRun(
        story=RunStory("svc", "k1", "c1"),
        text="df",
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
