"""HTTP and WebSocket bytes by hand: heads and frames without product code (RFC 9112, RFC 6455)."""

import struct

from tests.loops.clients import PATIENCE, ByteConnection

CONTINUATION, TEXT = 0x0, 0x1
MASK = b"\x11\x22\x33\x44"


def read_head(wire: ByteConnection, timeout: float = PATIENCE) -> tuple[int, list[tuple[str, str]]]:
    """Read a response head; return its status and its fields, with names in lower case."""
    line, *lines = wire.read_until(b"\r\n\r\n", timeout).decode("ascii")[:-4].split("\r\n")
    assert line.startswith("HTTP/1.1 "), line
    pairs = (text.partition(":") for text in lines)
    return int(line[9:12]), [(name.lower(), value.strip()) for name, _, value in pairs]


def read_response(wire: ByteConnection, timeout: float = PATIENCE) -> tuple[int, dict[str, str], bytes]:
    """Read a response with a Content-Length; return its status, its fields with names in lower case, and its body."""
    status, pairs = read_head(wire, timeout)
    fields = dict(pairs)
    return status, fields, wire.read_exactly(int(fields["content-length"]), timeout)


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0) -> bytes:
    """Return the bytes of one WebSocket frame, masked with the key `MASK`, as clients send it."""
    first = (0x80 if fin else 0) | rsv << 4 | opcode
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", first, 0x80 | size)
    elif size < 65_536:
        head = struct.pack("!BBH", first, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", first, 0x80 | 127, size)
    whole = int.from_bytes(payload, "big") ^ int.from_bytes((MASK * (size // 4 + 1))[:size], "big")
    return head + MASK + whole.to_bytes(size, "big")
