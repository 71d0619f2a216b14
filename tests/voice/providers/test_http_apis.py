from typing import Any

import pytest

from tests.support.servers.realtime_server import OpenAiRealtimeServer, XaiRealtimeServer
from tests.support.servers.speech_server import ElevenLabsServer, Plain, Sound, SpeechServer, SpeechServerRequest, form
from tests.voice.providers.provider_harness import KEY, ProviderHarness, problem
from tests.voice.table_rows import read_tables

TABLES = read_tables("providers/http_apis")


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


@pytest.mark.parametrize(("provider", "how", "target", "body"), TABLES["speech"])
def test_speech(provider: str, how: dict[str, Any], target: str, body: dict[str, Any]) -> None:
    peer = endpoint(provider, Sound(bytes(100)))
    ProviderHarness(peer).render(provider, **how)
    assert asked_of(peer, target).json == body


@pytest.mark.parametrize(("provider", "how", "target", "body"), TABLES["files"])
def test_a_file(provider: str, how: dict[str, Any], target: str, body: dict[str, Any]) -> None:
    peer = endpoint(provider, Sound(b"\xff\xfbmp3", "audio/mpeg"))
    spoken = ProviderHarness(peer).speak(provider, **how)
    assert (spoken.data, spoken.content_type) == (b"\xff\xfbmp3", "audio/mpeg")
    assert asked_of(peer, target).json == body


@pytest.mark.parametrize(("provider", "how", "target", "fields"), TABLES["recordings"])
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
