"""Bytes that callers and phones send, assembled by hand so that building them costs next to nothing."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping

__all__ = ["PING", "PONG", "TEXT", "FrameReader", "auth_message", "frame", "phone_answer", "request", "upgrade"]

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA  # opcodes, RFC 6455 section 5.2
NO_MASK = b"\0\0\0\0"  # a mask of zeros: permitted, and the server unmasks as usual
ANYTHING: Mapping[str, str] = {"Accept": "*/*"}
RESULT = {"ok": True, "package": "com.example.app"}


def request(
    method: str,
    path: str,
    *,
    token: str | None = None,
    body: bytes = b"",
    fields: Mapping[str, str] = ANYTHING,
) -> bytes:
    """Return the bytes of one HTTP/1.1 request with these header fields, and an authorization with `token`."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1:8767", "User-Agent: bench/1"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    if token is not None:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def upgrade(path: bytes = b"/ws") -> bytes:
    """Return the request for a WebSocket, without compression."""
    return (
        b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1:8767\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )


def frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """Return one unfragmented client frame (RFC 6455 section 5.2)."""
    if len(payload) < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | len(payload))
    else:
        head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, len(payload))
    return head + NO_MASK + payload


def auth_message(code: str, name: str) -> bytes:
    """Return the WebSocket frame with the `system/auth` message of a phone that pairs with a code."""
    payload = {"pairing_code": code, "device_name": name, "device_id": name, "client_surface": "android"}
    return frame(json.dumps({"channel": "system", "type": "auth", "id": "auth-1", "payload": payload}).encode())


def phone_answer(request_id: str) -> bytes:
    """Return the WebSocket frame of a phone's `bridge.response` to a command."""
    payload = {"request_id": request_id, "status": 200, "result": RESULT}
    message = {"channel": "bridge", "type": "bridge.response", "id": request_id, "payload": payload}
    return frame(json.dumps(message, separators=(",", ":")).encode())


class FrameReader:
    """Parser of a server's WebSocket frames, which may arrive in pieces of any size."""

    def __init__(self, data: bytes = b"") -> None:
        self._held = data

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield (opcode, payload) of each frame that `data` completes; store the rest."""
        held = self._held + data if self._held else data
        at = 0
        while len(held) - at >= 2:
            size, start = held[at + 1], at + 2
            if size == 126:
                size, start = int.from_bytes(held[at + 2 : at + 4], "big"), at + 4
            elif size == 127:
                size, start = int.from_bytes(held[at + 2 : at + 10], "big"), at + 10
            if len(held) < start + size:
                break
            self._held = held[start + size :]
            yield held[at] & 0x0F, held[start : start + size]
            at = start + size
        self._held = held[at:]
