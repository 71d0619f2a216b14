"""Tests of two API servers that share a Redis."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loops.conftest import open_world
from tests.loops.environment import ApiHandle, Environment
from tests.loops.raw_event_stream import chat
from tests.loops.session_events import check_turn
from tests.runtimes.redis_server import RedisServer, needs_redis

pytestmark = needs_redis

KEY = "sk-nodes-20c1"
Nodes = tuple[Environment, ApiHandle, ApiHandle]


@pytest.fixture
def nodes(runtime: str, redis: RedisServer, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Nodes]:
    with open_world(runtime, tmp_path, request) as world:
        first, second = (
            world.api(key=KEY, durable=True, cluster=redis.address, relay_url="http://127.0.0.1:9") for _ in range(2)
        )
        for api in (first, second):
            world.eventually(lambda api=api: b"\nsvc_cluster_nodes 1.0" in api.request("GET", "/metrics").body)  # type: ignore[misc]
        yield world, first, second


def test_a_turn_of_one_is_followed_stopped_and_answered_at_the_other(nodes: Nodes) -> None:
    world, first, second = nodes
    begun = json.loads(first.request("POST", "/v1/runs", {"input": "/approve", "session_id": "s"}).body)
    run = f"/v1/runs/{begun['run_id']}"
    following = second.client().begin("GET", f"{run}/events", headers=second.headers).some()
    world.eventually(lambda: bool(json.loads(second.request("GET", run).body).get("approvals")))
    (question,) = json.loads(second.request("GET", run).body)["approvals"]
    answer = {"choice": "once", "call_id": question["call_id"]}
    assert second.request("POST", f"{run}/approval", answer).status == 200
    events = following.finish()
    assert events.status == 200
    assert b'"run.completed"' in events.body
    long = json.loads(second.request("POST", "/v1/runs", {"input": "/count 9000", "session_id": "s"}).body)
    run = f"/v1/runs/{long['run_id']}"
    assert first.request("POST", f"{run}/stop").status == 200
    world.eventually(lambda: json.loads(first.request("GET", run).body)["status"] == "cancelled")
    rows = [(row["role"], row["content"]) for row in first.messages("s")]
    assert rows == [(row["role"], row["content"]) for row in second.messages("s")]
    assert [text for role, text in rows if role == "user"] == ["/approve", "/count 9000"]


def test_turns_of_one_session_are_queued(nodes: Nodes) -> None:
    world, first, second = nodes
    session = first.session()
    waits = chat(world, first, session, "/count 9000")
    behind = [chat(world, api, session, f"/echo {n}") for n, api in enumerate((second, first, second))]
    assert second.request("POST", f"/v1/runs/{waits.field('x-svc-run-id')}/stop").status == 200
    for stream in (waits, *behind):
        check_turn(stream.rest())
    said = [row["content"] for row in second.messages(session) if row["role"] == "user"]
    assert said == ["/count 9000", "/echo 0", "/echo 1", "/echo 2"]
    assert second.request("DELETE", f"/api/sessions/{session}").status == 204
    assert first.request("GET", f"/api/sessions/{session}").status == 404


def test_turns_continue_without_redis_and_recover(nodes: Nodes, redis: RedisServer) -> None:
    world, first, second = nodes
    session = first.session()
    path = f"/api/sessions/{session}/chat/stream"
    waits = chat(world, first, session, "/count 150")
    redis.kill()
    world.eventually(lambda: second.request("POST", path, {"message": "/echo x"}).status == 503)
    refused = second.request("POST", path, {"message": "x"})
    assert json.loads(refused.body)["error"]["code"] == "cluster_unavailable"
    check_turn(waits.rest())
    redis.start()
    world.eventually(lambda: second.request("POST", path, {"message": "/echo y"}).status == 200)
    assert [row["content"] for row in first.messages(session)][-2:] == ["/echo y", "y"]
