"""HTTP/2 over h2 (RFC 9113), both roles, with WebSockets inside (RFC 8441).

Frames are split (`http2_frames`) and counted here before h2 receives them; `http2_head` checks the heads. A malformed
message ends its stream; after a malformed request head a response is sent first (`BadRequest`). A broken rule of the
connection ends the connection with a GOAWAY.

Received bodies hold the peer back until their owner calls `acknowledge_data`; those of a WebSocket are acknowledged at
once. This module reads; `http2_sender` sends.

Limits, and the reaction to each
- 100 streams at a time: REFUSED_STREAM
- 256 KiB of a stream, 1 MiB of the connection not acknowledged: FLOW_CONTROL_ERROR
- 100 messages at once, then 20 a second, that are malformed or refused, or that the peer resets before our response:
  ENHANCE_YOUR_CALM
- 1,000 frames at once, then 100 a second, that request nothing (pings, settings, empty data, window updates that are
  not matched by a kilobyte of data from us): ENHANCE_YOUR_CALM
- heads of more than `max_head` bytes or `max_fields` fields: 431; of twice as many bytes, packed or not, which are not
  read to their end, so that the header tables differ: ENHANCE_YOUR_CALM

Priorities are ignored. The header table of our encoder stays within 4 KiB, regardless of the peer's limit.
"""

from collections import deque

from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    InformationalResponseReceived,
    RemoteSettingsChanged,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    TrailersReceived,
)
from h2.events import Event as H2Event
from h2.events import StreamReset as H2StreamReset
from h2.exceptions import ProtocolError as H2ProtocolError

from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    BadRequest,
    Event,
    Informational,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    StreamReset,
    WebSocketAccepted,
    WebSocketClosed,
)
from svc_proto.wire.hpack_table_size import apply_table_size, shrink_table
from svc_proto.wire.http2_frames import (
    FrameType,
    Http2ConnectionError,
    Http2Frame,
    Http2FrameSplitter,
    encode_goaway,
    parse_goaway,
)
from svc_proto.wire.http2_head import parse_length, parse_request, parse_response, parse_trailers
from svc_proto.wire.http2_sender import BODILESS, NO_ERROR, Http2Sender
from svc_proto.wire.http2_settings import MAX_STREAMS, WINDOW_UPDATE_RATIO, final_frames
from svc_proto.wire.http2_stream import Http2Stream
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.token_bucket import TokenBucket
from svc_proto.wire.websocket_handshake import parse_acceptance

__all__ = ["Http2Connection"]

RESETS, RESETS_RATE = 100, 20  # at once, and for each second
CONTROL_FRAMES, CONTROL_FRAMES_RATE = 1000, 100
KILOBYTE = 1024  # bytes of our data for which one control frame of the peer is free
UNBOUNDED = 2**31 - 1
PROTOCOL_ERROR = ErrorCodes.PROTOCOL_ERROR
MALFORMED = 400  # other statuses answer well-formed requests that are not served here


