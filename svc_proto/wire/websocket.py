"""WebSocket framing after the opening handshake, both roles, over any stream of bytes (RFC 6455, RFC 7692).

`wire.websocket_frame_reader` reads the frames, by wsproto where they are not plain, and `wire.websocket_frame_writer`
writes them. This module adds the closing handshake as a table, whole messages, limits, automatic pongs, and masking
from injected entropy.

State that an idle WebSocket does not need is created on demand: a relay holds thousands of them.

| state   | trigger  | next    |
|---------|----------|---------|
| OPEN    | CLOSE    | CLOSING | we sent a close frame and wait for the peer's
| OPEN    | PEER     | CLOSED  | a close frame came and was echoed
| OPEN    | FAILURE  | CLOSED  | the peer broke a rule; our close frame has the code
| OPEN    | EOF      | CLOSED  |
| CLOSING | PEER     | CLOSED  |
| CLOSING | FAILURE  | CLOSED  | nothing is sent: our close frame is out
| CLOSING | EOF      | CLOSED  |

Limits
- a message of more than `max_message` bytes, inflated, or of more than 65,536 frames before the last: close 1009.
  Nothing is inflated beyond that, and the received part of the message is dropped at once
- pings answered between two flushes: the last 64 (RFC 6455 section 5.5.3 requires the last one)
- a message of less than 1,024 bytes, or characters of a `str`, is not compressed: it would hardly shrink
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum, auto
from typing import Any, AnyStr, Generic

from wsproto.frame_protocol import CloseReason, Frame, Opcode, ParseFailed

from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.connection import Connection, Role
from svc_proto.wire.events import (
    BinaryMessage,
    CloseWebSocket,
    Event,
    Ping,
    Pong,
    StreamId,
    TextFragment,
    TextMessage,
    WebSocketClosed,
)
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.websocket_deflate import MIN_ZLIB_BITS, DeflateParameters, Deflater, InflateGuard
from svc_proto.wire.websocket_frame_reader import FrameReader
from svc_proto.wire.websocket_frame_writer import MAX_CONTROL, encode_close_payload, encode_frame

__all__ = ["WEBSOCKET_TABLE", "WebSocket", "WebSocketState", "WebSocketTrigger"]

COMPRESS_FROM = 1024  # bytes
MAX_PONGS = 64  # unsent pongs; the oldest is dropped (RFC 6455 section 5.5.3)
FOLD_AT = 1024  # pieces of a message that are joined into one, so that tiny fragments cost no memory
NO_CODE = 1005  # RFC 6455 section 7.1.5: the close frame had no code
NO_CLOSE = 1006  # RFC 6455 section 7.1.5: there was no close frame
INFLATE_ERROR = "error in extension"  # wsproto's text for a code that a hook of ours returned
REASONS = {
    CloseReason.PROTOCOL_ERROR: "a message frame is out of order",
    CloseReason.MESSAGE_TOO_BIG: "the message is too big",
    CloseReason.INVALID_FRAME_PAYLOAD_DATA: "the payload is not valid",
}


class WebSocketState(IntEnum):
    """States of the closing handshake."""

    OPEN = auto()
    CLOSING = auto()
    CLOSED = auto()


class WebSocketTrigger(IntEnum):
    """Triggers of the state changes of the closing handshake."""

    CLOSE = auto()
    PEER = auto()
    FAILURE = auto()
    EOF = auto()


WEBSOCKET_TABLE: dict[tuple[WebSocketState, WebSocketTrigger], WebSocketState] = {
    (WebSocketState.OPEN, WebSocketTrigger.CLOSE): WebSocketState.CLOSING,
    (WebSocketState.OPEN, WebSocketTrigger.PEER): WebSocketState.CLOSED,
    (WebSocketState.OPEN, WebSocketTrigger.FAILURE): WebSocketState.CLOSED,
    (WebSocketState.OPEN, WebSocketTrigger.EOF): WebSocketState.CLOSED,
    (WebSocketState.CLOSING, WebSocketTrigger.PEER): WebSocketState.CLOSED,
    (WebSocketState.CLOSING, WebSocketTrigger.FAILURE): WebSocketState.CLOSED,
    (WebSocketState.CLOSING, WebSocketTrigger.EOF): WebSocketState.CLOSED,
}
_OPEN, _TEXT = WebSocketState.OPEN, Opcode.TEXT  # aliases: finding an Enum member is slow in Python 3.11


class WebSocket(Connection):
    """An open WebSocket. `deflate` is the result of the handshake, None for no compression.

    After a switch from HTTP/1.1 it replaces the whole connection.
    """

    __slots__ = (
        "_client",
        "_deflater",
        "_entropy",
        "_eof",
        "_fragment_size",
        "_guard",
        "_is_fragment_sent",
        "_limits",
        "_out",
        "_pieces",
        "_pongs",
        "_reader",
        "_state",
        "_stream",
    )

    def __init__(
        self,
        role: Role,
        stream: StreamId,
        *,
        limits: Limits = DEFAULT_LIMITS,
        entropy: Entropy,
        deflate: DeflateParameters | None = None,
        max_message: int | None = None,
    ) -> None:
        """Initialize; until `lift_limits`, `max_message` is the limit if it is smaller than that of `limits`."""
        self._client = role is Role.CLIENT
        self._stream = stream
        self._entropy = entropy
        self._state = _OPEN
        self._limits = limits
        self._guard = InflateGuard(min(limits.max_message, max_message or limits.max_message), deflate)
        self._reader: FrameReader | None = FrameReader(self._client, self._guard)  # None after the end
        self._deflater = self._new_deflater(deflate)
        self._pieces: _MessageFragments[Any] | None = None  # of a message that comes in fragments
        self._fragment_size = 0  # bytes; 0: all messages are read whole
        self._is_fragment_sent = False  # and not the last one of its message
        self._eof = False
        self._pongs: deque[bytes] | None = None  # waiting for the next flush
        self._out: list[bytes] = []

    paused = idle = has_partial_head = False

    @property
    def must_close(self) -> bool:
        """Implement `Connection.must_close`: report whether no more events can be sent."""
        return self._state is WebSocketState.CLOSED

    @property
    def state(self) -> WebSocketState:
        """State of the closing handshake."""
        return self._state

    @property
    def buffered_bytes(self) -> int:
        """Implement `Connection.buffered_bytes`: memory for the inflater and the fragments of a message."""
        return self._guard.buffered_bytes + (0 if self._pieces is None else self._pieces.held)

    def lift_limits(self, stream: StreamId) -> None:
        """Implement `Connection.lift_limits`: end the special message limit of a WebSocket."""
        self._guard.max_message = self._limits.max_message

    def enable_fragments(self, size: int) -> None:
        """Let `next_event` return what is held of an incomplete text message, once it exceeds `size` bytes of memory.

        The event is a `TextFragment`. A message that is complete before that is returned whole, whatever its size.
        """
        self._fragment_size = size

    def receive_data(self, data: bytes) -> None:
        """Implement `Connection.receive_data`; `next_event` parses only one event, so events do not accumulate."""
        if self._reader is not None and not self._eof:
            self._reader.receive_bytes(data)

    def receive_texts(self, data: bytes) -> tuple[list[str], bool]:
        """Receive bytes in place of `receive_data`, and return the plain text messages that they begin with.

        Those are the first events that `next_event` would have returned. The second value is whether `next_event` may
        return more.
        """
        if self._state is _OPEN and self._pieces is None and not self._eof and self._reader is not None:
            return self._reader.read_texts(data)
        self.receive_data(data)
        return [], True

    def receive_eof(self) -> None:
        """Implement `Connection.receive_eof`: mark the end of the peer's bytes."""
        self._eof = True

    def next_event(self) -> Event | None:
        """Implement `Connection.next_event`; the final event is `WebSocketClosed`."""
        while self._reader is not None:
            try:
                frame = self._reader.next_frame()
            except ParseFailed as problem:
                return self._fail(problem)
            if frame is None:
                return self._end_of_input() if self._eof else None
            event = self._read(frame)
            if event is not None:
                return event
        return None

    def send(self, event: Event) -> None:
        """Queue a message or a part, a ping, a pong, or our close frame.

        When the WebSocket is not open, a close is ignored and any other event raises `LocalProtocolError`. So do a
        whole message among the parts of another one, a close code that must not be sent, a ping or pong of more than
        `MAX_CONTROL` bytes, a lone surrogate in a text, and an event of another type.
        """
        if isinstance(event, CloseWebSocket):
            if self._state is _OPEN:
                self._write_close(event.code, event.reason)
                self._step(WebSocketTrigger.CLOSE)
            return
        if self._state is not _OPEN:
            raise LocalProtocolError(f"the WebSocket is {self._state.name.lower()}")
        match event:
            case TextMessage(text=content) | BinaryMessage(data=content):
                self.send_message(content, isinstance(event, BinaryMessage))
            case TextFragment():
                self._send_fragment(event)
            case Ping(payload=payload) | Pong(payload=payload) if len(payload) <= MAX_CONTROL:
                self._out.append(self._control(Opcode.PING if isinstance(event, Ping) else Opcode.PONG, payload))
            case Ping() | Pong():
                raise LocalProtocolError(f"a ping or pong carries at most {MAX_CONTROL} bytes")
            case _:
                raise LocalProtocolError(f"{type(event).__name__} cannot be sent on a WebSocket")

    def release(self) -> None:
        """Implement `Connection.release`: release what the cycle collector would otherwise have to find."""
        reader, self._reader, self._pieces = self._reader, None, None
        self._guard.release()
        if reader is not None:
            reader.close()

    def data_to_send(self) -> bytes:
        """Implement `Connection.data_to_send`: return the queued bytes, and drop them."""
        pongs, out = self._pongs, self._out
        if pongs is None and not out:
            return b""
        data = b"".join(out) if pongs is None else b"".join((*pongs, *out))
        self._pongs = None
        out.clear()
        return data

    # --- reading ---

    def _read(self, frame: Frame) -> Event | None:
        payload = frame.payload
        if isinstance(payload, tuple):
            return self._closed_by_peer(int(payload[0]), payload[1])
        if self._state is WebSocketState.CLOSING:
            return None  # RFC 6455 section 1.4: after our close frame the peer's messages are dropped
        if isinstance(payload, bytes) and frame.opcode.iscontrol():
            return self._probed(frame.opcode, payload)
        if self._pieces is not None or not frame.message_finished:
            pieces = self._pieces = self._pieces or _MessageFragments(payload[:0])
            pieces.add(payload)
            if not frame.message_finished:
                return self._read_fragment(pieces)
            self._pieces = None
            payload = pieces.whole()
            if pieces.is_read_in_parts:
                return TextFragment(self._stream, payload, True)
        if isinstance(payload, str):
            return TextMessage(self._stream, payload)
        return BinaryMessage(self._stream, payload)

    def _read_fragment(self, pieces: _MessageFragments[Any]) -> TextFragment | None:
        """Return what is held of an incomplete text message, if over the size of `enable_fragments`; else None."""
        if not self._fragment_size or pieces.held <= self._fragment_size or not pieces.is_text:
            return None
        return TextFragment(self._stream, pieces.read_part(), False)

    def _probed(self, opcode: Opcode, payload: bytes) -> Event:
        if opcode is Opcode.PONG:
            return Pong(self._stream, payload)
        if self._pongs is None:
            self._pongs = deque(maxlen=MAX_PONGS)
        self._pongs.append(self._control(Opcode.PONG, payload))
        return Ping(self._stream, payload)

    def _closed_by_peer(self, code: int, reason: str) -> Event:
        if self._state is _OPEN:
            self._write_close(code, "")
        self._step(WebSocketTrigger.PEER)
        return WebSocketClosed(self._stream, code, reason)

    def _fail(self, problem: ParseFailed) -> Event:
        ours: int | None = None
        reason = str(problem)
        if problem.code is not CloseReason.PROTOCOL_ERROR or reason == INFLATE_ERROR:
            reason = REASONS[problem.code]  # wsproto's text for bad UTF-8 depends on the cut of the input
        if self._state is _OPEN:
            ours = int(problem.code)
            self._write_close(ours, reason)
        self._step(WebSocketTrigger.FAILURE)
        return WebSocketClosed(self._stream, NO_CLOSE, reason, clean=False, closed_by_us=ours)

    def _end_of_input(self) -> Event:
        self._step(WebSocketTrigger.EOF)
        return WebSocketClosed(self._stream, NO_CLOSE, "the peer closed without a close frame", clean=False)

    # --- writing ---

    def send_message(self, content: str | bytes, binary: bool = False) -> None:
        """Queue a message; bytes are UTF-8 text, unless `binary`.

        Raises `LocalProtocolError` if the WebSocket is not open, after a `TextFragment` that was not the last of its
        message, and for a lone surrogate in a text.
        """
        if self._state is not _OPEN:
            raise LocalProtocolError(f"the WebSocket is {self._state.name.lower()}")
        if self._is_fragment_sent:
            raise LocalProtocolError("a message cannot be sent among the parts of another one")
        payload = _encode(content) if isinstance(content, str) else content
        packer = self._deflater if len(content) >= COMPRESS_FROM else None
        if packer is not None:
            payload = packer.pack(payload)
        key = self._key() if self._client else b""
        self._out.append(encode_frame(Opcode.BINARY if binary else _TEXT, payload, packer is not None, key))

    def _send_fragment(self, fragment: TextFragment) -> None:
        """Queue a part of a message, which is not compressed."""
        opcode = Opcode.CONTINUATION if self._is_fragment_sent else _TEXT
        payload = _encode(fragment.text)
        self._is_fragment_sent = not fragment.is_last
        self._out.append(encode_frame(opcode, payload, key=self._key(), final=fragment.is_last))

    def _write_close(self, code: int, reason: str) -> None:
        if code == NO_CODE:
            payload = b""
        elif _may_be_sent(code):
            payload = encode_close_payload(code, reason)
        else:
            raise LocalProtocolError(f"close code {code} cannot be sent")
        self._out.append(self._control(Opcode.CLOSE, payload))

    def _control(self, opcode: Opcode, payload: bytes) -> bytes:
        return encode_frame(opcode, payload, key=self._key())

    def _key(self) -> bytes:
        return self._entropy(4) if self._client else b""  # RFC 6455 section 5.3

    def _new_deflater(self, deflate: DeflateParameters | None) -> Deflater | None:
        if deflate is None:
            return None
        bits = deflate.client_max_window_bits if self._client else deflate.server_max_window_bits
        alone = deflate.client_no_context_takeover if self._client else deflate.server_no_context_takeover
        if bits < MIN_ZLIB_BITS:
            return None  # allowed: an agreed compression may always stay unused
        return Deflater(bits, alone=alone)

    def _step(self, trigger: WebSocketTrigger) -> None:
        self._state = WEBSOCKET_TABLE[self._state, trigger]
        if self._state is WebSocketState.CLOSED:  # the connection may linger: no part of a message is kept
            self.release()


