"""Tests of the API key of an invite."""

from __future__ import annotations

import json

import pytest

from tests.loops.environment import ApiHandle, Environment, RelayHandle
from tests.loops.raw_event_stream import UnreadStream, chat

MAIN = "sk-main-5d1c"


def invite(world: Environment, body: object = None) -> tuple[str, str]:
    """Return the code and the API key of a new invite."""
    answer = world.http("POST", "/pairing/mint", {} if body is None else body)
    read = json.loads(answer.json["qr_payload"])
    return read["relay"]["code"], read["key"]


def paired(world: Environment, code: str) -> str:
    ws = world.websocket()
    assert ws.sign_in(pairing_code=code, device_name="Tablet")["type"] == "auth.ok"
    return ws.token


def revoke(world: Environment, token: str) -> None:
    answer = world.http("DELETE", f"/sessions/{token[:8]}")
    assert (answer.status, answer.json.get("knows_api_key")) == (200, None)


def asked(world: Environment, servers: RelayHandle, key: str) -> int:
    return ApiHandle(world, servers, key).request("GET", "/api/sessions").status


def begun(world: Environment, servers: RelayHandle, key: str) -> UnreadStream:
    """Start a long answer with this API key; return its stream, read up to the first text."""
    api = ApiHandle(world, servers, key)
    stream = chat(world, api, api.session(), "/count 5000")
    stream.until("assistant.delta")
    return stream


def test_a_key_ends_with_its_session(world: Environment) -> None:
    servers = world.start_servers(key=MAIN)
    (code, key), (_, other) = invite(world), invite(world)
    assert len({key, other, MAIN}) == 3
    assert asked(world, servers, key) == 200  # valid from the mint on
    token = paired(world, code)
    assert asked(world, servers, key) == 200
    stream, others = begun(world, servers, key), begun(world, servers, MAIN)
    revoke(world, token)
    assert [asked(world, servers, each) for each in (key, other, MAIN)] == [401, 200, 200]
    with pytest.raises((ConnectionError, EOFError)):
        stream.rest()
    others.until("assistant.delta")


def test_a_key_outlives_a_restart_and_its_end_does_too(world: Environment) -> None:
    servers = world.start_servers(key=MAIN)
    (kept_code, kept), (gone_code, gone), (_, unused) = invite(world), invite(world), invite(world)
    token = paired(world, kept_code)
    revoke(world, paired(world, gone_code))
    servers.kill()
    servers.restart()
    assert [asked(world, servers, each) for each in (kept, gone, unused)] == [200, 401, 401]
    revoke(world, token)
    assert asked(world, servers, kept) == 401
    assert servers.stop() == 0
    servers.restart()
    assert asked(world, servers, kept) == 401
