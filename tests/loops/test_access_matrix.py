"""Tests of the access matrix (`fuzz/simulation/access_matrix.py`) with running relays."""

import json
from collections.abc import Iterable, Mapping

import pytest
from attrs import frozen

from fuzz.simulation.access_matrix import AUTH, CHANNEL_ACCESS, GRANT, IN, RELAY_ACCESS, example_path, expected_access
from svc_proto.engine.router import RouteKind
from svc_proto.relay.service import Relay
from svc_proto.relay.websocket.message_dispatch import CHANNEL_HANDLERS
from svc_proto.relay_config import LocalTrustPolicy, RelayConfig
from svc_proto.wire.events import TextMessage
from tests.loops.clients import Declined, WebSocketTestClient
from tests.loops.environment import LOOPBACK, REMOTE, Environment, bearer

KINDS = {f"{route.method} {route.pattern}": route.kind for route in Relay(RelayConfig()).router.routes}
WITHHELD = ("chat", "bridge", "terminal", "tui", "voice:config", "voice:realtime", "voice:stt", "voice:tts")
FIRST = {"system ping": {"ts": 1}, "terminal terminal.attach": {"cols": 80, "rows": 24}}  # payloads, if not {}


@frozen
class Caller:
    """A client of the matrix: its address, its header fields, and its session token, if it has one."""

    peer: str = LOOPBACK
    headers: Mapping[str, str] = {}
    token: str = ""


def callers(world: Environment) -> dict[str, Caller]:
    """Return the clients of the matrix by name, without the other user of the host, which has a test of its own."""
    poor = world.pair("Poor", grants=dict.fromkeys(WITHHELD, False))
    rich, revoked = world.pair("Rich"), world.pair("Revoked")
    assert world.http("DELETE", f"/sessions/{revoked.token[:8]}", headers=bearer(rich.token)).status == 200
    proxied = {"via": "1.1 caddy", "x-forwarded-for": "192.168.1.66"}
    return {
        "program": Caller(),
        "stranger": Caller(REMOTE),
        "lan_page": Caller(REMOTE, {"origin": "http://192.168.1.66"}),
        "local_page": Caller(LOOPBACK, {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"}),
        "proxy": Caller(LOOPBACK, proxied),
        "poor_phone": Caller(REMOTE, bearer(poor.token), poor.token),
        "rich_phone": Caller(REMOTE, bearer(rich.token), rich.token),
        "revoked": Caller(LOOPBACK, {**bearer(revoked.token), **proxied}, revoked.token),
    }


def met(world: Environment, caller: Caller, route: str) -> str:
    """Send a caller's request to a route; return the cell of the access matrix: `in`, or the status 401 or 403."""
    method, path = example_path(route)
    if KINDS[route] is RouteKind.WEBSOCKET:
        try:
            world.websocket(path, peer=caller.peer, headers=caller.headers).wire.close()
            return IN
        except Declined as declined:
            status = declined.answer.status
    else:
        status = world.http(method, path, peer=caller.peer, headers=caller.headers).status
    return str(status) if status in (401, 403) else IN


def heard(world: Environment, caller: Caller, messages: Iterable[str]) -> dict[str, str]:
    """Send a caller's messages over a WebSocket, and over a new one after a failed authentication.

    Return the matrix cell of each message.
    """
    answers: dict[str, str] = {}
    socket: WebSocketTestClient | None = None
    for message in messages:
        channel, _, kind = message.partition(" ")
        if socket is None:
            try:
                socket = world.websocket(peer=caller.peer, headers=caller.headers)
            except Declined as declined:
                answers[message] = str(declined.answer.status)
                continue
            if caller.token and socket.sign_in(session_token=caller.token)["type"] == "auth.fail":
                socket, answers[message] = None, AUTH
                world.register()  # lifts the block: this tests access, not the rate limiter
                continue
        socket.send_envelope(channel, kind, FIRST.get(message, {"x": 1}), "the door")
        socket.send_envelope("system", "ping", {"ts": 2}, "behind it")
        answers[message] = answer_on(socket)
        if answers[message] == AUTH:
            socket = None
    if socket is not None:
        socket.wire.close()
    return answers


def answer_on(socket: WebSocketTestClient) -> str:
    """Receive up to the answer to the ping, or to the end of the WebSocket; return the matrix cell."""
    met = IN
    while isinstance(event := socket.receive(), TextMessage):
        message = json.loads(event.text)
        if message["id"] == "the door" and message["payload"].get("error") == "grant_required":
            met = GRANT
        if message["type"] == "auth.fail":
            met = AUTH
        if message["id"] == "behind it":
            return met
    return met


def test_every_route_is_here() -> None:
    assert sorted(expected_access(RELAY_ACCESS, "program")) == sorted(KINDS)


def test_every_channel_is_here() -> None:
    assert {message.partition(" ")[0] for message in expected_access(CHANNEL_ACCESS, "program")} == set(
        CHANNEL_HANDLERS
    )


@pytest.mark.usefixtures("hermetic")  # a caller attaches a terminal
def test_access_to_the_relay(world: Environment) -> None:
    world.start_relay()
    known = callers(world)
    for name, caller in known.items():
        expected = expected_access(RELAY_ACCESS, name)
        assert {route: met(world, caller, route) for route in expected} == expected, name
        expected = expected_access(CHANNEL_ACCESS, name)
        assert heard(world, caller, expected) == expected, name


def test_another_user_of_this_host(world: Environment) -> None:
    world.start_relay(local_trust=LocalTrustPolicy.SECRET)
    expected = expected_access(RELAY_ACCESS, "other_user")
    assert {route: met(world, Caller(), route) for route in expected} == expected
    expected = expected_access(CHANNEL_ACCESS, "other_user")
    assert heard(world, Caller(), expected) == expected
