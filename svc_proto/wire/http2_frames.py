"""Splitting of bytes into HTTP/2 frames (RFC 9113 section 4), one at a time, before h2 receives them.

h2 parses all its input in one call, and drops earlier results when the rest is wrong. One frame at a time gives the
same events for any cut of the bytes. It also enforces the rules that h2 omits before h2 does any work:

section 3.4    the client's preface, byte for byte; then SETTINGS before anything else
section 4.2    no frame over 16,384 bytes: FRAME_SIZE_ERROR at its header, no byte of it is kept
section 4.3    a header block is not interrupted; one of more than `max_block` bytes or 64 frames is ENHANCE_YOUR_CALM
section 6.5    an acknowledgement of settings that has a payload: FRAME_SIZE_ERROR; more than 32 settings in a frame,
               of which there are less than ten: ENHANCE_YOUR_CALM
"""

import struct
from enum import IntEnum

from attrs import frozen
from h2.errors import ErrorCodes

__all__ = [
    "PREFACE",
    "Http2FrameSplitter",
    "Http2ConnectionError",
    "Http2Frame",
    "FrameType",
    "encode_goaway",
    "parse_goaway",
]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # RFC 9113 section 3.4
HEADER = 9  # bytes, RFC 9113 section 4.1
MAX_PAYLOAD = 16_384  # bytes, RFC 9113 section 4.2: the default of SETTINGS_MAX_FRAME_SIZE
MAX_PIECES = 64  # frames of a header block, including empty ones
MAX_SETTINGS = 32 * 6  # bytes
ACK = 0x1
END_HEADERS = 0x4
STREAM_MASK = 0x7FFF_FFFF
GOAWAY_SIZE = 8


class FrameType(IntEnum):
    """Types of frames, RFC 9113 section 6."""

    DATA = 0x0
    HEADERS = 0x1
    PRIORITY = 0x2
    RST_STREAM = 0x3
    SETTINGS = 0x4
    PUSH_PROMISE = 0x5
    PING = 0x6
    GOAWAY = 0x7
    WINDOW_UPDATE = 0x8
    CONTINUATION = 0x9


class Http2ConnectionError(Exception):
    """Violation of a rule of the connection by the peer; internal to `wire`."""

    def __init__(self, code: ErrorCodes, message: str) -> None:
        super().__init__(message)
        self.code = code


@frozen
class Http2Frame:
    """A frame: `type` may be unknown, `raw` is all of it."""

    type: int
    flags: int
    stream: int
    raw: bytes

    @property
    def size(self) -> int:
        """Bytes of payload."""
        return len(self.raw) - HEADER


class Http2FrameSplitter:
    """Parser of bytes into frames."""

    __slots__ = ("_begun", "_block", "_inbox", "_max_block", "_pieces", "_preface", "_stream")

    def __init__(self, *, server: bool, max_block: int) -> None:
        self._inbox = bytearray()
        self._preface = PREFACE if server else b""
        self._max_block = max_block
        self._begun = False  # the first frame has come
        self._stream = 0  # whose header block is open
        self._block = 0  # bytes of it
        self._pieces = 0  # frames of it

    @property
    def has_partial_head(self) -> bool:
        """Report whether a header block is known to be incomplete, or bytes wait before the first frame is complete."""
        if self._stream or (self._inbox and not self._begun):
            return True
        return len(self._inbox) > 3 and self._inbox[3] == FrameType.HEADERS

    @property
    def buffered_bytes(self) -> int:
        """Received bytes of a frame and of a header block that are not complete."""
        return len(self._inbox) + self._block

    def receive(self, data: bytes) -> None:
        """Append received bytes; `next` parses them."""
        self._inbox += data

    def clear(self) -> None:
        """Drop all bytes that were not parsed."""
        self._inbox.clear()

    def next(self) -> Http2Frame | None:
        """Return the next frame, or None when more bytes are needed. Raises `Http2ConnectionError` for a violation."""
        inbox = self._inbox
        if self._preface and not self._read_preface():
            return None
        if len(inbox) < HEADER:
            return None
        size = int.from_bytes(inbox[:3], "big")
        kind, flags = inbox[3], inbox[4]
        stream = int.from_bytes(inbox[5:HEADER], "big") & STREAM_MASK
        self._check(kind, flags, stream, size)
        if len(inbox) < HEADER + size:
            return None
        raw = bytes(inbox[: HEADER + size])
        del inbox[: HEADER + size]
        self._begun = True
        if kind in (FrameType.HEADERS, FrameType.CONTINUATION):
            self._block += size
            self._pieces += 1
            self._stream = 0 if flags & END_HEADERS else stream
            if not self._stream:
                self._block = self._pieces = 0
        return Http2Frame(kind, flags, stream, raw)

    def _read_preface(self) -> bool:
        inbox, preface = self._inbox, self._preface
        if not preface.startswith(inbox[: len(preface)]):
            raise Http2ConnectionError(ErrorCodes.PROTOCOL_ERROR, "the connection preface is malformed")
        if len(inbox) < len(preface):
            return False
        del inbox[: len(preface)]
        self._preface = b""
        return True

    def _check(self, kind: int, flags: int, stream: int, size: int) -> None:
        if not self._begun and (kind != FrameType.SETTINGS or flags & ACK):
            raise Http2ConnectionError(ErrorCodes.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        if size > MAX_PAYLOAD:
            raise Http2ConnectionError(ErrorCodes.FRAME_SIZE_ERROR, f"a frame of more than {MAX_PAYLOAD} bytes")
        if (kind == FrameType.CONTINUATION) is not bool(self._stream) or (self._stream and stream != self._stream):
            raise Http2ConnectionError(
                ErrorCodes.PROTOCOL_ERROR, "a header block is interrupted, or continued where none is open"
            )
        if kind in (FrameType.HEADERS, FrameType.CONTINUATION):
            if self._block + size > self._max_block:
                raise Http2ConnectionError(
                    ErrorCodes.ENHANCE_YOUR_CALM, f"a header block of more than {self._max_block} bytes"
                )
            if self._pieces >= MAX_PIECES:
                raise Http2ConnectionError(
                    ErrorCodes.ENHANCE_YOUR_CALM, f"a header block of more than {MAX_PIECES} frames"
                )
        elif kind == FrameType.SETTINGS and size:
            if flags & ACK:
                raise Http2ConnectionError(ErrorCodes.FRAME_SIZE_ERROR, "an acknowledgement of settings with a payload")
            if size > MAX_SETTINGS:
                raise Http2ConnectionError(ErrorCodes.ENHANCE_YOUR_CALM, "too many settings in a frame")


def encode_goaway(last: int, code: int) -> bytes:
    """Return a GOAWAY frame, RFC 9113 section 6.8."""
    return struct.pack(">BHBBLLL", 0, GOAWAY_SIZE, FrameType.GOAWAY, 0, 0, last, code)


def parse_goaway(frame: Http2Frame) -> tuple[int, int]:
    """Return the last stream that the peer will process, and its error code.

    Raise `Http2ConnectionError` for a malformed frame.
    """
    if frame.stream:
        raise Http2ConnectionError(ErrorCodes.PROTOCOL_ERROR, "GOAWAY on a stream")
    if frame.size < GOAWAY_SIZE:
        raise Http2ConnectionError(ErrorCodes.FRAME_SIZE_ERROR, "GOAWAY is too short")
    last, code = struct.unpack_from(">LL", frame.raw, HEADER)
    return last & STREAM_MASK, code
