"""Tests of connections that are reset during the upgrade and a first message, and of connections over the limit."""

import os

from svc_proto.wire.limits import Limits
from tests.loops.environment import REMOTE, Environment
from tests.loops.raw_http import TEXT, frame

SEED = int(os.environ.get("SVC_TEST_SEED", "1"))
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: c2l4dGVlbiBieXRlcyBvaw==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def test_connections_cut_at_every_stage_of_a_pairing(relayed: Environment) -> None:
    code = relayed.register()
    whole = UPGRADE + frame(TEXT, b'{"channel":"system","type":"auth","payload":{"pairing_code":"NOSUCH"}}')
    for at in range(0, len(whole), 9):
        wire = relayed.connect()
        wire.send(whole[:at] or b"G")
        wire.abort()
    relayed.eventually(lambda: relayed.clients() == 0)
    assert relayed.http("GET", "/health").json["sessions"] == 0
    assert relayed.websocket(peer=REMOTE).sign_in(pairing_code=code)["type"] == "auth.ok"


def test_connections_over_the_limit_are_closed(world: Environment) -> None:
    world.start_relay(limits=Limits(max_connections=20))
    kept = [world.client() for _ in range(20)]
    for client in kept:
        assert client.request("GET", "/health").status == 200
    for _ in range(5):
        try:
            wire = world.connect()
        except ConnectionError:
            continue  # closed already
        assert wire.read_all() == b""
    for client in kept:
        assert client.request("GET", "/health").status == 200
    kept[0].wire.close()

    def free() -> bool:
        try:
            return world.client().request("GET", "/health").status == 200
        except (ConnectionError, EOFError):
            return False

    for _ in range(200):
        if free():
            return
    raise AssertionError("the place of a connection that left is not given away")
