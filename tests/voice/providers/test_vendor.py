"""Vendors over HTTP: what is asked of them, what comes, and what may go wrong, told in words."""

from __future__ import annotations

import json
from array import array
from typing import Any

import pytest

from svc_proto.voice.providers import vendor
from tests.peers.elevenlabs import ElevenLabsPeer
from tests.peers.openai_voice import OpenAiPeer
from tests.peers.vendor import Plain, Refusal, Reply, Sound, form
from tests.peers.xai import XaiPeer
from tests.voice.providers.studio import KEY, Studio, problem

RAMP = array("h", range(-10_000, 10_000)).tobytes()  # 40,000 bytes, each sample another
SPEAKERS = [("openai_tts", OpenAiPeer), ("xai_tts", XaiPeer), ("elevenlabs_tts", ElevenLabsPeer)]
ALL = pytest.mark.parametrize(("provider", "make"), SPEAKERS)
BEARER = f"Bearer {KEY}".encode()


@ALL
def test_sound_is_passed_on_as_it_comes(provider: str, make: Any) -> None:
    studio = Studio(make([Sound(RAMP, piece=9_999, pause=1.0)]))
    done = studio.render(provider)
    assert studio.sink.pcm == RAMP
    assert done.provider == provider
    assert {chunk.sample_rate for chunk in studio.sink.chunks} == {24_000}
    assert all(len(chunk.data) % 2 == 0 and len(chunk.data) <= 4_097 for chunk in studio.sink.chunks)
    assert studio.sink.at[-1] - studio.sink.at[0] > 2.5  # not saved up


@ALL
def test_a_slow_listener_holds_the_vendor_back(provider: str, make: Any) -> None:
    peer = make([Sound(bytes(2_000_000))])
    studio = Studio(peer)
    studio.sink.pause = 0.05
    written: list[int] = []
    studio.sim.after(5.0, lambda: written.append(peer.written - len(studio.sink.pcm)))
    studio.render(provider)
    assert len(studio.sink.pcm) == 2_000_000
    assert 0 < written[0] < 700_000  # of the two million; the rest waits at the vendor


def test_another_rate_than_the_vendors() -> None:
    studio = Studio(OpenAiPeer([Sound(RAMP)]))
    done = studio.render("openai_tts", sample_rate=48_000)
    assert done.metadata == {"sample_rate": 48_000, "source_sample_rate": 24_000}
    assert {chunk.sample_rate for chunk in studio.sink.chunks} == {48_000}
    assert len(studio.sink.pcm) == 2 * len(RAMP) - 4  # up to the last sample


# --- faults -------------------------------------------------------------------------------------------------------

