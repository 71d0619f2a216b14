"""What the vendors are asked over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.peers.elevenlabs import ElevenLabsPeer
from tests.peers.openai_voice import OpenAiPeer
from tests.peers.vendor import Plain, Sound, form
from tests.peers.xai import XaiPeer
from tests.voice.providers.studio import KEY, Studio, problem

SOUND = bytes(100)
BEARER = f"Bearer {KEY}".encode()


def test_what_openai_is_asked() -> None:
    peer = OpenAiPeer([Sound(SOUND), Sound(SOUND)])
    studio = Studio(peer)
    done = studio.render("openai", "Read this.", expression={"emotion": "calm", "pace": "slow"}, options={"speed": 9})
    assert (done.model, done.voice) == ("gpt-4o-mini-tts", "alloy")
    studio.render("openai_tts", model="tts-1", voice="nova", expression={"tone": "warm"}, options={"speed": "fast"})
    first, second = peer.seen
    assert (first.method, first.target) == ("POST", "/v1/audio/speech")
    assert first.headers.get(b"authorization") == BEARER
    assert first.json == {
        "model": "gpt-4o-mini-tts",
        "voice": "alloy",
        "input": "Read this.",
        "response_format": "pcm",
        "instructions": "Emotion: calm. Pace: slow.",
        "speed": 4.0,
    }
    assert second.json == {"model": "tts-1", "voice": "nova", "input": "Hello.", "response_format": "pcm"}


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("groq", "whisper-large-v3-turbo"),
        ("mistral", "voxtral-mini-latest"),
        ("DeepInfra", "openai/whisper-large-v3-turbo"),
    ],
)
def test_who_listens_as_openai_does(provider: str, model: str) -> None:
    name = provider.upper()
    studio = Studio(peer := OpenAiPeer([Plain({"text": "Turn it on."}), Plain({"text": "Ja."})]), **at(name))
    assert studio.transcribe(provider).text == "Turn it on."
    heard = studio.transcribe(provider, model="other", language="de")
    assert (heard.text, heard.provider) == ("Ja.", provider.lower())
    first, second = peer.seen
    assert first.target == second.target == "/v1/audio/transcriptions"
    assert first.headers.get(b"authorization") == BEARER
    sent, other = form(first), form(second)
    assert sent.pop("file") == other.pop("file") == b"RIFFsound"
    assert sent == {"model": model.encode(), "response_format": b"json"}
    assert other == {"model": b"other", "response_format": b"json", "language": b"de"}
    missing = problem(lambda: Studio().transcribe(provider))
    assert (str(missing), missing.variable) == (f"{name}_API_KEY not set", f"{name}_API_KEY")


def test_deepinfra_speaks_too() -> None:
    studio = Studio(peer := OpenAiPeer([Sound(SOUND), Sound(SOUND)]), **at("DEEPINFRA"))
    done = studio.render("deepinfra", expression={"emotion": "calm"})
    assert (done.provider, done.model, done.voice) == ("deepinfra", "hexgrad/Kokoro-82M", "af_bella")
    assert studio.speak("deepinfra", voice="am_adam").content_type == "audio/mpeg"
    assert [asked.json["response_format"] for asked in peer.seen] == ["pcm", "mp3"]
    assert [asked.json["voice"] for asked in peer.seen] == ["af_bella", "am_adam"]
    assert "instructions" not in peer.seen[0].json


@pytest.mark.parametrize("provider", ["groq", "mistral", "groq_tts"])
def test_who_only_listens(provider: str) -> None:
    words = f"the text to speech provider '{provider}' is not built in"
    keys = at(provider.removesuffix("_tts").upper())
    assert str(problem(lambda: Studio(None, **keys).render(provider))) == words
    assert str(problem(lambda: Studio(None, **keys).speak(provider))) == words


def at(name: str) -> dict[str, Any]:
    return {f"{name}_API_KEY": KEY, f"{name}_BASE_URL": "http://vendor:9000/v1"}


def test_what_xai_is_asked() -> None:
    peer = XaiPeer([Sound(SOUND), Sound(SOUND)])
    studio = Studio(peer)
    options = {"optimize_streaming_latency": 1, "text_normalization": True}
    studio.render("xai_tts", sample_rate=16_000, language="de", voice="leo", options=options)
    studio.render("grok", sample_rate=24_001, options={"text_normalization": "yes", "url": "http://evil.example"})
    first, second = peer.seen
    assert (first.method, first.target) == ("POST", "/v1/tts")
    assert first.headers.get(b"authorization") == BEARER
    assert first.json == {
        "text": "Hello.",
        "voice_id": "leo",
        "language": "de",
        "output_format": {"codec": "pcm", "sample_rate": 16_000},
        "optimize_streaming_latency": 1,
        "text_normalization": True,
    }
    assert second.json == {
        "text": "Hello.",
        "voice_id": "eve",
        "language": "en",
        "output_format": {"codec": "pcm", "sample_rate": 24_000},
    }


def test_what_elevenlabs_is_asked() -> None:
    peer = ElevenLabsPeer([Sound(SOUND), Sound(SOUND)])
    studio = Studio(peer)
    studio.render("elevenlabs", voice="a/../b?c", options={"stability": 0.3, "speed": 5, "style": True})
    studio.render("elevenlabs", model="m", sample_rate=44_100)
    first, second = peer.seen
    assert first.target == "/v1/text-to-speech/a%2F..%2Fb%3Fc/stream?output_format=pcm_24000"
    assert first.headers.get(b"xi-api-key") == KEY.encode()
    assert first.headers.get(b"authorization") is None
    assert first.json == {
        "text": "Hello.",
        "model_id": "eleven_flash_v2_5",
        "voice_settings": {"stability": 0.3, "speed": 1.2},
    }
    assert second.target == "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM/stream?output_format=pcm_44100"
    assert second.json == {"text": "Hello.", "model_id": "m"}
