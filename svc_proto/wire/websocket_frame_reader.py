"""Reading of WebSocket frames: a fast path for plain frames, wsproto for all others.

wsproto is the reference implementation. A frame is plain if it is a whole message, or a ping or a pong. It is final,
not compressed, and masked as its direction requires (RFC 6455 section 5.1). Its length has the shortest form and is
within the limit; it is completely received, and UTF-8 if it is text. Such a frame is cut out of the bytes and unmasked
at once. wsproto always receives a frame from its first byte on:

| input                                              | reader of the following bytes                              |
|----------------------------------------------------|------------------------------------------------------------|
| a plain frame, or a header that may become one     | the fast path                                              |
| a compressed message, or a partly received one     | wsproto, up to the end of that frame; then the fast path   |
| anything else: fragments, closes, broken rules     | wsproto, permanently                                       |

So an idle WebSocket has no wsproto in memory, unless wsproto reads permanently. The results are equal: the fuzz target
`frames` compares both.
"""

from enum import IntEnum, auto

from wsproto.frame_protocol import Frame, FrameProtocol, Opcode

from svc_proto.wire.websocket_deflate import InflateGuard

__all__ = ["FrameReader"]

MASK = 0x80  # of the second byte; the rest of it is a length
SHORT = 125  # bytes: the longest payload whose length is in the second byte, RFC 6455 section 5.2
TWO_BYTES = 126  # in place of a length: two bytes of it follow; 127: eight
MOST = (1 << 63) - 1  # bytes of a payload, RFC 6455 section 5.2
TEXT, BINARY, PING, PONG = 0x81, 0x82, 0x89, 0x8A  # first bytes of plain frames
PROBES = (PING, PONG)
PACKED = (0xC1, 0xC2)  # RSV1: compressed, RFC 7692 section 6
PLAIN = {TEXT: Opcode.TEXT, BINARY: Opcode.BINARY, PING: Opcode.PING, PONG: Opcode.PONG}


class FrameParser(IntEnum):
    """Parser of the next input: the fast path, wsproto for one frame, or wsproto from now on."""

    FAST_PATH = auto()
    WSPROTO_ONCE = auto()
    WSPROTO = auto()


_FAST_PATH = FrameParser.FAST_PATH  # alias, as in `wire.websocket`


