from __future__ import annotations

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.voice.fields import FILE_ONLY, OUTPUT, PROMOTION, REALTIME, lenient


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