class _MessageFragments(Generic[AnyStr]):
    """Collector of the fragments of one message."""

    __slots__ = ("_empty", "_folded", "_pieces", "held", "is_read_in_parts")

    def __init__(self, empty: AnyStr) -> None:
        self._empty: AnyStr = empty
        self._pieces: list[AnyStr] = []
        self._folded: list[AnyStr] = []
        self.held = 0  # bytes of memory; a character may take four
        self.is_read_in_parts = False

    @property
    def is_text(self) -> bool:
        """Report whether the message is a text."""
        return isinstance(self._empty, str)

    def add(self, piece: AnyStr) -> None:
        """Add the next fragment of the message."""
        if piece:
            self._pieces.append(piece)
            self.held += piece.__sizeof__()
        if len(self._pieces) >= FOLD_AT:
            self._folded.append(self._empty.join(self._pieces))
            self._pieces.clear()
            self.held = sum(folded.__sizeof__() for folded in self._folded)

    def whole(self) -> AnyStr:
        """Return the joined content of the message that `read_part` has not returned."""
        return self._empty.join(self._folded + self._pieces)

    def read_part(self) -> AnyStr:
        """Return the joined content so far, and drop it."""
        part = self.whole()
        self._pieces, self._folded, self.held = [], [], 0
        self.is_read_in_parts = True
        return part


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise LocalProtocolError("a text message cannot hold a lone surrogate") from None


def _may_be_sent(code: int) -> bool:
    return 1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999
