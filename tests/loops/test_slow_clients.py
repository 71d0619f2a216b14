"""Test of a long answer that is read late."""

import json

import pytest

from svc_proto.wire.limits import Limits
from tests.loops.environment import Environment
from tests.loops.raw_http import read_response

KEY = "sk-slow-2f6b"
LINGER = 0.2  # s, in place of two


@pytest.mark.parametrize("turns", [pytest.param(1, marks=pytest.mark.full), 6])
def test_a_long_answer_that_is_read_late(world: Environment, turns: int) -> None:
    api = world.api(key=KEY, relay_url="http://127.0.0.1:9", limits=Limits(linger=LINGER))
    session = api.session()
    for _ in range(turns):
        assert api.request("POST", f"/api/sessions/{session}/chat", {"message": "/echo " + "x" * 65_000}).status == 200
    wire = world.connect(port=api.server.port)
    fields = f"Host: x\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\r\n"
    wire.send(f"GET /api/sessions/{session}/messages HTTP/1.1\r\n{fields}".encode())
    wire.pause()
    until = world.clock() + 2.5 * LINGER
    world.eventually(lambda: world.clock() > until)
    status, _, body = read_response(wire)
    assert (status, len(json.loads(body)["messages"])) == (200, 2 * turns)
    wire.close()