NAMES = {"openai_tts": "OpenAI", "xai_tts": "xAI", "elevenlabs_tts": "ElevenLabs"}
LEAKY = {"error": {"message": f"Incorrect API key provided: {KEY[:9]}*****{KEY[-4:]}."}}
BUSY = "{} takes no more requests for now (429)"
MOVED = "{} answered 302: redirects are not followed, since the key would go along"
FAULTS: list[tuple[Reply, str]] = [
    (Refusal(401, LEAKY), "{} does not accept the configured API key"),
    (Refusal(403, {"detail": {"status": "x", "message": "Not here"}}), "{} answered 403: Not here"),
    (Refusal(403, LEAKY), "{} answered 403"),
    (Refusal(429, {"error": "Slow"}, retry_after="7"), BUSY + "; try again in 7 seconds: Slow"),
    (Refusal(429, {}, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"), BUSY),
    (Refusal(422, {"detail": [{"msg": "voice_id is unknown"}]}), "{} answered 422: voice_id is unknown"),
    (Refusal(422, {"detail": []}), "{} answered 422"),
    (Refusal(500, {"error": {"error": {"error": {"error": {"error": {"error": {"error": "x"}}}}}}}), "{} answered 500"),
    (Refusal(502, b"<html>Bad gateway</html>"), "{} answered 502"),
    (Refusal(503, b"upstream connect error\nreset"), "{} answered 503: upstream connect error reset"),
    (Refusal(302, b"", location="http://evil.example/"), MOVED),
    (Refusal(204, b""), "{} answered 204"),
    (Sound(b""), "{} sent no audio"),
    (Sound(b"x"), "{} sent no audio"),
    (Sound(b"\xff", "audio/mpeg"), "{} sent no audio"),
    (Sound(b'{"error": "no"}', "application/json; charset=utf-8"), "{} answered with application/json, not PCM"),
    (Sound(b"sorry", "text/plain"), "{} answered with text/plain, not PCM"),
    (Sound(b"\xff\xe0\x90\x00rest", "audio/mpeg"), "{} answered with audio/mpeg, not PCM"),
    (Sound(b"RIFF....WAVE", "audio/wav"), "{} answered with audio/wav, not PCM"),
    (Sound(b"ID3....", ""), "{} answered with something, not PCM"),
    (Sound(bytes(5_000), breaks=True), "the connection to {} broke off in the middle of its answer"),
    (Sound(bytes(5_000), hangs=True), "{} fell silent in the middle of its answer"),
    (Sound(bytes(5_000), before=61.0), "{} did not answer in time"),
]  # fmt: skip


@ALL
@pytest.mark.parametrize(("reply", "words"), FAULTS)
def test_what_goes_wrong_is_told_in_words(provider: str, make: Any, reply: Reply, words: str) -> None:
    studio = Studio(make([reply]))
    assert str(problem(lambda: studio.render(provider))) == words.format(NAMES[provider])


@pytest.mark.parametrize("kind", ["audio/pcm;rate=24000", "audio/L16", "application/octet-stream", "", "audio/mpeg"])
def test_pcm_by_many_names(kind: str) -> None:
    studio = Studio(ElevenLabsPeer([Sound(RAMP, kind)]))
    studio.render("elevenlabs_tts")
    assert studio.sink.pcm == RAMP


def test_a_vendor_that_is_not_there() -> None:
    assert str(problem(lambda: Studio().render("openai_tts"))).startswith("OpenAI cannot be reached: ")
    studio = Studio(OPENAI_BASE_URL="nonsense")
    assert str(problem(lambda: studio.render("openai"))) == (
        "OpenAI does not speak HTTP as it should, or its address is wrong"
    )


def test_sound_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor, "MAX_SOUND", 50_000)
    studio = Studio(OpenAiPeer([Sound(bytes(60_000))]))
    assert str(problem(lambda: studio.render("openai_tts"))) == "OpenAI does not come to an end"
    studio = Studio(OpenAiPeer([Sound(bytes(100), piece=2, pause=50.0)]))
    assert str(problem(lambda: studio.render("openai_tts"))) == "OpenAI does not come to an end"


def test_half_samples_wait_for_their_other_half() -> None:
    studio = Studio(OpenAiPeer([Sound(RAMP[:100], piece=1, pause=0.1)]))
    studio.render("openai_tts")
    assert [len(chunk.data) for chunk in studio.sink.chunks] == [2] * 50
    assert studio.sink.pcm == RAMP[:100]


def test_whoever_stops_listening_hangs_up() -> None:
    peer = OpenAiPeer([Sound(bytes(1_000_000))])
    studio = Studio(peer)

    class Enough(Exception):  # noqa: N818
        pass

    def refuse(chunk: object) -> Any:
        raise Enough

    studio.sink.chunk = refuse  # type: ignore[method-assign]
    with pytest.raises(Enough):
        studio.render("openai_tts")
    assert peer.channels[0].gone


# --- files --------------------------------------------------------------------------------------------------------


@ALL
def test_a_whole_file(provider: str, make: Any) -> None:
    peer = make([Sound(b"\xff\xfbmp3", "audio/mpeg")])
    spoken = Studio(peer).speak(provider)
    assert (spoken.data, spoken.content_type) == (b"\xff\xfbmp3", "audio/mpeg")
    told = peer.seen[0].target + json.dumps(peer.seen[0].json)
    assert "mp3" in told


@ALL
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Refusal(401, LEAKY), "{} does not accept the configured API key"),
        (Sound(b"", "audio/mpeg"), "{} sent no audio"),
        (Plain({"error": "no"}), "{} answered with application/json, not audio"),
        (Sound(bytes(5_000), "audio/mpeg", hangs=True), "{} did not answer in time"),
        (Sound(bytes(9_000_000), "audio/mpeg", piece=1_000_000), "{} sent more than is taken"),
    ],
)
def test_a_file_that_does_not_come(provider: str, make: Any, reply: Reply, words: str) -> None:
    studio = Studio(make([reply]))
    assert str(problem(lambda: studio.speak(provider))) == words.format(NAMES[provider])


# --- transcripts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "make", "target", "fields"),
    [
        ("openai", OpenAiPeer, "/v1/audio/transcriptions", {"model": b"whisper-1", "response_format": b"json"}),
        ("xai", XaiPeer, "/v1/stt", {}),
        ("elevenlabs", ElevenLabsPeer, "/v1/speech-to-text", {"model_id": b"scribe_v1"}),
    ],
)
def test_a_transcript(provider: str, make: Any, target: str, fields: dict[str, bytes]) -> None:
    peer = make([Plain({"text": " turn on the lamp\n", "language": "en"}), Plain({"text": ""})])
    studio = Studio(peer)
    found = studio.transcribe(provider, b"RIFF" + bytes(100_000))
    assert found.text == "turn on the lamp"
    assert found.provider.startswith(provider)
    assert peer.seen[0].target == target
    assert form(peer.seen[0]) == {**fields, "file": b"RIFF" + bytes(100_000)}
    assert studio.transcribe(provider, language="de", model="m").text == ""
    parts = form(peer.seen[1])
    assert b"de" in parts.values()
    assert provider == "xai" or b"m" in parts.values()


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Refusal(429, {"error": {"message": "Quota"}}), "OpenAI takes no more requests for now (429): Quota"),
        (Plain([1]), "OpenAI answered with something that is no transcript"),
        (Plain({"text": 7}), "OpenAI answered with something that is no transcript"),
        (Sound(b"not JSON", "application/json"), "OpenAI answered with something that is no transcript"),
        (Sound(b"{", "application/json", breaks=True), "OpenAI cannot be reached: "),
        (Plain({"text": "late"}, before=301.0), "OpenAI did not answer in time"),
    ],
)
def test_a_transcript_that_does_not_come(reply: Reply, words: str) -> None:
    studio = Studio(OpenAiPeer([reply]))
    assert str(problem(lambda: studio.transcribe("openai"))).startswith(words)


def test_an_upload_that_is_gone_or_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor, "MAX_UPLOAD", 10)
    studio = Studio(OpenAiPeer())
    assert str(problem(lambda: studio.transcribe("openai", bytes(11)))) == "the recording cannot be read: too_large"


# --- ids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["gemini", "", "edge\x00\n", "x" * 500])
def test_providers_that_are_not_built(provider: str) -> None:
    studio = Studio()
    for call in (studio.render, studio.speak, studio.transcribe):
        words = str(problem(lambda call=call: call(provider)))  # type: ignore[misc]
        assert words.endswith("is not built in")
        assert words.isprintable()
        assert len(words) < 200
