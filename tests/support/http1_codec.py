"""Sans-IO HTTP/1.1 driver of the tests, by h11: a client and a server."""

import base64
from abc import abstractmethod
from http import HTTPStatus

import h11
from wsproto.connection import ConnectionType
from wsproto.extensions import PerMessageDeflate
from wsproto.utilities import generate_accept_token

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire import events
from tests.support.http_codec import CONNECTION_CUT, MAX_HEAD, Entropy, HttpCodec, lower_headers
from tests.support.websocket_codec import DEFLATE, EXTENSIONS, OFFER, WebSocketCodec, agreed_extension, subprotocol_of

REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}


class _Http1Codec(HttpCodec):
    """Common part of the HTTP/1.1 client and server: h11, and wsproto once the connection is a WebSocket."""

    def __init__(self, role: type[h11.CLIENT | h11.SERVER], entropy: Entropy, *, deflate: bool) -> None:
        super().__init__()
        self._h11 = h11.Connection(role, max_incomplete_event_size=MAX_HEAD)
        self._entropy = entropy
        self._deflate = deflate
        self._stream = events.StreamId(0)  # of the request in progress
        self._head: events.RequestHead | None = None
        self._socket: WebSocketCodec | None = None

    def open_stream(self) -> events.StreamId:
        return events.StreamId(self._stream + 1)

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
                self._events.append(events.StreamReset(self._stream, CONNECTION_CUT))

    def send(self, event: events.Event) -> None:
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
    def _send(self, event: events.Event) -> None: ...

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
        self._socket = WebSocketCodec(self._stream, kind, self._entropy, extension)
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

    def _send(self, event: events.Event) -> None:
        match event:
            case events.RequestHead(method=method, target=target, headers=headers, websocket=websocket):
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
            case events.RequestData(data=data):
                self._write(h11.Data(data=data))
            case events.RequestEnd() if self._head is not None and self._head.websocket:
                pass
            case events.RequestEnd(trailers=trailers):
                self._write(h11.EndOfMessage(headers=list(trailers)))
                self._cycle()
            case _:
                raise LocalProtocolError(f"a client cannot send {type(event).__name__} here")

    def _translate(self, event: h11.Event) -> None:
        match event:
            case h11.InformationalResponse(status_code=HTTPStatus.SWITCHING_PROTOCOLS):
                headers = lower_headers(event.headers)
                if headers.get(b"sec-websocket-accept") != generate_accept_token(self._key):
                    raise h11.RemoteProtocolError("Sec-WebSocket-Accept does not match the key")
                extension = agreed_extension(headers, offered=self._deflate)
                self._events.append(
                    events.WebSocketAccepted(self._stream, headers, subprotocol_of(headers), extension is not None)
                )
                self._open_socket(ConnectionType.CLIENT, extension)
            case h11.InformationalResponse():
                self._events.append(events.Informational(self._stream, event.status_code, lower_headers(event.headers)))
            case h11.Response(http_version=version):
                head = events.ResponseHead(
                    self._stream, event.status_code, lower_headers(event.headers), version.decode()
                )
                self._events.append(head)
            case h11.Data(data=data):
                self._events.append(events.ResponseData(self._stream, bytes(data)))
            case h11.EndOfMessage(headers=trailers):
                self._events.append(events.ResponseEnd(self._stream, lower_headers(trailers)))
                self._cycle()


class Http1Server(_Http1Codec):
    """Server side of an HTTP/1.1 connection."""

    def __init__(self, entropy: Entropy = bytes) -> None:
        super().__init__(h11.SERVER, entropy, deflate=True)
        self._bodiless = False

    def _send(self, event: events.Event) -> None:
        match event:
            case events.ResponseHead(status=status, headers=headers) if self._head is not None:
                self._bodiless = status in (204, 304) or self._head.method == "HEAD"
                fields = [pair for pair in headers if status != HTTPStatus.NO_CONTENT or pair[0] != b"content-length"]
                self._write(h11.Response(status_code=status, headers=fields, reason=_reason(status)))
            case events.ResponseData(data=data):
                if data and not self._bodiless:
                    self._write(h11.Data(data=data))
            case events.ResponseEnd(trailers=trailers):
                self._write(h11.EndOfMessage(headers=list(trailers)))
                self._cycle()
                self._read()
            case events.AcceptWebSocket(headers=headers) if self._head is not None and self._head.websocket:
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
            case events.Informational(status=status, headers=headers):
                interim = h11.InformationalResponse(status_code=status, headers=list(headers), reason=_reason(status))
                self._write(interim)
            case _:
                raise LocalProtocolError(f"a server cannot send {type(event).__name__} here")

    def _translate(self, event: h11.Event) -> None:
        match event:
            case h11.Request():
                headers = lower_headers(event.headers)
                websocket = headers.get(b"upgrade") == b"websocket"
                self._stream = events.StreamId(self._stream + 1)
                self._head = events.RequestHead(
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
                self._events.append(events.RequestData(self._stream, bytes(data)))
            case h11.EndOfMessage(headers=trailers):
                self._events.append(events.RequestEnd(self._stream, lower_headers(trailers)))


def _reason(status: int) -> bytes:
    return REASONS.get(status, b"Unknown")
