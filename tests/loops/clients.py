"""Blocking test clients: `ByteConnection` for bytes, `HttpClient` for requests, and `WebSocketTestClient`."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from svc_proto.wire import events
from tests.support.http1_codec import Http1Client
from tests.support.http2_client import Http2Client
from tests.support.http_codec import Response, ResponseReader, request_events

PATIENCE = 30.0  # s; for anything that should happen at once, also on a busy machine
PairsIn = Mapping[str, str] | None


class ByteConnection(ABC):
    """TCP or TLS connection of a test client to a server; reads wait for data."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.eof = False  # a FIN was read
        self.reset = False  # the connection broke

    # --- implemented by each kind of connection ---

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Send all data; a plain socket buffers what arrives while it cannot send, and drops the rest after a reset."""

    @abstractmethod
    def _more(self, timeout: float) -> bytes:
        """Wait for bytes and return them; empty after a FIN. Raise ConnectionError after a reset, or TimeoutError."""

    @abstractmethod
    def close_write(self) -> None:
        pass

    @abstractmethod
    def abort(self) -> None:
        """Send RST."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; in the simulator, only for sending."""

    @abstractmethod
    def pause(self) -> None:
        """Stop reading from the network until the next read."""

    # --- reading ---

    def read_some(self, timeout: float = PATIENCE) -> bytes:
        """Return the buffered bytes, else wait for some; empty at the end.

        Raise TimeoutError, or ConnectionError after a reset.
        """
        if not self._buffer:
            self._fill(timeout)
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def read_until(self, mark: bytes, timeout: float = PATIENCE) -> bytes:
        """Return all bytes up to and with `mark`. Raise EOFError if a FIN comes before.

        Raise TimeoutError, or ConnectionError after a reset.
        """
        while (at := self._buffer.find(mark)) < 0:
            if not self._fill(timeout):
                raise EOFError(f"the end came after {bytes(self._buffer)!r:.300}")
        return self._read(at + len(mark))

    def read_exactly(self, n: int, timeout: float = PATIENCE) -> bytes:
        """Return `n` bytes. Raise EOFError if a FIN comes before.

        Raise TimeoutError, or ConnectionError after a reset.
        """
        while len(self._buffer) < n:
            if not self._fill(timeout):
                raise EOFError(f"the end came after {len(self._buffer)} of {n} bytes")
        return self._read(n)

    def read_all(self, timeout: float = PATIENCE) -> bytes:
        """Return all bytes up to the FIN or reset. Raise TimeoutError if neither comes."""
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
    """Blocking HTTP client on one connection: requests in sequence, or concurrent over HTTP/2.

    `deflate` offers permessage-deflate for WebSockets.
    """

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
        self.conn = (Http2Client if http2 else Http1Client)(entropy, deflate=deflate)
        self._authority = authority
        self._asked: dict[events.StreamId, PendingResponse] = {}

    def request(
        self, method: str, path: str, body: object = None, *, headers: PairsIn = None, timeout: float = PATIENCE
    ) -> Response:
        return self.begin(method, path, body, headers=headers).finish(timeout)

    def ask_once(
        self, method: str, path: str, body: object = None, *, headers: PairsIn = None, timeout: float = PATIENCE
    ) -> Response:
        answer = self.request(method, path, body, headers=headers, timeout=timeout)
        self.wire.close()
        return answer

    def begin(
        self, method: str, path: str, body: object = None, *, headers: PairsIn = None, websocket: bool = False
    ) -> PendingResponse:
        """Send a request without waiting for its response. Bytes are sent unchanged, other bodies but None as JSON."""
        stream = self.conn.open_stream()
        asked = self._asked[stream] = PendingResponse(self, stream)
        named = {"host": self._authority, **(headers or {})}
        fields = [(key.lower().encode(), value.encode()) for key, value in named.items()]
        for event in request_events(stream, method, path, fields, body, websocket=websocket):
            self.conn.send(event)
        self.flush()
        return asked

    def read(self, timeout: float = PATIENCE) -> bool:
        """Read bytes and assign the events to their requests; return False at the end of the connection.

        Raise TimeoutError, or ConnectionError after a reset.
        """
        data = self.wire.read_some(timeout)
        self.conn.receive_data(data)
        while (event := self.conn.next_event()) is not None:
            if isinstance(event, events.ResponseData):
                self.conn.consume(event.stream, len(event.data))
            self._asked[event.stream].heard.append(event)
        self.flush()
        return bool(data)

    def flush(self) -> None:
        data = self.conn.data_to_send()
        if data:
            self.wire.send(data)


