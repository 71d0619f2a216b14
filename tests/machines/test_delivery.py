"""An answer on its way to the ear: what counts as the answer, and what is told of it."""

from __future__ import annotations

import pytest

from svc_proto.machines.broker_orders import Emit, EmitAudio, Order, Render
from svc_proto.machines.delivery import JUDGED_FROM, MAX_HELD, MAX_TEXT, Delivery, Held, HeldAnswer, Verdict, on_script

TEXT = "The disk is 62 percent used, and 40 gigabytes are free."
ANSWER = HeldAnswer(call_id="k1", run_id="n1", text=f"# {TEXT}", spoken=TEXT)
SUMMARY = {"response_id": "r2", "delivery": "forced_summary"}


def delivery(answer: HeldAnswer = ANSWER) -> Delivery:
    return Delivery(answer, "svc", lambda: "1")


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
    way = delivery()
    assert way.hear("r2", Held(audio=b"\x00\x00")) == []
    assert way.hear("r2", Held(text="The disk of yours ")) == []
    told = way.hear("r2", Held(text="has 62 percent of its room in use"))
    assert way.verdict is Verdict.ON_SCRIPT
    assert way.speaking == "r2"
    assert told == [
        Emit("voice.response.started", SUMMARY),
        EmitAudio(response_id="r2", data=b"\x00\x00", extra={"delivery": "forced_summary"}),
        Emit("voice.response.delta", {"delta": "The disk of yours ", "source": "provider", **SUMMARY}),
        Emit("voice.response.delta", {"delta": "has 62 percent of its room in use", "source": "provider", **SUMMARY}),
    ]
    assert types(way.hear("r2", Held(text="."))) == ["response.delta"]
    assert types(way.audio_done("r2")) == ["output_audio.done"]
    assert types(way.end("r2")) == ["response.done"]


def test_a_short_one_is_judged_at_its_end() -> None:
    way = delivery()
    said = "62 percent of the disk."
    assert len(said) < JUDGED_FROM
    assert way.hear("r2", Held(text=said)) == []
    assert way.verdict is Verdict.OPEN
    assert way.audio_done("r2") == []
    assert types(way.end("r2")) == ["response.started", "response.delta", "output_audio.done", "response.done"]


@pytest.mark.parametrize(("size", "verdict"), [(39, Verdict.OPEN), (40, Verdict.ON_SCRIPT)])
def test_from_when_it_is_judged(size: int, verdict: Verdict) -> None:
    way = delivery()
    way.hear("r2", Held(text="62 percent of the disk.".ljust(size)))
    assert way.verdict is verdict


def test_sound_without_a_word_counts() -> None:
    way = delivery()
    way.hear("r2", Held(audio=b"\x00\x00"))
    told = way.end("r2")
    assert types(told) == ["response.started", "response.delta", "EmitAudio", "response.done"]
    assert isinstance(told[1], Emit)
    assert told[1].fields["delta"] == TEXT


@pytest.mark.parametrize("said", ["", "I am sorry, what was the question again? I do not know."])
def test_off_script(said: str) -> None:
    way = delivery()
    assert way.hear("r2", Held(text=said)) == []
    assert way.end("r2") == []
    assert way.verdict is Verdict.OFF_SCRIPT


@pytest.mark.parametrize("held", [Held(audio=bytes(MAX_HELD)), Held(text="la " * (MAX_TEXT // 3) + "l")])
def test_too_much_of_something_else(held: Held) -> None:
    way = delivery()
    assert way.hear("r2", held) == []
    assert way.hear("r2", Held()) == []
    verdicts = [way.verdict]
    assert way.hear("r2", Held(text="a", audio=b"\0")) == []
    assert [*verdicts, way.verdict] == [Verdict.OPEN, Verdict.OFF_SCRIPT]


def test_the_relay_speaks_it() -> None:
    way = delivery()
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
    assert types(delivery().give_up()) == shown
    way = delivery()
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
    way = delivery()
    way.hear("r2", Held(text=TEXT))
    kind = {"response_id": "r2", "delivery": "forced_summary"}
    assert way.give_up() == [Emit("voice.output_audio.done", kind), Emit("voice.response.done", kind)]
    way = delivery()
    way.render()
    way.rendered_audio(EmitAudio(response_id="", data=b"\x00\x00"))
    told = way.give_up(cancelled=True)
    assert isinstance(told[1], Emit)
    assert told[1].fields["cancelled"] is True
    assert told[1].fields["delivery"] == "fallback"


def test_the_end_of_its_sound_is_told_once() -> None:
    way = delivery()
    way.hear("r2", Held(text=TEXT))
    assert types(way.audio_done("r2")) == ["output_audio.done"]
    assert types(way.give_up()) == ["response.done"]
