"""Runs in the background in any order of things: what waits is bounded, each run is told to be over once; and what is
due when. Conversations around them: `test_conversation_background`.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.voice.realtime.calls import RunCall
from svc_proto.voice.realtime.orders import Emit, Order, StartRun
from svc_proto.voice.realtime.run import HEARTBEAT, BackgroundRules, Tier, VoiceRun
from svc_proto.voice.realtime.runs import GRACE, MAX_QUEUED, MAX_RESULTS, QUIET, QUIET_WITHIN, VoiceRuns
from tests.voice.realtime.book import EVENTS


class RunsMachine(RuleBasedStateMachine):
    """A model counts; the machine decides."""

    most = 1  # in the background

    def __init__(self) -> None:
        super().__init__()
        self.all = VoiceRuns(word="svc", speakable=str, rules=BackgroundRules(longest=40.0, max_runs=self.most))
        self.now = 100.0
        self.numbers = 0
        self.live = 0  # promoted, and not told to be over
        self.queued: list[str] = []
        self.unheard = 0
        self.away = False

    def new(self) -> VoiceRun:
        self.numbers += 1
        return self.all.new(RunCall(call_id=f"k{self.numbers}", text=f"k{self.numbers}"))

    def detached(self) -> VoiceRun:
        assert self.all.detached is not None
        return self.all.detached

    def told(self, orders: list[Order]) -> list[str]:
        kinds = [order.type for order in orders if isinstance(order, Emit)]
        self.live += kinds.count("svc.run.promoted")
        self.live -= kinds.count("svc.run.background_completed") + kinds.count("svc.run.cancelled")
        return kinds

    @property
    def has_room(self) -> bool:
        return self.live < self.most and self.live + self.unheard < MAX_RESULTS

    def due(self) -> float | None:
        """Of the run in the background."""
        return min(filter(None, self.all.due(working=False, idle=False)), default=None)

    # --- what happens ---

    @precondition(lambda self: self.all.free)
    @rule(tier=st.sampled_from((Tier.PROMOTED, Tier.DURABLE)), spoken=st.booleans())
    def promote(self, tier: Tier, spoken: bool) -> None:
        run = self.new()
        run.begin(self.now)
        assert self.told(self.all.detach(run, tier, spoken=spoken)) == ["svc.run.promoted"]

    @rule()
    def enqueue(self) -> None:
        run = self.new()
        kinds = self.told(self.all.wait_in_line(run, Tier.PROMOTED))
        room = len(self.queued) < MAX_QUEUED
        assert kinds == ["svc.run.queued"] * room
        self.queued += [run.text] * room

    @rule()
    def start_next(self) -> None:
        able = self.has_room and bool(self.queued)
        able = able and (at := self.all.next_at) is not None and self.now >= at
        orders = self.all.start_next(self.now)
        assert self.told(orders) == ["svc.run.promoted"] * able
        for order in orders:
            if isinstance(order, StartRun):
                assert order.text == self.queued.pop(0)  # in their order

    @precondition(lambda self: self.live)
    @rule(how=st.sampled_from(("finish", "fail", "stopped")))
    def end(self, how: str) -> None:
        run = self.detached()
        if how == "finish":
            kinds = self.told(self.all.finish(run, self.now, idle=True))
            assert kinds == ["svc.run.completed", "svc.run.background_completed"]
            self.unheard += 1
        elif how == "fail":
            assert self.told(self.all.fail(run, "no", self.now)) == ["svc.run.background_completed"]
        else:
            assert self.told(self.all.stopped(run, self.now)) == ["svc.run.cancelled"]

    @rule()
    def cancel(self) -> None:
        orders, live = self.all.cancel(self.now), self.live
        assert (len(orders), self.told(orders)) == (2 * live, ["svc.run.cancelled"] * live)
        self.queued, self.unheard = [], 0
        assert not self.all.busy
        assert self.all.next_at is None

    @rule()
    def take_result(self) -> None:
        able = self.unheard > 0 and not self.away and (at := self.all.next_at) is not None and self.now >= at
        able = able and not (self.has_room and self.queued)
        answer = self.all.take_result(self.now)
        assert (answer is not None) is able
        self.unheard -= able

    @rule()
    def take_results(self) -> None:
        assert len(self.all.take_results()) == (0 if self.away else self.unheard)
        self.unheard = self.unheard if self.away else 0

    @rule(seconds=st.sampled_from((0.0, 1.0, 1.5, 5.0, 12.0, 40.0)))
    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while (due := self.due()) is not None and due <= end:
            self.now = max(self.now, due)
            self.told(self.all.advance(self.now, "idle"))
        self.now = end

    @rule()
    def hear(self) -> None:
        self.all.hear(self.now)

    @rule()
    def leave(self) -> None:
        self.away = True
        self.all.leave(self.now)

    @rule()
    def come_back(self) -> None:
        self.away = False
        self.all.come_back(self.now)

    # --- what always holds ---

    @invariant()
    def so_many_at_a_time(self) -> None:
        assert bool(self.live) == (self.all.detached is not None)
        assert self.live <= self.most
        assert self.all.free is self.has_room
        assert self.due() is None or self.live

    @invariant()
    def bounded(self) -> None:
        assert self.all.queued == self.queued
        assert len(self.all.unheard) == self.unheard + self.live <= MAX_RESULTS + 1
        assert self.all.busy is bool(self.live or self.queued or self.unheard)
        assert self.all.answered is (self.unheard > 0)

    @invariant()
    def nobody_waits_for_ever(self) -> None:
        at = self.all.next_at
        assert at is None or at <= self.now + 12.0
        if self.unheard and not self.away:
            assert at is not None


class SeveralMachine(RunsMachine):
    """Where more of them may be in the background."""

    most = 3


TestRuns = RunsMachine.TestCase
TestSeveral = SeveralMachine.TestCase


# --- what is due when ---


class Scene:
    """All runs of a conversation at second 100."""

    def __init__(self, **fields: str) -> None:
        rules = BackgroundRules(longest=60.0)
        self.all = VoiceRuns(word="svc", speakable=str, rules=rules, session_id="c1", **fields)

    def promote(self, name: str) -> VoiceRun:
        run = self.all.new(RunCall(call_id=name, text=f"do {name}"))
        run.begin(100.0)
        self.all.detach(run, Tier.PROMOTED, spoken=True)
        return run

    def finish(self, run: VoiceRun) -> None:
        run.story.take(EVENTS["AnswerDelta"]("Done."))
        self.all.finish(run, 100.0, idle=True)

    @property
    def next_at(self) -> float | None:
        return self.all.next_at

    def due(self) -> float | None:
        """Between turns."""
        return min(filter(None, self.all.due(working=False, idle=False)), default=None)


def test_what_begins_next_and_when_an_answer_is_due() -> None:
    scene = Scene()
    runs = scene.all
    assert (scene.next_at, scene.due(), runs.busy, runs.shown) == (None, None, False, None)
    first = scene.promote("k1")
    assert (scene.next_at, scene.due(), runs.is_new("k1")) == (None, 100.0 + HEARTBEAT, False)
    runs.wait_in_line(runs.new(RunCall(call_id="k2", text="do k2")), Tier.DURABLE)
    assert (runs.queued, runs.is_new("k2:queued")) == (["do k2"], False)
    assert [runs.has_task(f"do k{number}") for number in (1, 2, 3)] == [True, True, False]
    runs.hear(99.0)
    scene.finish(first)
    assert (scene.next_at, runs.start_next(100.0)) == (99.0 + QUIET, [])
    for heard, at in ((120.0, 100.0 + QUIET_WITHIN), (100.0 - QUIET, 100.0)):
        runs.hear(heard)
        assert scene.next_at == at
    assert runs.start_next(100.0) != []
    for heard, at in ((99.0, 99.0 + QUIET), (120.0, 100.0 + QUIET_WITHIN)):
        runs.hear(heard)
        assert scene.next_at == at
    assert runs.shown is runs.detached is not None
    runs.leave(120.0)
    assert (scene.next_at, runs.kept_until(30.0, 360.0, live=False)) == (None, 480.0)
    runs.come_back(130.0)
    assert (scene.next_at, runs.take_result(129.0)) == (130.0, None)
    answer = runs.take_result(130.0)
    assert answer is not None
    assert (answer.text, runs.last) == ("Done.", answer)
    runs.fail(runs.detached, "no", 100.0)
    runs.leave(131.0)
    assert runs.kept_until(10.0, 360.0, live=False) == 100.0 + max(GRACE, 41.0)
    assert runs.kept_until(10.0, 360.0, live=True) == 491.0


def test_what_is_shown_when_nothing_runs() -> None:
    scene = Scene(result_delivery="visual_only")
    for name in ("k1", "k2"):
        scene.finish(scene.promote(name))
    assert scene.all.shown is not None
    assert (scene.all.shown.call_id, scene.all.unheard) == ("k2", ["", ""])
    scene.all.hear(100.0)
    assert scene.next_at == 100.0  # what is only shown waits for no microphone


def test_an_answer_that_goes_on_says_nothing() -> None:
    runs = Scene().all
    run = runs.new(RunCall(call_id="k1", text="df"))
    run.begin(100.0)
    assert not runs.drafts("k1", "It ")  # its beginning is told
    assert len(runs.event("k1", EVENTS["AnswerDelta"]("It "), 100.0)) == 1
    assert runs.drafts("k1", "is done.")
    assert not runs.drafts("another", "It ")
    assert run.finish(str).text == "It is done."
