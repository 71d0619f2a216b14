"""Garbage on one connection disturbs no other: while a phone works on, strangers do what strangers do."""

from __future__ import annotations

import os
import random
import struct

from svc_proto.wire.limits import Limits
from tests.loops.raw import BINARY, CLOSE, CONTINUATION, PING, TEXT, RawSocket, frame
from tests.loops.test_http import HEALTH, MALFORMED
from tests.loops.wires import Wire
from tests.loops.world import REMOTE, World, bearer

SEED = int(os.environ.get("SVC_TEST_SEED", "1"))
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: c2l4dGVlbiBieXRlcyBvaw==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
AUTH = b'{"channel":"system","type":"auth","payload":{"pairing_code":"%s"}}'
FRAMES = [
    frame(TEXT, b"x", masked=False),
    frame(TEXT, b"\xff\xfe"),
    frame(TEXT, AUTH % b"\xc3\x28"),
    frame(TEXT, AUTH % b"A" * 10),
    frame(TEXT, b"[" * 3000),
    frame(TEXT, b'{"channel":{},"type":[],"payload":5}'),
    frame(CONTINUATION, b"x"),
    frame(PING, bytes(125)) * 300,
    frame(BINARY, bytes(70_000)),
    frame(CLOSE, struct.pack("!H", 999)),
    frame(TEXT, b"x", rsv=7),
    b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff",  # a length with its highest bit set
    b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff0000",
    b"\x01\x80mask" * 500,  # empty fragments that never end
]


def leave(wire: Wire, rng: random.Random) -> None:
    """Go in one of the ways there are."""
    match rng.randrange(3):
        case 0:
            wire.abort()
        case 1:
            wire.close()
        case _:
            wire.close_write()


def test_garbage_disturbs_nobody(relayed: World) -> None:
    rng = random.Random(SEED)
    phone = relayed.phone()
    ping = bearer(phone.token)
    caller = relayed.client()
    garbage = [
        *MALFORMED,
        *(UPGRADE + piece for piece in FRAMES),
        *(rng.randbytes(rng.randrange(1, 3000)) for _ in range(20)),
        *(UPGRADE + rng.randbytes(rng.randrange(1, 3000)) for _ in range(20)),
        HEALTH * 200,
        b"\x00" * 100_000,
        b"GET /" + b"a" * 100_000,
    ]
    rng.shuffle(garbage)
    for piece in garbage:
        wire = relayed.connect(REMOTE)
        wire.send(piece)
        assert caller.ask("GET", "/ping", headers=ping).status == 200
        leave(wire, rng)
    assert phone.count("offline") == 0
    relayed.eventually(lambda: relayed.clients() == 1)


def test_half_of_everything_then_gone(relayed: World) -> None:
    """Connections that are cut at every stage of a pairing leave neither a client nor a session."""
    code = relayed.register()
    whole = UPGRADE + frame(TEXT, AUTH % b"NOSUCH")
    for at in range(0, len(whole), 9):
        wire = relayed.connect()
        wire.send(whole[:at] or b"G")
        wire.abort()
    relayed.eventually(lambda: relayed.clients() == 0)
    assert relayed.http("GET", "/health").json["sessions"] == 0
    assert relayed.websocket(peer=REMOTE).sign_in(pairing_code=code)["type"] == "auth.ok"


def test_a_code_whose_phone_vanishes_gives_no_session(relayed: World) -> None:
    for _ in range(5):
        code = relayed.register()
        raw = RawSocket(relayed.connect())
        raw.say("system", "auth", {"pairing_code": code})
        raw.wire.abort()
    relayed.eventually(lambda: relayed.clients() == 0)


def test_one_connection_too_many_is_closed_and_the_others_go_on(world: World) -> None:
    world.start_relay(limits=Limits(max_connections=20))
    kept = [world.client() for _ in range(20)]
    for client in kept:
        assert client.ask("GET", "/health").status == 200
    for _ in range(5):
        try:
            wire = world.connect()
        except ConnectionError:
            continue  # closed already
        assert wire.read_all() == b""
    for client in kept:
        assert client.ask("GET", "/health").status == 200
    kept[0].wire.close()

    def free() -> bool:
        try:
            return world.client().ask("GET", "/health").status == 200
        except (ConnectionError, EOFError):
            return False

    for _ in range(200):
        if free():
            return
    raise AssertionError("the place of a connection that left is not given away")
