"""xAI's speech: `/v1/tts`, `/v1/stt`, its voices, `/v1/realtime`."""

from __future__ import annotations

from collections.abc import Iterable

from tests.peers.openai_voice import socket_route
from tests.peers.realtime import RealtimeScript
from tests.peers.vendor import Reply, VendorPeer

__all__ = ["XaiPeer"]


class XaiPeer(VendorPeer):
    """`script` is what its realtime sockets play."""

    def __init__(self, replies: Iterable[Reply] = (), script: RealtimeScript | None = None) -> None:
        super().__init__(
            replies,
            (
                self.http("POST", "/v1/tts"),
                self.http("POST", "/v1/stt"),
                self.http("GET", "/v1/tts/voices"),
                self.http("GET", "/v1/custom-voices"),
                socket_route(self, "/v1/realtime"),
            ),
        )
        self.script = script or RealtimeScript(xai=True)
        self.declines = 0
