"""Sending half of an HTTP/2 connection, both roles: which event is in order, and its encoding.

Bodies wait on their stream until the peer's windows are open and `data_to_send` may return more: see `unsent`.
"""

from collections import deque
from contextlib import suppress

from attrs import evolve
from h2.errors import ErrorCodes
from h2.exceptions import StreamClosedError

from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    NO_HEADERS,
    AcceptWebSocket,
    Event,
    Headers,
    Informational,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    StreamReset,
)
from svc_proto.wire.http2_head import (
    Fields,
    accept_fields,
    declared_length,
    request_fields,
    response_fields,
    trailer_fields,
)
from svc_proto.wire.http2_send_scheduler import SendScheduler
from svc_proto.wire.http2_settings import new_h2
from svc_proto.wire.http2_stream import Http2Stream
from svc_proto.wire.limits import Limits
from svc_proto.wire.websocket import WebSocket, WebSocketState
from svc_proto.wire.websocket_deflate import DeflateParameters

__all__ = ["BODILESS", "NO_ERROR", "Http2Sender"]

BODILESS, INTERIM = (204, 304), (100, *range(102, 200))  # statuses
NO_ERROR = ErrorCodes.NO_ERROR


class Http2Sender:
    """Sending half of `Http2Connection`, with the streams that both halves use."""

    __slots__ = (
        "_client",
        "_deflate",
        "_entropy",
        "_eof",
        "_goaway_received",
        "_h2",
        "_held",
        "_limits",
        "_outgoing",
        "_over",
        "_readable",
        "_role",
        "_secure",
        "_settings_received",
        "_streams",
        "_waiting",
    )

    def __init__(self, role: Role, *, limits: Limits, entropy: Entropy, deflate: bool, secure: bool) -> None:
        self._role = role
        self._client = role is Role.CLIENT
        self._limits = limits
        self._entropy = entropy
        self._deflate = deflate
        self._secure = secure
        self._held = 0  # bytes of memory for incomplete messages
        self._streams: dict[StreamId, Http2Stream] = {}
        self._readable: deque[Http2Stream] = deque()  # those whose WebSocket may have events
        self._waiting: list[Event] = []  # of a client, until the server's settings decide about WebSockets
        self._settings_received = False  # the peer's settings have come
        self._eof = False
        self._goaway_received = False  # the peer has sent GOAWAY
        self._over = False
        self._h2 = new_h2(client=self._client, limits=limits)
        self._outgoing = SendScheduler(self._h2)

    # --- properties ---

    @property
    def next_stream(self) -> StreamId:
        """Client: the number of the next request."""
        waiting = sum(isinstance(event, RequestHead) for event in self._waiting)
        return StreamId(self._h2.get_next_available_stream_id() + 2 * waiting)

    @property
    def ready(self) -> bool:
        """Client: report whether one more request may be sent now."""
        allowed = self._h2.remote_settings.max_concurrent_streams
        return not (self._over or self._goaway_received or self._eof) and len(self._streams) < allowed

    @property
    def opens_sockets(self) -> bool | None:
        """Client: report whether the server supports WebSockets (RFC 8441); None until its settings have come."""
        return bool(self._h2.remote_settings.enable_connect_protocol) if self._settings_received else None

    def unsent(self, stream: StreamId) -> int:
        """Return the number of queued bytes: of a body, or of the frames of a WebSocket."""
        entry = self._streams.get(stream)
        if entry is None:
            return 0
        entry.fill()
        return entry.queued

    def knows(self, stream: StreamId) -> bool:
        """Report whether a stream is in progress: either end's message is incomplete, or ours is not written yet."""
        return stream in self._streams

    def awaits_request_end(self, stream: StreamId) -> bool:
        """Server: report whether the response is complete while the rest of the request is still read.

        False for a malformed request and for a WebSocket. A reset with NO_ERROR in place of reading is permitted (RFC
        9113 section 8.1), but existing clients discard the response then.
        """
        entry = self._streams.get(stream)
        return (
            entry is not None
            and entry.sent_end
            and entry.socket is None
            and not (entry.received_end or entry.malformed)
        )

    @property
    def has_unsent(self) -> bool:
        """Report whether a stream is scheduled for output; it may turn out to have none."""
        return bool(self._outgoing)

    def lift_limits(self, stream: StreamId) -> None:
        """Implement `Connection.lift_limits`: end the special message limit of a WebSocket."""
        entry = self._streams.get(stream)
        if entry is not None and entry.socket is not None:
            entry.socket.lift_limits(stream)

    def release(self) -> None:
        """Implement `Connection.release`: release what the cycle collector would otherwise have to find."""
        for entry in self._streams.values():
            if entry.socket is not None:
                entry.socket.release()
        self._h2.release()

    # --- sending ---

    def send(self, event: Event) -> None:
        """Implement `Connection.send`.

        A `StreamReset` ends a stream: at once, or after a complete message.
        """
        if self._over:
            raise LocalProtocolError(f"{type(event).__name__}: the connection is over")
        if not self._client:
            self._send_as_server(event, self._find(event))
        elif not self._settings_received and (self._waiting or (isinstance(event, RequestHead) and event.websocket)):
            self._waiting.append(event)
        else:
            self._send_as_client(event)

    def reset_stream(self, stream: StreamId) -> None:
        """Reset a stream now and drop its queue; harmless when it has ended."""
        entry = self._streams.get(stream)
        if entry is not None and not self._over:
            self._reset(entry, NO_ERROR if entry.wrote_end else ErrorCodes.CANCEL)

    def _find(self, event: Event) -> Http2Stream:
        entry = self._streams.get(event.stream)
        if entry is None:
            raise LocalProtocolError(f"{type(event).__name__}: stream {event.stream} is not in progress")
        return entry

    def _send_as_server(self, event: Event, entry: Http2Stream) -> None:
        if isinstance(event, StreamReset):
            self._reset_stream(entry)
        elif entry.socket is not None:
            entry.socket.send(event)
            self._outgoing.add(entry)
        elif isinstance(event, ResponseData) and entry.sent_head and not entry.sent_end:
            self._queue_data(entry, event.data)
        elif isinstance(event, ResponseHead) and not entry.sent_head:
            self._send_response(entry, event)
        elif isinstance(event, ResponseEnd) and entry.sent_head and not entry.sent_end:
            self._end(entry, event.trailers)
        elif isinstance(event, Informational) and event.status in INTERIM and not entry.sent_head:
            self._headers(entry, [(b":status", b"%d" % event.status), *trailer_fields(event.headers)])
        elif isinstance(event, AcceptWebSocket) and entry.head.websocket and not entry.sent_head:
            fields, deflate = accept_fields(entry.head, event, deflate=self._deflate)
            self._headers(entry, fields)
            entry.sent_head = True
            self._open_socket(entry, deflate, event.max_message)
        else:
            raise LocalProtocolError(f"{type(event).__name__} cannot be sent by a server here")

    def _send_response(self, entry: Http2Stream, event: ResponseHead) -> None:
        fields = response_fields(event)
        mute = event.status in BODILESS or entry.head.method == "HEAD"
        entry.length = declared_length(fields)
        entry.wrote_end = mute and not entry.malformed
        self._headers(entry, fields, end=entry.wrote_end)
        entry.sent_head = True
        entry.no_body = mute

    def _send_as_client(self, event: Event) -> None:
        if isinstance(event, RequestHead):
            self._send_request(event)
            return
        entry = self._find(event)
        if isinstance(event, StreamReset):
            self._reset_stream(entry)
        elif entry.socket is not None:
            entry.socket.send(event)
            self._outgoing.add(entry)
        elif isinstance(event, RequestData) and not (entry.sent_end or entry.head.websocket):
            self._queue_data(entry, event.data)
        elif isinstance(event, RequestEnd) and not entry.sent_end:
            if not entry.head.websocket:
                self._end(entry, event.trailers)
        else:
            raise LocalProtocolError(f"{type(event).__name__} cannot be sent by a client here")

    def _send_request(self, head: RequestHead) -> None:
        if not self.ready or head.stream % 2 == 0 or head.stream < self._h2.get_next_available_stream_id():
            raise LocalProtocolError("RequestHead: not now, or not on this stream")
        if head.websocket and not self.opens_sockets:
            raise LocalProtocolError("RequestHead: the server opens no WebSockets over HTTP/2")
        fields = request_fields(head, secure=self._secure, deflate=self._deflate)
        entry = Http2Stream(head.stream, head, sent_head=True, length=declared_length(fields))
        self._headers(entry, fields)
        self._streams[head.stream] = entry

    def _headers(self, entry: Http2Stream, fields: Fields, *, end: bool = False) -> None:
        self._h2.send_headers_fast(entry.id, fields, end=end)

    def _queue_data(self, entry: Http2Stream, data: bytes) -> None:
        if data and not entry.no_body:
            entry.count(data)
            entry.queue_data(data)
            self._outgoing.add(entry)

    def _end(self, entry: Http2Stream, trailers: Headers) -> None:
        entry.ended()
        entry.trailers = trailers
        if not entry.wrote_end:
            self._outgoing.add(entry)
        self._forget_if_done(entry)

    # --- sockets, and the end of a stream ---

    def _open_socket(
        self, entry: Http2Stream, deflate: DeflateParameters | None, max_message: int | None = None
    ) -> None:
        limits, entropy = self._limits, self._entropy
        entry.socket = WebSocket(
            self._role, entry.id, limits=limits, entropy=entropy, deflate=deflate, max_message=max_message
        )
        entry.head = evolve(entry.head, headers=NO_HEADERS)  # a WebSocket may live for long
        if entry.received_end:
            entry.socket.receive_eof()
            self._readable.append(entry)

    def _reset_stream(self, entry: Http2Stream) -> None:
        if entry.wrote_end:  # RFC 9113 section 8.1: the rest of the request is not needed
            self._reset(entry, NO_ERROR)
        elif entry.sent_end or (entry.socket is not None and entry.socket.state is WebSocketState.CLOSED):
            entry.reset_after = entry.sent_end = True
            self._outgoing.add(entry)
        else:
            self._reset(entry, ErrorCodes.INTERNAL_ERROR if not self._client else ErrorCodes.CANCEL)

    def _reset(self, entry: Http2Stream, code: ErrorCodes) -> None:
        with suppress(StreamClosedError):  # both ends have ended it, the peer perhaps with this very frame
            self._h2.reset_stream(entry.id, code)
        self._forget(entry)

    def _forget_if_done(self, entry: Http2Stream) -> None:
        if entry.received_end and entry.wrote_end and entry.sent_end and not entry.queued:
            self._forget(entry)

    def _queue_socket_data(self, entry: Http2Stream, size: int) -> None:
        self._held += size - entry.buffered_bytes
        entry.buffered_bytes = size

    def _forget(self, entry: Http2Stream) -> None:
        entry.drop_queue()
        self._queue_socket_data(entry, 0)
        self._outgoing.remove(entry)
        if self._streams.pop(entry.id, None) is not None and entry.window_debt:
            self._h2.acknowledge_received_data(entry.window_debt, entry.id)  # all streams share the connection's window
