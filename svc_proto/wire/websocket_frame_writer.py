"""Writing of WebSocket frames (RFC 6455 section 5.2): whole messages, fragments of messages, and control frames.

`wire.websocket_frame_reader` reads them. wsproto could write them, too, but with a writer for each WebSocket, which
takes 1 kB, and with masks from the operating system.
"""

import struct

from wsproto.frame_protocol import Opcode, XorMaskerSimple

__all__ = ["MAX_CONTROL", "encode_close_payload", "encode_frame"]

MAX_CONTROL = 125  # bytes of a control frame's payload, RFC 6455 section 5.5
FINAL = 0x80
PACKED = 0x40  # RSV1: the message is compressed, RFC 7692 section 6
MASKED = 0x80
TWO_BYTES, EIGHT_BYTES = 126, 127  # in place of a length: as many bytes of length follow
_SHORT = struct.Struct("!BB").pack
_MIDDLE = struct.Struct("!BBH").pack
_LONG = struct.Struct("!BBQ").pack


def encode_frame(
    opcode: Opcode, payload: bytes, packed: bool = False, key: bytes = b"", *, final: bool = True
) -> bytes:
    """Encode a frame. `final` is False for each part of a message but the last.

    `key` is the mask of a client, four bytes; a server masks nothing.
    """
    first = (FINAL if final else 0) | opcode | (PACKED if packed else 0)
    masked = MASKED if key else 0
    size = len(payload)
    if size < TWO_BYTES:
        head = _SHORT(first, masked | size)
    elif size <= 0xFFFF:
        head = _MIDDLE(first, masked | TWO_BYTES, size)
    else:
        head = _LONG(first, masked | EIGHT_BYTES, size)
    if not key:
        return head + payload
    return b"".join((head, key, XorMaskerSimple(key).process(bytearray(payload))))


def encode_close_payload(code: int, reason: str) -> bytes:
    """Encode the payload of a close frame; a long reason is cut between characters."""
    text = reason.encode("utf-8", "replace")[: MAX_CONTROL - 2]
    return struct.pack("!H", code) + text.decode("utf-8", "ignore").encode("utf-8")
