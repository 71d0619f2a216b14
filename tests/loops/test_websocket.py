"""WebSocket frames as strangers write them, and what becomes of messages (wire core 1.7, RFC 6455, RFC 7692)."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pytest

from svc_proto.wire.events import Pong
from tests.loops.raw import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, RawSocket, close_code, frame
from tests.loops.world import World

PING_ENVELOPE = {"channel": "system", "type": "ping", "id": "p1", "payload": {"ts": 12}}
PONG_ENVELOPE = {"channel": "system", "type": "pong", "id": "p1", "payload": {"ts": 12}}
SOME = json.dumps(PING_ENVELOPE).encode()


def paired(world: World, *, extensions: str = "") -> RawSocket:
    raw = RawSocket(world.connect(), extensions=extensions)
    raw.sign_in(world.register())
    return raw


def alive(raw: RawSocket) -> None:
    """The socket still answers."""
    raw.send(TEXT, SOME)
    assert raw.hear() == PONG_ENVELOPE


def test_ping_and_pong_envelopes(relayed: World) -> None:
    ws = relayed.pair()
    ws.say("system", "ping", {"ts": 12}, "p1")
    assert ws.hear() == PONG_ENVELOPE
    ws.say("system", "ping", {}, "p2")
    answer = ws.hear()
    assert answer["id"] == "p2"
    assert isinstance(answer["payload"]["ts"], float)


def test_what_is_ignored(relayed: World) -> None:
    raw = paired(relayed)
    for text in (
        b"nonsense",
        b"",
        b"[]",
        b"5",
        b'{"channel":"system","type":"pong"}',
        b'{"channel":"system"}',
        b"\x00",
    ):
        raw.send(TEXT, text)
    raw.send(BINARY, b"\x00\xff" * 500)
    raw.send(PONG, b"nobody asked")
    alive(raw)


def test_a_channel_that_is_not_served(relayed: World) -> None:
    ws = relayed.pair()
    ws.say("desktop", "workspace", {"any": 1}, "d1")
    message = ws.hear()
    assert (message["channel"], message["type"], message["id"]) == ("system", "error", "d1")
    assert isinstance(message["payload"]["message"], str)
    ws.pong()


def test_a_ping_frame_is_answered(relayed: World) -> None:
    ws = relayed.pair()
    ws.ping(b"abc")
    assert ws.receive() == Pong(ws._stream, b"abc")
    raw = paired(relayed)
    raw.send(PING, b"")
    assert raw.receive() == (PONG, b"")


def test_fragmented_text_with_a_ping_in_between(relayed: World) -> None:
    raw = paired(relayed)
    raw.send(TEXT, SOME[:3], fin=False)
    raw.send(PING, b"now")
    assert raw.receive() == (PONG, b"now")
    for at in range(3, len(SOME)):
        raw.send(CONTINUATION, SOME[at : at + 1], fin=False)
    raw.send(CONTINUATION, b"")
    assert raw.hear() == PONG_ENVELOPE


def test_a_character_cut_in_two_fragments(relayed: World) -> None:
    raw = paired(relayed)
    text = json.dumps({**PING_ENVELOPE, "id": "ü€𐍈"}, ensure_ascii=False).encode()
    cut = text.index("€".encode()) + 1
    raw.send(TEXT, text[:cut], fin=False)
    raw.send(CONTINUATION, text[cut:])
    assert raw.hear()["id"] == "ü€𐍈"


def test_a_socket_in_single_bytes(relayed: World) -> None:
    raw = paired(relayed)
    wire = relayed.connect()
    single = RawSocket(wire)
    code = relayed.register()
    text = json.dumps({"channel": "system", "type": "auth", "id": "", "payload": {"pairing_code": code}}).encode()
    for byte in frame(TEXT, text):
        wire.send(bytes((byte,)))
    assert single.hear()["type"] == "auth.ok"
    alive(raw)


@pytest.mark.parametrize("code", [1000, 1001, 3000, 4999])
def test_a_close_is_echoed(relayed: World, code: int) -> None:
    raw = paired(relayed)
    raw.send(CLOSE, struct.pack("!H", code) + b"bye")
    opcode, payload = raw.receive()
    assert (opcode, close_code(payload)) == (CLOSE, code)
    assert raw.wire.read_all() == b""
    relayed.eventually(lambda: relayed.http("GET", "/health").json["clients"] == 0)


def test_a_close_without_a_code(relayed: World) -> None:
    raw = paired(relayed)
    raw.send(CLOSE)
    assert raw.receive()[0] == CLOSE
    assert raw.wire.read_all() == b""


VIOLATIONS: dict[str, tuple[int, list[tuple[int, bytes, dict[str, Any]]]]] = {
    "unmasked": (1002, [(TEXT, SOME, {"masked": False})]),
    "reserved bit": (1002, [(TEXT, SOME, {"rsv": 2})]),
    "compressed without agreement": (1002, [(TEXT, SOME, {"rsv": 4})]),
    "unknown opcode": (1002, [(0x3, b"", {})]),
    "unknown control": (1002, [(0xB, b"", {})]),
    "fragmented control": (1002, [(PING, b"", {"fin": False})]),
    "long control": (1002, [(PING, bytes(126), {})]),
    "continuation of nothing": (1002, [(CONTINUATION, b"x", {})]),
    "text within text": (1002, [(TEXT, b"x", {"fin": False}), (TEXT, b"y", {})]),
    "close with one byte": (1002, [(CLOSE, b"\x03", {})]),
    "close with a forbidden code": (1002, [(CLOSE, struct.pack("!H", 1005), {})]),
    "bad UTF-8": (1007, [(TEXT, b"\xc3\x28", {})]),
    "bad UTF-8 before the end": (1007, [(TEXT, b"abc\xff", {"fin": False})]),
    "a surrogate": (1007, [(TEXT, b"\xed\xa0\x80", {})]),
    "a character that is not finished": (1007, [(TEXT, b"\xe2\x82", {})]),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_is_closed_with_its_code(relayed: World, name: str) -> None:
    raw, other = paired(relayed), paired(relayed)
    code, frames = VIOLATIONS[name]
    for opcode, payload, how in frames:
        raw.send(opcode, payload, **how)
    assert raw.closed_with() == code
    assert raw.wire.read_all() == b""
    alive(other)


def test_a_message_over_the_cap(relayed: World) -> None:
    raw = paired(relayed)
    raw.wire.send(struct.pack("!BBQ", 0x81, 0xFF, 9 * 1024 * 1024) + b"mask")
    assert raw.closed_with() == 1009


def test_a_message_over_the_cap_in_fragments(relayed: World) -> None:
    raw = paired(relayed)
    raw.send(TEXT, b"x" * 1_000_000, fin=False)
    for _ in range(9):
        raw.send(CONTINUATION, b"x" * 1_000_000, fin=False)
    assert raw.closed_with() == 1009


def test_a_bomb(relayed: World) -> None:
    raw = paired(relayed, extensions="permessage-deflate")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = packer.compress(bytes(9 * 1024 * 1024)) + packer.flush(zlib.Z_SYNC_FLUSH)
    raw.send(BINARY, bomb[:-4], rsv=4)
    assert raw.closed_with() == 1009


def test_a_message_just_under_the_cap(relayed: World) -> None:
    raw = paired(relayed)
    raw.send(BINARY, bytes(8 * 1024 * 1024))
    alive(raw)


def test_deflate_agreed(relayed: World) -> None:
    raw = paired(relayed, extensions="permessage-deflate; client_max_window_bits")
    assert raw.fields["sec-websocket-extensions"].startswith("permessage-deflate")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    for number in range(3):  # one context over all messages
        text = json.dumps({**PING_ENVELOPE, "id": f"n{number}"}).encode()
        packed = packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)
        raw.send(TEXT, packed[:-4], rsv=4)
        assert raw.hear()["id"] == f"n{number}"
    alive(raw)  # a message may go uncompressed all the same
    raw.send(TEXT, b"this is not deflate", rsv=4)
    assert raw.closed_with() in (1002, 1007)


@pytest.mark.parametrize("deflate", [True, False])
def test_deflate_on_and_off(relayed: World, deflate: bool) -> None:
    ws = relayed.pair(deflate=deflate)
    assert ws.compressed is deflate
    ws.say("system", "ping", {"ts": "z" * 100_000}, "big")  # over the size from which both sides compress
    assert ws.hear()["payload"]["ts"] == "z" * 100_000


def test_extensions_that_nobody_knows_are_declined(relayed: World) -> None:
    raw = paired(relayed, extensions="x-webkit-deflate-frame, permessage-foo; a=b")
    assert "sec-websocket-extensions" not in raw.fields
    alive(raw)


def test_a_flood_of_pings(relayed: World) -> None:
    ws = relayed.pair()
    for _ in range(2000):
        ws.say("system", "ping", {"ts": 1}, "flood")
    for _ in range(2000):
        assert ws.hear()["type"] == "pong"
