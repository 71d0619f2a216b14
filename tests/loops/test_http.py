"""Tests of HTTP/1.1: heads, bodies, pipelines, half-closed and broken connections."""

from __future__ import annotations

import json

import pytest

from tests.loops.clients import ByteConnection
from tests.loops.environment import Environment
from tests.loops.raw_http import read_response

HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
NOTHING = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
BODY = json.dumps({"allow_insecure_api_bearer": False}).encode()
PATCH = b"PATCH /relay/security HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def ended(wire: ByteConnection) -> bool:
    """Report whether the relay closes or resets the connection without another byte."""
    return wire.read_all() == b""


def test_health(served: Environment) -> None:
    wire = served.connect()
    wire.send(HEALTH)
    status, fields, body = read_response(wire)
    assert status == 200
    assert fields["content-type"] == "application/json"
    assert "date" in fields
    answer = json.loads(body)
    assert (answer["status"], answer["clients"], answer["sessions"]) == ("ok", 0, 0)
    assert set(answer) == {"status", "version", "clients", "sessions"}


def test_a_connection_is_kept(served: Environment) -> None:
    wire = served.connect()
    for _ in range(20):
        wire.send(HEALTH)
        status, fields, _ = read_response(wire)
        assert (status, fields.get("connection")) == (200, None)


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


def test_a_request_in_single_bytes(served: Environment) -> None:
    wire = served.connect()
    request = PATCH + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    for byte in request:
        wire.send(bytes((byte,)))
    assert read_response(wire)[0] == 200


def test_a_chunked_upload(served: Environment) -> None:
    wire = served.connect()
    wire.send(PATCH + b"Transfer-Encoding: chunked\r\n\r\n")
    for at in range(0, len(BODY), 7):
        piece = BODY[at : at + 7]
        wire.send(b"%x;note=x\r\n%s\r\n" % (len(piece), piece))
    wire.send(b"0\r\nTrailer: x\r\n\r\n" + HEALTH)
    assert read_response(wire)[0] == 200
    assert read_response(wire)[0] == 200


def test_a_body_of_the_greatest_size(served: Environment) -> None:
    wire = served.connect()
    padded = BODY + b" " * (2 * 1024 * 1024 - len(BODY))
    wire.send(PATCH + b"Content-Length: %d\r\n\r\n" % len(padded) + padded + HEALTH)
    assert read_response(wire)[0] == 200
    assert read_response(wire)[0] == 200


def test_a_peer_that_half_closes_still_gets_its_answers(served: Environment) -> None:
    wire = served.connect()
    wire.send(HEALTH * 3)
    wire.close_write()
    assert [read_response(wire)[0] for _ in range(3)] == [200] * 3
    assert ended(wire)


@pytest.mark.parametrize("sent", [b"", b"GET /hea", PATCH + b"Content-Length: 10\r\n\r\n123"])
def test_a_peer_that_sends_half_a_request_gets_a_fin(served: Environment, sent: bytes) -> None:
    wire = served.connect()
    if sent:
        wire.send(sent)
    wire.close_write()
    wire.read_all()
    assert wire.eof or wire.reset


def test_200_connections_at_once(served: Environment) -> None:
    wires = [served.connect() for _ in range(200)]
    for _ in range(2):
        for wire in wires:
            wire.send(HEALTH)
        for wire in reversed(wires):
            assert read_response(wire)[0] == 200
    for wire in wires:
        wire.close()


def test_connections_that_break_leave_nothing_behind(served: Environment) -> None:
    for sent in (b"", b"GET", HEALTH, HEALTH * 100, PATCH + b"Content-Length: 10\r\n\r\n123"):
        wire = served.connect()
        wire.send(sent)
        wire.abort()
    assert served.http("GET", "/health").json["clients"] == 0
