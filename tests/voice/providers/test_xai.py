"""What xAI is asked over HTTP."""

from __future__ import annotations

from tests.peers.vendor import Sound
from tests.peers.xai import XaiPeer
from tests.voice.providers.studio import KEY, Studio

SOUND = bytes(100)
BEARER = f"Bearer {KEY}".encode()


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
