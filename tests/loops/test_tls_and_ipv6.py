"""Tests of the relay over TLS and over IPv6."""

from __future__ import annotations

import socket
from collections.abc import Mapping

import pytest

from svc_proto.basics.certificate_pins import pin_of
from tests.loops.environment import Environment, RelayHandle, bearer
from tests.loops.live_environment import LiveConnection, LiveEnvironment
from tests.loops.raw_http import read_response

KEPT = "certificate not reloaded: the one before stays"
RENEWED = "certificate reloaded"


def has_ipv6() -> bool:
    """Report whether this machine has `::1`."""
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


def shown(world: Environment) -> str | None:
    """Return the pin of the certificate that the relay presents; None on the simulated network."""
    wire = world.connect(tls=True)
    certificate = wire.certificate() if isinstance(wire, LiveConnection) else None
    wire.close()
    return pin_of(certificate) if certificate else None


def logged(relay: RelayHandle, event: str) -> list[Mapping[str, object]]:
    return [line.fields for line in relay.logs if line.event == event]


def test_pairing_over_tls(world: Environment) -> None:
    world.start_relay(tls=True)
    ws = world.pair(tls=True)
    (record,) = world.client(tls=True).request("GET", "/sessions").json["sessions"]
    assert record["transport_hint"] == "wss"
    ws.pong()
    assert ws.close().clean


def test_the_reference_phone_over_tls(world: Environment) -> None:
    world.start_relay(tls=True)
    caller = world.pair(tls=True)
    code = world.client(tls=True).request("POST", "/pairing").json["code"]
    phone = world.phone(code=code, tls=True)
    client = world.client(tls=True)
    assert client.request("GET", "/ping", headers=bearer(caller.token)).status == 200
    assert phone.stop() == 0


def test_big_answers_and_many_requests_over_tls(world: Environment) -> None:
    world.start_relay(tls=True)
    phone = world.pair(tls=True, surface="android")
    calling = world.client(tls=True).begin("GET", "/screen", headers=bearer(phone.token))
    result = {"text": "z" * 3_000_000}
    phone.respond(phone.command()["request_id"], result)
    assert calling.finish().json == result
    client = world.client(tls=True)
    assert [client.request("GET", "/health").status for _ in range(50)] == [200] * 50


def test_invalid_tls_handshakes_are_refused(world: Environment) -> None:
    world.start_relay(tls=True)
    ws = world.pair(tls=True)
    for sent in (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x00\x05hello", b"\x00" * 1000):
        try:
            plain = world.connect()
        except ConnectionError:
            continue  # refused before the client has sent all
        plain.send(sent)
        assert b"200" not in plain.read_all()
    ws.pong()


def test_a_stop_over_tls(world: Environment) -> None:
    relay = world.start_relay(tls=True)
    ws = world.pair(tls=True)
    relay.begin_stop()
    assert ws.wait_closed().code == 1001
    ws.wire.close()
    assert relay.exit_code() == 0


def test_a_certificate_that_is_renewed(world: Environment) -> None:
    relay = world.start_relay(tls=True)
    ws = world.pair(tls=True)
    before = shown(world)
    world.expected_errors.add(KEPT)
    world.renew_certificate(usable=False)
    relay.reload()
    world.wait_until(lambda: bool(logged(relay, KEPT)))
    assert "cannot use" in str(logged(relay, KEPT)[0]["problem"])
    assert shown(world) == before
    world.renew_certificate()
    relay.reload()
    world.wait_until(lambda: bool(logged(relay, RENEWED)))
    if isinstance(world, LiveEnvironment):
        assert shown(world) != before
        assert logged(relay, RENEWED) == [{"pin": shown(world)}]
    ws.pong()
    assert ws.close().clean


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
