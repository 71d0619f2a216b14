"""Sans-IO HTTP driver of the tests, built on h11, h2 and wsproto: clients, servers for HTTP/1.1 only, and WebSockets.

A connection parses bytes (`receive_data`, empty for a FIN) into events (`next_event`), and serializes events (`send`)
into bytes (`data_to_send`). The events are those of `svc_proto.wire.events`.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import h11
from attrs import define, field, frozen
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    InformationalResponseReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    TrailersReceived,
)
from h2.events import StreamReset as H2StreamReset
from h2.exceptions import ProtocolError, StreamClosedError
from h2.settings import SettingCodes, Settings
from wsproto import events as ws
from wsproto.connection import Connection as FrameConnection
from wsproto.connection import ConnectionState, ConnectionType
from wsproto.extensions import PerMessageDeflate
from wsproto.frame_protocol import XorMaskerSimple
from wsproto.utilities import LocalProtocolError as FrameError
from wsproto.utilities import generate_accept_token

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.events import (
    NO_HEADERS,
    AcceptWebSocket,
    BinaryMessage,
    CloseWebSocket,
    Event,
    Headers,
    Informational,
    Ping,
    Pong,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    StreamReset,
    TextFragment,
    TextMessage,
    WebSocketAccepted,
    WebSocketClosed,
)

FIRST = StreamId(1)
MAX_HEAD = 256 * 1024  # bytes; the driver accepts more than the product sends
STREAM_WINDOW, CONNECTION_WINDOW = 256 * 1024, 1024 * 1024  # bytes
FRAME_HEAD = 9  # bytes, RFC 9113 section 4.1
GOAWAY = 7
DEFLATE = b"permessage-deflate"
OFFER = DEFLATE + b"; client_max_window_bits"
EXTENSIONS = b"sec-websocket-extensions"
NO_CLOSE = 1006  # RFC 6455 section 7.1.5
PEER_RESET = "the peer reset the stream"
CONNECTION_CUT = "the connection ended within a message"
UNREAD_REQUEST = "the server did not look at the request before it went away"
REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
Entropy = Callable[[int], bytes]
Fields = Iterable[tuple[bytes, bytes]]


@frozen
class Response:
    status: int
    headers: Headers
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
        self.head: ResponseHead | None = None
        self.body = bytearray()
        self.response: Response | None = None

    def read(self, event: Event) -> None:
        match event:
            case ResponseHead():
                self.head = event
            case ResponseData(data=data):
                self.body += data
            case ResponseEnd() if self.head is not None:
                self.response = Response(self.head.status, self.head.headers, bytes(self.body))
            case _:
                pass


def request_events(
    stream: StreamId, method: str, path: str, fields: Fields, body: object = None, *, websocket: bool = False
) -> list[Event]:
    """Return the events of a request, or its head alone for a WebSocket.

    A body of bytes is sent unchanged, any other but None as JSON.
    """
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    pairs = [*fields]
    if data or method in ("POST", "PATCH"):
        pairs.append((b"content-length", b"%d" % len(data)))
    head = RequestHead(stream, method, path, Headers(pairs), websocket)
    if websocket:
        return [head]
    return [head, *([RequestData(stream, data)] if data else []), RequestEnd(stream)]


class HttpCodec(ABC):
    """HTTP connection without IO, which parses and serializes events."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._events: deque[Event] = deque()
        self._problem: RemoteProtocolError | None = None  # raised behind the events
        self._eof = False

    @abstractmethod
    def send(self, event: Event) -> None:
        """Queue an event. Raise `LocalProtocolError` if the protocol does not allow it now.

        `Http2Client` checks later what it queues until the server's settings have arrived.
        """

    @abstractmethod
    def receive_data(self, data: bytes) -> None:
        """Parse bytes of the peer; empty for a FIN."""

    @abstractmethod
    def open_stream(self) -> StreamId:
        """Return the stream of the next request."""

    def receive_eof(self) -> None:
        self.receive_data(b"")

    def next_event(self) -> Event | None:
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

    def consume(self, stream: StreamId, n: int) -> None:  # noqa: B027 - HTTP/1.1 has no windows
        """Grant the peer `n` bytes of flow-control window, where the protocol has windows; here do nothing."""


