"""Tests of WebSockets (RFC 6455): single bytes, close frames, large messages, and a flood of pings (wire core 1.7)."""

from __future__ import annotations

import json
import struct

import pytest

from tests.loops.environment import Environment
from tests.loops.raw_http import BINARY, CLOSE, TEXT, RawSocket, close_code, frame

PING_ENVELOPE = {"channel": "system", "type": "ping", "id": "p1", "payload": {"ts": 12}}
PONG_ENVELOPE = {"channel": "system", "type": "pong", "id": "p1", "payload": {"ts": 12}}
SOME = json.dumps(PING_ENVELOPE).encode()


def paired(world: Environment, *, extensions: str = "") -> RawSocket:
    raw = RawSocket(world.connect(), extensions=extensions)
    raw.sign_in(world.register())
    return raw


def alive(raw: RawSocket) -> None:
    """Check that the relay still answers a ping on this WebSocket."""
    raw.send(TEXT, SOME)
    assert raw.receive_message() == PONG_ENVELOPE


def test_a_socket_in_single_bytes(relayed: Environment) -> None:
    raw = paired(relayed)
    wire = relayed.connect()
    single = RawSocket(wire)
    code = relayed.register()
    text = json.dumps({"channel": "system", "type": "auth", "id": "", "payload": {"pairing_code": code}}).encode()
    for byte in frame(TEXT, text):
        wire.send(bytes((byte,)))
    assert single.receive_message()["type"] == "auth.ok"
    alive(raw)


@pytest.mark.parametrize("code", [1000, 1001, 3000, 4999])
def test_a_close_is_echoed(relayed: Environment, code: int) -> None:
    raw = paired(relayed)
    raw.send(CLOSE, struct.pack("!H", code) + b"bye")
    opcode, payload = raw.receive()
    assert (opcode, close_code(payload)) == (CLOSE, code)
    assert raw.wire.read_all() == b""
    relayed.eventually(lambda: relayed.clients() == 0)


def test_a_message_over_the_cap(relayed: Environment) -> None:
    raw = paired(relayed)
    raw.wire.send(struct.pack("!BBQ", 0x81, 0xFF, 9 * 1024 * 1024) + b"mask")
    assert raw.closed_with() == 1009


def test_a_message_just_under_the_cap(relayed: Environment) -> None:
    raw = paired(relayed)
    raw.send(BINARY, bytes(8 * 1024 * 1024))
    alive(raw)


def test_a_flood_of_pings(relayed: Environment) -> None:
    ws = relayed.pair()
    for _ in range(2000):
        ws.send_envelope("system", "ping", {"ts": 1}, "flood")
    for _ in range(2000):
        assert ws.receive_message()["type"] == "pong"
