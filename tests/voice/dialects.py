"""A realtime provider without a network: what is said to it is a list, and a test says what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from svc_proto.engine.client import Fetched
from svc_proto.engine.client_channel import Into
from svc_proto.engine.flow import Flow
from svc_proto.engine.socket import Socket, SocketHandler
from svc_proto.facts import Failure
from svc_proto.voice.contract import (
    AudioDelta,
    Message,
    ProviderEvent,
    RealtimeOptions,
    ResponseDone,
    TextDelta,
)

__all__ = ["FakeDialect", "Provider"]


class FakeDialect:
    """It hears `{"do": "audio", "size": 4}` and so on. Implements `Dialect`."""

    url = "wss://provider.example/v1/realtime"
    headers = ((b"authorization", b"Bearer secret"),)

    def __init__(self, options: RealtimeOptions) -> None:
        self.options = options

    def setup(self) -> list[Message]:
        """One message."""
        return [{"say": "setup", "voice": self.options.voice}]

    def append(self, pcm: bytes) -> list[Message]:
        """One message."""
        return [{"say": "append", "size": len(pcm)}]

    def commit(self) -> list[Message]:
        """One message."""
        return [{"say": "commit"}]

    def clear(self) -> list[Message]:
        """One message."""
        return [{"say": "clear"}]

    def say(self, text: str) -> list[Message]:
        """One message."""
        return [{"say": "text", "text": text}]

    def function_output(self, call_id: str, output: str) -> list[Message]:
        """One message."""
        return [{"say": "output", "call_id": call_id, "output": output}]

    def respond(self, instructions: str | None = None) -> list[Message]:
        """One message."""
        return [{"say": "respond"}]

    def read_aloud(self, text: str) -> list[Message]:
        """One message."""
        return [{"say": "read", "text": text}]

    def cancel(self) -> list[Message]:
        """One message."""
        return [{"say": "cancel"}]

    def parse(self, message: Mapping[str, object]) -> tuple[ProviderEvent, ...]:
        """What a test made the provider say."""
        return tuple(_events(message))


def _events(message: Mapping[str, Any]) -> Iterator[ProviderEvent]:
    match message.get("do"):
        case "audio":
            yield from [AudioDelta("r", bytes(message["size"]))] * message.get("times", 1)
        case "text":
            yield TextDelta("r", message["text"])
        case "done":
            yield ResponseDone("r")


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
