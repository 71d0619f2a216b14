"""What clients ask for, what is let through to a provider, and what is measured."""

from __future__ import annotations

import pytest

from svc_proto.basics.errors import Refused
from svc_proto.voice.speaking import expression_of, masked, options_of, text_of


def test_text() -> None:
    assert text_of({"text": " a "}) == "a"
    assert text_of({"text": " ", "prompt": "b"}) == "b"
    assert text_of({"text": None}) is None
    assert text_of({"text": "x" * 5001}) == "x" * 5000
    bad: list[dict[str, object]] = [{"text": 1}, {"prompt": []}]
    for wrong in bad:
        with pytest.raises(Refused, match="must be a string"):
            text_of(wrong)


def test_what_of_an_expression_is_passed_on() -> None:
    message: dict[str, object] = {
        "expression": {
            "emotion": "calm",
            "tone": "x" * 2001,
            "pace": None,
            "style": {"a": 1},
            "intensity": 0.5,
            "pronunciation_hints": ["a", "b"],
            "interruption_behavior": ["a"] * 33,
            "persona_instructions": ["a", 1],
            "other": "x",
        }
    }
    assert expression_of(message) == {"emotion": "calm", "intensity": 0.5, "pronunciation_hints": ["a", "b"]}
    assert expression_of({}) == {}
    with pytest.raises(Refused, match="expression must be an object"):
        expression_of({"expression": "calm"})


def test_a_caller_never_says_where_or_with_which_key() -> None:
    evil = dict.fromkeys(("url", "base_url", "extra_headers", "ssl_verify", "api_key", "model", "headers"), "x")
    harmless = {"instructions": "slowly", "speed": 1.2, "use_speaker_boost": True, "seed": 7}
    assert options_of({"provider_options": evil | harmless}) == harmless
    overrides = {"expression": {"provider_overrides": evil | {"speed": 2.0, "style": 0.3}}}
    assert options_of({**overrides, "provider_options": {"speed": 1.0}}) == {"speed": 1.0, "style": 0.3}
    assert options_of({"expression": 7}) == {}
    bad: list[dict[str, object]] = [{"provider_options": []}, {"expression": {"provider_overrides": 1}}]
    for wrong in bad:
        with pytest.raises(Refused, match="must be an object"):
            options_of(wrong)


def test_metadata() -> None:
    told = {"access_token": "x", "Secret": 1, "xi-api-key": "y", "a": "b", "n": 1, "f": 1.5, "t": True, "no": None}
    assert masked({**told, "inf": float("inf"), "list": [1]}) == {
        "access_token": "[redacted]",
        "Secret": "[redacted]",
        "xi-api-key": "[redacted]",
        "a": "b",
        "n": 1,
        "f": 1.5,
        "t": True,
        "no": None,
    }
    assert len(masked({str(number): number for number in range(100)})) == 64