def new_client(entropy: Entropy, *, http2: bool = False, deflate: bool = True) -> HttpCodec:
    """Return the client side of a connection; `deflate` offers permessage-deflate for WebSockets."""
    return Http2Client(entropy, deflate=deflate) if http2 else Http1Client(entropy, deflate=deflate)


class _Http1Codec(HttpCodec):
    """Common part of the HTTP/1.1 client and server: h11, and wsproto once the connection is a WebSocket."""

    def __init__(self, role: type[h11.CLIENT | h11.SERVER], entropy: Entropy, *, deflate: bool) -> None:
        super().__init__()
        self._h11 = h11.Connection(role, max_incomplete_event_size=MAX_HEAD)
        self._entropy = entropy
        self._deflate = deflate
        self._stream = StreamId(0)  # of the request in progress
        self._head: RequestHead | None = None
        self._socket: _WebSocket | None = None

    def open_stream(self) -> StreamId:
        return StreamId(self._stream + 1)

    def receive_data(self, data: bytes) -> None:
        if self._eof:
            return
        self._eof = not data
        if self._socket is not None:
            self._events.extend(self._socket.receive_data(data))
            self._out += self._socket.data_to_send()
            return
        try:
            self._h11.receive_data(data)
            self._read()
        except h11.RemoteProtocolError as error:
            if not self._eof:
                self._problem = RemoteProtocolError(str(error))
            elif self._head is not None:
                self._events.append(StreamReset(self._stream, CONNECTION_CUT))

    def send(self, event: Event) -> None:
        current = self._stream if self._head is not None or self._socket is not None else self.open_stream()
        if event.stream != current:
            raise LocalProtocolError(f"{type(event).__name__}: stream {event.stream} is not in progress")
        try:
            if self._socket is not None:
                self._socket.send(event)
                self._out += self._socket.data_to_send()
            else:
                self._send(event)
        except h11.LocalProtocolError as error:
            raise LocalProtocolError(str(error)) from None

    @abstractmethod
    def _send(self, event: Event) -> None: ...

    @abstractmethod
    def _translate(self, event: h11.Event) -> None: ...

    def _read(self) -> None:
        while self._socket is None:
            event = self._h11.next_event()
            if isinstance(event, type | h11.ConnectionClosed):  # NEED_DATA or PAUSED
                return
            self._translate(event)

    def _write(self, event: h11.Event) -> None:
        self._out += self._h11.send(event) or b""

    def _open_socket(self, kind: ConnectionType, extension: PerMessageDeflate | None) -> None:
        self._socket = _WebSocket(self._stream, kind, self._entropy, extension)
        rest, closed = self._h11.trailing_data
        for data in ([rest] if rest else []) + ([b""] if closed else []):
            self._events.extend(self._socket.receive_data(data))

    def _cycle(self) -> None:
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            self._head = None


