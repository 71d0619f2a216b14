import pytest

from svc_proto.basics.errors import Refused
from svc_proto.voice.provider_interface import RenderResult
from svc_proto.voice.speak_request import (
    SpeechMetrics,
    mask_secrets,
    parse_audio,
    parse_expression,
    parse_options,
    parse_text,
)

DONE = RenderResult(provider="stub", model="m", voice="v")


def test_text_and_audio() -> None:
    assert parse_text({"text": " a "}) == "a"
    assert parse_text({"text": " ", "prompt": "b"}) == "b"
    assert parse_text({"text": None}) is None
    assert parse_text({"text": "x" * 5001}) == "x" * 5000
    for name, value in (("text", 1), ("prompt", [])):
        with pytest.raises(Refused, match="must be a string"):
            parse_text({name: value})
    assert parse_audio({"audio_base64": "AAAA\r\nAA==\n"}) == b"\0\0\0\0"
    for wrong in ("A", "AA?AA", "\u00fc"):
        with pytest.raises(Refused, match="audio_base64"):
            parse_audio({"audio_base64": wrong})


def test_passed_on_members_of_an_expression() -> None:
    good = {"emotion": "calm", "intensity": 0.5, "pronunciation_hints": ["a", "b"]}
    bad = {"pace": None, "style": {"a": 1}, "persona_instructions": ["a", 1], "other": "x"}
    assert parse_expression({"expression": good | bad}) == good
    assert parse_expression({}) == {}
    with pytest.raises(Refused, match="expression must be an object"):
        parse_expression({"expression": "calm"})


@pytest.mark.parametrize(
    ("largest", "one_more"), [("x" * 2000, "x" * 2001), (["a"] * 32, ["a"] * 33), (["x" * 2000], ["x" * 2001])]
)
def test_length_limit_of_an_expression_member(largest: object, one_more: object) -> None:
    assert parse_expression({"expression": {"emotion": largest}}) == {"emotion": largest}
    assert parse_expression({"expression": {"emotion": one_more}}) == {}


def test_caller_cannot_choose_url_or_key() -> None:
    evil = dict.fromkeys(("url", "base_url", "extra_headers", "ssl_verify", "api_key", "model", "headers"), "x")
    harmless = {"instructions": "slowly", "speed": 1.2, "use_speaker_boost": True, "seed": 7}
    assert parse_options({"provider_options": evil | harmless}) == harmless
    overrides = {"expression": {"provider_overrides": evil | {"speed": 2.0, "style": 0.3}}}
    assert parse_options({**overrides, "provider_options": {"speed": 1.0}}) == {"speed": 1.0, "style": 0.3}
    assert parse_options({"expression": 7}) == {}
    bad: list[dict[str, object]] = [{"provider_options": []}, {"expression": {"provider_overrides": 1}}]
    for wrong in bad:
        with pytest.raises(Refused, match="must be an object"):
            parse_options(wrong)


def test_audio_timing_metrics() -> None:
    metrics = SpeechMetrics(10.0)
    silent = metrics.report(DONE, now=10.5)
    assert (silent["first_audio_ms"], silent["audio_chunk_gap_ms"], silent["response_done_ms"]) == (None, 0, 500)
    for now in (11.0, 11.25, 13.0, 15.0, 15.5):  # each chunk lasts a second; the third arrives just in time
        metrics.piece(48_000, 24_000, now)
    told = metrics.report(DONE, now=16.0)
    names = ("first_audio_ms", "audio_chunk_gap_ms", "audio_underruns", "response_done_ms")
    assert [told[name] for name in names] == [1000, 2000, 1, 6000]
    with pytest.raises(TypeError):
        SpeechMetrics(10.0, 11.0)  # type: ignore[call-arg] # the measured values are omitted


def test_metadata() -> None:
    told = {"access_token": "x", "Secret": 1, "xi-api-key": "y", "a": "b", "n": 1, "f": 1.5, "t": True, "no": None}
    hidden = dict.fromkeys(("access_token", "Secret", "xi-api-key"), "[redacted]")
    assert mask_secrets({**told, "inf": float("inf"), "list": [1]}) == {**told, **hidden}
    assert len(mask_secrets({str(number): number for number in range(100)})) == 64
