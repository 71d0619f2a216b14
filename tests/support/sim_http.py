"""HTTP driver on the simulated network: clients with callbacks, and scripted servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from runtimes.sim.connection import SimConnection, SimEnd
from runtimes.sim.host import SimHost
from runtimes.sim.network import SimHandshake
from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.facts import Failure
from svc_proto.wire import events
from tests.support.http1_codec import Http1Client, Http1Server
from tests.support.http2_client import Http2Client
from tests.support.http_codec import (
    CONNECTION_CUT,
    PEER_RESET,
    UNREAD_REQUEST,
    Entropy,
    Response,
    ResponseReader,
    request_events,
)

Pairs: TypeAlias = Mapping[str, str]
EXPECTED_RESETS = (PEER_RESET, CONNECTION_CUT, UNREAD_REQUEST)  # caused by the network, or permitted to the server


# --- connections --------------------------------------------------------------------------------------------------


@frozen
class ServerAddress:
    """Address of a server, with the value of `Host` for it."""

    address: str
    port: int
    authority: str


class TcpClient:
    """Client of a simulated TCP connection; subclasses handle its events by the methods `on_…`."""

    def __init__(self, host: SimHost, target: ServerAddress) -> None:
        self.host = host
        self.target = target
        self.began = host.world.now
        self.has_connection = False
        self.is_closed = False
        self.slow = False
        self._end: SimEnd | None = None
        self._unsent: list[bytes] = []  # until there is a connection
        place = (target.address, target.port)
        self._attempt = SimHandshake(host.world.network, host, place, tls=False, outcome=self._connected)

    def write(self, data: bytes) -> None:
        """Send bytes, or queue them until the connection is established; drop them after its end."""
        if self._end is None:
            self._unsent.append(data)
        elif not self._end.gone:
            self._end.send(data)

    def disconnect(self, *, reset: bool = False) -> None:
        """Close with a FIN, or a reset if `reset` or received data is unread; an attempt to connect is cancelled."""
        if self._end is None:
            self._attempt.cancel()
        elif reset:
            self._end.abort()
        else:
            self._end.vanish(reset=False)
        self._finish()

    def set_slow_reading(self, slow: bool) -> None:
        self.slow = slow
        if self._end is not None and not self._end.gone:
            (self._end.pause if slow else self._end.resume)()

    @property
    def connection(self) -> SimConnection | None:
        """Return the simulated connection, or None before it is established."""
        return None if self._end is None else self._end.connection

    # --- for subclasses ---

    def on_data(self, data: bytes) -> None:
        pass

    def on_end(self) -> None:
        pass

    # --- as the owner of an end ---

    def on_sent(self, n: int) -> None:
        pass

    def on_readable(self) -> None:
        end = self._end
        while end is not None and not self.is_closed and (data := end.read()) is not None:
            self.on_data(data)

    def on_closed(self, why: str) -> None:
        self._finish()

    def _connected(self, outcome: SimEnd | Failure) -> None:
        if isinstance(outcome, Failure):
            self._finish()
            return
        self.has_connection = True
        self._end = outcome
        outcome.adopt(self)
        if self.slow:
            outcome.pause()
        for data in self._unsent:
            outcome.send(data)
        self._unsent = []

    def _finish(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.on_end()


class RawBytesClient(TcpClient):
    """Client that sends given bytes and collects all that it receives; `is_closed` is set at its end."""

    def __init__(
        self, host: SimHost, target: ServerAddress, data: bytes, over: Callable[[], None] = lambda: None
    ) -> None:
        self.heard = bytearray()
        self._on_over = over
        super().__init__(host, target)
        self.write(data)

    @property
    def status(self) -> int:
        """Return the status of the received HTTP/1.1 response, or 0 if there is none."""
        _, _, answer = bytes(self.heard).partition(b"HTTP/1.1 ")
        return int(answer[:3] or 0)

    def on_data(self, data: bytes) -> None:
        self.heard += data
        if not data:
            self.disconnect()

    def on_end(self) -> None:
        self._on_over()


class HttpClientConnection(TcpClient):
    """HTTP connection of a client: HTTP/1.1 for one stream, or HTTP/2 for as many as the server allows."""

    def __init__(
        self, host: SimHost, target: ServerAddress, entropy: Entropy, *, http2: bool = False, deflate: bool = False
    ) -> None:
        self.http2 = Http2Client(entropy) if http2 else None
        self._codec = self.http2 or Http1Client(entropy, deflate=deflate)
        self._clients: dict[events.StreamId, StreamClient] = {}
        self._unconsumed: dict[events.StreamId, int] = {}  # bytes that slow clients have not read
        self.deaf = False  # no received bytes are read, the FIN included
        super().__init__(host, target)
        self.flush()  # the preface of HTTP/2

    @property
    def has_free_stream(self) -> bool:
        return self.http2 is not None and self.http2.is_ready and not self.is_closed and not self.slow

    def open_stream(self, client: StreamClient) -> events.StreamId:
        """Open the next stream for a client, and return its id."""
        stream = self._codec.open_stream()
        self._clients[stream] = client
        return stream

    def close_stream(self, stream: events.StreamId, *, reset: bool) -> None:
        """End a stream; over HTTP/1.1, end the connection.

        Over HTTP/2 a stream that is still open is reset: at once if `reset` or if the request is incomplete, else after
        its unsent rest. Disconnect an HTTP/2 connection that has no more streams and takes no new ones.
        """
        self._clients.pop(stream, None)
        self._unconsumed.pop(stream, None)
        if self.is_closed:
            return
        if self.http2 is None:
            self.disconnect(reset=reset)
            return
        if reset:
            self.http2.abandon(stream)
        else:
            self.send_events(events.StreamReset(stream))
        self.flush()
        if not self._clients and not self.http2.is_ready:
            self.disconnect()

    def send_events(self, *events: events.Event) -> bool:
        """Send events; return False at the first that the protocol does not allow now."""
        try:
            for event in events:
                self._codec.send(event)
        except LocalProtocolError:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        if data := self._codec.data_to_send():
            self.write(data)

    def read_all(self, stream: events.StreamId) -> None:
        """Grant the server the flow-control window that a slow client has withheld on a stream."""
        if kept := self._unconsumed.pop(stream, 0):
            self._codec.consume(stream, kept)
            self.flush()

    def on_data(self, data: bytes) -> None:
        if self.deaf:
            return
        try:
            self._codec.receive_data(data)
            while not self.is_closed and (event := self._codec.next_event()) is not None:
                self._dispatch(event)
        except RemoteProtocolError as error:
            # An end within a message is caused by the network; anything else is the server's fault.
            self._lose_all("" if not data else str(error))
            self.disconnect(reset=True)
            return
        if self.is_closed:
            return
        self.flush()
        if not data or (self.http2 is not None and self.http2.must_close):
            self.disconnect()

    def on_end(self) -> None:
        self._lose_all("")

    def _dispatch(self, event: events.Event) -> None:
        stream = event.stream
        client = self._clients.get(stream)
        if isinstance(event, events.ResponseData):
            if self.http2 is not None and client is not None and client.slow:
                self._unconsumed[stream] = self._unconsumed.get(stream, 0) + len(event.data)
            else:
                self._codec.consume(stream, len(event.data))
        if client is None:
            return
        if isinstance(event, events.StreamReset):
            del self._clients[stream]
            client.on_connection_lost("" if event.why in EXPECTED_RESETS else event.why)
        else:
            client.on_event(event)

    def _lose_all(self, problem: str) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            client.on_connection_lost(problem)


# --- requests and WebSockets --------------------------------------------------------------------------------------


class SimResponse(Response):
    """Response on the simulated network; `status` 0 stands for no response."""

    @property
    def json(self) -> Any:
        """Return the parsed body; an empty object when it is not JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return {}


