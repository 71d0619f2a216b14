"""Tests of stop, kill and restart of the relay."""

from tests.loops.environment import Environment, bearer


def refuses_connections(world: Environment) -> bool:
    try:
        world.connect().close()
    except ConnectionError:
        return True
    return False


def test_a_stop_answers_requests_under_way_and_closes_sockets_with_1001(relayed: Environment) -> None:
    phone = relayed.fake_phone()
    client = relayed.client()
    calling = client.begin("GET", "/ping", headers=bearer(phone.token))
    phone.command()
    relayed.relay.begin_stop()
    answer = calling.finish()
    assert (answer.status, answer.code) == (502, "phone_disconnected")
    assert answer.headers.get(b"connection") == b"close"
    closed = phone.wait_closed()
    assert (closed.code, closed.clean) == (1001, True)
    phone.wire.close()
    assert client.wire.read_all() == b""
    client.wire.close()
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


def test_a_session_survives_a_kill(world: Environment) -> None:
    relay = world.start_relay(killable=True)
    ws = world.pair("Survivor")
    token = ws.token
    ws.close()
    ws.wire.close()
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
