"""The HTTP driver on blocking connections: `ByteConnection` has bytes, `HttpClient` requests, `WebSocketTestClient` a
WebSocket.

`ByteConnection` is implemented for sockets and for the simulated network. Tests about bytes use it with
`tests.loops.raw_http`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from svc_proto.wire.events import (
    BinaryMessage,
    CloseWebSocket,
    Event,
    Ping,
    Pong,
    ResponseData,
    StreamId,
    StreamReset,
    TextMessage,
    WebSocketAccepted,
    WebSocketClosed,
)
from tests.support.http_client import Response, ResponseReader, new_client, request_events

PATIENCE = 30.0  # s, for anything that should happen at once, on a machine that may be busy
PairsIn = Mapping[str, str] | None


class ByteConnection(ABC):
    """One TCP or TLS connection from a peer to the relay."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.eof = False  # the FIN was read
        self.reset = False  # or the connection broke

    # --- the world's part ---

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Write all of it; what comes meanwhile is kept. Data for a connection that is gone is lost, as with TCP."""

    @abstractmethod
    def _more(self, timeout: float) -> bytes:
        """Wait for bytes; empty for a FIN. ConnectionError when the connection broke, TimeoutError."""

    @abstractmethod
    def close_write(self) -> None:
        """Send FIN."""

    @abstractmethod
    def abort(self) -> None:
        """Send RST."""

    @abstractmethod
    def close(self) -> None:
        """Leave it in whatever way; harmless when it is gone."""

    @abstractmethod
    def pause(self) -> None:
        """Take nothing from the network until the next read."""

    # --- reading ---

    def read_some(self, timeout: float = PATIENCE) -> bytes:
        """What there is, at least one byte; empty at the end. TimeoutError; ConnectionError after a reset."""
        if not self._buffer:
            self._fill(timeout)
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def read_until(self, mark: bytes, timeout: float = PATIENCE) -> bytes:
        """Everything up to and with `mark`; EOFError when the end comes before."""
        while (at := self._buffer.find(mark)) < 0:
            if not self._fill(timeout):
                raise EOFError(f"the end came after {bytes(self._buffer)!r:.300}")
        return self._read(at + len(mark))

    def read_exactly(self, n: int, timeout: float = PATIENCE) -> bytes:
        """`n` bytes; EOFError when the end comes before."""
        while len(self._buffer) < n:
            if not self._fill(timeout):
                raise EOFError(f"the end came after {len(self._buffer)} of {n} bytes")
        return self._read(n)

    def read_all(self, timeout: float = PATIENCE) -> bytes:
        """Everything up to the end, whichever way it comes."""
        try:
            while self._fill(timeout):
                pass
        except ConnectionError:
            pass
        return self._read(len(self._buffer))

    def _fill(self, timeout: float) -> bool:
        if self.reset:
            raise ConnectionResetError("the connection broke")
        if self.eof:
            return False
        try:
            data = self._more(timeout)
        except ConnectionError:
            self.reset = True
            raise
        self._buffer += data
        self.eof = not data
        return bool(data)

    def _read(self, n: int) -> bytes:
        data = bytes(self._buffer[:n])
        del self._buffer[:n]
        return data


class HttpClient:
    """Requests on one connection, one after another, or beside each other over HTTP/2; with `deflate`, for sockets."""

    def __init__(
        self,
        wire: ByteConnection,
        authority: str,
        entropy: Callable[[int], bytes],
        *,
        http2: bool = False,
        deflate: bool = True,
    ) -> None:
        self.wire = wire
        self.conn = new_client(entropy, http2=http2, deflate=deflate)
        self._authority = authority
        self._asked: dict[StreamId, PendingResponse] = {}

    def request(
        self, method: str, path: str, body: object = None, *, headers: PairsIn = None, timeout: float = PATIENCE
    ) -> Response:
        """One request and its answer."""
        return self.begin(method, path, body, headers=headers).finish(timeout)

    def ask_once(
        self, method: str, path: str, body: object = None, *, headers: PairsIn = None, timeout: float = PATIENCE
    ) -> Response:
        """The same, and the connection is closed."""
        answer = self.request(method, path, body, headers=headers, timeout=timeout)
        self.wire.close()
        return answer

    def begin(
        self, method: str, path: str, body: object = None, *, headers: PairsIn = None, websocket: bool = False
    ) -> PendingResponse:
        """Send a request. A body of bytes is sent as it is, any other as JSON."""
        stream = self.conn.open_stream()
        asked = self._asked[stream] = PendingResponse(self, stream)
        named = {"host": self._authority, **(headers or {})}
        fields = [(key.lower().encode(), value.encode()) for key, value in named.items()]
        for event in request_events(stream, method, path, fields, body, websocket=websocket):
            self.conn.send(event)
        self.flush()
        return asked

    def read(self, timeout: float = PATIENCE) -> bool:
        """Wait for bytes, and give each request what is its own; False at the end. ConnectionError after a reset."""
        data = self.wire.read_some(timeout)
        self.conn.receive_data(data)
        while (event := self.conn.next_event()) is not None:
            if isinstance(event, ResponseData):
                self.conn.consume(event.stream, len(event.data))
            self._asked[event.stream].heard.append(event)
        self.flush()
        return bool(data)

    def flush(self) -> None:
        """Write what there is to write."""
        data = self.conn.data_to_send()
        if data:
            self.wire.send(data)


class PendingResponse:
    """A request that was sent; `heard` is what came of it and was not looked at yet."""

    def __init__(self, client: HttpClient, stream: StreamId) -> None:
        self.wire = client.wire
        self.client = client
        self.stream = stream
        self.heard: deque[Event] = deque()

    def next(self, timeout: float = PATIENCE) -> Event:
        """The next event; ConnectionError when none comes."""
        while not self.heard:
            if not self.client.read(timeout) and not self.heard:
                raise ConnectionError("the connection ended")
        return self.heard.popleft()

    def some(self) -> PendingResponse:
        """Wait for a part of the answer, which `finish` gives as well."""
        self.client.read()
        return self

    def finish(self, timeout: float = PATIENCE) -> Response:
        """Wait for the answer; ConnectionError when none comes."""
        reader = ResponseReader()
        while reader.response is None:
            event = self.next(timeout)
            if isinstance(event, StreamReset):
                raise ConnectionError(event.why)
            reader.read(event)
        return reader.response


class Declined(Exception):  # noqa: N818 - the name says what happened
    """The relay answered the handshake of a WebSocket with something else."""

    def __init__(self, answer: Response) -> None:
        super().__init__(f"{answer.status} {answer.body!r:.200}")
        self.answer = answer


class WebSocketTestClient:
    """A WebSocket, by itself on a connection of HTTP/1.1 or beside others over HTTP/2; `Declined` if it is none.

    `compressed` tells whether permessage-deflate was agreed.
    """

    def __init__(self, client: HttpClient, *, path: str = "/ws", headers: PairsIn = None) -> None:
        self.wire = client.wire
        self.token = ""
        self._client = client
        self._over: WebSocketClosed | None = None
        self._asked = client.begin("GET", path, headers=headers, websocket=True)
        event = self._asked.next()
        if not isinstance(event, WebSocketAccepted):
            self._asked.heard.appendleft(event)
            raise Declined(self._asked.finish())
        self.compressed = event.deflate
        self._stream = self._asked.stream

    # --- sending ---

    def send_text(self, text: str) -> None:
        self._send_event(TextMessage(self._stream, text))

    def send_binary(self, data: bytes) -> None:
        self._send_event(BinaryMessage(self._stream, data))

    def ping(self, payload: bytes = b"") -> None:
        self._send_event(Ping(self._stream, payload))

    def send_envelope(self, channel: str, kind: str, payload: object = None, identity: str = "i") -> None:
        """Send an envelope."""
        self.send_text(json.dumps({"channel": channel, "type": kind, "id": identity, "payload": payload or {}}))

    def sign_in(self, **payload: object) -> dict[str, Any]:
        """Send `system/auth`; the envelope that answers it."""
        self.send_envelope("system", "auth", payload, "auth-1")
        message = self.receive_message()
        if message["type"] == "auth.ok":
            self.token = message["payload"]["session_token"]
        return message

    # --- receiving ---

    def receive(self, timeout: float = PATIENCE) -> Event:
        """The next message, ping, pong, or `WebSocketClosed`, which is repeated."""
        if self._over is not None:
            return self._over
        try:
            event = self._asked.next(timeout)
        except ConnectionError as error:
            event = WebSocketClosed(self._stream, 1006, str(error), clean=False)
        if isinstance(event, WebSocketClosed):
            self._over = event
        return event

    def receive_message(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """The next text message, parsed; pings and pongs are passed over."""
        while True:
            event = self.receive(timeout)
            if isinstance(event, TextMessage):
                message: dict[str, Any] = json.loads(event.text)
                return message
            assert isinstance(event, Ping | Pong), event

    def wait_closed(self, timeout: float = PATIENCE) -> WebSocketClosed:
        """Pass over everything up to the end."""
        while not isinstance(event := self.receive(timeout), WebSocketClosed):
            pass
        return event

    def close(self, code: int = 1000, reason: str = "") -> WebSocketClosed:
        """The closing handshake, begun here."""
        self._send_event(CloseWebSocket(self._stream, code, reason))
        return self.wait_closed()

    # --- as a phone ---

    def command(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """The payload of the next `bridge.command`."""
        while True:
            message = self.receive_message(timeout)
            if message["type"] == "bridge.command":
                payload: dict[str, Any] = message["payload"]
                return payload

    def respond(self, request_id: str, result: object, status: int = 200) -> None:
        """Answer a command."""
        self.send_envelope("bridge", "bridge.response", {"request_id": request_id, "status": status, "result": result})

    def pong(self) -> None:
        """Go there and back: what was sent before has been taken in by the relay."""
        self.send_envelope("system", "ping", {"ts": 1}, "round trip")
        while self.receive_message() != {"channel": "system", "type": "pong", "id": "round trip", "payload": {"ts": 1}}:
            pass

    def _send_event(self, event: Event) -> None:
        self._client.conn.send(event)
        self._client.flush()