NO_RESPONSE = SimResponse(0, events.Headers(), b"")


class StreamClient:
    """Base of the clients that use one HTTP stream; `on_end` is called once, also if the connection is lost."""

    def __init__(self, carrier: HttpClientConnection, target: ServerAddress) -> None:
        self.carrier = carrier
        self.host: SimHost = carrier.host
        self.began = self.host.world.now
        self.is_closed = False
        self.slow = False
        self.broken = ""  # the server's violation of the protocol
        self._authority = target.authority
        self.stream = carrier.open_stream(self)

    @property
    def has_connection(self) -> bool:
        return self.carrier.has_connection

    def disconnect(self, *, reset: bool = False) -> None:
        """Unless the stream is closed, close it as `HttpClientConnection.close_stream` does, and call `on_end`."""
        if not self.is_closed:
            self.is_closed = True
            self.carrier.close_stream(self.stream, reset=reset)
            self.on_end()

    def set_slow_reading(self, slow: bool) -> None:
        """Stop or resume reading from an HTTP/1.1 connection; over HTTP/2, withhold or grant the stream's window."""
        self.slow = slow
        if self.carrier.http2 is None:
            self.carrier.set_slow_reading(slow)
        elif not slow:
            self.carrier.read_all(self.stream)

    def send_events(self, *events: events.Event) -> bool:
        """Send events; return False if the stream is closed, or at the first that the protocol does not allow now."""
        return not self.is_closed and self.carrier.send_events(*events)

    def on_connection_lost(self, problem: str) -> None:
        """End the stream, unless it has ended; `broken` is then `problem`, empty if the server broke no rule."""
        if not self.is_closed:
            self.is_closed = True
            self.broken = problem
            self.on_end()

    def build_headers(self, headers: Pairs) -> list[tuple[bytes, bytes]]:
        """Return the fields of a request as pairs of bytes: `host` and the given ones, with names in lower case."""
        named = {"host": self._authority, **headers}
        return [(key.lower().encode(), value.encode()) for key, value in named.items()]

    # --- for subclasses ---

    def on_event(self, event: events.Event) -> None:
        pass

    def on_end(self) -> None:
        pass


