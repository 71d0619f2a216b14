"""Tests of the relay over TLS and over IPv6."""

import pytest

from tests.loops.environment import Environment, bearer
from tests.loops.raw_http import read_response
from tests.support.ports import has_ipv6


def test_the_reference_phone_over_tls(world: Environment) -> None:
    world.start_relay(tls=True)
    caller = world.pair(tls=True)
    code = world.client(tls=True).request("POST", "/pairing").json["code"]
    phone = world.phone(code=code, tls=True)
    client = world.client(tls=True)
    assert client.request("GET", "/ping", headers=bearer(caller.token)).status == 200
    assert phone.stop() == 0


def test_big_answers_many_requests_and_a_stop_over_tls(world: Environment) -> None:
    relay = world.start_relay(tls=True)
    phone = world.pair(tls=True, surface="android")
    calling = world.client(tls=True).begin("GET", "/screen", headers=bearer(phone.token))
    result = {"text": "z" * 3_000_000}
    phone.respond(phone.command()["request_id"], result)
    assert calling.finish().json == result
    client = world.client(tls=True)
    assert [client.request("GET", "/health").status for _ in range(50)] == [200] * 50
    client.wire.close()
    relay.begin_stop()
    assert phone.wait_closed().code == 1001
    phone.wire.close()
    assert relay.exit_code() == 0


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")
def test_ipv6(world: Environment) -> None:
    if world.virtual_time:
        return  # the simulated network has one family of addresses
    world.start_relay(ipv6=True)
    wire = world.connect("::1")
    wire.send(b"POST /pairing HTTP/1.1\r\nHost: [::1]\r\n\r\n")
    assert read_response(wire)[0] == 200
    ws = world.websocket(peer="::1")
    code = world.http("POST", "/pairing", peer="::1").json["code"]
    assert ws.sign_in(pairing_code=code)["type"] == "auth.ok"
