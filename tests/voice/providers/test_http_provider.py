from array import array
from typing import Any

import pytest

from svc_proto.voice.provider_interface import RenderResult
from svc_proto.voice.providers import http_provider
from tests.support.servers.realtime_server import OpenAiRealtimeServer
from tests.support.servers.speech_server import Plain, Refusal, Reply, Sound
from tests.voice.providers.provider_harness import ProviderHarness, problem

RAMP = array("h", range(-10_000, 10_000)).tobytes()  # 40,000 bytes, each sample different


def rendered(reply: Reply, **request: Any) -> ProviderHarness:
    studio = ProviderHarness(OpenAiRealtimeServer([reply]))
    studio.render("openai_tts", **request)
    return studio


def test_audio_is_passed_on_as_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_provider, "MAX_SOUND", len(RAMP))
    studio = rendered(Sound(RAMP, piece=9_999, pause=1.0))
    assert studio.sink.pcm == RAMP
    assert {chunk.sample_rate for chunk in studio.sink.chunks} == {24_000}
    assert all(len(chunk.data) % 2 == 0 and len(chunk.data) <= 4_097 for chunk in studio.sink.chunks)
    assert studio.sink.at[-1] - studio.sink.at[0] > 2.5  # chunks are passed on as they arrive
    studio = rendered(Sound(RAMP[:100], piece=1, pause=0.1))
    assert [len(chunk.data) for chunk in studio.sink.chunks] == [2] * 50
    assert studio.sink.pcm == RAMP[:100]


def test_slow_listener_pauses_the_provider() -> None:
    studio = ProviderHarness(peer := OpenAiRealtimeServer([Sound(bytes(2_000_000), piece=4_000)]))
    studio.sink.pause = 0.05
    written: list[int] = []
    studio.sim.after(5.0, lambda: written.append(4_000 * peer.written - len(studio.sink.pcm)))
    studio.render("openai_tts")
    assert len(studio.sink.pcm) == 2_000_000
    assert 0 < written[0] < 700_000  # backpressure: the rest of the two million waits at the vendor


def test_audio_is_resampled() -> None:
    studio = ProviderHarness(OpenAiRealtimeServer([Sound(RAMP)]))
    metadata = {"sample_rate": 48_000, "source_sample_rate": 24_000}
    done = studio.render("openai_tts", sample_rate=48_000)
    assert done == RenderResult(provider="openai_tts", model="gpt-4o-mini-tts", voice="alloy", metadata=metadata)
    assert {chunk.sample_rate for chunk in studio.sink.chunks} == {48_000}
    assert len(studio.sink.pcm) == 2 * len(RAMP) - 4  # without the incomplete sample


@pytest.mark.parametrize("kind", ["audio/pcm;rate=24000", "audio/L16", "application/octet-stream", "", "audio/mpeg"])
def test_pcm_by_many_names(kind: str) -> None:
    assert rendered(Sound(RAMP, kind)).sink.pcm == RAMP


def test_cancelled_listener_disconnects() -> None:
    studio = ProviderHarness(peer := OpenAiRealtimeServer([Sound(bytes(1_000_000))]))

    class Enough(Exception):  # noqa: N818
        pass

    def refuse(chunk: object) -> Any:
        raise Enough

    studio.sink.chunk = refuse  # type: ignore[method-assign]
    with pytest.raises(Enough):
        studio.render("openai_tts")
    assert peer.channels[0].gone


MOVED = "OpenAI answered 302: redirects are not followed, since the key would go along"
FAULTS: list[tuple[Reply, str]] = [
    (Refusal(302, b"", location="http://evil.example/"), MOVED),
    (Refusal(204, b""), "OpenAI answered 204"),
    (Sound(b""), "OpenAI sent no audio"),
    (Sound(b"x"), "OpenAI sent no audio"),
    (Sound(b"\xff", "audio/mpeg"), "OpenAI sent no audio"),
    (Sound(b'{"error": "no"}', "application/json; charset=utf-8"), "OpenAI answered with application/json, not PCM"),
    (Sound(b"sorry", "text/plain"), "OpenAI answered with text/plain, not PCM"),
    (Sound(b"\xff\xe0\x90\x00rest", "audio/mpeg"), "OpenAI answered with audio/mpeg, not PCM"),
    (Sound(b"RIFF....WAVE", "audio/wav"), "OpenAI answered with audio/wav, not PCM"),
    (Sound(b"ID3....", ""), "OpenAI answered with something, not PCM"),
    (Sound(bytes(5_000), breaks=True), "the connection to OpenAI broke off in the middle of its answer"),
    (Sound(bytes(5_000), hangs=True), "OpenAI fell silent in the middle of its answer"),
    (Sound(bytes(5_000), before=61.0), "OpenAI did not answer in time"),
    (Sound(bytes(50_001)), "OpenAI does not come to an end"),
    (Sound(bytes(100), piece=2, pause=50.0), "OpenAI does not come to an end"),
]  # fmt: skip
NO_FILE: list[tuple[Reply, str]] = [
    (Refusal(401), "OpenAI does not accept the configured API key"),
    (Sound(b"", "audio/mpeg"), "OpenAI sent no audio"),
    (Plain({"error": "no"}), "OpenAI answered with application/json, not audio"),
    (Sound(bytes(5_000), "audio/mpeg", hangs=True), "OpenAI did not answer in time"),
    (Sound(bytes(9_000_000), "audio/mpeg", piece=1_000_000), "OpenAI sent more than is taken"),
]
NO_TRANSCRIPT: list[tuple[Reply, str]] = [
    (Refusal(429, {"error": {"message": "Quota"}}), "OpenAI takes no more requests for now (429): Quota"),
    (Plain([1]), "OpenAI answered with something that is no transcript"),
    (Plain({"text": 7}), "OpenAI answered with something that is no transcript"),
    (Sound(b"not JSON", "application/json"), "OpenAI answered with something that is no transcript"),
    (Sound(b"{", "application/json", breaks=True), "OpenAI cannot be reached: "),
    (Plain({"text": "late"}, before=301.0), "OpenAI did not answer in time"),
]


@pytest.mark.parametrize(
    ("work", "reply", "words"),
    [
        *((ProviderHarness.render, *row) for row in FAULTS),
        *((ProviderHarness.speak, *row) for row in NO_FILE),
        *((ProviderHarness.transcribe, *row) for row in NO_TRANSCRIPT),
    ],
)
def test_error_texts(work: Any, reply: Reply, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_provider, "MAX_SOUND", 50_000)
    told = str(problem(lambda: work(ProviderHarness(OpenAiRealtimeServer([reply])), "openai")))
    assert told.startswith(words) if words.endswith(" ") else told == words


def test_unreachable_provider() -> None:
    assert str(problem(lambda: ProviderHarness().render("openai_tts"))).startswith("OpenAI cannot be reached: ")
    wrong = problem(lambda: ProviderHarness(OPENAI_BASE_URL="nonsense").render("openai"))
    assert str(wrong) == "OpenAI does not speak HTTP as it should, or its address is wrong"


def test_too_large_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_provider, "MAX_UPLOAD", 10)
    studio = ProviderHarness(OpenAiRealtimeServer())
    assert str(problem(lambda: studio.transcribe("openai", bytes(11)))) == "the recording cannot be read: too_large"
