from typing import Any

import pytest

from tests.support.servers.realtime_server import OpenAiRealtimeServer, XaiRealtimeServer
from tests.support.servers.speech_server import ElevenLabsServer, Plain, Sound, SpeechServer, SpeechServerRequest, form
from tests.voice.providers.provider_harness import KEY, ProviderHarness, problem
from tests.voice.table_rows import rows

SPEECH = """
openai -> {text: Read this., expression: {emotion: calm, pace: slow}, options: {speed: 9}} -> /v1/audio/speech
    -> {model: gpt-4o-mini-tts, voice: alloy, input: Read this., response_format: pcm, speed: 4.0,
        instructions: "Emotion: calm. Pace: slow."}
openai_tts -> {model: tts-1, voice: nova, expression: {tone: warm}, options: {speed: fast}} -> /v1/audio/speech
    -> {model: tts-1, voice: nova, input: Hello., response_format: pcm}
deepinfra -> {expression: {emotion: calm}} -> /v1/audio/speech
    -> {model: hexgrad/Kokoro-82M, voice: af_bella, input: Hello., response_format: pcm}
xai_tts -> {sample_rate: 16000, language: de, voice: leo, options: {optimize_streaming_latency: 1,
        text_normalization: true}} -> /v1/tts
    -> {text: Hello., voice_id: leo, language: de, output_format: {codec: pcm, sample_rate: 16000},
        optimize_streaming_latency: 1, text_normalization: true}
grok -> {sample_rate: 24001, options: {text_normalization: "yes", url: "http://evil.example"}} -> /v1/tts
    -> {text: Hello., voice_id: eve, language: en, output_format: {codec: pcm, sample_rate: 24000}}
elevenlabs -> {voice: "a/../b?c", options: {stability: 0.3, speed: 5, style: true}}
    -> /v1/text-to-speech/a%2F..%2Fb%3Fc/stream?output_format=pcm_24000
    -> {text: Hello., model_id: eleven_flash_v2_5, voice_settings: {stability: 0.3, speed: 1.2}}
elevenlabs_tts -> {model: m, sample_rate: 44100}
    -> /v1/text-to-speech/21m00Tcm4TlvDq8ikWAM/stream?output_format=pcm_44100 -> {text: Hello., model_id: m}
"""
FILES = """
openai -> {voice: nova} -> /v1/audio/speech
    -> {model: gpt-4o-mini-tts, voice: nova, input: Hello., response_format: mp3}
deepinfra -> {voice: am_adam} -> /v1/audio/speech
    -> {model: hexgrad/Kokoro-82M, voice: am_adam, input: Hello., response_format: mp3}
xai -> {} -> /v1/tts -> {text: Hello., voice_id: eve, language: en, output_format: {codec: mp3, sample_rate: 24000}}
elevenlabs -> {} -> /v1/text-to-speech/21m00Tcm4TlvDq8ikWAM?output_format=mp3_44100_128
    -> {text: Hello., model_id: eleven_flash_v2_5}
"""
RECORDINGS = """
openai -> {} -> /v1/audio/transcriptions -> {model: whisper-1, response_format: json}
openai -> {model: m, language: de} -> /v1/audio/transcriptions -> {model: m, response_format: json, language: de}
groq -> {} -> /v1/audio/transcriptions -> {model: whisper-large-v3-turbo, response_format: json}
mistral -> {} -> /v1/audio/transcriptions -> {model: voxtral-mini-latest, response_format: json}
DeepInfra -> {} -> /v1/audio/transcriptions -> {model: openai/whisper-large-v3-turbo, response_format: json}
xai -> {} -> /v1/stt -> {}
xai -> {model: m, language: de} -> /v1/stt -> {language: de}
elevenlabs -> {} -> /v1/speech-to-text -> {model_id: scribe_v1}
elevenlabs -> {model: m, language: de} -> /v1/speech-to-text -> {model_id: m, language_code: de}
"""


def endpoint(provider: str, reply: Any) -> SpeechServer:
    """Return a scripted server with the provider's API, which gives this answer."""
    for word, make in (("xai", XaiRealtimeServer), ("grok", XaiRealtimeServer), ("elevenlabs", ElevenLabsServer)):
        if provider.startswith(word):
            return make([reply])
    return OpenAiRealtimeServer([reply])


def asked_of(peer: SpeechServer, target: str) -> SpeechServerRequest:
    """Return the one request, which must be a POST to `target` with the key in the header of its vendor."""
    (asked,) = peer.seen
    assert (asked.method, asked.target) == ("POST", target)
    keys = [asked.headers.get(name) for name in (b"authorization", b"xi-api-key")]
    assert keys == ([None, KEY.encode()] if isinstance(peer, ElevenLabsServer) else [f"Bearer {KEY}".encode(), None])
    return asked


@pytest.mark.parametrize(("provider", "how", "target", "body"), rows(SPEECH))
def test_speech(provider: str, how: dict[str, Any], target: str, body: dict[str, Any]) -> None:
    peer = endpoint(provider, Sound(bytes(100)))
    ProviderHarness(peer).render(provider, **how)
    assert asked_of(peer, target).json == body


@pytest.mark.parametrize(("provider", "how", "target", "body"), rows(FILES))
def test_a_file(provider: str, how: dict[str, Any], target: str, body: dict[str, Any]) -> None:
    peer = endpoint(provider, Sound(b"\xff\xfbmp3", "audio/mpeg"))
    spoken = ProviderHarness(peer).speak(provider, **how)
    assert (spoken.data, spoken.content_type) == (b"\xff\xfbmp3", "audio/mpeg")
    assert asked_of(peer, target).json == body


@pytest.mark.parametrize(("provider", "how", "target", "fields"), rows(RECORDINGS))
def test_a_recording(provider: str, how: dict[str, Any], target: str, fields: dict[str, str]) -> None:
    peer = endpoint(provider, Plain({"text": " turn on the lamp\n", "language": "en"}))
    found = ProviderHarness(peer).transcribe(provider, b"RIFF" + bytes(100_000), **how)
    assert found == "turn on the lamp"
    sent = form(asked_of(peer, target))
    assert sent.pop("file") == b"RIFF" + bytes(100_000)
    assert {name: value.decode() for name, value in sent.items()} == fields


@pytest.mark.parametrize("provider", ["groq", "mistral", "groq_tts"])
def test_providers_for_transcription_only(provider: str) -> None:
    words = f"the text to speech provider '{provider}' is not built in"
    assert (
        str(problem(lambda: ProviderHarness().render(provider)))
        == str(problem(lambda: ProviderHarness().speak(provider)))
        == words
    )
