from array import array
from itertools import pairwise

import pytest

from svc_proto.voice.provider_interface import RenderResult
from svc_proto.voice.providers import stub
from tests.voice.providers.provider_harness import ProviderHarness, problem


def rendered(text: str = "Hello.", **request: object) -> tuple[ProviderHarness, RenderResult]:
    studio = ProviderHarness()
    return studio, studio.render("stub", text, **request)


def test_the_tone_is_a_sine_on_any_host(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = array("h", rendered()[0].sink.pcm)
    assert (samples[0], max(samples), min(samples)) == (0, 8_000, -8_000)
    crossings = sum(before < 0 <= after for before, after in pairwise(samples))
    assert abs(crossings - 440 * 0.25) <= 1
    monkeypatch.setattr(stub, "_SWAPPED", True)  # a host with the other byte order
    swapped = array("h", rendered()[0].sink.pcm)
    swapped.byteswap()
    assert swapped == samples


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 0.25), ("x" * 30, 0.25), ("x" * 60, 0.5), ("  " + "x" * 90, 0.75), ("x" * 5_000, 1.5)]
)
def test_length_follows_the_text(text: str, seconds: float) -> None:
    studio, done = rendered(text)
    assert len(studio.sink.pcm) == 48_000 * seconds
    assert done.metadata["duration_seconds"] == seconds


@pytest.mark.parametrize(
    ("emotion", "frequency"),
    [("urgent", 660), ("Playful", 660), ("calm", 330), ("warm", 330), ("bored", 440), (7, 440), (None, 440)],
)
def test_pitch_follows_the_emotion(emotion: object, frequency: int) -> None:
    assert rendered(expression={"emotion": emotion})[1].metadata["frequency_hz"] == frequency


def test_indivisible_frames_make_a_ninth_chunk() -> None:
    studio, _ = rendered("x" * 31, sample_rate=16_000)  # 4,133 frames
    assert [len(chunk.data) // 2 for chunk in studio.sink.chunks] == [516] * 8 + [5]
    assert studio.sink.chunks[-1].label == "frames:4128-4133"


@pytest.mark.parametrize(("rate", "beyond"), [(8_000, 7_999), (96_000, 96_001)])
def test_any_rate_of_the_settings(rate: int, beyond: int) -> None:
    assert {chunk.sample_rate for chunk in rendered(sample_rate=rate)[0].sink.chunks} == {rate}
    assert "sample rate" in str(problem(lambda: rendered(sample_rate=beyond)))
