"""What OpenAI is asked over HTTP."""

from __future__ import annotations

from tests.peers.openai_voice import OpenAiPeer
from tests.peers.vendor import Sound
from tests.voice.providers.studio import KEY, Studio

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
