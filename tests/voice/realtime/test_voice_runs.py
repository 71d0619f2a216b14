from svc_proto.voice.realtime.actions import StartRun
from svc_proto.voice.realtime.function_calls import RunTaskCall
from svc_proto.voice.realtime.voice_run import HEARTBEAT, BackgroundPolicy, RunTier, VoiceRun
from svc_proto.voice.realtime.voice_runs import GRACE, QUIET, QUIET_TIMEOUT, VoiceRuns
from tests.voice.realtime.dialogue import EVENTS


class Scene:
    """All runs of a conversation at second 100."""

    def __init__(self, **fields: str) -> None:
        rules = BackgroundPolicy(longest=60.0)
        self.all = VoiceRuns(word="svc", speakable=str, rules=rules, session_id="c1", **fields)

    def promote(self, name: str) -> VoiceRun:
        run = self.all.new(RunTaskCall(call_id=name, text=f"do {name}"))
        run.begin(100.0)
        self.all.detach(run, RunTier.PROMOTED, spoken=True)
        return run

    def finish(self, run: VoiceRun, now: float = 100.0) -> None:
        run.story.map_event(EVENTS["AnswerDelta"]("Done."))
        self.all.finish(run, now, idle=True)

    def due(self) -> float | None:
        """Return the earliest deadline other than `promotion_at` and `next_at`, or None."""
        return min(filter(None, self.all.due(working=False, idle=False)), default=None)


def test_next_run_and_answer_deadlines() -> None:
    scene = Scene()
    runs = scene.all
    assert (runs.next_at, scene.due(), runs.busy, runs.status_run) == (None, None, False, None)
    first = scene.promote("k1")
    assert (runs.next_at, scene.due(), runs.is_new("k1")) == (None, 100.0 + HEARTBEAT, False)
    runs.enqueue(runs.new(RunTaskCall(call_id="k2", text="do k2")), RunTier.DURABLE)
    assert (runs.queued, runs.is_new("k2:queued")) == (["do k2"], False)
    assert [runs.has_task(f"do k{number}") for number in (1, 2, 3)] == [True, True, False]
    runs.on_user_speech(99.0)
    scene.finish(first)
    assert (runs.next_at, runs.start_next(100.0)) == (99.0 + QUIET, [])
    for heard, at in ((120.0, 100.0 + QUIET_TIMEOUT), (100.0 - QUIET, 100.0)):
        runs.on_user_speech(heard)
        assert runs.next_at == at
    assert runs.start_next(100.0) != []
    for heard, at in ((99.0, 99.0 + QUIET), (120.0, 100.0 + QUIET_TIMEOUT)):
        runs.on_user_speech(heard)
        assert runs.next_at == at
    assert runs.status_run is runs.detached is not None
    runs.on_client_left(120.0)
    assert (runs.next_at, runs.kept_until(30.0, 360.0, live=False)) == (None, 480.0)
    runs.on_client_back(130.0)
    assert (runs.next_at, runs.take_result(129.0)) == (130.0, None)
    answer = runs.take_result(130.0)
    assert answer is not None
    assert (answer.text, runs.last) == ("Done.", answer)
    runs.fail(runs.detached, "no", 130.0)
    runs.on_client_left(131.0)
    assert runs.kept_until(10.0, 360.0, live=False) == 130.0 + GRACE
    assert runs.kept_until(40.0, 360.0, live=False) == 131.0 + 40.0
    assert runs.kept_until(10.0, 360.0, live=True) == 491.0


def test_each_answer_waits_for_silence_anew_in_the_order_of_the_ends() -> None:
    scene = Scene()
    runs, first, second = scene.all, scene.promote("k1"), scene.promote("k2")
    scene.finish(second, 100.0)
    scene.finish(first, 105.0)
    runs.on_user_speech(1000.0)  # the user speaks on
    for run, at in ((second, 100.0 + QUIET_TIMEOUT), (first, 100.0 + 2 * QUIET_TIMEOUT)):
        assert runs.next_at == at
        assert runs.take_result(at) is run.answer is not None


def test_queued_run_keeps_the_session_and_begins_in_the_current_side_session() -> None:
    scene = Scene()
    runs = scene.all
    runs.enqueue(runs.new(RunTaskCall(call_id="k2", text="ls")), RunTier.DURABLE)
    runs.on_client_left(100.0)
    assert runs.kept_until(30.0, 360.0, live=False) == 460.0
    scene.promote("k1")
    runs.rules, runs.side_session = BackgroundPolicy(max_runs=2), "side"
    assert runs.start_next(200.0)[0] == StartRun(call_id="k2:queued", text="ls", session_id="side")


def test_status_and_drafts_without_a_running_run() -> None:
    scene = Scene(result_delivery="visual_only")
    for name in ("k1", "k2"):
        scene.finish(scene.promote(name))
    assert scene.all.status_run is not None
    assert (scene.all.status_run.call_id, scene.all.undelivered) == ("k2", ["", ""])
    scene.all.on_user_speech(100.0)
    assert scene.all.next_at == 100.0  # an answer that is only displayed does not wait for the microphone
    runs = Scene().all
    run = runs.new(RunTaskCall(call_id="k1", text="df"))
    run.begin(100.0)
    assert not runs.drafts("k1", "It ")  # the beginning of the draft is reported
    assert len(runs.event("k1", EVENTS["AnswerDelta"]("It "), 100.0)) == 1
    assert runs.drafts("k1", "is done.")
    assert not runs.drafts("another", "It ")
    assert run.finish(str).text == "It is done."
