from typing import Any

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceFault
from svc_proto.wire.multipart import Part
from tests.cli.harness import REFUSED, OneShotHarness, Reply, UpstreamRequest, as_json
from tests.service_clients.test_service_client import Plan, failure

RELAY = RelayClient("the relay", "http://h:1", "t")


def health(engine: Engine) -> Flow[Any]:
    return RELAY.health(engine, within=1.0)


def test_healthy_relay() -> None:
    assert OneShotHarness(health, http=as_json({"status": "ok", "version": "1"})).run()["version"] == "1"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (REFUSED, ServiceFault.UNREACHABLE),
        (as_json({"status": "ill"}), ServiceFault.SERVER_ERROR),
        (as_json({"status": "ok"}, 500), ServiceFault.SERVER_ERROR),
        ((200, b"x"), ServiceFault.NO_JSON),
    ],
)
def test_unhealthy_relay(answer: Reply, fault: ServiceFault) -> None:
    assert failure(health, answer)[0].fault is fault


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (as_json({"ok": True, "revoked": "1c2d3e4f"}), {"ok": True, "revoked": "1c2d3e4f"}),
        ((204, b""), {"ok": True, "revoked": "1c2d3e4f", "revoked_self": False}),
    ],
)
def test_revoking(answer: Reply, result: object) -> None:
    world = OneShotHarness(lambda engine: RELAY.revoke(engine, "1c2d3e4f5a"), http=answer)
    assert world.run() == result
    assert (world.asked[0].method, world.asked[0].path) == ("DELETE", "/sessions/1c2d3e4f5a")


def test_a_voice_session() -> None:
    def http(asked: UpstreamRequest) -> Reply:
        assert (asked.method, asked.path, asked.json) == ("POST", "/voice/realtime-agent/session", {"profile": "p"})
        return as_json({"websocket_path": "/voice/x"})

    assert OneShotHarness(lambda engine: RELAY.voice_session(engine, {"profile": "p"}), http=http).run() == "/voice/x"


@pytest.mark.parametrize("name", ["websocket_path", "code", "token"])
@pytest.mark.parametrize("value", [None, "", 5])
def test_invalid_answers(name: str, value: object) -> None:
    calls: dict[str, tuple[Plan, str]] = {
        "websocket_path": (lambda engine: RELAY.voice_session(engine, {}), "voice session"),
        "code": (lambda engine: RELAY.new_code(engine, within=1.0), "pairing code"),
        "token": (lambda engine: RELAY.upload_file(engine, PART, within=1.0), "token"),
    }
    call, lacks = calls[name]
    error, _ = failure(call, as_json({name: value}))
    assert (error.fault, error.lacks) == (ServiceFault.UNAVAILABLE, lacks)


def test_all_pages_of_the_sessions_are_read() -> None:
    answers = iter([{"sessions": [{"a": 1}], "next_cursor": "b.c"}, {"sessions": [{"a": 2}]}])
    world = OneShotHarness(RELAY.sessions, http=lambda asked: as_json(next(answers)))
    assert world.run() == [{"a": 1}, {"a": 2}]
    assert [f"{each.method} {each.path}" for each in world.asked] == ["GET /sessions", "GET /sessions?cursor=b.c"]


PART = Part(name="file", filename="a.txt", content_type="text/plain", data=b"hello")


@pytest.mark.parametrize(
    ("call", "asked", "answer", "result"),
    [
        (health, "GET /health", {"status": "ok"}, {"status": "ok"}),
        (lambda engine: RELAY.new_code(engine, within=1.0), "POST /pairing", {"code": "x-1"}, "x-1"),
        (lambda engine: RELAY.upload_file(engine, PART, within=1.0), "POST /media/upload", {"token": "x-1"}, "x-1"),
        (RELAY.sessions, "GET /sessions", {"sessions": [{"a": 1}, 2], "items": []}, [{"a": 1}]),
    ],
)
def test_valid_answers(call: Plan, asked: str, answer: dict[str, object], result: object) -> None:
    world = OneShotHarness(call, http=as_json(answer))
    assert world.run() == result
    assert [f"{each.method} {each.path}" for each in world.asked] == [asked]
