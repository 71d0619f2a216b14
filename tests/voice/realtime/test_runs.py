"""Runs in the background without a conversation around them: each situation with each event, and what is due when."""

from __future__ import annotations

import pytest

from svc_proto.voice.realtime.calls import RunCall
from svc_proto.voice.realtime.orders import Order
from svc_proto.voice.realtime.run import HEARTBEAT, BackgroundRules, Tier, VoiceRun
from svc_proto.voice.realtime.runs import GRACE, MAX_QUEUED, MAX_RESULTS, QUIET, QUIET_WITHIN, VoiceRuns
from svc_proto.voice.realtime.story import AnswerDelta
from tests.voice.realtime.book import names

RULES = BackgroundRules(longest=60.0)


class Scene:
    """All runs of a conversation, and a clock."""

    def __init__(self, **fields: str) -> None:
        self.now = 100.0
        self.all = VoiceRuns(word="svc", speakable=str, rules=RULES, session_id="c1", **fields)
        self.numbers = 0

    def new(self) -> VoiceRun:
        self.numbers += 1
        return self.all.new(RunCall(call_id=f"k{self.numbers}", text=f"do k{self.numbers}"))

    def play(self, events: str) -> None:
        for event in events.split():
            getattr(self, event)()

    def leave(self) -> None:
        self.all.leave(self.now)

    def next_at(self) -> float | None:
        return self.all.next_at

    # --- what may be tried; None: not possible now ---

    def promote(self) -> list[Order] | None:
        if not self.all.free:
            return None
        run = self.new()
        run.begin(self.now)
        return self.all.detach(run, Tier.PROMOTED, spoken=True)

    def enqueue(self) -> list[Order]:
        return self.all.wait_in_line(self.new(), Tier.DURABLE)

    def start_next(self) -> list[Order]:
        return self.all.start_next(self.now)

    def finish(self) -> list[Order] | None:
        run = self.all.detached
        if run is None:
            return None
        run.story.take(AnswerDelta("Done."))
        return self.all.finish(run, self.now, idle=True)

    def fail(self) -> list[Order] | None:
        run = self.all.detached
        return None if run is None else self.all.fail(run, "no", self.now)

    def stopped(self) -> list[Order] | None:
        run = self.all.detached
        return None if run is None else self.all.stopped(run, self.now)

    def cancel(self) -> list[Order]:
        return self.all.cancel(self.now)

    def take_result(self) -> list[Order]:
        return [] if self.all.take_result(self.now) is None else self.all.cancel(self.now)

    def beat(self) -> list[Order]:
        return self.all.advance(100.0 + HEARTBEAT, "idle")

    def cap(self) -> list[Order]:
        return self.all.advance(100.0 + RULES.longest, "idle")

    def due(self) -> float | None:
        """Between turns."""
        return min(self.all.due(working=False, idle=False), default=None)


SCENES = {  # how to get there
    "empty": "",
    "detached": "promote",
    "queued": "promote enqueue",
    "full": "promote" + " enqueue" * MAX_QUEUED,
    "next": "promote enqueue fail",
    "waiting": "promote finish",
    "away": "promote finish leave",
    "both": "promote finish promote",
    "heaped": "promote finish " * MAX_RESULTS + "enqueue",
}
NEVER = "not possible"
QUEUED, OVER = ["svc.run.queued", "AnswerCall"], ["svc.run.background_completed"]
PROMOTED, BUSY = ["svc.run.promoted", "AnswerCall"], ["AnswerCall"]
STARTED, CAPPED = ["StartRun", "svc.run.promoted"], ["LeaveRun", "svc.run.background_completed", "error"]
FINISHED = ["svc.run.completed", "svc.run.background_completed"]
STOPPED, CANCELLED = ["StopRun", "svc.run.cancelled"], ["svc.run.cancelled"]
BEAT = ["svc.run.progress"]
LIVE = {"promote": NEVER, "finish": FINISHED, "fail": OVER, "stopped": CANCELLED, "cancel": STOPPED}
LIVE |= {"beat": BEAT, "cap": CAPPED}
NOT_LIVE = {"promote": PROMOTED, "finish": NEVER, "fail": NEVER, "stopped": NEVER, "cancel": []}
NOT_LIVE |= {"beat": [], "cap": []}
EXPECTED: dict[str, dict[str, object]] = {
    "empty": {**NOT_LIVE, "enqueue": QUEUED, "start_next": [], "take_result": []},
    "detached": {**LIVE, "enqueue": QUEUED, "start_next": [], "take_result": []},
    "queued": {**LIVE, "enqueue": QUEUED, "start_next": [], "take_result": []},
    "full": {**LIVE, "enqueue": BUSY, "start_next": [], "take_result": []},
    "next": {**NOT_LIVE, "enqueue": QUEUED, "start_next": STARTED, "take_result": []},
    "waiting": {**NOT_LIVE, "enqueue": QUEUED, "start_next": [], "take_result": []},
    "away": {**NOT_LIVE, "enqueue": QUEUED, "start_next": [], "take_result": []},
    "both": {**LIVE, "enqueue": QUEUED, "start_next": [], "take_result": STOPPED},
    "heaped": {**NOT_LIVE, "promote": NEVER, "enqueue": QUEUED, "start_next": [], "take_result": []},
}