SimClient: TypeAlias = TcpClient | StreamClient


class RequestClient(StreamClient):
    """Client of one request; a body of bytes is sent unchanged, any other but None as JSON.

    `on_done(self)` is called once; `answer.status` is 0 when there is no response. `on_piece` gets pieces of the body.
    """

    def __init__(
        self,
        carrier: HttpClientConnection,
        target: ServerAddress,
        request: tuple[str, str, Pairs, object],
        *,
        on_done: Callable[[RequestClient], None],
        on_piece: Callable[[bytes], None] | None = None,
    ) -> None:
        self.method, self.path, headers, body = request
        self.answer = NO_RESPONSE
        self.ended = 0.0
        self._reader = ResponseReader()
        self._on_done = on_done
        self._on_piece = on_piece
        super().__init__(carrier, target)
        head, *rest = request_events(self.stream, self.method, self.path, self.build_headers(headers), body)
        self.send_events(head)
        self.send_events(*rest)

    @property
    def status(self) -> int:
        """Return the status of the response; 0 if there is none, or none yet."""
        return self.answer.status

    @property
    def head(self) -> events.ResponseHead | None:
        return self._reader.head

    def on_event(self, event: events.Event) -> None:
        self._reader.read(event)
        if isinstance(event, events.ResponseData) and self._on_piece is not None:
            self._on_piece(event.data)
        elif (response := self._reader.response) is not None:
            self.answer = SimResponse(response.status, response.headers, response.body)
            self.disconnect()

    def on_end(self) -> None:
        self.ended = self.host.world.now
        self._on_done(self)