class Http2Connection(Http2Sender):
    """An HTTP/2 connection; `wire.connection.Connection` describes its use, with the additions below.

    `next_stream` is the stream of a client's next request. `deflate` False neither offers nor accepts
    permessage-deflate; `secure` decides the scheme of a client's requests. `set_time` refills the token buckets.
    """

    __slots__ = ("_control_frames", "_cutter", "_events", "_out", "_parted", "_resets")

    def __init__(
        self,
        role: Role,
        *,
        limits: Limits = DEFAULT_LIMITS,
        entropy: Entropy,
        deflate: bool = True,
        secure: bool = False,
    ) -> None:
        super().__init__(role, limits=limits, entropy=entropy, deflate=deflate, secure=secure)
        self._cutter = Http2FrameSplitter(server=not self._client, max_block=WINDOW_UPDATE_RATIO * limits.max_head)
        self._events: deque[Event] = deque()
        self._parted = False  # we have sent GOAWAY
        self._out = b""  # our last frames, which bypass h2
        self._resets = TokenBucket(RESETS, RESETS_RATE)
        self._control_frames = TokenBucket(CONTROL_FRAMES, CONTROL_FRAMES_RATE)

    # --- properties ---

    @property
    def must_close(self) -> bool:
        """Implement `Connection.must_close`: report whether no more events can be sent."""
        return self._over or (not self._streams and (self._eof or self._goaway_received or self._parted))

    @property
    def paused(self) -> bool:
        """Implement `Connection.paused`: always False, since streams do not wait for each other."""
        return False

    @property
    def idle(self) -> bool:
        """Implement `Connection.idle`: report whether the next request may begin, and none of its bytes has arrived."""
        return not (self._streams or self._waiting or self.must_close or self._cutter.has_partial_head)

    @property
    def buffered_bytes(self) -> int:
        """Implement `Connection.buffered_bytes`: an incomplete frame or head, and incomplete messages."""
        return self._cutter.buffered_bytes + self._held

    @property
    def has_partial_head(self) -> bool:
        """Implement `Connection.has_partial_head`; the preface with the first frame counts as one."""
        return self._cutter.has_partial_head

    # --- bytes ---

    def set_time(self, mono: float) -> None:
        """Set the time to `mono` (monotonic seconds); call it before `receive_data`."""
        self._resets.refill(mono)
        self._control_frames.refill(mono)

    def receive_data(self, data: bytes) -> None:
        """Implement `Connection.receive_data`; bytes after the end are dropped."""
        if not (self._over or self._eof):
            self._cutter.receive(data)

    def receive_eof(self) -> None:
        """Implement `Connection.receive_eof`: mark the end of the peer's bytes."""
        self._eof = True

    def acknowledge_data(self, stream: StreamId, n: int) -> None:
        """Acknowledge up to `n` bytes of a received body, so that the peer may send as many more."""
        entry = self._streams.get(stream)
        if entry is not None and not self._over:
            n = min(n, entry.window_debt)
            entry.window_debt -= n
            self._h2.acknowledge_received_data(n, stream)

    def data_to_send(self, most: int = UNBOUNDED) -> bytes:
        """Return all that can be written now, with at most `most` bytes of bodies; empty if there is nothing."""
        if not self._over:
            written, ended = self._outgoing.write(most)
            self._control_frames.refund(written / KILOBYTE)
            for entry in ended:
                if entry.malformed:
                    self._reset(entry, PROTOCOL_ERROR)
                elif entry.reset_after and not entry.received_end:
                    self._reset(entry, NO_ERROR)
                else:
                    self._forget_if_done(entry)
        data, self._out = self._h2.data_to_send() + self._out, b""
        return data

    # --- reading ---

    def next_event(self) -> Event | None:
        """Implement `Connection.next_event`: return the peer's next event, or None."""
        while not self._over:
            if self._events:
                return self._events.popleft()
            if self._readable:
                event = self._next_websocket_event(self._readable[0])
                if event is not None:
                    return event
                continue
            try:
                frame = self._cutter.next()
                if frame is None:
                    if not (self._eof and self._streams):
                        return None
                    if not self._input_ended():
                        return None
                else:
                    self._handle_frame(frame)
            except Http2ConnectionError as fault:
                self._out += encode_goaway(self._h2.highest_inbound_stream_id, fault.code)
                self._stop()
                raise RemoteProtocolError(f"HTTP/2: {fault}") from None
            except H2ProtocolError as error:  # its text may quote a header
                said, code = final_frames(self._h2, error)
                self._out = said + self._out
                self._stop()
                raise RemoteProtocolError(f"HTTP/2: {code.name.lower().replace('_', ' ')}") from None
        return None

    def _handle_frame(self, frame: Http2Frame) -> None:
        self._charge(frame)
        if frame.type == FrameType.GOAWAY:
            self._on_goaway(frame)
            return
        shrink_table(self._h2.encoder, frame)
        for event in self._h2.receive_data(frame.raw):
            self._translate(event)

    def _charge(self, frame: Http2Frame) -> None:
        kind = frame.type
        if kind not in (FrameType.HEADERS, FrameType.CONTINUATION) and (
            kind != FrameType.DATA or frame.stream not in self._streams
        ):
            self._spend(self._control_frames, "too many frames that ask for nothing")

    def _spend(self, allowance: TokenBucket, what: str) -> None:
        if not allowance.consume():
            raise Http2ConnectionError(ErrorCodes.ENHANCE_YOUR_CALM, what)

    def _translate(self, event: H2Event) -> None:
        if isinstance(event, RemoteSettingsChanged):
            self._settings()
            return
        entry = self._streams.get(StreamId(getattr(event, "stream_id", None) or 0))
        if isinstance(event, RequestReceived):
            self._request(event)
        elif entry is None:
            return  # about the connection, or an ended stream
        elif isinstance(event, DataReceived):
            self._data(entry, event)
        elif isinstance(event, StreamEnded):
            self._ended(entry)
        elif isinstance(event, ResponseReceived | InformationalResponseReceived):
            self._response(entry, event)
        elif isinstance(event, TrailersReceived):
            try:
                entry.received_trailers = parse_trailers(event.headers or (), self._limits)
            except RemoteProtocolError as error:
                self._break(entry, str(error))
        elif isinstance(event, H2StreamReset):
            if not (entry.sent_head or self._client) or not event.remote_reset:
                self._spend(self._resets, "too many requests that were reset")
            self._lose(entry, "the peer reset the stream")

    def _request(self, event: RequestReceived) -> None:
        stream, ended = StreamId(event.stream_id or 0), event.stream_ended is not None
        if self._parted or len(self._streams) >= MAX_STREAMS:
            self._spend(self._resets, "too many streams")
            self._h2.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
            return
        fields, heads = event.headers or (), self._h2.decoder.block.heads
        try:
            read = heads.get(ended) or parse_request(stream, fields, self._limits, ended=ended)
        except RemoteProtocolError as error:
            self._spend(self._resets, "too many requests that cannot be served")
            self._refuse(stream, error, method="HEAD" if (b":method", b"HEAD") in fields else "GET", ended=ended)
            return
        heads[ended] = read
        head = read if read.stream == stream else _restored_head(read, stream)
        due = None if ended or head.websocket else parse_length(head.headers)
        self._streams[stream] = Http2Stream(stream, head, received_head=True, due=due)
        self._events.append(head)
        if head.websocket:  # complete with its head, as over HTTP/1.1
            self._events.append(RequestEnd(stream))

    def _refuse(self, stream: StreamId, error: RemoteProtocolError, *, method: str, ended: bool) -> None:
        entry = Http2Stream(stream, RequestHead(stream, method, "/"), received_head=True, received_end=ended)
        entry.malformed = error.status == MALFORMED
        self._streams[stream] = entry
        self._events.append(BadRequest(stream, error.status, error.code, str(error), method))

    def _response(self, entry: Http2Stream, event: ResponseReceived | InformationalResponseReceived) -> None:
        try:
            status, headers = parse_response(event.headers or (), self._limits)
            if isinstance(event, InformationalResponseReceived):
                self._spend(self._control_frames, "too many interim responses")
                self._events.append(Informational(entry.id, status, headers))
                return
            entry.received_head = True
            if entry.head.websocket and status == 200:
                choice, deflate = parse_acceptance(entry.head.headers, headers, deflate=self._deflate)
                self._open_socket(entry, deflate)
                self._events.append(WebSocketAccepted(entry.id, headers, choice, deflate is not None))
                return
            bodiless = entry.head.method == "HEAD" or status in BODILESS
            entry.due = 0 if bodiless else parse_length(headers)
            if event.stream_ended is not None and entry.due:
                raise RemoteProtocolError("the body is shorter than Content-Length")
        except RemoteProtocolError as error:
            self._break(entry, str(error))
            return
        self._events.append(ResponseHead(entry.id, status, headers, "2"))
        if entry.head.websocket:  # declined: the client sends no body
            entry.sent_end = True
            self._outgoing.add(entry)

    def _data(self, entry: Http2Stream, event: DataReceived) -> None:
        data, size = event.data or b"", event.flow_controlled_length or 0
        if entry.socket is not None:
            self._h2.acknowledge_received_data(size, entry.id)
            entry.socket.receive_data(data)
            self._readable.append(entry)
            return
        self._h2.acknowledge_received_data(size - len(data), entry.id)  # padding is acknowledged at once
        entry.window_debt += len(data)
        if entry.due is not None:
            entry.due -= len(data)
            if entry.due < 0:
                self._break(entry, "the body is longer than Content-Length")
                return
        if not data:
            if event.stream_ended is None:
                self._spend(self._control_frames, "too much empty data")
        elif entry.head.websocket and not (self._client and entry.received_head):
            self._break(entry, "data before the WebSocket is open")
        else:
            self._events.append(ResponseData(entry.id, data) if self._client else RequestData(entry.id, data))

    def _ended(self, entry: Http2Stream) -> None:
        if entry.due:
            self._break(entry, "the body is shorter than Content-Length")
            return
        entry.received_end = True
        if entry.socket is not None:
            entry.socket.receive_eof()
            self._readable.append(entry)
        elif self._client:
            self._events.append(ResponseEnd(entry.id, entry.received_trailers))
        elif not entry.head.websocket:
            self._events.append(RequestEnd(entry.id, entry.received_trailers))
        self._forget_if_done(entry)

    def _next_websocket_event(self, entry: Http2Stream) -> Event | None:
        assert entry.socket is not None  # as of all readable streams
        event = entry.socket.next_event()
        if event is None:
            self._readable.popleft()
        elif isinstance(event, WebSocketClosed):
            entry.sent_end = True
        if entry.id in self._streams:
            self._queue_socket_data(entry, entry.socket.buffered_bytes)
            self._outgoing.add(entry)  # perhaps a pong or a close frame
        return event

    def _settings(self) -> None:
        apply_table_size(self._h2.encoder)
        if not self._settings_received:
            self._settings_received = True
            waiting, self._waiting = self._waiting, []
            for event in waiting:
                if isinstance(event, RequestHead):
                    self._try_request(event)
                elif event.stream in self._streams:
                    self._send_as_client(event)

    def _try_request(self, head: RequestHead) -> None:
        try:
            self._send_request(head)
        except LocalProtocolError as error:  # the `send` call has returned long ago
            self._events.append(StreamReset(head.stream, str(error)))

    def _on_goaway(self, frame: Http2Frame) -> None:
        last, _ = parse_goaway(frame)
        self._goaway_received = True
        if self._client:
            for entry in [entry for entry in self._streams.values() if entry.id > last]:
                self._h2.reset_stream(entry.id, ErrorCodes.CANCEL)
                self._lose(entry, "the server did not look at the request before it went away")

    def _input_ended(self) -> bool:
        """End the streams whose message from the peer is incomplete; return False if there are none."""
        lost = [entry for entry in self._streams.values() if not entry.received_end]
        for entry in lost:
            self._lose(entry, "the connection ended within a message")
        return bool(lost)

    # --- the end ---

    def go_away(self) -> None:
        """Server: accept no further streams; those that have begun are finished."""
        if not (self._parted or self._over):
            self._parted = True
            self._out += encode_goaway(self._h2.highest_inbound_stream_id, NO_ERROR)

    def _break(self, entry: Http2Stream, why: str) -> None:
        """Reset a stream on which the peer broke a rule, and report a `StreamReset`; raise if there were too many."""
        self._spend(self._resets, "too many malformed messages")
        self._reset(entry, PROTOCOL_ERROR)
        self._events.append(StreamReset(entry.id, why))

    def _lose(self, entry: Http2Stream, why: str) -> None:
        """Drop a stream that cannot be completed.

        The end is reported by its WebSocket, if it has one, otherwise by a `StreamReset`, unless a client has the whole
        response.
        """
        self._forget(entry)
        if entry.socket is not None:
            entry.socket.receive_eof()
            self._readable.append(entry)
        elif not (self._client and entry.received_end):
            self._events.append(StreamReset(entry.id, why))

    def _stop(self) -> None:
        self._over = True
        self._streams.clear()
        self._outgoing.clear()
        self._readable.clear()
        self._events.clear()
        self._cutter.clear()


def _restored_head(head: RequestHead, stream: StreamId) -> RequestHead:
    """Return the same head for another stream."""
    return RequestHead(
        stream, head.method, head.target, head.headers, head.websocket, head.expects_continue, head.http_version
    )