class FrameReader:
    """Reader of a WebSocket's frames, in wsproto's form. `guard` checks and inflates the input of wsproto."""

    __slots__ = ("_buffer", "_client", "_frame_bytes_left", "_guard", "_parser", "_position", "_reference")

    def __init__(self, client: bool, guard: InflateGuard) -> None:
        self._client = client
        self._guard = guard
        self._reference: FrameProtocol | None = None  # wsproto, while it reads
        self._parser = _FAST_PATH
        self._buffer = b""  # input that is unread from `_position` on
        self._position = 0
        self._frame_bytes_left = 0  # bytes to come of the frame that wsproto reads

    def receive_bytes(self, data: bytes) -> None:
        """Receive bytes from the peer."""
        if self._reference is not None and self._parser is not _FAST_PATH:
            consumed = data if self._parser is FrameParser.WSPROTO else data[: self._frame_bytes_left]
            self._reference.receive_bytes(consumed)
            if self._parser is FrameParser.WSPROTO:
                return
            self._frame_bytes_left -= len(consumed)
            data = data[len(consumed) :]
        self._buffer = self._buffer[self._position :] + data if self._buffer else data
        self._position = 0

    def read_texts(self, data: bytes) -> tuple[list[str], bool]:
        """Receive bytes, as `receive_bytes` does, and return the plain texts that they begin with.

        Return none of them while earlier input is pending. The second value is whether input is left that `next_frame`
        may return.
        """
        texts: list[str] = []
        if self._buffer or self._parser is not _FAST_PATH:
            self.receive_bytes(data)
            return texts, True
        at, here, most = 0, len(data), self._guard.max_message
        marked, least = (0, 2) if self._client else (MASK, 6)  # the second byte's bit, bytes of the shortest frame
        while here - at >= least and data[at] == TEXT:
            size, begin = data[at + 1] ^ marked, at + least
            if size == TWO_BYTES:
                size, begin = int.from_bytes(data[at + 2 : at + 4], "big"), begin + 2
                if size < TWO_BYTES:
                    break
            elif size > TWO_BYTES:  # eight bytes of length, or a wrong mask bit
                break
            end = begin + size
            if size > most or end > here:
                break
            payload = data[begin:end] if self._client else _unmasked(data[begin - 4 : begin], data[begin:end])
            try:
                texts.append(payload.decode("utf-8"))
            except UnicodeDecodeError:
                break
            at = end
        self._buffer, self._position = data[at:], 0
        return texts, at < here

    def next_frame(self) -> Frame | None:
        """Return the next frame, or a part of it; None when more bytes are needed. Raises `ParseFailed`."""
        if self._parser is _FAST_PATH:
            frame = self._cut()
            if frame is not None or self._parser is _FAST_PATH:
                return frame
        assert self._reference is not None
        frame = next(self._reference.received_frames(), None)
        if self._parser is FrameParser.WSPROTO_ONCE and frame is not None and frame.message_finished:
            self._parser = _FAST_PATH
            self._drop_reference()
        return frame

    def close(self) -> None:
        """Drop all received data at once, without waiting for the cycle collector."""
        self._buffer = b""
        self._drop_reference()

    def _drop_reference(self) -> None:
        """Drop wsproto, which otherwise keeps the last message in its generator, a part of a reference cycle."""
        if self._reference is not None:
            self._reference._parse_more.close()
            self._reference = None

    def _cut(self) -> Frame | None:
        """Return a plain frame; None when more bytes are needed, or when wsproto has to read."""
        buffer, at = self._buffer, self._position
        here, begin = len(buffer), at + 2
        if here < begin:
            return None
        first, size = buffer[at], buffer[at + 1] & ~MASK
        probe, packed = first in PROBES, first in PACKED
        known = first in PLAIN or (packed and self._guard.deflated)
        if not known or (buffer[at + 1] >= MASK) is self._client or (probe and size > SHORT):
            return self._obey()
        if size > SHORT:
            least = SHORT if size == TWO_BYTES else 0xFFFF
            begin += 2 if size == TWO_BYTES else 8
            if here < begin:
                return None
            size = int.from_bytes(buffer[at + 2 : begin], "big")
            if size <= least or size > MOST:
                return self._obey()
        if size > self._guard.max_message and not (probe or packed):
            return self._obey()
        if not self._client:
            begin += 4  # the mask
        end = begin + size
        if here < begin or (here < end and probe):
            return None
        if here < end or packed:
            return self._lend(end)
        return self._whole(first, begin, end)

    def _whole(self, first: int, begin: int, end: int) -> Frame | None:
        """Return the plain frame whose payload is complete; None for invalid text, which wsproto reports."""
        buffer = self._buffer
        payload = buffer[begin:end]
        if not self._client:
            payload = _unmasked(buffer[begin - 4 : begin], payload)
        content: bytes | str = payload
        if first == TEXT:
            try:
                content = payload.decode("utf-8")
            except UnicodeDecodeError:
                return self._obey()
        self._advance_to(end)
        return Frame(PLAIN[first], content, True, True)

    def _advance_to(self, end: int) -> None:
        """Mark input as read. The rest is not moved for each frame: a buffer may hold thousands."""
        self._position = end
        if end >= len(self._buffer):
            self._buffer, self._position = b"", 0

    def _lend(self, end: int) -> Frame | None:
        """Pass the frame up to `end` to wsproto, and return None."""
        self._parser = FrameParser.WSPROTO_ONCE
        buffer, at = self._buffer, self._position
        self._frame_bytes_left = max(0, end - len(buffer))
        self._advance_to(end)
        self._start_reference(buffer[at:end])
        return None

    def _obey(self) -> Frame | None:
        """Pass all further input to wsproto, and return None."""
        self._parser = FrameParser.WSPROTO
        self._start_reference(self._buffer[self._position :])
        self._buffer, self._position = b"", 0
        return None

    def _start_reference(self, data: bytes) -> None:
        self._reference = FrameProtocol(self._client, [self._guard])
        self._reference.receive_bytes(data)


def _unmasked(key: bytes, payload: bytes) -> bytes:
    """Unmask a payload (RFC 6455 section 5.3) in one operation on integers."""
    size = len(payload)
    mask = int.from_bytes((key * (size // 4 + 1))[:size], "little")
    return (int.from_bytes(payload, "little") ^ mask).to_bytes(size, "little")