class Http1Client(_Http1Codec):
    """Client side of an HTTP/1.1 connection. Requests are streams 1, 2, 3, …"""

    def __init__(self, entropy: Entropy, *, deflate: bool = True) -> None:
        super().__init__(h11.CLIENT, entropy, deflate=deflate)
        self._key = b""

    def _send(self, event: Event) -> None:
        match event:
            case RequestHead(method=method, target=target, headers=headers, websocket=websocket):
                fields = [*headers]
                if websocket:
                    self._key = base64.b64encode(self._entropy(16))
                    fields += [(b"upgrade", b"websocket"), (b"connection", b"Upgrade")]
                    fields += [(b"sec-websocket-key", self._key), (b"sec-websocket-version", b"13")]
                    fields += [(EXTENSIONS, OFFER)] if self._deflate else []
                self._write(h11.Request(method=method, target=target, headers=fields))
                self._stream, self._head = event.stream, event
                if websocket:
                    self._write(h11.EndOfMessage())
            case RequestData(data=data):
                self._write(h11.Data(data=data))
            case RequestEnd() if self._head is not None and self._head.websocket:
                pass
            case RequestEnd(trailers=trailers):
                self._write(h11.EndOfMessage(headers=list(trailers)))
                self._cycle()
            case _:
                raise LocalProtocolError(f"a client cannot send {type(event).__name__} here")

    def _translate(self, event: h11.Event) -> None:
        match event:
            case h11.InformationalResponse(status_code=HTTPStatus.SWITCHING_PROTOCOLS):
                headers = _lower(event.headers)
                if headers.get(b"sec-websocket-accept") != generate_accept_token(self._key):
                    raise h11.RemoteProtocolError("Sec-WebSocket-Accept does not match the key")
                extension = _agreed(headers, offered=self._deflate)
                self._events.append(
                    WebSocketAccepted(self._stream, headers, _subprotocol(headers), extension is not None)
                )
                self._open_socket(ConnectionType.CLIENT, extension)
            case h11.InformationalResponse():
                self._events.append(Informational(self._stream, event.status_code, _lower(event.headers)))
            case h11.Response(http_version=version):
                head = ResponseHead(self._stream, event.status_code, _lower(event.headers), version.decode())
                self._events.append(head)
            case h11.Data(data=data):
                self._events.append(ResponseData(self._stream, bytes(data)))
            case h11.EndOfMessage(headers=trailers):
                self._events.append(ResponseEnd(self._stream, _lower(trailers)))
                self._cycle()


class Http1Server(_Http1Codec):
    """Server side of an HTTP/1.1 connection."""

    def __init__(self, entropy: Entropy = bytes, *, deflate: bool = True) -> None:
        super().__init__(h11.SERVER, entropy, deflate=deflate)
        self._bodiless = False

    def _send(self, event: Event) -> None:
        match event:
            case ResponseHead(status=status, headers=headers) if self._head is not None:
                self._bodiless = status in (204, 304) or self._head.method == "HEAD"
                fields = [pair for pair in headers if status != HTTPStatus.NO_CONTENT or pair[0] != b"content-length"]
                self._write(h11.Response(status_code=status, headers=fields, reason=_reason(status)))
            case ResponseData(data=data):
                if data and not self._bodiless:
                    self._write(h11.Data(data=data))
            case ResponseEnd(trailers=trailers):
                self._write(h11.EndOfMessage(headers=list(trailers)))
                self._cycle()
                self._read()
            case AcceptWebSocket(headers=headers) if self._head is not None and self._head.websocket:
                key = self._head.headers.get(b"sec-websocket-key") or b""
                fields = [(b"upgrade", b"websocket"), (b"connection", b"Upgrade")]
                fields += [(b"sec-websocket-accept", generate_accept_token(key)), *headers]
                fields += [(b"sec-websocket-protocol", event.subprotocol.encode())] if event.subprotocol else []
                extension, offer = None, self._head.headers.get(EXTENSIONS)
                if self._deflate and offer is not None:
                    extension = PerMessageDeflate()
                    fields += [(EXTENSIONS, DEFLATE + b"; " + str(extension.accept(offer.decode())).encode())]
                switch = HTTPStatus.SWITCHING_PROTOCOLS
                self._write(h11.InformationalResponse(status_code=switch, headers=fields, reason=_reason(switch)))
                self._events.clear()  # a request that became a WebSocket has no end
                self._open_socket(ConnectionType.SERVER, extension)
            case Informational(status=status, headers=headers):
                interim = h11.InformationalResponse(status_code=status, headers=list(headers), reason=_reason(status))
                self._write(interim)
            case _:
                raise LocalProtocolError(f"a server cannot send {type(event).__name__} here")

    def _translate(self, event: h11.Event) -> None:
        match event:
            case h11.Request():
                headers = _lower(event.headers)
                websocket = headers.get(b"upgrade") == b"websocket"
                self._stream = StreamId(self._stream + 1)
                self._head = RequestHead(
                    self._stream,
                    event.method.decode(),
                    event.target.decode(),
                    headers,
                    websocket,
                    self._h11.they_are_waiting_for_100_continue,
                    event.http_version.decode(),
                )
                self._events.append(self._head)
            case h11.Data(data=data):
                self._events.append(RequestData(self._stream, bytes(data)))
            case h11.EndOfMessage(headers=trailers):
                self._events.append(RequestEnd(self._stream, _lower(trailers)))


