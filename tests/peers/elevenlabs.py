"""ElevenLabs' speech: streamed and whole, transcripts, voices, models."""

from __future__ import annotations

from collections.abc import Iterable

from tests.peers.vendor import Reply, VendorPeer

__all__ = ["ElevenLabsPeer"]


class ElevenLabsPeer(VendorPeer):
    """The service."""

    def __init__(self, replies: Iterable[Reply] = ()) -> None:
        super().__init__(
            replies,
            (
                self.http("POST", "/v1/text-to-speech/{voice}"),
                self.http("POST", "/v1/text-to-speech/{voice}/stream"),
                self.http("POST", "/v1/speech-to-text"),
                self.http("GET", "/v1/voices"),
                self.http("GET", "/v1/models"),
            ),
        )
