"""Runs in the background without a conversation around them: each situation with each event, and what is due when."""

from __future__ import annotations

import re

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.machines import background
from svc_proto.machines.background import (
    GRACE,
    MAX_QUEUED,
    MAX_RESULTS,
    QUIET,
    QUIET_WITHIN,
    RUN_TABLE,
    Background,
    Stage,
    StageTrigger,
)
from svc_proto.machines.background_rules import BackgroundRules
from svc_proto.machines.broker_orders import Order
from svc_proto.machines.run_story import AnswerDelta
from svc_proto.machines.voice_job import HEARTBEAT, Job, Tier
from tests.machines.broker_book import names
from tests.machines.lifecycles import check_table

RULES = BackgroundRules(longest=60.0)
ROW = re.compile(r"^\| (\w+) +\| ([A-Z]+) +\| (\w+)", re.MULTILINE)


def job(name: str = "k1", *, begun: bool = True) -> Job:
    made = Job("svc", name, text=f"do {name}", session_id="c1", profile=None, rules=RULES)
    if begun:
        made.begin(100.0)
    return made


class Scene:
    """A background, and a clock."""

    def __init__(self, **fields: str) -> None:
        self.now = 100.0
        self.all = Background(word="svc", rules=RULES, **fields)
        self.numbers = 0

    def name(self) -> str:
        self.numbers += 1
        return f"k{self.numbers}"

    def play(self, events: str) -> None:
        for event in events.split():
            getattr(self, event)()

    def leave(self) -> None:
        self.all.leave(self.now)

    def next_at(self) -> float | None:
        return self.all.next_at

    # --- what may be tried; None: not possible now ---

    def promote(self) -> list[Order] | None:
        return self.all.promote(job(self.name()), Tier.PROMOTED, spoken=True) if self.all.free else None

    def enqueue(self) -> list[Order]:
        return self.all.enqueue(job(self.name(), begun=False), Tier.DURABLE)

    def start_next(self) -> list[Order]:
        return self.all.start_next(self.now, "c2")

    def finish(self) -> list[Order] | None:
        if self.all.job is None:
            return None
        self.all.job.story.take(AnswerDelta("Done."))
        return self.all.finish(str, self.now, idle=True)

    def fail(self) -> list[Order] | None:
        return None if self.all.job is None else self.all.fail("no", self.now)

    def stopped(self) -> list[Order] | None:
        return None if self.all.job is None else self.all.stopped(self.now)

    def cancel(self) -> list[Order]:
        return self.all.cancel(self.now)

    def take_result(self) -> list[Order]:
        return [] if self.all.take_result(self.now) is None else self.all.cancel(self.now)

    def beat(self) -> list[Order]:
        return self.all.advance(100.0 + HEARTBEAT, "idle")

    def cap(self) -> list[Order]:
        return self.all.advance(100.0 + RULES.longest, "idle")


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
QUEUED, OVER, PROMOTED = ["svc.run.queued"], ["svc.run.background_completed"], ["svc.run.promoted"]
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
    "full": {**LIVE, "enqueue": [], "start_next": [], "take_result": []},
    "next": {**NOT_LIVE, "enqueue": QUEUED, "start_next": STARTED, "take_result": []},
    "waiting": {**NOT_LIVE, "enqueue": QUEUED, "start_next": [], "take_result": []},
    "away": {**NOT_LIVE, "enqueue": QUEUED, "start_next": [], "take_result": []},
    "both": {**LIVE, "enqueue": QUEUED, "start_next": [], "take_result": STOPPED},
    "heaped": {**NOT_LIVE, "promote": NEVER, "enqueue": QUEUED, "start_next": [], "take_result": []},
}


def test_the_table_is_the_documents() -> None:
    rows = [(state, (StageTrigger[word],), after) for state, word, after in ROW.findall(background.__doc__ or "")]
    check_table(RUN_TABLE, Stage, StageTrigger, rows)


@pytest.mark.parametrize("event", EXPECTED["empty"])
@pytest.mark.parametrize("situation", SCENES)
def test_each_situation_with_each_event(situation: str, event: str) -> None:
    scene = Scene()
    scene.play(SCENES[situation])
    orders = getattr(scene, event)()
    assert (NEVER if orders is None else names(orders)) == EXPECTED[situation][event]


def test_what_begins_next_and_when_an_answer_is_due() -> None:
    scene = Scene()
    assert (scene.all.next_at, scene.all.due, scene.all.busy, scene.all.shown) == (None, None, False, None)
    scene.promote()
    assert (scene.all.next_at, scene.all.due) == (None, 100.0 + HEARTBEAT)
    assert scene.all.knows("k1")
    scene.enqueue()
    assert scene.all.knows("k2")
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
    assert scene.all.shown is scene.all.job
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


def test_a_run_that_was_never_detached_cannot_end() -> None:
    run = background.BackgroundRun(job())
    with pytest.raises(LocalProtocolError):
        run.step(StageTrigger.FINISH)
