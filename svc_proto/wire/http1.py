"""HTTP/1.1 over h11, both roles, with the upgrade to WebSocket: the reference implementation.

The fast paths (`http1_fast_path_server`, `http1_fast_path_client`) use it for what they cannot handle; the results are
equal.

Heads are collected and checked here (`http1_head`) before h11 receives one. `http1_chunks` reads chunked bodies, and
h11 receives only their last chunk. Other bodies go straight to h11. If h11 holds bytes of the next request at their
end, they are taken back and a fresh h11 connection is used.

Reading follows the table of `http1_read_state`; h11 decides which events may be written. Stream 0 is a server's
response to a head that is unreadable or does not end. It may start while no request is in progress, and closes the
connection.
"""

from http import HTTPStatus
from typing import cast

import attrs
import h11

from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
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
    ResponseBodyDelegated,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    StreamReset,
    WebSocketAccepted,
)
from svc_proto.wire.http1_chunks import ChunkedBodyReader
from svc_proto.wire.http1_head import (
    END,
    Framing,
    check_partial_head,
    check_request_head,
    check_response_head,
    host_of_target,
)
from svc_proto.wire.http1_read_state import READ_TABLE, ReadState, ReadTrigger
from svc_proto.wire.http1_responses import DelegatedBytes, build_informational, build_response
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.websocket import WebSocket, WebSocketState
from svc_proto.wire.websocket_deflate import DeflateParameters, accept_extension_offer
from svc_proto.wire.websocket_handshake import (
    EXTENSIONS,
    build_accept_headers,
    build_request_headers,
    check_acceptance,
    is_handshake,
    new_key,
)

__all__ = ["BODILESS", "Http1Connection"]

BODILESS = (204, 304)
MAX_INTERIM = 1000  # responses to one request before the final one, as over HTTP/2
CR = 0x0D
SLASH = 0x2F
NO_STREAM = StreamId(0)
ENDED = (h11.DONE, h11.MUST_CLOSE)
PLACEHOLDER_RESPONSE = h11.Response(status_code=200, headers=[])


