"""HTTP and WebSocket bytes by hand: heads and frames without product code (RFC 9112, RFC 6455)."""

import base64
import hashlib
import json
import struct
from typing import Any

from tests.loops.clients import PATIENCE, ByteConnection

CONTINUATION, TEXT, CLOSE = 0x0, 0x1, 0x8
KEY = base64.b64encode(b"sixteen bytes ok")
MASK = b"\x11\x22\x33\x44"
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


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


class RawSocket:
    """WebSocket client without product code."""

    def __init__(self, wire: ByteConnection) -> None:
        self.wire = wire
        wire.send(
            b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
            b"Sec-WebSocket-Key: %b\r\nSec-WebSocket-Version: 13\r\n\r\n" % KEY
        )
        status, pairs = read_head(wire)
        fields = dict(pairs)
        assert status == 101, pairs
        expected = base64.b64encode(hashlib.sha1(KEY + GUID, usedforsecurity=False).digest()).decode()
        assert (fields["sec-websocket-accept"], fields["upgrade"].lower()) == (expected, "websocket")

    def send_envelope(self, channel: str, kind: str, payload: object = None) -> None:
        text = json.dumps({"channel": channel, "type": kind, "id": "raw", "payload": payload or {}})
        self.wire.send(frame(TEXT, text.encode()))

    def receive(self, timeout: float = PATIENCE) -> tuple[int, bytes]:
        """Return opcode and payload of the next frame, which must be neither masked nor fragmented."""
        first, second = self.wire.read_exactly(2, timeout)
        assert first & 0x80, "a fragment"
        assert not second & 0x80, "a masked frame from a server"
        size = second
        if size == 126:
            (size,) = struct.unpack("!H", self.wire.read_exactly(2, timeout))
        elif size == 127:
            (size,) = struct.unpack("!Q", self.wire.read_exactly(8, timeout))
        return first & 0x0F, self.wire.read_exactly(size, timeout)

    def receive_message(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """Return the next frame, which must be a text message, parsed as JSON."""
        opcode, payload = self.receive(timeout)
        assert opcode == TEXT, (opcode, payload)
        message: dict[str, Any] = json.loads(payload)
        return message

    def sign_in(self, code: str) -> str:
        self.send_envelope("system", "auth", {"pairing_code": code, "device_name": "raw"})
        message = self.receive_message()
        assert message["type"] == "auth.ok", message
        token: str = message["payload"]["session_token"]
        return token

    def closed_with(self, timeout: float = PATIENCE) -> int:
        """Discard frames up to the close frame, answer it and return its code."""
        while True:
            opcode, payload = self.receive(timeout)
            if opcode == CLOSE:
                self.wire.send(frame(CLOSE, payload[:2]))
                return int.from_bytes(payload[:2], "big")
