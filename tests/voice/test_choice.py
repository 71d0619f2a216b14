from __future__ import annotations

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.voice.choice import choose, whole
from svc_proto.voice.registry import Registry
from svc_proto.voice.settings import OutputSettings, RealtimeSettings

REGISTRY = Registry()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ("xai_tts", "xai-tts", "eve", 24_000, "en")),
        ({"provider": None, "voice": " ", "sample_rate": None}, ("xai_tts", "xai-tts", "eve", 24_000, "en")),
        ({"voice": " rex ", "language": "de"}, ("xai_tts", "xai-tts", "rex", 24_000, "de")),
        ({"provider": "grok", "sample_rate": "16000"}, ("xai_tts", "xai-tts", "eve", 16_000, "en")),
        ({"provider": "stub"}, ("stub", "stub-tone", "sine", 24_000, "en")),
        ({"provider": "stub", "model": "m", "voice": "v"}, ("stub", "m", "v", 24_000, "en")),
    ],
)
def test_speech_output(body: dict[str, object], expected: tuple[object, ...]) -> None:
    found = choose(OutputSettings(), body, REGISTRY)
    assert (found.provider, found.model, found.voice, found.sample_rate, found.language) == expected


@pytest.mark.parametrize(
    ("body", "voice"),
    [
        ({"language": "de_AT"}, "de-AT"),
        ({"provider": "local", "language": "pt-BR"}, "pt-BR"),
        ({"language": "de", "voice": "mb-de5"}, "mb-de5"),
        ({"language": "EN"}, "en-gb"),
        ({"language": "en-US"}, "en-gb"),  # it is English already
        ({"provider": "stub", "language": "de"}, "sine"),
        ({}, "en-gb"),
    ],
)
def test_a_voice_of_this_host_is_a_language(body: dict[str, object], voice: str) -> None:
    settings = OutputSettings(provider="local", model="espeak-ng", voice="en-gb")
    assert choose(settings, body, REGISTRY).voice == voice


def test_realtime() -> None:
    found = choose(RealtimeSettings(), {"provider": "openai", "language": "de"}, REGISTRY)
    assert (found.provider, found.model, found.voice) == ("openai_realtime", "gpt-realtime-2.1", "alloy")


def test_a_rate_that_the_other_provider_does_not_have() -> None:
    settings = OutputSettings(sample_rate=22_050)
    assert choose(settings, {"provider": "stub"}, REGISTRY).sample_rate == 16_000
    assert choose(settings, {"provider": "stub", "sample_rate": 48_000}, REGISTRY).sample_rate == 48_000
    assert choose(settings, {"provider": "elevenlabs"}, REGISTRY).sample_rate == 22_050


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"provider": "nobody"}, "nobody"),
        ({"provider": 5}, "provider"),
        ({"voice": []}, "voice"),
        ({"voice": "a\x07"}, "voice"),
        ({"model": "x" * 161}, "model"),
        ({"language": "x" * 25}, "language"),
        ({"sample_rate": "fast"}, "sample_rate"),
        ({"sample_rate": 7_999}, "sample_rate"),
        ({"sample_rate": 96_001}, "sample_rate"),
    ],
)
def test_what_nobody_can_choose(body: dict[str, object], word: str) -> None:
    with pytest.raises(Refused, match=word) as caught:
        choose(OutputSettings(), body, REGISTRY)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model", "x" * 160),
        ("voice", "x" * 160),
        ("language", "x" * 24),
        ("sample_rate", 8_000),
        ("sample_rate", 96_000),
    ],
)
def test_the_most_that_can_be_chosen(name: str, value: object) -> None:
    assert getattr(choose(OutputSettings(), {"provider": "stub", name: value}, REGISTRY), name) == value


@pytest.mark.parametrize(
    ("value", "number"), [(5, 5), (5.0, 5), ("5", 5), (" 5 ", 5), ("-5", -5), (10, 10), (-10, -10), ("000000007", 7)]
)
def test_whole_numbers(value: object, number: int) -> None:
    assert whole(value, "n", -10, 10) == number


@pytest.mark.parametrize("value", [None, True, 5.5, "x", "", "5.0", "9" * 10, "²", [], 11, -11, float("inf")])
def test_what_is_no_whole_number_in_the_range(value: object) -> None:
    with pytest.raises(Refused, match="n must be"):
        whole(value, "n", -10, 10)
