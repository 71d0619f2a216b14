"""Tests of HTTP/1.1: pipelines, and many connections at once."""

from tests.loops.environment import Environment
from tests.loops.raw_http import read_response

HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
NOTHING = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def test_a_pipelined_flood_is_answered(served: Environment) -> None:
    wire = served.connect()
    count = 3000
    wire.send(HEALTH * count)
    for _ in range(count):
        assert read_response(wire)[0] == 200


def test_a_flood_without_reading_does_not_delay_others(served: Environment) -> None:
    deaf = served.connect()
    deaf.pause()
    deaf.send(NOTHING * 500)
    for _ in range(5):
        assert served.http("GET", "/health").status == 200
    for _ in range(500):
        assert read_response(deaf)[0] == 404


def test_200_connections_at_once(served: Environment) -> None:
    wires = [served.connect() for _ in range(200)]
    for _ in range(2):
        for wire in wires:
            wire.send(HEALTH)
        for wire in reversed(wires):
            assert read_response(wire)[0] == 200
    for wire in wires:
        wire.close()
