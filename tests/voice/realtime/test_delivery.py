"""Progress that is spoken, and who has the word. Answers: tests/voice/realtime/test_conversation*.py."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from svc_proto.voice.realtime.calls import StatusCall
from svc_proto.voice.realtime.orders import Emit, EmitAudio, Note, Order, Render, StopRendering
from svc_proto.voice.realtime.run import BackgroundRules
from tests.voice.realtime.book import ANSWER, PIECE, Talk, answered, names

RULES = BackgroundRules(promote_after=100.0, progress_after=5.0, progress_repeat=5.0)
DONE = Emit("voice.output_audio.done", {"response_id": "progress-1", "source": "svc", "delivery": "progress"})


def filling(word: str = "svc") -> Talk:
    """A run of the turn takes long, and that is being said."""
    talk = Talk(rules=RULES, word=word)
    talk.working()
    beat, render = talk.after(5.0)
    assert isinstance(beat, Emit)
    assert (beat.fields["should_speak"], beat.fields["floor"]) == (True, "idle")
    assert render == Render("progress-1", str(beat.fields["message"]))
    return talk


@pytest.mark.parametrize("word", ["svc", "hermes"])
def test_progress_is_sound_and_no_response(word: str) -> None:
    """A `voice.response.done` would be the end of the turn for a client (wire terminal-voice 6.5)."""
    talk = filling(word)
    about = {"source": word, "delivery": "progress"}
    heard = EmitAudio(response_id="progress-1", data=PIECE.data, extra=about)
    assert talk.broker.rendered_audio("progress-1", PIECE, talk.now) == [heard]
    (beat,) = talk.after(5.0)  # one at a time
    assert isinstance(beat, Emit)
    assert (beat.fields["should_speak"], beat.fields["floor"]) == (False, f"{word}_filler")
    over = talk.broker.rendered("progress-1", {"metrics": {}}, talk.now)
    assert over == [Emit("voice.output_audio.done", {"response_id": "progress-1", **about})]
    assert talk.broker.rendered_audio("progress-1", PIECE, talk.now) == []
    assert talk.broker.rendered("progress-1", {}, talk.now) == []
    assert names(talk.after(5.0)) == [f"{word}.run.progress", "Render"]


def test_progress_that_cannot_be_had_spoken() -> None:
    talk = filling()
    note = Note("voice.realtime_agent.progress_failed", {"message": "no key"})
    assert talk.broker.render_failed("progress-1", "no key", talk.now) == [note, DONE]
    assert talk.broker.render_failed("progress-1", "no key", talk.now) == []


@pytest.mark.parametrize(
    "event",
    [
        lambda talk: talk.broker.commit(talk.now),
        lambda talk: talk.broker.say("hello", talk.now),
        lambda talk: talk.broker.cancel(talk.now),
        answered,
        lambda talk: talk.broker.run_failed("k1", "no", talk.now),
    ],
)
def test_it_gives_way_to_whoever_has_something_to_say(event: Callable[[Talk], list[Order]]) -> None:
    talk = filling()
    orders = event(talk)
    place = orders.index(StopRendering())
    assert orders[place + 1] == DONE
    assert StopRendering() not in orders[place + 1 :]
    assert talk.broker.rendered_audio("progress-1", PIECE, talk.now) == []


def background() -> Talk:
    """The same of a run in the background."""
    talk = Talk(rules=BackgroundRules(spoken_handoff=False, progress_after=10.0))
    talk.working()
    assert names(talk.after(10.0)) == [
        "svc.run.progress",
        "svc.run.promoted",
        "AnswerCall",
        "svc.run.progress",
        "Render",
    ]
    return talk


def test_in_the_background_too() -> None:
    talk = background()
    assert talk.broker.call("r9", StatusCall("k9"), talk.now) != [StopRendering()]
    assert names(talk.broker.say("hello", talk.now))[:2] == ["StopRendering", "output_audio.done"]
    talk = background()
    answered(talk)
    orders = talk.after(0.0)
    assert names(orders) == ["StopRendering", "output_audio.done", "playback_drain.requested"]


def test_the_last_answer_is_said_again_in_its_place() -> None:
    talk = Talk(rules=BackgroundRules(spoken_handoff=False, progress_after=10.0, max_runs=2, promote_after=1.0))
    talk.working()
    talk.after(1.0)
    talk.ask("k2", background=True)
    answered(talk, "k2")
    talk.after(0.0)
    talk.broker.drained(None, talk.now)
    talk.broker.text("b1", ANSWER, talk.now)
    talk.broker.response_done("b1", "completed", talk.now)
    assert "Render" in names(talk.after(15.0))
    orders = talk.broker.respeak(talk.now)
    assert names(orders) == ["StopRendering", "output_audio.done", "Render"]


def test_nothing_is_said_to_nobody() -> None:
    talk = Talk(rules=BackgroundRules(spoken_handoff=False, progress_after=10.0))
    talk.working()
    talk.broker.runs.leave(talk.now)
    assert names(talk.after(10.0)) == ["svc.run.progress", "svc.run.promoted", "AnswerCall", "svc.run.progress"]


def test_nothing_is_said_to_somebody_who_has_just_spoken() -> None:
    talk = background()
    talk.broker.rendered("progress-1", {}, talk.now)
    talk.after(28.0)
    talk.broker.commit(talk.now)
    assert names(talk.after(5.0)) == ["svc.run.progress"]
