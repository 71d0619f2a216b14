"""Sans-IO HTTP/2 client of the tests, by h2."""

from collections.abc import Iterable
from contextlib import suppress
from http import HTTPStatus

from attrs import define, field
from h2 import events as h2_events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError, StreamClosedError
from h2.settings import SettingCodes, Settings
from wsproto.connection import ConnectionType
from wsproto.utilities import LocalProtocolError as FrameError

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire import events
from tests.support import http_codec
from tests.support.websocket_codec import EXTENSIONS, OFFER, WebSocketCodec, agreed_extension, subprotocol_of

STREAM_WINDOW, CONNECTION_WINDOW = 256 * 1024, 1024 * 1024  # bytes
FRAME_HEAD = 9  # bytes, RFC 9113 section 4.1
GOAWAY = 7


@define(eq=False)
class _Stream:
    head: events.RequestHead
    queue: bytearray = field(factory=bytearray)  # waits for window
    ended: bool = False  # nothing is queued behind `queue`
    sent_end: bool = False
    received_head: bool = False
    received_end: bool = False
    reset_after: bool = False  # reset behind the end
    unconsumed: int = 0  # bytes of the body
    socket: WebSocketCodec | None = None
    trailers: events.Headers = events.NO_HEADERS


class Http2Client(http_codec.HttpCodec):
    """Client side of an HTTP/2 connection, with WebSockets by extended CONNECT (RFC 8441)."""

    def __init__(self, entropy: http_codec.Entropy, *, deflate: bool = True) -> None:
        super().__init__()
        self._entropy = entropy
        self._deflate = deflate
        self._next = http_codec.FIRST
        self._streams: dict[events.StreamId, _Stream] = {}
        self._waiting: list[events.Event] | None = []  # events until the server's settings have arrived
        self._frames = bytearray()
        self._left = False  # the peer has sent GOAWAY
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        values = {
            SettingCodes.ENABLE_PUSH: 0,
            SettingCodes.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            SettingCodes.MAX_HEADER_LIST_SIZE: http_codec.MAX_HEAD,
        }
        self._h2.local_settings = Settings(client=True, initial_values=values)
        self._h2.decoder.max_header_list_size = http_codec.MAX_HEAD
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

    def open_stream(self) -> events.StreamId:
        return self._next

    def is_open(self, stream: events.StreamId) -> bool:
        """Report whether a stream has begun, and is neither reset, lost nor ended in both directions."""
        return stream in self._streams

    # --- sending ---

    def send(self, event: events.Event) -> None:
        if self._waiting is not None and (self._waiting or getattr(event, "websocket", False)):
            if isinstance(event, events.RequestHead):
                self._next = events.StreamId(event.stream + 2)
            self._waiting.append(event)
            return
        try:
            self._send(event)
        except (ProtocolError, FrameError) as error:
            raise LocalProtocolError(str(error)) from None

    def abandon(self, stream: events.StreamId) -> None:
        """Reset a stream at once, if it is open."""
        known = self._streams.get(stream)
        if known is not None:
            self._reset(stream, known)

    def consume(self, stream: events.StreamId, n: int) -> None:
        known = self._streams.get(stream)
        if known is not None and n:
            known.unconsumed -= n
            self._h2.acknowledge_received_data(n, stream)

    def data_to_send(self) -> bytes:
        for stream, known in list(self._streams.items()):
            self._flush(stream, known)
        return super().data_to_send() + self._h2.data_to_send()

    def _send(self, event: events.Event) -> None:
        stream = event.stream
        if isinstance(event, events.RequestHead):
            if not self.is_ready:
                raise LocalProtocolError("no further request may be sent")
            if event.websocket and not self._h2.remote_settings.enable_connect_protocol:
                raise LocalProtocolError("the server opens no WebSockets over HTTP/2")
            self._h2.send_headers(stream, self._request_fields(event))
            self._streams[stream] = _Stream(event)
            self._next = events.StreamId(max(self._next, stream + 2))
            return
        known = self._streams.get(stream)
        if known is None:
            raise LocalProtocolError(f"{type(event).__name__}: stream {stream} is not in progress")
        if isinstance(event, events.StreamReset):
            if known.ended and not known.sent_end:
                known.reset_after = True
            else:
                self._reset(stream, known)
        elif known.socket is not None:
            known.socket.send(event)
        elif isinstance(event, events.RequestData) and not known.ended:
            known.queue += event.data
        elif isinstance(event, events.RequestEnd) and not known.ended:
            known.ended, known.trailers = not known.head.websocket, event.trailers
        else:
            raise LocalProtocolError(f"a client cannot send {type(event).__name__} here")

    def _request_fields(self, head: events.RequestHead) -> list[tuple[bytes, bytes]]:
        fields = [(b":method", b"CONNECT" if head.websocket else head.method.encode())]
        fields += [(b":protocol", b"websocket")] if head.websocket else []
        fields += [(b":scheme", b"http"), (b":path", head.target.encode())]
        fields += [(b":authority", head.headers.get(b"host") or b"")]
        fields += [pair for pair in head.headers if pair[0] not in (b"host", b"connection")]
        if head.websocket:
            fields += [(b"sec-websocket-version", b"13"), *([(EXTENSIONS, OFFER)] if self._deflate else [])]
        return fields

    def _flush(self, stream: events.StreamId, known: _Stream) -> None:
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

    def _room(self, stream: events.StreamId) -> int:
        return max(0, min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size))

    def _reset(self, stream: events.StreamId, known: _Stream) -> None:
        with suppress(StreamClosedError):
            self._h2.reset_stream(stream, ErrorCodes.NO_ERROR if known.sent_end else ErrorCodes.CANCEL)
        self._forget(stream, known)

    def _forget_if_done(self, stream: events.StreamId, known: _Stream) -> None:
        if known.sent_end and known.received_end:
            self._forget(stream, known)

    def _forget(self, stream: events.StreamId, known: _Stream) -> None:
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
                self._lose(stream, known, http_codec.CONNECTION_CUT)

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
                self._lose(stream, known, http_codec.UNREAD_REQUEST)

    def _on_settings(self) -> None:
        waiting, self._waiting = self._waiting, None
        for event in waiting or ():
            try:
                self.send(event)
            except LocalProtocolError as error:
                if isinstance(event, events.RequestHead):
                    self._events.append(events.StreamReset(event.stream, str(error)))

    def _translate(self, event: object) -> None:
        if isinstance(event, h2_events.RemoteSettingsChanged):
            self._on_settings()
            return
        stream = events.StreamId(getattr(event, "stream_id", None) or 0)
        known = self._streams.get(stream)
        match event:
            case h2_events.DataReceived():
                self._on_data(stream, known, event)
            case _ if known is None:
                pass
            case h2_events.InformationalResponseReceived():
                status, headers = _split_status(event.headers or ())
                self._events.append(events.Informational(stream, status, headers))
            case h2_events.ResponseReceived():
                self._on_response(stream, known, event)
            case h2_events.TrailersReceived():
                known.trailers = http_codec.lower_headers(event.headers or ())
            case h2_events.StreamEnded():
                known.received_end = True
                if known.socket is not None:
                    self._events.extend(known.socket.receive_data(b""))
                    known.ended = True
                else:
                    self._events.append(
                        events.ResponseEnd(stream, known.trailers if known.received_head else events.Headers())
                    )
                self._forget_if_done(stream, known)
            case h2_events.StreamReset():
                self._lose(stream, known, http_codec.PEER_RESET)

    def _on_response(self, stream: events.StreamId, known: _Stream, event: h2_events.ResponseReceived) -> None:
        status, headers = _split_status(event.headers or ())
        known.received_head, known.trailers = True, events.Headers()
        if known.head.websocket and status == HTTPStatus.OK:
            extension = agreed_extension(headers, offered=self._deflate)
            known.socket = WebSocketCodec(stream, ConnectionType.CLIENT, self._entropy, extension)
            self._events.append(
                events.WebSocketAccepted(stream, headers, subprotocol_of(headers), extension is not None)
            )
        else:
            known.ended = known.ended or known.head.websocket
            self._events.append(events.ResponseHead(stream, status, headers, "2"))

    def _on_data(self, stream: events.StreamId, known: _Stream | None, event: h2_events.DataReceived) -> None:
        data, size = event.data or b"", event.flow_controlled_length or 0
        kept = 0 if known is None or known.socket is not None else len(data)
        if size > kept:
            self._h2.acknowledge_received_data(size - kept, stream)
        if known is None or not data:
            return
        if known.socket is None:
            known.unconsumed += kept
            self._events.append(events.ResponseData(stream, data))
            return
        self._events.extend(known.socket.receive_data(data))
        known.ended = known.ended or known.socket.is_closed

    def _lose(self, stream: events.StreamId, known: _Stream, reason: str) -> None:
        self._forget(stream, known)
        if known.socket is not None:
            self._events.extend(known.socket.receive_data(b""))
        elif not known.received_end:
            self._events.append(events.StreamReset(stream, reason))


def _split_status(fields: Iterable[tuple[bytes, bytes]]) -> tuple[int, events.Headers]:
    headers = http_codec.lower_headers(fields)
    return int(headers.get(b":status") or 0), events.Headers([pair for pair in headers if not pair[0].startswith(b":")])