class PendingResponse:
    """A request that was sent; `heard` has the events of its response that are not consumed yet."""

    def __init__(self, client: HttpClient, stream: events.StreamId) -> None:
        self.wire = client.wire
        self.client = client
        self.stream = stream
        self.heard: deque[events.Event] = deque()

    def next(self, timeout: float = PATIENCE) -> events.Event:
        """Wait for the next event and return it. Raise ConnectionError if the connection ends before."""
        while not self.heard:
            if not self.client.read(timeout) and not self.heard:
                raise ConnectionError("the connection ended")
        return self.heard.popleft()

    def some(self) -> PendingResponse:
        """Read once from the connection; the events stay for `finish`."""
        self.client.read()
        return self

    def finish(self, timeout: float = PATIENCE) -> Response:
        """Wait for the complete response and return it.

        Raise ConnectionError if the connection ends or the stream is reset before.
        """
        reader = ResponseReader()
        while reader.response is None:
            event = self.next(timeout)
            if isinstance(event, events.StreamReset):
                raise ConnectionError(event.why)
            reader.read(event)
        return reader.response


class Declined(Exception):  # noqa: N818 - the name describes the event
    """A server refused the handshake of a WebSocket; `answer` is its response."""

    def __init__(self, answer: Response) -> None:
        super().__init__(f"{answer.status} {answer.body!r:.200}")
        self.answer = answer


class WebSocketTestClient:
    """Blocking WebSocket client, alone on an HTTP/1.1 connection or beside others over HTTP/2.

    The constructor raises `Declined` if the server refuses. `compressed` reports whether permessage-deflate was agreed.
    """

    def __init__(self, client: HttpClient, *, path: str = "/ws", headers: PairsIn = None) -> None:
        self.wire = client.wire
        self.token = ""
        self._client = client
        self._over: events.WebSocketClosed | None = None
        self._asked = client.begin("GET", path, headers=headers, websocket=True)
        event = self._asked.next()
        if not isinstance(event, events.WebSocketAccepted):
            self._asked.heard.appendleft(event)
            raise Declined(self._asked.finish())
        self.compressed = event.deflate
        self._stream = self._asked.stream

    # --- sending ---

    def send_text(self, text: str) -> None:
        self._send_event(events.TextMessage(self._stream, text))

    def send_binary(self, data: bytes) -> None:
        self._send_event(events.BinaryMessage(self._stream, data))

    def send_envelope(self, channel: str, kind: str, payload: object = None, identity: str = "i") -> None:
        self.send_text(json.dumps({"channel": channel, "type": kind, "id": identity, "payload": payload or {}}))

    def sign_in(self, **payload: object) -> dict[str, Any]:
        """Send `system/auth` and return the next message; after `auth.ok`, `token` is the session token."""
        self.send_envelope("system", "auth", payload, "auth-1")
        message = self.receive_message()
        if message["type"] == "auth.ok":
            self.token = message["payload"]["session_token"]
        return message

    # --- receiving ---

    def receive(self, timeout: float = PATIENCE) -> events.Event:
        """Return the next event; `WebSocketClosed` is returned again by later calls."""
        if self._over is not None:
            return self._over
        try:
            event = self._asked.next(timeout)
        except ConnectionError as error:
            event = events.WebSocketClosed(self._stream, 1006, str(error), clean=False)
        if isinstance(event, events.WebSocketClosed):
            self._over = event
        return event

    def receive_message(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """Return the next text message, parsed; skip pings and pongs, and fail for any other event."""
        while True:
            event = self.receive(timeout)
            if isinstance(event, events.TextMessage):
                message: dict[str, Any] = json.loads(event.text)
                return message
            assert isinstance(event, events.Ping | events.Pong), event

    def wait_closed(self, timeout: float = PATIENCE) -> events.WebSocketClosed:
        """Discard events up to the end of the WebSocket and return that end."""
        while not isinstance(event := self.receive(timeout), events.WebSocketClosed):
            pass
        return event

    def close(self, code: int = 1000, reason: str = "") -> events.WebSocketClosed:
        """Start the closing handshake, discard events up to the end of the WebSocket, and return that end."""
        self._send_event(events.CloseWebSocket(self._stream, code, reason))
        return self.wait_closed()

    # --- as a phone ---

    def command(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """Return the payload of the next `bridge.command`; other messages are discarded."""
        while True:
            message = self.receive_message(timeout)
            if message["type"] == "bridge.command":
                payload: dict[str, Any] = message["payload"]
                return payload

    def respond(self, request_id: str, result: object, status: int = 200) -> None:
        self.send_envelope("bridge", "bridge.response", {"request_id": request_id, "status": status, "result": result})

    def pong(self) -> None:
        """Send a ping and discard messages up to its pong: by then the relay has received everything sent before."""
        self.send_envelope("system", "ping", {"ts": 1}, "round trip")
        while self.receive_message() != {"channel": "system", "type": "pong", "id": "round trip", "payload": {"ts": 1}}:
            pass

    def _send_event(self, event: events.Event) -> None:
        self._client.conn.send(event)
        self._client.flush()
