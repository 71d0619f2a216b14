"""Scripted speech vendor for tests: one answer for each request over HTTP, in order.

    vendor = ElevenLabsServer([Sound(pcm), Refusal(429, retry_after="7")])
    url = world.peer(vendor)

`seen` are the requests. After the last answer, the vendor answers 500.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar, TypeAlias

from attrs import frozen

from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import Request, Response, StreamedResponse, json_response
from svc_proto.engine.router import Route
from svc_proto.wire.events import Headers
from svc_proto.wire.multipart import MultipartDecoder, PartBegin, PartData
from tests.support.servers.scripted_service import PacedAnswer, ScriptedService, row

BODY_LIMIT = 30 * 1024 * 1024  # bytes


@frozen(kw_only=True)
class SpeechServerRequest:
    """Request as the vendor received it."""

    method: str
    target: str
    headers: Headers
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @classmethod
    def of(cls, request: Request) -> SpeechServerRequest:
        """Return the method, target, header fields and body of a request."""
        query = f"?{request.raw_query}" if request.raw_query else ""
        return cls(method=request.method, target=request.path + query, headers=request.headers, body=request.body)


@frozen
class Sound(PacedAnswer):
    """Scripted answer with a body of audio."""

    data: bytes
    content_type: str = "audio/pcm"
    piece: int = 4_096  # bytes written at once

    @property
    def pieces(self) -> list[bytes]:
        return [self.data[begin : begin + self.piece] for begin in range(0, len(self.data), self.piece)]


@frozen
class Plain:
    """Scripted answer with a JSON body."""

    value: Any
    before: float = 0.0  # s


@frozen
class Refusal:
    """Scripted error response; a `body` of bytes is sent unchanged, any other as JSON."""

    status: int
    body: Any = None
    retry_after: str | None = None
    location: str | None = None


Reply: TypeAlias = "Sound | Plain | Refusal"


class SpeechServer(ScriptedService):
    """Scripted speech service. Each vendor's class has its own `paths`; `sockets` are additional WebSocket routes."""

    paths: ClassVar[tuple[str, ...]]

    def __init__(self, replies: Iterable[Reply] = (), sockets: Iterable[Route] = ()) -> None:
        self.replies = list(replies)
        self.seen: list[SpeechServerRequest] = []
        super().__init__([*map(self._route, self.paths), *sockets])

    def _route(self, path: str) -> Route:
        method, pattern = path.split()
        return row(method, pattern, self._answer, body_limit=BODY_LIMIT)

    # --- answers ---

    def _answer(self, request: Request) -> Flow[Response | StreamedResponse]:
        self.seen.append(SpeechServerRequest.of(request))
        channel = self.channels[-1]
        reply = self.replies.pop(0) if self.replies else Refusal(500, {"error": "the script is over"})
        match reply:
            case Sound():
                yield from sleep(self.engine, reply.before)
                headers = Headers([(b"content-type", reply.content_type.encode())] if reply.content_type else [])
                return StreamedResponse(200, headers, lambda writer: self.write(writer, channel, reply.pieces, reply))
            case Plain(value=value, before=before):
                yield from sleep(self.engine, before)
                return json_response(200, value)
            case Refusal(status=status, body=body, retry_after=retry_after, location=location):
                fields = [(b"content-type", b"application/json")]
                if retry_after is not None:
                    fields.append((b"retry-after", retry_after.encode()))
                if location is not None:
                    fields.append((b"location", location.encode()))
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                return Response(status, Headers(fields), data)


class ElevenLabsServer(SpeechServer):
    """Scripted server of ElevenLabs."""

    paths = (
        "POST /v1/text-to-speech/{voice}",
        "POST /v1/text-to-speech/{voice}/stream",
        "POST /v1/speech-to-text",
        "GET /v1/voices",
        "GET /v1/models",
    )


def form(asked: SpeechServerRequest) -> dict[str, bytes]:
    """Return the parts of a multipart request by name."""
    decoder = MultipartDecoder(asked.headers.get(b"content-type") or b"")
    decoder.receive_data(asked.body)
    decoder.receive_eof()
    parts: dict[str, bytes] = {}
    name = ""
    while (event := decoder.next_event()) is not None:
        if isinstance(event, PartBegin):
            name = event.name
            parts[name] = b""
        elif isinstance(event, PartData):
            parts[name] += event.data
    assert decoder.finished
    return parts
