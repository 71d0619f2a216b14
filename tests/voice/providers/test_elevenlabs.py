"""What ElevenLabs is asked over HTTP."""

from __future__ import annotations

from tests.peers.elevenlabs import ElevenLabsPeer
from tests.peers.vendor import Sound
from tests.voice.providers.studio import KEY, Studio

SOUND = bytes(100)


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
