"""Test of connections that are reset during the upgrade and a first message."""

import os

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
