"""The relay as those have it who ask it by HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.peers.peer import PeerFault
from svc_proto.peers.relay import RelayClient
from tests.client.world import REFUSED, Answer, Asked, World, as_json
from tests.peers.test_peer import Ear, failure

RELAY = RelayClient("the relay", "http://h:1", "t")


def health(engine: Engine) -> Flow[Any]:
    return RELAY.health(engine, within=1.0)


def test_it_is_well() -> None:
    assert World(health, http=lambda asked: as_json({"status": "ok", "version": "1"})).run()["version"] == "1"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (REFUSED, PeerFault.UNREACHABLE),
        (as_json({"status": "ill"}), PeerFault.ILL),
        (as_json({"status": "ok"}, 500), PeerFault.ILL),
        ((200, b"x"), PeerFault.NO_JSON),
    ],
)
def test_it_is_not(answer: Answer, fault: PeerFault) -> None:
    assert failure(health, answer)[0].fault is fault


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (as_json({"ok": True, "revoked": "1c2d3e4f"}), {"ok": True, "revoked": "1c2d3e4f"}),
        ((204, b""), {"ok": True, "revoked": "1c2d3e4f", "revoked_self": False}),
    ],
)
def test_revoking(answer: Answer, result: object) -> None:
    world = World(lambda engine: RELAY.revoke(engine, "1c2d3e4f5a"), http=lambda asked: answer)
    assert world.run() == result
    assert (world.asked[0].method, world.asked[0].path) == ("DELETE", "/sessions/1c2d3e4f5a")


def talk(engine: Engine) -> Flow[Any]:
    return RELAY.talk(engine, {"profile": "p"}, Ear(), within=1.0)


def test_talking() -> None:
    def http(asked: Asked) -> Answer:
        assert (asked.path, asked.json) == ("/voice/realtime-agent/session", {"profile": "p"})
        return as_json({"websocket_path": "/voice/x"})

    world = World(talk, http=http, socket=lambda message: [])
    assert world.run().writable


@pytest.mark.parametrize("path", [None, "", "x", 5])
def test_no_voice_session(path: object) -> None:
    error, _ = failure(talk, as_json({"websocket_path": path}))
    assert (error.fault, error.lacks) == (PeerFault.LACKING, "voice session")
