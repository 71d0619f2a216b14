from __future__ import annotations

from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.voice.realtime.actions import Emit
from svc_proto.voice.realtime.run_events import RunEventMapper
from svc_proto.voice.realtime.voice_run import (
    FOREGROUND,
    MAX_SPOKEN,
    SILENT,
    BackgroundPolicy,
    VoiceRun,
    VoiceRunState,
    VoiceRunTrigger,
)
from tests.voice.realtime.dialogue import EVENTS, names

A_MOMENT = 0.125  # seconds; times are sums of eighths, which floats hold exactly
LIVE = ("running", "detached")
MOVES = {
    ("running", VoiceRunTrigger.DETACH): "detached",
    ("running", VoiceRunTrigger.FINISH): "answered",
    ("detached", VoiceRunTrigger.FINISH): "waiting",
    ("answered", VoiceRunTrigger.TELL): "over",
    ("waiting", VoiceRunTrigger.TELL): "over",
}


def made_run(rules: BackgroundPolicy = FOREGROUND) -> VoiceRun:
    return VoiceRun(story=RunEventMapper("svc", "k1", "c1"), text="df", profile=None, rules=rules)


def begun(rules: BackgroundPolicy = FOREGROUND) -> VoiceRun:
    made = made_run(rules)
    made.start(10.0, spoke=False)
    made.on_due(10.75, "idle")
    return made


class RunAgainstAModel(RuleBasedStateMachine):
    """`VoiceRun` beside a model; a finished run is replaced by a new one.

    `at` is the state of the model, `due` the next deadline; `orders` has the actions of the start and of deadlines.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.at = "over"
        self.is_called(spoke=True)

    # --- rules ---

    @rule(spoke=st.booleans())
    def is_called(self, spoke: bool) -> None:
        if self.at == "over":
            self.run = made_run()
            self.at = "asked" if spoke else "pausing"
            self.due: float | None = self.now + (2.5 if spoke else 0.75)
            self.orders = self.run.start(self.now, spoke=spoke)
            self.began = 0.0
            assert names(self.orders) == ["playback_drain.requested" if spoke else "svc.run.progress"]

    @rule(before=st.sampled_from((0.0, A_MOMENT)))
    def time_passes(self, before: float) -> None:
        """Let time pass to exactly the deadline, or just before it, if that time is ahead."""
        if self.due is not None and self.due - before > self.now:
            self.now = self.due - before
            self._wake()

    @rule(late=st.integers(1, 80))
    def more_time_passes(self, late: int) -> None:
        """Let at most eighty times `A_MOMENT` pass."""
        self.now += late * A_MOMENT
        self._wake()

    @rule()
    def has_played(self) -> None:
        if self.at == "asked":
            assert names(self.run.drained(self.now)) == ["~playback_drain.completed", "svc.run.progress"]
            self.at, self.due = "pausing", self.now + 0.75

    @rule(trigger=st.sampled_from(VoiceRunTrigger))
    def is_moved(self, trigger: VoiceRunTrigger) -> None:
        """Apply a trigger that needs no deadline; require an error if the run's state does not allow it."""
        if trigger in (VoiceRunTrigger.PAUSE, VoiceRunTrigger.BEGIN, VoiceRunTrigger.QUEUE):
            return  # these triggers occur at a deadline
        move = partial(self.run.finish, str) if trigger is VoiceRunTrigger.FINISH else partial(self.run.step, trigger)
        after = MOVES.get((self.at, trigger), "over" if trigger is VoiceRunTrigger.DROP and self.at != "over" else None)
        if after is None:
            with pytest.raises(LocalProtocolError):
                move()
            return
        move()
        self.at, self.due = after, self.due if after == "detached" else None

    # --- invariants ---

    @invariant()
    def it_is_where_the_table_says(self) -> None:
        assert self.run.state is VoiceRunState(self.at)
        assert self.run.live is (self.at in LIVE)
        assert (self.run.drain is not None) is (self.at == "asked") or self.at == "over"
        assert self.at == "over" or self.run.due == self.due
        # Wire terminal-voice 6.8: nothing to stop on the API server unless a run lives; always reported.
        assert names(self.run.stop()) == [*["StopRun"] * (self.at in LIVE), "svc.run.cancelled"]

    @invariant()
    def it_is_begun_once_and_not_before_its_time(self) -> None:
        # Wire terminal-voice 6.6 steps 1 to 3: drain request, progress `starting`, a pause, then the chat run.
        starts = names(self.orders).count("StartRun")
        assert starts == (self.at not in ("asked", "pausing")) or self.at == "over"

    @invariant()
    def it_is_never_silent_for_long(self) -> None:
        # Wire terminal-voice 6.5: "Sent every 5 s while a run lives"; "90 s without any event during a turn = stall".
        if self.at in ("asked", "pausing", *LIVE):
            assert self.due is not None
            assert self.now < self.due <= self.now + 5.0

    # --- the model ---

    def _wake(self) -> None:
        """Call `on_due` if it is due, as the owner of a run does; after a delay the next deadline counts from now."""
        if self.due is None or self.now < self.due:
            return
        orders = self.run.on_due(self.now, "idle")
        self.orders += orders
        match self.at:
            case "asked":
                assert names(orders) == ["playback_drain.timeout", "svc.run.progress"]
                self.at, self.due = "pausing", self.now + 0.75
            case "pausing":
                assert names(orders) == ["StartRun"]
                self.at, self.due, self.began = "running", self.now + 5.0, self.now
            case _:
                (beat,) = orders
                assert isinstance(beat, Emit)
                assert beat.fields["elapsed_ms"] == (self.now - self.began) * 1000
                self.due = self.now + 5.0


TestRunAgainstAModel = RunAgainstAModel.TestCase
TestRunAgainstAModel.settings = settings(max_examples=50, stateful_step_count=30)


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
def test_answer_of_a_run(text: str, spoken: str, structured: bool) -> None:
    made = begun()
    made.story.map_event(EVENTS["AnswerDelta"](text))
    answer = made.finish(str)
    assert (answer.spoken, answer.structured) == (spoken, structured)
    assert made.due is None
    assert not made.live


def test_progress_is_spoken_only_when_idle() -> None:
    made = begun(BackgroundPolicy(progress_after=5, progress_repeat=2))
    beats = [
        made.send_progress(made.began + elapsed, floor)
        for elapsed, floor in ((4.5, "idle"), (5, "provider_speaking"), (5, "idle"), (6.5, "idle"), (7, "idle"))
    ]
    assert [beat.fields["should_speak"] for beat in beats] == [False, False, True, False, True]
