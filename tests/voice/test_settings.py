from __future__ import annotations

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.voice.settings import (
    OUTPUT,
    PROMOTION,
    REALTIME,
    OutputSettings,
    Promotion,
    RealtimeSettings,
    Scope,
    choose,
    lenient,
    rules_of,
    whole,
)

FILE_ONLY = rules_of(RealtimeSettings, file_only=True)


def test_the_defaults_are_the_documents() -> None:
    output, realtime = OutputSettings(), RealtimeSettings()
    assert (output.provider, output.model, output.voice, output.sample_rate) == ("xai_tts", "xai-tts", "eve", 24_000)
    assert (output.language, output.codec, output.optimize_streaming_latency) == ("en", "pcm", 1)
    assert (output.enabled, output.fallback_enabled, output.text_normalization) == (True, True, False)
    assert (realtime.provider, realtime.model) == ("xai_realtime", "grok-voice-latest")
    assert realtime.promotion == Promotion()
    assert (realtime.run_retention_days, realtime.debug_audio_tap) == (14, False)


def test_where_it_comes_from() -> None:
    assert Scope().fields() == {"profile": None, "config_scope": "relay", "fallback_to_global": False}
    scope = Scope(config_scope="profile", profile="work", config_path="/p")
    assert scope.fields() == {"profile": "work", "config_scope": "profile", "fallback_to_global": False}


def test_the_names() -> None:
    assert list(OUTPUT) == [
        "enabled",
        "provider",
        "model",
        "voice",
        "sample_rate",
        "language",
        "codec",
        "optimize_streaming_latency",
        "text_normalization",
        "fallback_enabled",
        "auto_speech_tags",
    ]
    assert list(REALTIME) == ["enabled", "provider", "model", "voice", "sample_rate"]
    assert len(PROMOTION) == 8
    assert list(FILE_ONLY) == ["run_retention_days", "debug_audio_tap"]


@pytest.mark.parametrize("value", [True, 1, "1", "true", "YES", " on "])
def test_yes(value: object) -> None:
    assert OUTPUT["enabled"](value, "enabled") is True


@pytest.mark.parametrize("value", [False, 0, "0", "False", "no", "off"])
def test_no(value: object) -> None:
    assert OUTPUT["enabled"](value, "enabled") is False


@pytest.mark.parametrize("value", [2, "", "maybe", 1.0, None, {}])
def test_neither(value: object) -> None:
    with pytest.raises(Refused, match="enabled must be"):
        OUTPUT["enabled"](value, "enabled")


@pytest.mark.parametrize(("name", "longest"), [("model", 160), ("voice", 160), ("language", 24)])
def test_how_long_a_text_may_be(name: str, longest: int) -> None:
    assert OUTPUT[name](" x ", name) == "x"
    assert OUTPUT[name]("x" * longest, name) == "x" * longest
    for wrong in ("x" * (longest + 1), " ", "", "a\n"):
        with pytest.raises(Refused, match=f"1 to {longest} characters"):
            OUTPUT[name](wrong, name)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("sample_rate", 8_000, 96_000),
        ("optimize_streaming_latency", 0, 1),
        ("promote_after_ms", 0, 120_000),
        ("progress_spoken_after_ms", 0, 600_000),
        ("progress_repeat_ms", 0, 600_000),
        ("max_background_runs", 1, 4),
        ("run_retention_days", 0, 36_500),
    ],
)
def test_numbers_and_their_ranges(name: str, low: int, high: int) -> None:
    rules = {**OUTPUT, **PROMOTION, **FILE_ONLY}
    found = [lenient(rules, {name: value}).get(name) for value in (low - 1, low, high, high + 1)]
    assert found == [None, low, high, None]


def test_words_of_a_list_in_any_case() -> None:
    assert OUTPUT["codec"](" PCM ", "codec") == "pcm"


def test_what_of_a_file_can_be_used() -> None:
    found = {"enabled": "no", "voice": "", "sample_rate": "16000", "codec": "ogg", "language": None, "other": 1}
    assert lenient(OUTPUT, found) == {"enabled": False, "sample_rate": 16_000}


# --- what a session picks ---


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
    found = choose(OutputSettings(), body)
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
    assert choose(settings, body).voice == voice


def test_realtime() -> None:
    found = choose(RealtimeSettings(), {"provider": "openai", "language": "de"})
    assert (found.provider, found.model, found.voice) == ("openai_realtime", "gpt-realtime-2.1", "alloy")


def test_a_rate_that_the_other_provider_does_not_have() -> None:
    settings = OutputSettings(sample_rate=22_050)
    assert choose(settings, {"provider": "stub"}).sample_rate == 16_000
    assert choose(settings, {"provider": "stub", "sample_rate": 48_000}).sample_rate == 48_000
    assert choose(settings, {"provider": "elevenlabs"}).sample_rate == 22_050


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
        choose(OutputSettings(), body)
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
    assert getattr(choose(OutputSettings(), {"provider": "stub", name: value}), name) == value


@pytest.mark.parametrize(
    ("value", "number"), [(5, 5), (5.0, 5), ("5", 5), (" 5 ", 5), ("-5", -5), (10, 10), (-10, -10), ("000000007", 7)]
)
def test_whole_numbers(value: object, number: int) -> None:
    assert whole(value, "n", -10, 10) == number


@pytest.mark.parametrize("value", [None, True, 5.5, "x", "", "5.0", "9" * 10, "²", [], 11, -11, float("inf")])
def test_what_is_no_whole_number_in_the_range(value: object) -> None:
    with pytest.raises(Refused, match="n must be"):
        whole(value, "n", -10, 10)
