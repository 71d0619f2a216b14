import json
from typing import Any
from uuid import UUID

import pytest

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.machines.grants import CHANNELS
from svc_proto.service_clients.local_pairing import DEVICE_NAME, pair_locally, refusal_of
from svc_proto.service_clients.local_secret import HEADER, LOCAL_SECRET
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceCallError
from svc_proto.wire.events import WebSocketClosed
from tests.cli.harness import REFUSED, SILENT, OneShotHarness, Reply, UpstreamRequest, as_json
from tests.support.core_harness import HOME

RELAY = RelayClient("the relay", "http://127.0.0.1:8767", local=True)
MADE = as_json({"code": "ABC123"})


def pairing(*says: tuple[str, object], made: Reply = MADE, refuses: int = 0, **how: Any) -> OneShotHarness[str]:
    """Return a pairing with a relay whose HTTP routes answer with `made`, and whose WebSocket answers with `says`.

    With `refuses`, the relay refuses the WebSocket with this status.
    """

    def plan(engine: Engine) -> Flow[str]:
        try:
            told = yield from pair_locally(engine, RELAY, **how)
        except ServiceCallError as error:
            told = refusal_of(error)
        yield from sleep(engine, 0.5)  # s for the close of the socket
        return told

    said = [{"channel": "system", "type": kind, "id": "1", "payload": payload} for kind, payload in says]
    world = OneShotHarness(plan, http=lambda asked: (refuses, b"") if asked.path == "/ws" else made)
    if not refuses:
        world.socket = lambda message: [*said]
    return world


def test_pairing_names_the_device() -> None:
    there = pairing(("auth.ok", {"session_token": "!tok~"}))
    there.disk.put(f"{HOME}/{LOCAL_SECRET}", b"5e" * 32)
    assert there.run() == "!tok~"
    asked: UpstreamRequest = there.asked[0]
    assert (asked.method, asked.path, asked.headers.get(HEADER)) == ("POST", "/pairing", b"5e" * 32)
    (auth,) = there.said
    payload = auth["payload"]
    assert {channel: wish is False for channel, wish in payload.pop("grants").items()} == {
        channel: channel != "bridge" for channel in CHANNELS
    }
    assert any(isinstance(event, WebSocketClosed) for event in there.upstreams[-1].events)
    assert UUID(payload.pop("device_id")).version == 4
    assert payload == {
        "pairing_code": "ABC123",
        "device_name": DEVICE_NAME,
        "client_surface": "agent",
        "device_form_factor": "host",
    }
    assert "ABC123" not in json.dumps([tell.fields for tell in there.told])


def test_read_only_pairing_registers_a_code_first() -> None:
    looking = pairing(("auth.ok", {"session_token": "!tok~"}), name="MCP: x", looks=True)
    assert looking.run() == "!tok~"
    registered = json.loads(looking.asked[0].body)
    assert looking.asked[0].path == "/pairing/register"
    assert registered["grants"] == {**dict.fromkeys(CHANNELS, False), "bridge:read": 0}
    assert looking.said[0]["payload"]["pairing_code"] == registered["code"]


def test_requested_lifetime() -> None:
    limited = pairing(("auth.ok", {"session_token": "!tok~"}), name="MCP: x", ttl=60)
    assert limited.run() == "!tok~"
    payload = limited.said[0]["payload"]
    assert (payload["device_name"], payload["ttl_seconds"]) == ("MCP: x", 60)


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (pairing(("auth.fail", {"reason": "no"})), "the relay refused the pairing code"),
        (pairing(("auth.ok", {})), "no session token"),
        (pairing(), "the relay did not answer system/auth"),
        (pairing(refuses=429), "the relay refused the socket: 429"),
        (pairing(made=as_json({}, 403)), "the relay gave no pairing code: 403"),
        (pairing(made=as_json({"code": 5})), "the relay gave no pairing code: 200"),
        (pairing(made=as_json([])), "the relay gave no pairing code: 200"),
        (pairing(made=(200, b"")), "the relay gave no pairing code: 200"),
        (pairing(made=REFUSED), "connection refused"),
        (pairing(made=SILENT), "no answer in time"),
    ],
)
def test_refused_pairing(there: OneShotHarness[str], why: str) -> None:
    assert there.run() == why
