"""Tests of the example in which state machines of svc_proto run inside a Starlette app."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient, WebSocketTestSession

from examples.machines_in_starlette import app, limiter


@pytest.fixture
def client() -> Iterator[TestClient]:
    limiter.clear()
    with TestClient(app) as opened:
        yield opened


def say(phone: WebSocketTestSession, channel: str, kind: str, **payload: object) -> None:
    phone.send_json({"channel": channel, "type": kind, "id": "1", "payload": payload})


@contextmanager
def paired(client: TestClient) -> Iterator[tuple[WebSocketTestSession, dict[str, str]]]:
    """Yield a phone that has paired and is connected, and the header fields with its session token."""
    code = client.post("/code").json()["code"]
    with client.websocket_connect("/ws") as phone:
        say(phone, "system", "auth", pairing_code=code, device_name="Pixel", device_id="p1")
        welcome: Any = phone.receive_json()
        assert welcome["type"] == "auth.ok"
        yield phone, {"authorization": f"Bearer {welcome['payload']['session_token']}"}


def test_the_main_job(client: TestClient) -> None:
    with paired(client) as (phone, known), ThreadPoolExecutor(1) as threads:
        assert client.get("/ping", headers={"authorization": "Bearer wrong"}).status_code == 401
        asked = threads.submit(client.get, "/ping", headers=known)
        order = phone.receive_json()["payload"]
        assert (order["method"], order["path"]) == ("GET", "/ping")
        say(phone, "bridge", "bridge.response", request_id=order["request_id"], status=200, result={"pong": True})
        assert (asked.result(60.0).status_code, asked.result().json()) == (200, {"pong": True})
    assert client.get("/ping", headers=known).status_code == 503
    with client.websocket_connect("/ws") as again:
        say(again, "system", "auth", session_token=known["authorization"].removeprefix("Bearer "))
        assert again.receive_json()["type"] == "auth.ok"


def test_a_phone_that_disconnects_fails_its_command(client: TestClient) -> None:
    with ThreadPoolExecutor(1) as threads:
        with paired(client) as (phone, known):
            asked = threads.submit(client.get, "/screen", headers=known)
            phone.receive_json()
        assert asked.result(60.0).status_code == 502


def test_guesses_block_the_address(client: TestClient) -> None:
    code = client.post("/code").json()["code"]
    for guess in (*["AAAAAA"] * 5, code):  # the code is still valid at the end
        with client.websocket_connect("/ws") as phone:
            say(phone, "system", "auth", pairing_code=guess)
            assert phone.receive_json()["type"] == "auth.fail"
            if guess != code:
                assert phone.receive()["code"] == 1008