class WebSocketClient(StreamClient):
    """WebSocket client. `on_message(self, envelope)` is called for each text, `on_end(self)` once."""

    def __init__(
        self,
        carrier: HttpClientConnection,
        target: ServerAddress,
        *,
        path: str = "/ws",
        headers: Pairs,
        on_open: Callable[[WebSocketClient], None],
        on_message: Callable[[WebSocketClient, dict[str, Any]], None],
        on_end: Callable[[WebSocketClient], None],
    ) -> None:
        self.accepted = False
        self.status = 0  # 101, or the status of the refusal
        self.refusal = b""  # its body
        self.close_code: int | None = None
        self.text = ""  # the last message
        self._on_open = on_open
        self._on_message = on_message
        self._on_end = on_end
        super().__init__(carrier, target)
        self.send_events(
            events.RequestHead(self.stream, "GET", path, events.Headers(self.build_headers(headers)), websocket=True)
        )

    def set_slow_reading(self, slow: bool) -> None:
        """Stop or resume reading of the whole connection, since messages of a WebSocket are read at once."""
        self.slow = slow
        self.carrier.set_slow_reading(slow)

    def send_envelope(self, channel: str, kind: str, payload: object, identity: str = "i") -> bool:
        """Send an envelope of a message channel; return False if the WebSocket or its connection accepts none now."""
        return self.send_message({"channel": channel, "type": kind, "id": identity, "payload": payload})

    def send_message(self, message: Mapping[str, object]) -> bool:
        return self.send_events(events.TextMessage(self.stream, json.dumps(message)))

    def close(self, code: int) -> bool:
        """Begin the closing handshake, unless it has begun; return the result of `send_events`."""
        return self.send_events(events.CloseWebSocket(self.stream, code))

    def on_event(self, event: events.Event) -> None:
        match event:
            case events.WebSocketAccepted():
                self.accepted = True
                self.status = 101
                self._on_open(self)
            case events.ResponseHead():
                self.status = event.status
            case events.ResponseData(data=data):
                self.refusal += data
            case events.ResponseEnd():
                self.disconnect()
            case events.TextMessage(text=text):
                self.text = text
                self._on_message(self, json.loads(text))
            case events.WebSocketClosed(code=code):
                self.close_code = code
                self.carrier.flush()
                self.disconnect()
            case _:
                pass

    def on_end(self) -> None:
        self._on_end(self)


# --- servers ------------------------------------------------------------------------------------------------------


def listen(host: SimHost, port: int, on_connection: Callable[[SimEnd], object]) -> None:
    """Listen at a port of a host, and call `on_connection` for each connection."""
    host.world.network.listen(host, port, _Listener(on_connection))


class _Listener:
    tls = False
    alpn: str | None = None

    def __init__(self, on_connection: Callable[[SimEnd], object]) -> None:
        self._on_connection = on_connection

    def accepted(self, end: SimEnd) -> None:
        self._on_connection(end)


class ServerSideConnection:
    """HTTP/1.1 connection of a scripted server: one request at a time. Subclasses call `put` or `answer`."""

    head: events.RequestHead  # of the last request

    def __init__(self, end: SimEnd) -> None:
        self.end = end
        self._codec = Http1Server()
        self._body = bytearray()
        end.adopt(self)

    def on_request(self, body: bytes) -> None:
        """Raise NotImplementedError; subclasses handle a complete request, whose head is `head`."""
        raise NotImplementedError

    def put(self, *events: events.Event) -> None:
        if self.end.gone:
            return
        for event in events:
            self._codec.send(event)
        self.end.send(self._codec.data_to_send())

    def answer(self, status: int, body: bytes, *fields: tuple[bytes, bytes]) -> None:
        headers = events.Headers([(b"content-length", b"%d" % len(body)), *fields])
        self.put(
            events.ResponseHead(self.stream, status, headers),
            events.ResponseData(self.stream, body),
            events.ResponseEnd(self.stream),
        )

    @property
    def stream(self) -> events.StreamId:
        return self.head.stream

    def on_sent(self, n: int) -> None:
        pass

    def on_closed(self, why: str) -> None:
        pass

    def on_readable(self) -> None:
        """Read and parse what has arrived, and handle complete requests.

        A FIN is answered with a FIN; requests that arrive together with it are not handled.
        """
        while (data := self.end.read()) is not None:
            if not data:
                self.end.close_write()
                return
            self._codec.receive_data(data)
        while (event := self._codec.next_event()) is not None:
            match event:
                case events.RequestHead():
                    self.head = event
                    self._body.clear()
                case events.RequestData(data=piece):
                    self._body += piece
                case events.RequestEnd():
                    self.on_request(bytes(self._body))
                case _:
                    pass
