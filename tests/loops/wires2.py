"""HTTP/2 in the hands of a test, as `tests.loops.wires` has HTTP/1.1: requests and a WebSocket on one connection."""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    Event,
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    SocketAccepted,
    SocketClosed,
    StreamId,
    StreamReset,
)
from svc_proto.wire.http2 import Http2Connection
from tests.loops.wires import LAX, PATIENCE, Answer, Declined, PairsIn, Wire, Ws

__all__ = ["Client2", "Ws2"]


class Client2:
    """Requests at the same time on one connection."""

    def __init__(self, wire: Wire, authority: str, entropy: Callable[[int], bytes]) -> None:
        self.wire = wire
        self.conn = Http2Connection(Role.CLIENT, limits=LAX, entropy=entropy)
        self._authority = authority
        self._heard: dict[StreamId, list[Event]] = {}

    def begin(
        self, method: str, path: str, *, headers: PairsIn = None, body: bytes = b"", websocket: bool = False
    ) -> StreamId:
        """Send a request."""
        stream = self.conn.next_stream
        named = {"host": self._authority, **(headers or {})}
        fields = [(key.lower().encode(), value.encode()) for key, value in named.items()]
        if body or method in ("POST", "PATCH"):
            fields.append((b"content-length", b"%d" % len(body)))
        self._heard[stream] = []
        self.conn.send(RequestHead(stream, method, path, Headers(fields), websocket))
        if body:
            self.conn.send(RequestData(stream, body))
        self.conn.send(RequestEnd(stream))
        self.flush()
        return stream

    def ask(
        self, method: str, path: str, *, headers: PairsIn = None, body: bytes = b"", timeout: float = PATIENCE
    ) -> Answer:
        """One request and its answer."""
        return self.finish(self.begin(method, path, headers=headers, body=body), timeout)

    def finish(self, stream: StreamId, timeout: float = PATIENCE) -> Answer:
        """Wait for the answer; ConnectionError when none comes."""
        head: ResponseHead | None = None
        body: list[bytes] = []
        while True:
            match self.next(stream, timeout):
                case ResponseHead() as event:
                    head = event
                case ResponseData(data=data):
                    body.append(data)
                case ResponseEnd():
                    assert head is not None
                    return Answer(head.status, head.headers, b"".join(body))
                case StreamReset(why=why):
                    raise ConnectionError(why)
                case _:
                    pass

    def next(self, stream: StreamId, timeout: float = PATIENCE) -> Event:
        """The next event of a stream."""
        heard = self._heard[stream]
        while not heard:
            if self.wire.eof:
                raise ConnectionError("the connection ended")
            data = self.wire.read_some(timeout)
            self.conn.receive_data(data)
            if not data:
                self.conn.receive_eof()
            self.drain()
        return heard.pop(0)

    def drain(self) -> None:
        """Sort what has come by its stream, and answer what HTTP/2 wants answered."""
        while (event := self.conn.next_event()) is not None:
            if isinstance(event, ResponseData):
                self.conn.taken(event.stream, len(event.data))
            self._heard[event.stream].append(event)
        self.flush()

    def flush(self) -> None:
        """Write what there is to write."""
        data = self.conn.data_to_send()
        if data:
            self.wire.send(data)


class Ws2(Ws):
    """A WebSocket on one stream of a connection."""

    def __init__(self, client: Client2, *, path: str = "/ws", headers: PairsIn = None) -> None:
        self.client = client
        self.wire = client.wire
        self.token = ""
        self._over: SocketClosed | None = None
        self._stream = client.begin("GET", path, headers=headers, websocket=True)
        event = client.next(self._stream)
        if not isinstance(event, SocketAccepted):
            assert isinstance(event, ResponseHead)
            client._heard[self._stream].insert(0, event)
            raise Declined(client.finish(self._stream))
        self.compressed = event.deflate

    def receive(self, timeout: float = PATIENCE) -> Event:
        if self._over is not None:
            return self._over
        event = self.client.next(self._stream, timeout)
        if isinstance(event, SocketClosed):
            self._over = event
        return event

    def _put(self, event: Event) -> None:
        self.client.conn.send(event)
        self.client.flush()
