"""An answer on its way to the ear: what counts as the answer, and what is told of it."""

from __future__ import annotations

import pytest

from svc_proto.voice.realtime.mouth import (
    JUDGED_FROM,
    MAX_HELD,
    MAX_TEXT,
    Held,
    Mouth,
    MouthState,
    SpokenAnswer,
    on_script,
)
from svc_proto.voice.realtime.orders import Emit, EmitAudio, Order, ReadAloud, Render

TEXT = "The disk is 62 percent used, and 40 gigabytes are free."
ANSWER = SpokenAnswer(call_id="k1", run_id="n1", text=f"# {TEXT}", spoken=TEXT)
SUMMARY = {"response_id": "r2", "delivery": "forced_summary"}


def judging() -> Mouth:
    """The provider was asked to speak the answer."""
    mouth = Mouth("svc", lambda: "1")
    mouth.take(ANSWER)
    assert mouth.ask() == ReadAloud(TEXT)
    return mouth


def rejected() -> Mouth:
    """It said nothing."""
    mouth = judging()
    assert mouth.complete("r2") == []
    return mouth


def types(orders: list[Order]) -> list[str]:
    return [order.type.removeprefix("voice.") if isinstance(order, Emit) else type(order).__name__ for order in orders]


@pytest.mark.parametrize(
    ("said", "answer", "so"),
    [
        ("Your disk is at 62 percent.", TEXT, True),
        ("Your disk is fine.", TEXT, False),
        ("I could not find anything about that.", TEXT, False),
        ("It is forty-two.", "42", False),
        ("It is 42.", "42", True),
        ("Yes.", "No.", True),  # nothing to compare by
        ("Yes.", "Fan off.", True),  # nothing either
        ("  ", "No.", False),
        ("磁盘已经用了一半", "磁盘用了百分之六十二", True),
        ("今天天气很好", "磁盘用了百分之六十二", False),
        ("This will be what they have", "this will be what they have", True),  # common words say nothing
    ],
)
def test_what_is_on_script(said: str, answer: str, so: bool) -> None:
    assert on_script(said, answer) is so


def test_held_back_until_it_is_the_answer_then_streamed() -> None:
    way = judging()
    assert way.hear("r2", Held(audio=b"\x00\x00")) == []
    assert way.hear("r2", Held(text="The disk of yours ")) == []
    told = way.hear("r2", Held(text="has 62 percent of its room in use"))
    assert way.state is MouthState.SPEAKING
    assert way.heard_in == "r2"
    assert told == [
        Emit("voice.response.started", SUMMARY),
        EmitAudio(response_id="r2", data=b"\x00\x00", extra={"delivery": "forced_summary"}),
        Emit("voice.response.delta", {"delta": "The disk of yours ", "source": "provider", **SUMMARY}),
        Emit("voice.response.delta", {"delta": "has 62 percent of its room in use", "source": "provider", **SUMMARY}),
    ]
    assert types(way.hear("r2", Held(text="."))) == ["response.delta"]
    assert types(way.audio_done("r2")) == ["output_audio.done"]
    assert types(way.complete("r2")) == ["response.done"]


def test_a_short_one_is_judged_at_its_end() -> None:
    way = judging()
    said = "62 percent of the disk."
    assert len(said) < JUDGED_FROM
    assert way.hear("r2", Held(text=said)) == []
    assert way.state is MouthState.JUDGING
    assert way.audio_done("r2") == []
    assert types(way.complete("r2")) == ["response.started", "response.delta", "output_audio.done", "response.done"]


@pytest.mark.parametrize(("size", "state"), [(39, MouthState.JUDGING), (40, MouthState.SPEAKING)])
def test_from_when_it_is_judged(size: int, state: MouthState) -> None:
    way = judging()
    way.hear("r2", Held(text="62 percent of the disk.".ljust(size)))
    assert way.state is state


def test_sound_without_a_word_counts() -> None:
    way = judging()
    way.hear("r2", Held(audio=b"\x00\x00"))
    told = way.complete("r2")
    assert types(told) == ["response.started", "response.delta", "EmitAudio", "response.done"]
    assert isinstance(told[1], Emit)
    assert told[1].fields["delta"] == TEXT


@pytest.mark.parametrize("said", ["", "I am sorry, what was the question again? I do not know."])
def test_off_script(said: str) -> None:
    way = judging()
    assert way.hear("r2", Held(text=said)) == []
    assert way.complete("r2") == []
    assert way.state is MouthState.REJECTED


@pytest.mark.parametrize("held", [Held(audio=bytes(MAX_HELD)), Held(text="la " * (MAX_TEXT // 3) + "l")])
def test_too_much_of_something_else(held: Held) -> None:
    way = judging()
    assert way.hear("r2", held) == []
    assert way.hear("r2", Held()) == []
    states = [way.state]
    assert way.hear("r2", Held(text="a", audio=b"\0")) == []
    assert [*states, way.state] == [MouthState.JUDGING, MouthState.REJECTED]


def test_the_relay_speaks_it() -> None:
    way = rejected()
    assert way.render() == Render("forced-summary-fallback-1", TEXT)
    kind = {"response_id": "forced-summary-fallback-1", "source": "svc", "delivery": "fallback"}
    piece = EmitAudio(response_id="", data=b"\x00\x00", sample_rate=24_000, label="frames:0-1")
    told = way.rendered_audio(piece)
    assert told[:2] == [
        Emit("voice.response.started", kind),
        Emit("voice.response.delta", {"delta": TEXT, **kind}),
    ]
    assert told[2] == EmitAudio(
        response_id="forced-summary-fallback-1",
        data=b"\x00\x00",
        sample_rate=24_000,
        label="frames:0-1",
        extra={"source": "svc", "delivery": "fallback"},
    )
    assert types(way.rendered_audio(piece)) == ["EmitAudio"]
    assert way.rendered({"metrics": {}}) == [
        Emit("voice.output_audio.done", kind),
        Emit("voice.response.done", {**kind, "final_text": ANSWER.text, "audio_path": "", "metrics": {}}),
    ]


def test_what_nobody_heard_is_shown() -> None:
    shown = ["response.started", "response.delta", "response.done"]
    assert types(judging().give_up()) == shown
    way = rejected()
    way.render()
    told = way.rendered({})
    assert types(told) == shown
    assert isinstance(told[1], Emit)
    assert told[1].fields == {
        "delta": ANSWER.text,
        "response_id": "delivery-fallback-1",
        "source": "svc",
        "delivery": "visual_only",
    }


def test_what_was_heard_in_part_just_ends() -> None:
    way = judging()
    way.hear("r2", Held(text=TEXT))
    kind = {"response_id": "r2", "delivery": "forced_summary"}
    assert way.give_up() == [Emit("voice.output_audio.done", kind), Emit("voice.response.done", kind)]
    way = rejected()
    way.render()
    way.rendered_audio(EmitAudio(response_id="", data=b"\x00\x00"))
    told = way.give_up(cancelled=True)
    assert isinstance(told[1], Emit)
    assert told[1].fields["cancelled"] is True
    assert told[1].fields["delivery"] == "fallback"


def test_the_end_of_its_sound_is_told_once() -> None:
    way = judging()
    way.hear("r2", Held(text=TEXT))
    assert types(way.audio_done("r2")) == ["output_audio.done"]
    assert types(way.give_up()) == ["response.done"]
