"""Tests of stop, kill and restart of the relay, and of phones that lose it, are refused or stop."""

from __future__ import annotations

import pytest

from tests.loops.clients import PATIENCE, Declined
from tests.loops.environment import REMOTE, Environment, bearer
from tests.loops.raw_http import read_response

GRACE = 10 * PATIENCE  # s; a program that ends within PATIENCE did not use up the grace period
HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def refuses_connections(world: Environment) -> bool:
    try:
        world.connect().close()
    except ConnectionError:
        return True
    return False


def paired_and_gone(world: Environment, name: str) -> str:
    """Pair a client, close its WebSocket, and return its session token."""
    ws = world.pair(name)
    ws.close()
    ws.wire.close()
    return ws.token


def test_a_relay_with_nothing_to_do_stops_at_once(world: Environment) -> None:
    relay = world.start_relay()
    began = world.clock()
    relay.begin_stop(GRACE)
    assert relay.exit_code() == 0
    if world.virtual_time:
        assert world.clock() - began < 3.0
    assert refuses_connections(world)


def test_stopping_closes_sockets_with_1001(relayed: Environment) -> None:
    ws = relayed.pair()
    relayed.relay.begin_stop()
    closed = ws.wait_closed()
    assert (closed.code, closed.clean) == (1001, True)
    assert closed.reason
    ws.wire.close()
    assert relayed.relay.exit_code() == 0


def test_idle_connections_do_not_delay_a_stop(relayed: Environment) -> None:
    wires = [relayed.connect() for _ in range(5)]
    for wire in wires[1:]:
        wire.send(HEALTH)
        assert read_response(wire)[0] == 200
    wires[-1].send(HEALTH[:20])  # half a head
    relayed.relay.begin_stop(GRACE)
    for wire in wires:
        wire.read_all()
        wire.close()
    began = relayed.clock()
    assert relayed.relay.exit_code() == 0
    if relayed.virtual_time:
        assert relayed.clock() - began < 5.0


def test_a_request_under_way_is_answered(relayed: Environment) -> None:
    phone = relayed.fake_phone()
    client = relayed.client()
    calling = client.begin("GET", "/ping", headers=bearer(phone.token))
    phone.command()
    relayed.relay.begin_stop()
    answer = calling.finish()
    assert (answer.status, answer.code) == (502, "phone_disconnected")
    assert answer.headers.get(b"connection") == b"close"
    phone.wait_closed()
    phone.wire.close()
    assert client.wire.read_all() == b""
    client.wire.close()
    assert relayed.relay.exit_code() == 0


def test_a_body_under_way_is_taken_and_answered(relayed: Environment) -> None:
    wire = relayed.connect()
    wire.send(
        b"POST /pairing/register HTTP/1.1\r\nHost: localhost\r\nContent-Length: 17\r\nExpect: 100-continue\r\n\r\n"
    )
    assert wire.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100")
    relayed.relay.begin_stop()
    while not refuses_connections(relayed):
        pass
    wire.send(b'{"code":"ABC123"}')
    status, fields, _ = read_response(wire)
    assert (status, fields["connection"]) == (200, "close")
    wire.close()
    assert relayed.relay.exit_code() == 0


def test_remaining_connections_are_cut_within_the_grace(relayed: Environment) -> None:
    deaf = relayed.pair()
    deaf.wire.pause()
    half = relayed.connect()
    half.send(b"POST /pairing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n1")
    relayed.http("GET", "/health")
    began = relayed.clock()
    relayed.relay.begin_stop(1.0)
    assert relayed.relay.exit_code() == 0
    if relayed.virtual_time:
        assert relayed.clock() - began < 1.5


def test_a_session_survives_a_stop_but_a_code_and_a_block_do_not(world: Environment) -> None:
    relay = world.start_relay(durable=True)
    token = paired_and_gone(world, "Survivor")
    code = world.register()
    for _ in range(5):
        ws = world.websocket(peer=REMOTE)
        ws.sign_in(pairing_code="NOSUCH")
        ws.wait_closed()
        ws.wire.close()
    with pytest.raises(Declined):
        world.websocket(peer=REMOTE)
    assert relay.stop(2.0) == 0
    relay.restart()
    (record,) = world.http("GET", "/sessions").json["sessions"]
    assert record["device_name"] == "Survivor"
    ws = world.websocket(peer=REMOTE)
    assert ws.sign_in(session_token=token)["type"] == "auth.ok"
    assert world.http("GET", "/sessions", headers=bearer(token), peer=REMOTE).status == 200
    assert world.websocket().sign_in(pairing_code=code)["type"] == "auth.fail"


def test_a_session_survives_a_kill(world: Environment) -> None:
    relay = world.start_relay(killable=True)
    token = paired_and_gone(world, "Survivor")
    code = world.register()
    relay.kill()
    assert refuses_connections(world)
    relay.restart()
    ws = world.websocket()
    assert ws.sign_in(session_token=token)["type"] == "auth.ok"
    assert ws.close().clean
    ws.wire.close()
    ws = world.websocket()
    assert ws.sign_in(pairing_code=code)["type"] == "auth.fail"
    ws.wait_closed()
    ws.wire.close()
    relay.begin_stop()
    assert relay.exit_code() == 0


def test_a_phone_comes_back_after_a_restart(world: Environment) -> None:
    relay = world.start_relay(durable=True)
    phone = world.phone()
    token = phone.token
    assert world.http("GET", "/ping", headers=bearer(token)).status == 200
    assert relay.stop(5.0) == 0
    world.wait_until(lambda: phone.count("offline") > 0)
    relay.restart()
    world.wait_until(lambda: phone.count("online") > 0)
    assert phone.token == token
    world.eventually(lambda: world.http("GET", "/ping", headers=bearer(token)).status == 200)


def test_a_stopping_phone_disconnects(relayed: Environment) -> None:
    phone = relayed.phone()
    assert phone.stop() == 0
    relayed.eventually(lambda: relayed.clients() == 0)
