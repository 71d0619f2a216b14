"""Valid clients of a core under test, which expect valid HTTP from the core.

The bytes that a client sends wait in `outgoing`; the driver decides when, and in which pieces, the core gets them.
"""

import json
from typing import Any

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire import events
from svc_proto.wire.connection import Role
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.limits import Limits

LAX = Limits(max_message=64 * 1024 * 1024, max_head=256 * 1024)


class CoreClient:
    """Connection of one client. `tokens` are the received session tokens, `requests` the ids of received commands."""

    def __init__(self, *, http2: bool) -> None:
        self._http2 = Http2Connection(Role.CLIENT, limits=LAX, entropy=bytes) if http2 else None
        self._conn = self._http2 or Http1Connection(Role.CLIENT, limits=LAX, entropy=bytes)
        self._next = 1
        self._busy = False
        self.sockets: list[events.StreamId] = []
        self.tokens: list[str] = []
        self.requests: list[str] = []
        self.statuses: list[int] = []
        self.bodies = bytearray()  # of all responses
        self.over = False  # no further bytes are parsed
        self.outgoing = bytearray(self._conn.data_to_send())

    def send_request(
        self, method: str, path: str, headers: dict[str, str], body: bytes, *, websocket: bool = False
    ) -> None:
        """Send a request; nothing happens where the protocol does not allow one now."""
        if self._http2 is not None:
            stream = self._http2.next_stream
        elif self._busy:
            return
        else:
            stream = events.StreamId(self._next)
        fields = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        if body:
            fields.append((b"content-length", b"%d" % len(body)))
        head = events.RequestHead(stream, method, path, events.Headers(fields), websocket=websocket)
        request: list[events.Event] = [head]
        if not websocket:
            request += [*([events.RequestData(stream, body)] if body else []), events.RequestEnd(stream)]
        if self._send(*request):
            self._next += 1
            self._busy = True

    def send_envelope(self, who: int, channel: str, kind: str, payload: object) -> None:
        """Send an envelope on one of the open WebSockets, if there is one."""
        if self.sockets:
            text = json.dumps({"channel": channel, "type": kind, "id": "i", "payload": payload})
            self._send(events.TextMessage(self.sockets[who % len(self.sockets)], text))

    def reset_stream(self, who: int) -> None:
        """Reset one of the client's HTTP/2 streams; do nothing over HTTP/1.1, or before the first request."""
        if self._http2 is not None and self._next > 1:
            self._send(events.StreamReset(events.StreamId(2 * (who % (self._next - 1)) + 1)))

    def feed(self, data: bytes) -> None:
        """Receive bytes of the core, unless the client has failed before. Raise AssertionError for invalid HTTP."""
        if self.over:
            return
        if self._http2 is not None:
            self._http2.set_time(0.0)
        self._conn.receive_data(data)
        try:
            while (event := self._conn.next_event()) is not None:
                self._on_event(event)
        except RemoteProtocolError as error:
            self.over = True
            raise AssertionError(f"a client does not understand the core: {error}") from error
        self.outgoing += self._conn.data_to_send()

    def _on_event(self, event: events.Event) -> None:
        match event:
            case events.ResponseHead(status=status):
                self.statuses.append(status)
            case events.ResponseData(stream=stream, data=data):
                self.bodies += data
                if self._http2 is not None:
                    self._http2.acknowledge_data(stream, len(data))
            case events.ResponseEnd():
                self._busy = False
                self.over = self._conn.must_close
            case events.WebSocketAccepted(stream=stream):
                self.sockets.append(stream)
            case events.WebSocketClosed(stream=stream):
                self.sockets.remove(stream)
            case events.TextMessage(text=text):
                self._read(json.loads(text))
            case _:
                pass

    def _read(self, message: dict[str, Any]) -> None:
        payload = message["payload"]
        if message["type"] == "auth.ok" and payload["session_token"] not in self.tokens:
            self.tokens.append(payload["session_token"])
        elif message["type"] == "bridge.command":
            self.requests.append(payload["request_id"])

    def _send(self, *events: events.Event) -> bool:
        if self.over:
            return False
        try:
            for event in events:
                self._conn.send(event)
        except LocalProtocolError:
            return False
        self.outgoing += self._conn.data_to_send()
        return True
