"""Runs in the background in any order of things: what waits is bounded, and each run is told to be over once."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.voice.realtime.calls import RunCall
from svc_proto.voice.realtime.orders import Emit, Order, StartRun
from svc_proto.voice.realtime.run import BackgroundRules, Tier, VoiceRun
from svc_proto.voice.realtime.runs import MAX_QUEUED, MAX_RESULTS, VoiceRuns


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
        return min(self.all.due(working=False, idle=False), default=None)

    # --- what happens ---

    @precondition(lambda self: self.all.free)
    @rule(tier=st.sampled_from((Tier.PROMOTED, Tier.DURABLE)), spoken=st.booleans())
    def promote(self, tier: Tier, spoken: bool) -> None:
        run = self.new()
        run.begin(self.now)
        self.told(self.all.detach(run, tier, spoken=spoken))

    @rule()
    def enqueue(self) -> None:
        run = self.new()
        kinds = self.told(self.all.wait_in_line(run, Tier.PROMOTED))
        assert (kinds == []) is (len(self.queued) == MAX_QUEUED)
        self.queued += [run.text] if kinds else []

    @rule()
    def start_next(self) -> None:
        able = self.has_room and bool(self.queued)
        able = able and (at := self.all.next_at) is not None and self.now >= at
        orders = self.all.start_next(self.now)
        assert bool(self.told(orders)) is able
        for order in orders:
            if isinstance(order, StartRun):
                assert order.text == self.queued.pop(0)  # in their order

    @precondition(lambda self: self.live)
    @rule(how=st.sampled_from(("finish", "fail", "stopped")))
    def end(self, how: str) -> None:
        if how == "finish":
            self.told(self.all.finish(self.detached(), self.now, idle=True))
            self.unheard += 1
        elif how == "fail":
            self.told(self.all.fail(self.detached(), "no", self.now))
        else:
            self.told(self.all.stopped(self.detached(), self.now))

    @rule()
    def cancel(self) -> None:
        self.told(self.all.cancel(self.now))
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
