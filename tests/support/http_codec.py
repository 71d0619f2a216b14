"""Base of the sans-IO HTTP drivers of the tests (`http1_codec`, `http2_client`), and whole responses.

A connection parses bytes (`receive_data`, empty for a FIN) into events (`next_event`), and serializes events (`send`)
into bytes (`data_to_send`). The events are those of `svc_proto.wire.events`.
"""

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from attrs import frozen

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire import events

FIRST = events.StreamId(1)
MAX_HEAD = 256 * 1024  # bytes; the drivers accept more than the product sends
PEER_RESET = "the peer reset the stream"
CONNECTION_CUT = "the connection ended within a message"
UNREAD_REQUEST = "the server did not look at the request before it went away"
Entropy = Callable[[int], bytes]
Fields = Iterable[tuple[bytes, bytes]]


@frozen
class Response:
    status: int
    headers: events.Headers
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Return the member `code` of a JSON error response."""
        code: str = self.json["code"]
        return code


class ResponseReader:
    """Collector of the events of one response; `response` is set when the response is complete."""

    def __init__(self) -> None:
        self.head: events.ResponseHead | None = None
        self.body = bytearray()
        self.response: Response | None = None

    def read(self, event: events.Event) -> None:
        match event:
            case events.ResponseHead():
                self.head = event
            case events.ResponseData(data=data):
                self.body += data
            case events.ResponseEnd() if self.head is not None:
                self.response = Response(self.head.status, self.head.headers, bytes(self.body))
            case _:
                pass


def request_events(
    stream: events.StreamId, method: str, path: str, fields: Fields, body: object = None, *, websocket: bool = False
) -> list[events.Event]:
    """Return the events of a request, or its head alone for a WebSocket.

    A body of bytes is sent unchanged, any other but None as JSON.
    """
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    pairs = [*fields]
    if data or method in ("POST", "PATCH"):
        pairs.append((b"content-length", b"%d" % len(data)))
    head = events.RequestHead(stream, method, path, events.Headers(pairs), websocket)
    if websocket:
        return [head]
    return [head, *([events.RequestData(stream, data)] if data else []), events.RequestEnd(stream)]


class HttpCodec(ABC):
    """HTTP connection without IO, which parses and serializes events."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._events: deque[events.Event] = deque()
        self._problem: RemoteProtocolError | None = None  # raised behind the events
        self._eof = False

    @abstractmethod
    def send(self, event: events.Event) -> None:
        """Queue an event. Raise `LocalProtocolError` if the protocol does not allow it now.

        `Http2Client` checks later what it queues until the server's settings have arrived.
        """

    @abstractmethod
    def receive_data(self, data: bytes) -> None:
        """Parse bytes of the peer; empty for a FIN."""

    @abstractmethod
    def open_stream(self) -> events.StreamId:
        """Return the stream of the next request."""

    def receive_eof(self) -> None:
        self.receive_data(b"")

    def next_event(self) -> events.Event | None:
        """Return the next event, or None if there is none; after the last one, raise a parser's error once."""
        if self._events:
            return self._events.popleft()
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        return None

    def data_to_send(self) -> bytes:
        """Return, once, the queued bytes; over HTTP/2, bodies only as far as the peer's flow-control windows allow."""
        data = bytes(self._out)
        self._out.clear()
        return data

    def consume(self, stream: events.StreamId, n: int) -> None:  # noqa: B027 - HTTP/1.1 has no windows
        """Grant the peer `n` bytes of flow-control window, where the protocol has windows; here do nothing."""


def lower_headers(fields: Iterable[tuple[Any, Any]]) -> events.Headers:
    """Return fields of h11 or h2 with their names in lower case."""
    return events.Headers([(bytes(name).lower(), bytes(value)) for name, value in fields])
