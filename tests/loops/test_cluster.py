"""Tests of two relays that share a Redis."""

from pathlib import Path
from typing import Any

import pytest

from tests.loops.clients import WebSocketTestClient
from tests.loops.conftest import open_world
from tests.loops.environment import Environment, RelayHandle, bearer
from tests.runtimes.redis_server import RedisServer, RedisWithSentinels, needs_redis

pytestmark = needs_redis

FAILOVER_WITHIN = 120.0  # s; Sentinels that are not scheduled for 2 s do nothing for 30 s (their TILT mode)


@pytest.fixture
def nodes(redis: RedisServer, host: Environment) -> Environment:
    """Return an environment with two relays that share a Redis; `relay` is the second."""
    host.start_relay(durable=True, cluster=redis.address)
    host.start_relay(durable=True, cluster=redis.address)
    return host


def at(world: Environment, n: int) -> RelayHandle:
    """Send later requests to relay `n`, 0 or 1; return that relay."""
    world.relay = world._relays[n]
    return world.relay


def paired(world: Environment, name: str = "Tablet") -> WebSocketTestClient:
    """Return a WebSocket that has paired at the second node with a code of the first."""
    at(world, 0)
    code = world.register()
    at(world, 1)
    phone = world.websocket()
    identity = {"device_name": name, "device_id": f"id of {name}", "client_surface": "android"}
    assert phone.sign_in(pairing_code=code, **identity)["type"] == "auth.ok"
    return phone


def test_a_code_outlives_a_cut_of_the_connections_to_redis(nodes: Environment, redis: RedisServer) -> None:
    at(nodes, 0)
    code = nodes.register()
    before = redis.subscribers()
    redis.cut()
    nodes.eventually(lambda: len(redis.subscribers() - before) == len(before) == 2)
    for n in (1, 0):
        at(nodes, n)
        nodes.eventually(lambda: nodes.http("POST", "/pairing").status == 200)
    at(nodes, 1)
    assert nodes.websocket().sign_in(pairing_code=code)["type"] == "auth.ok"


def test_when_sentinels_make_another_the_master_codes_revocations_and_commands_survive(
    runtime: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with RedisWithSentinels(tmp_path) as watched, open_world(runtime, tmp_path, request) as nodes:
        for _ in range(2):
            nodes.start_relay(durable=True, cluster=watched.address)
        phone = paired(nodes)
        at(nodes, 0)
        nodes.eventually(lambda: nodes.http("GET", "/bridge/devices").json["count"] == 1)
        codes = [nodes.register() for _ in range(5)]
        ended = paired(nodes, "Other")
        at(nodes, 0)
        assert nodes.http("DELETE", f"/sessions/{ended.token[:8]}").status == 200
        calling = nodes.client().begin("GET", "/ping", headers=bearer(phone.token))
        taken = phone.command()  # unanswered until the master is killed
        nodes.eventually(watched.in_step)  # the replica has the codes
        watched.master.kill()
        phone.respond(taken["request_id"], {})
        assert calling.finish().status in (200, 502)

        for n in range(2):
            at(nodes, n)
            nodes.eventually(lambda: nodes.http("POST", "/pairing").status == 200, FAILOVER_WITHIN)
        assert watched.replica.role == "master"
        answers = [nodes.websocket().sign_in(pairing_code=code) for code in codes]
        good = [answer for answer in answers if not is_cluster_unavailable(answer)]
        assert {answer["type"] for answer in good} <= {"auth.ok"}, good
        nodes.eventually(lambda: is_paired_with_a_new_code(nodes))
        for n in range(2):
            at(nodes, n)
            assert nodes.http("GET", "/sessions", headers=bearer(ended.token)).status == 401
        at(nodes, 0)
        nodes.eventually(lambda: nodes.http("GET", "/bridge/devices").json["count"] == 1)
        calling = nodes.client().begin("GET", "/ping", headers=bearer(phone.token))
        phone.respond(phone.command()["request_id"], {})
        assert calling.finish().status == 200


def is_cluster_unavailable(answer: dict[str, Any]) -> bool:
    """Report whether a node refused a code because it had lost Redis."""
    return "do not reach each other" in str(answer["payload"])


def is_paired_with_a_new_code(world: Environment) -> bool:
    """Register a code at the first node, pair with it at the second, and report whether both succeeded."""
    at(world, 0)
    code = str(world.http("POST", "/pairing").json.get("code", ""))
    at(world, 1)
    return bool(code) and world.websocket().sign_in(pairing_code=code)["type"] == "auth.ok"
