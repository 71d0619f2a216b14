"""xAI's speech: `/v1/tts`, `/v1/stt`, its voices, `/v1/realtime`."""

from __future__ import annotations

from collections.abc import Iterable

from tests.peers.openai_voice import OpenAiPeer
from tests.peers.realtime import RealtimeScript
from tests.peers.vendor import Reply

__all__ = ["XaiPeer"]


class XaiPeer(OpenAiPeer):
    """The same with paths of its own."""

    paths = ("POST /v1/tts", "POST /v1/stt", "GET /v1/tts/voices", "GET /v1/custom-voices")

    def __init__(self, replies: Iterable[Reply] = (), script: RealtimeScript | None = None) -> None:
        super().__init__(replies, script or RealtimeScript(xai=True))
