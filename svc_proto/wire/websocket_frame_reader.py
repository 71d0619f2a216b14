"""Reading WebSocket frames: the plain lane for what peers nearly always send, wsproto for everything else.

wsproto is the law. A frame is plain if it is a whole message, or a ping or a pong: final, not compressed, masked as its
direction demands (RFC 6455 section 5.1), its length in the shortest form, within the limit, in one piece here, and text
of it UTF-8. Such a one is cut out of the bytes and unmasked at once. What the law is asked, it is asked from the first
byte of a frame on:

| what comes                                         | who reads on                                              |
|----------------------------------------------------|-----------------------------------------------------------|
| a plain frame, or a header that may become one     | the lane                                                  |
| a compressed message, or one of which a part came  | the law, up to the end of that frame; then the lane again |
| anything else: fragments, closes, broken rules     | the law, for good                                         |

So an idle socket has no wsproto in memory, and nobody can tell the two apart: the fuzz target `frames` has both say the
same.
"""

from __future__ import annotations

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
    """Who reads what comes next."""

    FAST_PATH = auto()
    WSPROTO_ONCE = auto()
    WSPROTO = auto()


_LANE = FrameParser.FAST_PATH  # as in `wire.websocket`


class FrameReader:
    """The frames of one socket, as wsproto gives them. `guard` judges and inflates what the law reads."""

    __slots__ = ("_at", "_buffer", "_client", "_guard", "_law", "_left", "_who")

    def __init__(self, client: bool, guard: InflateGuard) -> None:
        self._client = client
        self._guard = guard
        self._law: FrameProtocol | None = None  # from the first frame on that is not plain
        self._who = _LANE
        self._buffer = b""  # that nobody has read yet, from `_at` on
        self._at = 0
        self._left = 0  # bytes to come of the frame that the law reads

    def receive_bytes(self, data: bytes) -> None:
        """Take bytes from the peer."""
        if self._law is not None and self._who is not _LANE:
            mine = data if self._who is FrameParser.WSPROTO else data[: self._left]
            self._law.receive_bytes(mine)
            if self._who is FrameParser.WSPROTO:
                return
            self._left -= len(mine)
            data = data[len(mine) :]
        self._buffer = self._buffer[self._at :] + data if self._buffer else data
        self._at = 0

    def read_texts(self, data: bytes) -> tuple[list[str], bool]:
        """Take bytes, as `receive_bytes` does, and tell the plain texts that they begin with.

        The other is whether anything is left that `next_frame` may tell.
        """
        texts: list[str] = []
        if self._buffer or self._who is not _LANE:
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
            elif size > TWO_BYTES:  # eight bytes of length, or the mask is not as it has to be
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
        self._buffer, self._at = data[at:], 0
        return texts, at < here

    def next_frame(self) -> Frame | None:
        """The next frame, or what there is of it; None when more bytes are needed. Raises `ParseFailed`."""
        if self._who is _LANE:
            frame = self._cut()
            if frame is not None or self._who is _LANE:
                return frame
        assert self._law is not None
        frame = next(self._law.received_frames(), None)
        if self._who is FrameParser.WSPROTO_ONCE and frame is not None and frame.message_finished:
            self._who = _LANE
        return frame

    def close(self) -> None:
        """Let go of all that has come: at once, not when cycles are next collected."""
        self._buffer = b""
        if self._law is not None:
            self._law._parse_more.close()  # a generator that holds the reader that holds it

    def _cut(self) -> Frame | None:
        """A plain frame; None when more bytes are needed, or when it is the law's turn."""
        buffer, at = self._buffer, self._at
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
        """The plain frame whose payload is there; None if it is text that is none, which the law has to say."""
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
        self._go_to(end)
        return Frame(PLAIN[first], content, True, True)

    def _go_to(self, end: int) -> None:
        """All before there was read. What is left is not moved for each frame: there may be thousands in a buffer."""
        self._at = end
        if end >= len(self._buffer):
            self._buffer, self._at = b"", 0

    def _lend(self, end: int) -> Frame | None:
        """Have the law read the frame that ends there: none here."""
        self._who = FrameParser.WSPROTO_ONCE
        buffer, at = self._buffer, self._at
        self._left = max(0, end - len(buffer))
        self._go_to(end)
        self._made().receive_bytes(buffer[at:end])
        return None

    def _obey(self) -> Frame | None:
        """Have the law read all that comes from here on: none here."""
        self._who = FrameParser.WSPROTO
        self._made().receive_bytes(self._buffer[self._at :])
        self._buffer, self._at = b"", 0
        return None

    def _made(self) -> FrameProtocol:
        if self._law is None:
            self._law = FrameProtocol(self._client, [self._guard])
        return self._law


def _unmasked(key: bytes, payload: bytes) -> bytes:
    """RFC 6455 section 5.3, all at once: as one number."""
    size = len(payload)
    mask = int.from_bytes((key * (size // 4 + 1))[:size], "little")
    return (int.from_bytes(payload, "little") ^ mask).to_bytes(size, "little")