@define(eq=False)
class _Stream:
    head: RequestHead
    queue: bytearray = field(factory=bytearray)  # waits for window
    ended: bool = False  # nothing is queued behind `queue`
    sent_end: bool = False
    received_head: bool = False
    received_end: bool = False
    reset_after: bool = False  # reset behind the end
    unconsumed: int = 0  # bytes of the body
    socket: _WebSocket | None = None
    trailers: Headers = NO_HEADERS


class Http2Client(HttpCodec):
    """Client side of an HTTP/2 connection, with WebSockets by extended CONNECT (RFC 8441)."""

    def __init__(self, entropy: Entropy, *, deflate: bool = True) -> None:
        super().__init__()
        self._entropy = entropy
        self._deflate = deflate
        self._next = FIRST
        self._streams: dict[StreamId, _Stream] = {}
        self._waiting: list[Event] | None = []  # events until the server's settings have arrived
        self._frames = bytearray()
        self._left = False  # the peer has sent GOAWAY
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        values = {
            SettingCodes.ENABLE_PUSH: 0,
            SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEAD,
        }
        self._h2.local_settings = Settings(client=True, initial_values=values)
        self._h2.decoder.max_header_list_size = MAX_HEAD
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(CONNECTION_WINDOW - self._h2.inbound_flow_control_window)

    # --- properties ---

    @property
    def is_ready(self) -> bool:
        allowed = self._h2.remote_settings.max_concurrent_streams
        return not (self._eof or self._left) and len(self._streams) < allowed

    @property
    def must_close(self) -> bool:
        """Report whether no stream is open, and the peer has closed, sent GOAWAY or violated the protocol."""
        return not self._streams and (self._eof or self._left)

    def open_stream(self) -> StreamId:
        return self._next

    def is_open(self, stream: StreamId) -> bool:
        """Report whether a stream has begun, and is neither reset, lost nor ended in both directions."""
        return stream in self._streams

    # --- sending ---

    def send(self, event: Event) -> None:
        if self._waiting is not None and (self._waiting or getattr(event, "websocket", False)):
            if isinstance(event, RequestHead):
                self._next = StreamId(event.stream + 2)
            self._waiting.append(event)
            return
        try:
            self._send(event)
        except (ProtocolError, FrameError) as error:
            raise LocalProtocolError(str(error)) from None

    def abandon(self, stream: StreamId) -> None:
        """Reset a stream at once, if it is open."""
        known = self._streams.get(stream)
        if known is not None:
            self._reset(stream, known)

    def consume(self, stream: StreamId, n: int) -> None:
        known = self._streams.get(stream)
        if known is not None and n:
            known.unconsumed -= n
            self._h2.acknowledge_received_data(n, stream)

    def data_to_send(self) -> bytes:
        for stream, known in list(self._streams.items()):
            self._flush(stream, known)
        return super().data_to_send() + self._h2.data_to_send()

    def _send(self, event: Event) -> None:
        stream = event.stream
        if isinstance(event, RequestHead):
            if not self.is_ready:
                raise LocalProtocolError("no further request may be sent")
            if event.websocket and not self._h2.remote_settings.enable_connect_protocol:
                raise LocalProtocolError("the server opens no WebSockets over HTTP/2")
            self._h2.send_headers(stream, self._request_fields(event))
            self._streams[stream] = _Stream(event)
            self._next = StreamId(max(self._next, stream + 2))
            return
        known = self._streams.get(stream)
        if known is None:
            raise LocalProtocolError(f"{type(event).__name__}: stream {stream} is not in progress")
        if isinstance(event, StreamReset):
            if known.ended and not known.sent_end:
                known.reset_after = True
            else:
                self._reset(stream, known)
        elif known.socket is not None:
            known.socket.send(event)
        elif isinstance(event, RequestData) and not known.ended:
            known.queue += event.data
        elif isinstance(event, RequestEnd) and not known.ended:
            known.ended, known.trailers = not known.head.websocket, event.trailers
        else:
            raise LocalProtocolError(f"a client cannot send {type(event).__name__} here")

    def _request_fields(self, head: RequestHead) -> list[tuple[bytes, bytes]]:
        fields = [(b":method", b"CONNECT" if head.websocket else head.method.encode())]
        fields += [(b":protocol", b"websocket")] if head.websocket else []
        fields += [(b":scheme", b"http"), (b":path", head.target.encode())]
        fields += [(b":authority", head.headers.get(b"host") or b"")]
        fields += [pair for pair in head.headers if pair[0] not in (b"host", b"connection")]
        if head.websocket:
            fields += [(b"sec-websocket-version", b"13"), *([(EXTENSIONS, OFFER)] if self._deflate else [])]
        return fields

    def _flush(self, stream: StreamId, known: _Stream) -> None:
        if known.socket is not None:
            known.queue += known.socket.data_to_send()
        while known.queue and (room := self._room(stream)):
            self._h2.send_data(stream, bytes(known.queue[:room]))
            del known.queue[:room]
        if known.ended and not known.queue and not known.sent_end:
            known.sent_end = True
            if known.trailers:
                self._h2.send_headers(stream, list(known.trailers), end_stream=True)
            else:
                self._h2.end_stream(stream)
            if known.reset_after:
                self._reset(stream, known)
            self._forget_if_done(stream, known)

    def _room(self, stream: StreamId) -> int:
        return max(0, min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size))

    def _reset(self, stream: StreamId, known: _Stream) -> None:
        with suppress(StreamClosedError):
            self._h2.reset_stream(stream, ErrorCodes.NO_ERROR if known.sent_end else ErrorCodes.CANCEL)
        self._forget(stream, known)

    def _forget_if_done(self, stream: StreamId, known: _Stream) -> None:
        if known.sent_end and known.received_end:
            self._forget(stream, known)

    def _forget(self, stream: StreamId, known: _Stream) -> None:
        if self._streams.pop(stream, None) is not None and known.unconsumed:
            self._h2.acknowledge_received_data(known.unconsumed, stream)

    # --- receiving ---

    def receive_data(self, data: bytes) -> None:
        if self._eof:
            return
        self._eof = not data
        self._frames += data
        try:
            while (frame := self._cut()) is not None:
                if frame[3] == GOAWAY:
                    self._on_goaway(int.from_bytes(frame[FRAME_HEAD : FRAME_HEAD + 4], "big"))
                    continue
                for event in self._h2.receive_data(frame):
                    self._translate(event)
        except ProtocolError as error:
            self._streams.clear()
            self._eof = True
            self._problem = RemoteProtocolError(f"HTTP/2: {error}")
        for stream, known in list(self._streams.items()) if self._eof else ():
            if not known.received_end:
                self._lose(stream, known, CONNECTION_CUT)

    def _cut(self) -> bytes | None:
        """Remove one complete frame from the received bytes and return it, or None if there is none.

        h2 ends a connection at a GOAWAY, so h2 gets the other frames only.
        """
        size = FRAME_HEAD + int.from_bytes(self._frames[:3], "big")
        if len(self._frames) < max(size, FRAME_HEAD):
            return None
        frame = bytes(self._frames[:size])
        del self._frames[:size]
        return frame

    def _on_goaway(self, last: int) -> None:
        self._left = True
        for stream, known in list(self._streams.items()):
            if stream > last:
                self._h2.reset_stream(stream, ErrorCodes.CANCEL)
                self._lose(stream, known, UNREAD_REQUEST)

    def _on_settings(self) -> None:
        waiting, self._waiting = self._waiting, None
        for event in waiting or ():
            try:
                self.send(event)
            except LocalProtocolError as error:
                if isinstance(event, RequestHead):
                    self._events.append(StreamReset(event.stream, str(error)))

    def _translate(self, event: object) -> None:
        if isinstance(event, RemoteSettingsChanged):
            self._on_settings()
            return
        stream = StreamId(getattr(event, "stream_id", None) or 0)
        known = self._streams.get(stream)
        match event:
            case DataReceived():
                self._on_data(stream, known, event)
            case _ if known is None:
                pass
            case InformationalResponseReceived():
                status, headers = _split_status(event.headers or ())
                self._events.append(Informational(stream, status, headers))
            case ResponseReceived():
                self._on_response(stream, known, event)
            case TrailersReceived():
                known.trailers = _lower(event.headers or ())
            case StreamEnded():
                known.received_end = True
                if known.socket is not None:
                    self._events.extend(known.socket.receive_data(b""))
                    known.ended = True
                else:
                    self._events.append(ResponseEnd(stream, known.trailers if known.received_head else Headers()))
                self._forget_if_done(stream, known)
            case H2StreamReset():
                self._lose(stream, known, PEER_RESET)

    def _on_response(self, stream: StreamId, known: _Stream, event: ResponseReceived) -> None:
        status, headers = _split_status(event.headers or ())
        known.received_head, known.trailers = True, Headers()
        if known.head.websocket and status == HTTPStatus.OK:
            extension = _agreed(headers, offered=self._deflate)
            known.socket = _WebSocket(stream, ConnectionType.CLIENT, self._entropy, extension)
            self._events.append(WebSocketAccepted(stream, headers, _subprotocol(headers), extension is not None))
        else:
            known.ended = known.ended or known.head.websocket
            self._events.append(ResponseHead(stream, status, headers, "2"))

    def _on_data(self, stream: StreamId, known: _Stream | None, event: DataReceived) -> None:
        data, size = event.data or b"", event.flow_controlled_length or 0
        kept = 0 if known is None or known.socket is not None else len(data)
        if size > kept:
            self._h2.acknowledge_received_data(size - kept, stream)
        if known is None or not data:
            return
        if known.socket is None:
            known.unconsumed += kept
            self._events.append(ResponseData(stream, data))
            return
        self._events.extend(known.socket.receive_data(data))
        known.ended = known.ended or known.socket.is_closed

    def _lose(self, stream: StreamId, known: _Stream, reason: str) -> None:
        self._forget(stream, known)
        if known.socket is not None:
            self._events.extend(known.socket.receive_data(b""))
        elif not known.received_end:
            self._events.append(StreamReset(stream, reason))