@pytest.mark.parametrize("event", EXPECTED["empty"])
@pytest.mark.parametrize("situation", SCENES)
def test_each_situation_with_each_event(situation: str, event: str) -> None:
    scene = Scene()
    scene.play(SCENES[situation])
    orders = getattr(scene, event)()
    assert (NEVER if orders is None else names(orders)) == EXPECTED[situation][event]


def test_what_begins_next_and_when_an_answer_is_due() -> None:
    scene = Scene()
    assert (scene.all.next_at, scene.due(), scene.all.busy, scene.all.shown) == (None, None, False, None)
    scene.promote()
    assert (scene.all.next_at, scene.due()) == (None, 100.0 + HEARTBEAT)
    assert not scene.all.is_new("k1")
    scene.enqueue()
    assert not scene.all.is_new("k2:queued")
    assert scene.all.queued == ["do k2"]
    assert [scene.all.has_task(f"do k{number}") for number in (1, 2, 3)] == [True, True, False]
    scene.all.hear(99.0)
    scene.finish()
    assert scene.all.next_at == 99.0 + QUIET
    assert scene.start_next() == []
    scene.all.hear(120.0)
    assert scene.all.next_at == 100.0 + QUIET_WITHIN
    scene.all.hear(scene.now - QUIET)
    assert scene.all.next_at == scene.now  # at once
    assert scene.start_next() != []
    scene.all.hear(99.0)
    assert scene.all.next_at == max(100.0, 99.0 + QUIET)
    scene.all.hear(120.0)
    assert scene.all.next_at == 100.0 + QUIET_WITHIN
    assert scene.all.shown is scene.all.detached
    scene.all.leave(120.0)
    assert scene.next_at() is None
    assert scene.all.kept_until(30.0, 360.0, live=False) == 480.0
    scene.all.come_back(130.0)
    assert scene.all.next_at == 130.0
    assert scene.all.take_result(129.0) is None
    answer = scene.all.take_result(130.0)
    assert answer is not None
    assert (answer.text, scene.all.last) == ("Done.", answer)
    scene.fail()
    scene.all.leave(131.0)
    assert scene.all.kept_until(10.0, 360.0, live=False) == 100.0 + max(GRACE, 41.0)
    assert scene.all.kept_until(10.0, 360.0, live=True) == 491.0


def test_what_is_shown_when_nothing_runs() -> None:
    scene = Scene()
    scene.play("promote finish promote finish")
    assert scene.all.shown is not None
    assert scene.all.shown.call_id == "k2"
    assert scene.all.unheard == ["", ""]


def test_what_is_only_shown_waits_for_no_microphone() -> None:
    scene = Scene(result_delivery="visual_only")
    scene.play("promote finish")
    scene.all.hear(100.0)
    assert scene.all.next_at == 100.0


def test_an_answer_that_goes_on_says_nothing() -> None:
    scene = Scene()
    run = scene.new()
    run.begin(scene.now)
    assert not scene.all.drafts("k1", "It ")  # its beginning is told
    assert names(scene.all.event("k1", AnswerDelta("It "), scene.now)) == ["svc.run.progress"]
    assert scene.all.drafts("k1", "is done.")
    assert not scene.all.drafts("another", "It ")
    assert run.finish(str).text == "It is done."