class Http1Connection:
    """An HTTP/1.1 connection; `wire.connection.Connection` describes its use.

    A client numbers its requests 1, 2, 3, … and sends one when the connection is `idle`; a WebSocket request is
    complete with its head. `deflate` False neither offers nor accepts permessage-deflate. `after` is the number of the
    last request that a fast path has served on this connection.
    """

    __slots__ = (
        "_blank",
        "_chunks",
        "_deflate",
        "_entropy",
        "_eof",
        "_finished",
        "_h11",
        "_head",
        "_inbox",
        "_interim",
        "_key",
        "_limits",
        "_mute",
        "_out",
        "_reading",
        "_role",
        "_searched",
        "_server",
        "_socket",
        "_stale",
        "_stream",
        "_written",
        "_written_key",
    )

    def __init__(
        self,
        role: Role,
        *,
        limits: Limits = DEFAULT_LIMITS,
        entropy: Entropy,
        deflate: bool = True,
        after: StreamId = NO_STREAM,
    ) -> None:
        self._role = role
        self._server = role is Role.SERVER
        self._limits = limits
        self._entropy = entropy
        self._deflate = deflate
        self._stream = after
        self._h11 = self._new_h11()
        self._reading = ReadState.HEAD
        self._inbox = bytearray()  # bytes that were not passed to h11
        self._searched = 0  # length of the searched part of the inbox, for the end of a head
        self._blank = False  # the one empty line before a request was skipped
        self._eof = False
        self._chunks: ChunkedBodyReader | None = None  # the body in progress, if it is chunked
        self._head: RequestHead | None = None  # the request in progress, received or sent
        self._key = b""
        self._interim = 0  # responses, since the request
        self._mute = False  # the response in progress has no body, whatever the handler sends
        self._stale = False  # h11 holds bytes of a later message
        self._finished = False
        self._socket: WebSocket | None = None
        self._out: list[bytes] = []
        # The last response head: on a kept connection the next one is often the same, and h11 checks each anew.
        self._written_key: tuple[int, Headers, bool] | None = None
        self._written = PLACEHOLDER_RESPONSE

    # --- properties ---

    @property
    def must_close(self) -> bool:
        """Implement `Connection.must_close`: report whether no more events can be sent."""
        return self._finished

    @property
    def paused(self) -> bool:
        """Implement `Connection.paused`: report whether bytes wait behind an unanswered request."""
        return self._reading in (ReadState.LAST, ReadState.DONE) and bool(self._inbox)

    @property
    def idle(self) -> bool:
        """Implement `Connection.idle`: report whether the next request may begin, and none of its bytes has arrived."""
        waiting = self._reading is ReadState.HEAD and self._head is None
        return waiting and not (self._inbox or self._eof or self._finished)

    @property
    def buffered_bytes(self) -> int:
        """Implement `Connection.buffered_bytes`: memory for unreturned input, and for a WebSocket's inflater."""
        if self._reading is ReadState.BODY:
            return len(self._h11.trailing_data[0] if self._chunks is None else self._chunks.trailing_data)
        return len(self._inbox) if self._socket is None else self._socket.buffered_bytes

    @property
    def has_partial_head(self) -> bool:
        """Implement `Connection.has_partial_head`: report whether a head has begun to arrive and is not complete."""
        return self._reading is ReadState.HEAD and bool(self._inbox)

    # --- bytes ---

    def receive_data(self, data: bytes) -> None:
        """Implement `Connection.receive_data`; bytes after the end are dropped."""
        if self._eof or not data:
            return
        if self._reading is ReadState.BODY:
            (self._chunks or self._h11).receive_data(data)
        elif self._socket is not None:
            self._socket.receive_data(data)
        elif self._reading is not ReadState.OVER:
            self._inbox += data

    def try_whole_body(self, data: bytes) -> bytes | None:
        """Return the body's piece in `data` if that is exactly one plain chunk and no input is pending; else None.

        The bytes are not consumed: a caller that does not use the piece passes them to `receive_data`.
        """
        chunks = self._chunks
        return None if chunks is None or self._eof or self._reading is not ReadState.BODY else chunks.whole(data)

    def receive_eof(self) -> None:
        """Implement `Connection.receive_eof`: mark the end of the peer's bytes."""
        self._eof = True
        if self._socket is not None:
            self._socket.receive_eof()

    def lift_limits(self, stream: StreamId) -> None:
        """Implement `Connection.lift_limits`: end the special message limit of a WebSocket."""
        if self._socket is not None:
            self._socket.lift_limits(stream)

    def detach_websocket(self) -> WebSocket | None:
        """Return the WebSocket that this connection has become, or None; pending output stays here."""
        return self._socket

    def release(self) -> None:
        """Implement `Connection.release`: release what the cycle collector would otherwise have to find."""
        if self._socket is not None:
            self._socket.release()

    def data_to_send(self) -> bytes:
        """Implement `Connection.data_to_send`: return the queued bytes, and drop them."""
        if self._socket is not None:
            self._out.append(self._socket.data_to_send())
        said, self._out = self._out, []
        return b"".join(said)

    def resume_body(self, chunks: ChunkedBodyReader) -> None:
        """Replace the reader of a chunked body, whose head was returned already, by one that is in progress."""
        self._chunks = chunks

    # --- reading ---

    def next_event(self) -> Event | None:
        """Implement `Connection.next_event`: return the peer's next event, or None."""
        reading = self._reading
        if reading is ReadState.HEAD:
            return self._next_head()
        if reading is ReadState.LAST:
            self._step(ReadTrigger.END)
            self._cycle()
            return RequestEnd(self._stream)
        if reading is ReadState.BODY:
            return self._next_body()
        if self._socket is None:
            return None
        event = self._socket.next_event()
        self._finished = self._socket.state is WebSocketState.CLOSED
        return event

    def _next_head(self) -> Event | None:
        inbox = self._inbox
        if not inbox:
            return self._input_ended() if self._eof else None
        try:
            if self._server:
                if inbox[0] == CR and not self._skip_blank_line():
                    return None
            elif self._head is None:
                raise RemoteProtocolError("bytes that answer no request")
            end = inbox.find(END, max(0, self._searched - len(END) + 1), self._limits.max_head)
            if end == -1:
                check_partial_head(inbox, self._searched, self._limits)
                self._searched = len(inbox)
                return self._input_ended() if self._eof else None
            raw = bytes(inbox[: end + len(END)])
            del inbox[: len(raw)]
            self._searched = 0
            return self._read_request(raw) if self._server else self._read_response(raw)
        except RemoteProtocolError:
            self._stop()
            raise
        except h11.RemoteProtocolError as error:
            self._stop()
            raise _blame(error, "the head is malformed") from None

    def _skip_blank_line(self) -> bool:
        """Skip an empty line before a request line (RFC 9112 section 2.2); return False if more bytes are needed.

        Raise `RemoteProtocolError` for anything else, and for a second empty line.
        """
        if len(self._inbox) == 1 and not self._eof:
            return False
        if self._blank or not self._inbox.startswith(b"\r\n"):
            raise RemoteProtocolError("the request line is missing")
        self._blank = True
        del self._inbox[:2]
        if self._inbox.startswith(b"\r"):
            return self._skip_blank_line()
        return bool(self._inbox)

    def _read_request(self, raw: bytes) -> Event:
        h11_connection = self._h11
        framing = check_request_head(raw, self._limits)
        h11_connection.receive_data(raw)
        request = cast("h11.Request", h11_connection.next_event())
        self._stream = StreamId(self._stream + 1)
        headers = Headers([(name.lower(), value) for name, value in request.headers.raw_items()])
        if request.target[0] != SLASH:
            headers = host_of_target(request.target, headers)
        head = RequestHead(
            self._stream,
            request.method.decode("ascii"),
            request.target.decode("ascii"),
            headers,
            False,
            bool(framing) and h11_connection.they_are_waiting_for_100_continue,
            "1.1" if request.http_version == b"1.1" else "1.0",
        )
        if framing:
            self._feed_body(framing)
        else:
            h11_connection.next_event()  # h11's EndOfMessage; the next call returns ours
            self._step(ReadTrigger.BARE)
            if h11_connection.their_state not in ENDED and is_handshake(head):
                head = attrs.evolve(head, websocket=True)
        self._blank = False
        self._head = head
        return head

    def _read_response(self, raw: bytes) -> Event:
        framing = check_response_head(raw, self._limits)
        self._h11.receive_data(raw)
        response = cast("h11.Response | h11.InformationalResponse", self._h11.next_event())
        status = response.status_code
        headers = Headers([(name.lower(), value) for name, value in response.headers.raw_items()])
        if status == HTTPStatus.SWITCHING_PROTOCOLS:
            return self._switched(headers)
        if status < HTTPStatus.OK:
            self._interim += 1
            if self._interim > MAX_INTERIM:
                raise RemoteProtocolError("too many interim responses")
            return Informational(self._stream, status, headers)
        self._interim = 0
        if status in BODILESS or cast("RequestHead", self._head).method == "HEAD":
            framing = Framing.NONE
        self._feed_body(framing)
        return ResponseHead(self._stream, status, headers, response.http_version.decode("ascii"))

    def _feed_body(self, framing: Framing) -> None:
        self._step(ReadTrigger.FRAMED)
        if framing is Framing.CHUNKED:
            self._chunks = ChunkedBodyReader(self._limits)
        if self._inbox:
            (self._chunks or self._h11).receive_data(bytes(self._inbox))
            self._inbox.clear()

    def _next_body(self) -> Event | None:
        try:
            if self._chunks is not None:
                return self._next_chunks(self._chunks)
            event = self._h11.next_event()
        except RemoteProtocolError:
            self._stop()
            raise
        except h11.RemoteProtocolError as error:
            self._stop()
            raise _blame(error, "the body is malformed") from None
        if type(event) is h11.Data:
            return self._body_data(bytes(event.data))
        if type(event) is h11.EndOfMessage:
            rest, _ = self._h11.trailing_data
            return self._message_ended(event, rest)
        return self._body_cut() if self._eof else None

    def _next_chunks(self, chunks: ChunkedBodyReader) -> Event | None:
        data = chunks.read()
        if data:
            return self._body_data(data)
        if not chunks.finished:
            return self._body_cut() if self._eof else None
        self._h11.receive_data(chunks.last_chunk)
        end = cast("h11.EndOfMessage", self._h11.next_event())
        self._chunks = None
        return self._message_ended(end, chunks.trailing_data)

    def _body_data(self, data: bytes) -> Event:
        return RequestData(self._stream, data) if self._server else ResponseData(self._stream, data)

    def _message_ended(self, end: h11.EndOfMessage, rest: bytes = b"") -> Event:
        trailers = NO_HEADERS
        if end.headers:
            trailers = Headers([(name.lower(), value) for name, value in end.headers.raw_items()])
        if rest:
            self._stale = True
            self._inbox += rest
        self._step(ReadTrigger.END)
        self._cycle()
        return RequestEnd(self._stream, trailers) if self._server else ResponseEnd(self._stream, trailers)

    def _input_ended(self) -> Event | None:
        """Stop at the end of input before a head; return a `StreamReset` if a response was awaited, else None."""
        waiting = self._head is not None
        self._stop()
        self._finished = True
        return StreamReset(self._stream, "the connection ended before the response") if waiting else None

    def _body_cut(self) -> Event:
        self._h11.receive_data(b"")
        try:
            # Only a response that is delimited by the end of the connection is complete now.
            return self._message_ended(cast("h11.EndOfMessage", self._h11.next_event()))
        except h11.RemoteProtocolError:
            self._stop()
            self._finished = True
            return StreamReset(self._stream, "the connection ended within a message")

    # --- writing ---

    def send(self, event: Event) -> None:
        """Implement `Connection.send`: queue an event of this end."""
        current = self._stream
        if self._socket is None:
            if self._head is None:
                current = NO_STREAM if self._server else StreamId(current + 1)
            if self._finished:
                raise self._complain(event)
        if event.stream != current:
            raise self._complain(event)
        if self._socket is not None:
            self._socket.send(event)
        elif self._server:
            self._send_as_server(event)
        else:
            self._send_as_client(event)

    def _complain(self, event: Event) -> LocalProtocolError:
        name = type(event).__name__
        if self._finished:
            return LocalProtocolError(f"{name}: the connection is over")
        return LocalProtocolError(f"{name}: stream {event.stream} is not in progress")

    def _send_as_server(self, event: Event) -> None:
        if isinstance(event, ResponseData):
            if event.data and not self._mute:
                self._write(h11.Data(data=event.data))
        elif isinstance(event, ResponseHead):
            self._send_response_head(event)
        elif isinstance(event, ResponseBodyDelegated):
            if event.length and not self._mute:
                self._skip_stretch(DelegatedBytes(event.length))
        elif isinstance(event, ResponseEnd):
            self._write(h11.EndOfMessage(headers=list(event.trailers)) if event.trailers else h11.EndOfMessage())
            self._finished = self._h11.our_state is h11.MUST_CLOSE or self._reading is ReadState.OVER
            self._cycle()
        elif isinstance(event, Informational) and event.status != HTTPStatus.SWITCHING_PROTOCOLS:
            if self._head is not None and self._head.http_version != "1.0":  # RFC 9110 section 15.2
                self._write(build_informational(event.status, list(event.headers)))
        elif isinstance(event, AcceptWebSocket):
            self._accept(event)
        else:
            raise LocalProtocolError(f"{type(event).__name__} cannot be sent by a server here")

    def _send_response_head(self, event: ResponseHead) -> None:
        head = self._head
        # A peer that waits for 100 (Continue) and gets this may or may not send its body: only closing is unambiguous.
        closing = head is None or self._reading is ReadState.OVER or self._body_withheld()
        key = (event.status, event.headers, closing)
        if key != self._written_key:
            self._written = build_response(event.status, list(event.headers), closing=closing)
            self._written_key = key
        self._write(self._written)
        if head is None:
            self._stop()
        else:
            self._mute = event.status in BODILESS or head.method == "HEAD"

    def _body_withheld(self) -> bool:
        begun = self._chunks is not None and self._chunks.begun
        return self._h11.they_are_waiting_for_100_continue and not begun

    def _accept(self, event: AcceptWebSocket) -> None:
        head = self._head
        if head is None or not head.websocket or self._reading is ReadState.OVER:
            raise LocalProtocolError("AcceptWebSocket: the request is not for a WebSocket")
        agreement = accept_extension_offer(head.headers.all(EXTENSIONS)) if self._deflate else None
        deflate, extensions = agreement or (None, None)
        self._write(build_informational(101, build_accept_headers(head, event, extensions)))
        self._open_socket(deflate, event.max_message)

    def _send_request(self, head: RequestHead) -> None:
        fields = list(head.headers)
        if head.websocket:
            self._key = new_key(self._entropy)
            fields.extend(build_request_headers(self._key, deflate=self._deflate))
        try:
            request = h11.Request(method=head.method, target=head.target, headers=fields)
        except (h11.LocalProtocolError, UnicodeEncodeError):
            raise LocalProtocolError("RequestHead: the method, the target or a header is malformed") from None
        self._write(request)
        self._stream = head.stream
        self._head = head
        if head.websocket:
            self._write(h11.EndOfMessage())

    def _send_as_client(self, event: Event) -> None:
        if isinstance(event, RequestHead) is not (self._head is None):
            raise LocalProtocolError(f"{type(event).__name__}: out of order")
        if isinstance(event, RequestHead):
            self._send_request(event)
        elif isinstance(event, RequestData):
            if event.data:
                self._write(h11.Data(data=event.data))
        elif isinstance(event, RequestEnd):
            if self._head is not None and not self._head.websocket:
                self._write(h11.EndOfMessage(headers=list(event.trailers)))
                self._cycle()
        else:
            raise LocalProtocolError(f"{type(event).__name__} cannot be sent by a client here")

    def _write(self, event: h11.Event) -> None:
        try:
            self._out.extend(self._h11.send_with_data_passthrough(event) or ())
        except h11.LocalProtocolError:
            # The text of h11 may quote a header, which may be a secret.
            raise LocalProtocolError(f"HTTP/1.1 does not allow {type(event).__name__} now") from None

    def _skip_stretch(self, stretch: DelegatedBytes) -> None:
        """Make h11 count body bytes that are written outside of it; what h11 returns for the placeholder is dropped.

        Raise `LocalProtocolError` if the response has no content-length.
        """
        written = len(self._out)
        self._write(h11.Data(data=cast("bytes", stretch)))
        passed = self._out[written:]
        del self._out[written:]
        if len(passed) != 1:  # it was put into a chunk, whose length would have to be written around it
            raise LocalProtocolError("ResponseBodyDelegated: the response has no content-length")

    # --- between messages ---

    def _switched(self, headers: Headers) -> Event:
        head = cast("RequestHead", self._head)
        if not head.websocket:
            raise RemoteProtocolError("a 101 that was not asked for")
        subprotocol, deflate = check_acceptance(head.headers, self._key, headers, deflate=self._deflate)
        self._open_socket(deflate)
        return WebSocketAccepted(self._stream, headers, subprotocol, deflate is not None)

    def _open_socket(self, deflate: DeflateParameters | None, most: int | None = None) -> None:
        self._step(ReadTrigger.SWITCH)
        self._socket = WebSocket(
            self._role, self._stream, limits=self._limits, entropy=self._entropy, deflate=deflate, max_message=most
        )
        if self._inbox:
            self._socket.receive_data(bytes(self._inbox))  # bytes that followed the head
        if self._eof:
            self._socket.receive_eof()
        # A WebSocket may be idle for days, so the state of its handshake is dropped.
        del self._h11, self._inbox
        self._head, self._key, self._written, self._written_key = None, b"", PLACEHOLDER_RESPONSE, None

    def _cycle(self) -> None:
        """Prepare for the next request if request and response are complete; stop if the connection is not kept."""
        if self._reading is not ReadState.DONE:
            return
        state = self._h11.our_state
        if state is h11.MUST_CLOSE or (state is h11.DONE and self._stale and not self._server):
            self._stop()
            self._finished = True
        elif state is h11.DONE:
            if self._stale:
                self._h11 = self._new_h11()
                self._stale = False
            else:
                self._h11.start_next_cycle()
            self._head = None
            self._mute = False
            self._step(ReadTrigger.CYCLE)

    def _stop(self) -> None:
        """Stop reading. A client can send no more then, nor can a server that has responded."""
        self._step(ReadTrigger.STOP)
        self._inbox.clear()
        if not self._server or self._h11.our_state in ENDED:
            self._finished = True

    def _step(self, trigger: ReadTrigger) -> None:
        self._reading = READ_TABLE[self._reading, trigger]

    def _new_h11(self) -> h11.Connection:
        role = h11.SERVER if self._server else h11.CLIENT
        fresh = h11.Connection(role, max_incomplete_event_size=self._limits.max_head)
        if self._stream:
            fresh.their_http_version = b"1.1"  # no other version is kept open
        return fresh


def _blame(error: h11.RemoteProtocolError, what: str) -> RemoteProtocolError:
    """Convert an h11 error into ours, without its text, which may quote a secret."""
    return RemoteProtocolError(what, status=error.error_status_hint)
