"""A realtime provider without a network: what is said to it is a list, and a test says what it answers."""

from __future__ import annotations

from typing import cast

from svc_proto.engine.client import Fetched
from svc_proto.engine.client_channel import Into
from svc_proto.engine.flow import Flow
from svc_proto.engine.socket import Socket, SocketHandler
from svc_proto.facts import Failure

__all__ = ["Provider"]


class Provider:
    """Takes the place of `fetch` for a WebSocket, and of the `Socket` that it gives."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.headers: tuple[tuple[bytes, bytes], ...] = ()
        self.closed: list[int] = []
        self.pings_every = 0.0
        self.refusal: Failure | Fetched | None = None
        self.handler: SocketHandler

    def fetch(
        self,
        engine: object,
        method: str,
        url: str,
        *,
        into: Into[Socket],
        headers: tuple[tuple[bytes, bytes], ...],
        within: float,
    ) -> Flow[Socket | Fetched | Failure]:
        """See `svc_proto.engine.client`."""
        yield from ()
        if self.refusal is not None:
            return self.refusal
        self.headers, self.handler = headers, cast("SocketHandler", into.handler)
        socket = cast("Socket", self)
        self.handler.on_open(socket)
        return socket

    def send_text(self, text: str) -> bool:
        """Hear something."""
        self.heard.append(text)
        return True

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Be let go of."""
        self.closed.append(code)

    def ping_every(self, seconds: float) -> None:
        """Be pinged."""
        self.pings_every = seconds