class _WebSocket:
    """Frames of one WebSocket, by wsproto; the masks of a client come from the injected entropy."""

    def __init__(
        self, stream: StreamId, kind: ConnectionType, entropy: Entropy, extension: PerMessageDeflate | None
    ) -> None:
        self._stream = stream
        self._entropy = entropy if kind is ConnectionType.CLIENT else None
        self._frames = FrameConnection(kind, [extension] if extension is not None else [])
        self._out = bytearray()
        self._pieces: list[Any] = []  # of a message
        self.is_closed = False

    def data_to_send(self) -> bytes:
        data = bytes(self._out)
        self._out.clear()
        return data

    def send(self, event: Event) -> None:
        """Queue a message or a part, a ping, a pong or a close frame; raise LocalProtocolError for any other event.

        A close frame is dropped if the WebSocket is closing or closed; the other events are then errors too.
        """
        match event:
            case CloseWebSocket(code=code, reason=reason):
                if self._frames.state is ConnectionState.OPEN and not self.is_closed:
                    self._write(ws.CloseConnection(code=code, reason=reason or None))
            case TextMessage(text=text):
                self._write(ws.TextMessage(data=text))
            case TextFragment(text=text, is_last=is_last):
                self._write(ws.TextMessage(data=text, message_finished=is_last))
            case BinaryMessage(data=data):
                self._write(ws.BytesMessage(data=data))
            case Ping(payload=payload):
                self._write(ws.Ping(payload=payload))
            case Pong(payload=payload):
                self._write(ws.Pong(payload=payload))
            case _:
                raise LocalProtocolError(f"{type(event).__name__} cannot be sent on a WebSocket")

    def receive_data(self, data: bytes) -> Iterator[Event]:
        """Yield the events in bytes of the peer, which are empty for their end; nothing once the WebSocket is closed.

        Unless this side has sent a close frame, close frames, pings and violations are answered. Afterwards messages,
        pings and pongs are dropped.
        """
        if self.is_closed:
            return
        if not data:
            yield self._close(NO_CLOSE, "the peer closed without a close frame", clean=False)
            return
        self._frames.receive_data(data)
        for event in self._frames.events():
            yield from self._translate(event)

    def _translate(self, event: ws.Event) -> Iterator[Event]:
        stream, closing = self._stream, self._frames.state is ConnectionState.LOCAL_CLOSING
        match event:
            case ws.CloseConnection(code=code, reason=reason):
                if self._frames.state in (ConnectionState.REMOTE_CLOSING, ConnectionState.CLOSED):
                    if self._frames.state is ConnectionState.REMOTE_CLOSING:
                        self._write(ws.CloseConnection(code=code))
                    yield self._close(int(code), reason or "", clean=True)
                else:  # wsproto found a violation
                    if not closing:
                        self._write(ws.CloseConnection(code=code, reason=reason))
                    yield self._close(NO_CLOSE, reason or "", clean=False, ours=None if closing else int(code))
            case _ if closing:
                pass  # RFC 6455 section 1.4
            case ws.Ping(payload=payload):
                self._write(event.response())
                yield Ping(stream, bytes(payload))
            case ws.Pong(payload=payload):
                yield Pong(stream, bytes(payload))
            case ws.TextMessage() | ws.BytesMessage():
                self._pieces.append(event.data)
                if event.message_finished:
                    whole = self._pieces[0][:0].join(self._pieces)
                    self._pieces.clear()
                    yield TextMessage(stream, whole) if isinstance(whole, str) else BinaryMessage(stream, bytes(whole))

    def _close(self, code: int, reason: str, *, clean: bool, ours: int | None = None) -> WebSocketClosed:
        self.is_closed = True
        return WebSocketClosed(self._stream, code, reason, clean, ours)

    def _write(self, event: ws.Event) -> None:
        if self.is_closed:
            raise LocalProtocolError("the WebSocket is closed")
        try:
            frame = self._frames.send(event)
        except FrameError as error:
            raise LocalProtocolError(str(error)) from None
        self._out += frame if self._entropy is None else _mask_anew(frame, self._entropy(4))


def _mask_anew(frame: bytes, key: bytes) -> bytes:
    """Return a client's frame with its mask replaced by `key`."""
    start = 2 + {254: 2, 255: 8}.get(frame[1], 0)
    old = frame[start : start + 4]
    masker = XorMaskerSimple(bytes(a ^ b for a, b in zip(old, key, strict=True)))
    return frame[:start] + key + bytes(masker.process(bytearray(frame[start + 4 :])))


def _agreed(headers: Headers, *, offered: bool) -> PerMessageDeflate | None:
    chosen = headers.get(EXTENSIONS)
    if chosen is None:
        return None
    if not offered or chosen.partition(b";")[0].strip() != DEFLATE:
        raise h11.RemoteProtocolError("the server chose an extension that was not offered")
    extension = PerMessageDeflate()
    extension.finalize(chosen.decode())
    return extension


def _subprotocol(headers: Headers) -> str | None:
    chosen = headers.get(b"sec-websocket-protocol")
    return None if chosen is None else chosen.decode()


def _split_status(fields: Iterable[tuple[bytes, bytes]]) -> tuple[int, Headers]:
    headers = _lower(fields)
    return int(headers.get(b":status") or 0), Headers([pair for pair in headers if not pair[0].startswith(b":")])


def _lower(fields: Iterable[tuple[Any, Any]]) -> Headers:
    return Headers([(bytes(name).lower(), bytes(value)) for name, value in fields])


def _reason(status: int) -> bytes:
    return REASONS.get(status, b"Unknown")
