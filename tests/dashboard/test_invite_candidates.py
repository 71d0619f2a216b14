import json
from typing import Any

import pytest

from runtimes.sim.child import ScriptedProgram, SimChild
from svc_proto.basics.brand import HERMES
from svc_proto.relay_config import RelayConfig
from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import ADDRESS, SimulatedEnvironment
from tests.support.servers.canned_server import CannedServer, http

API = {"host": ADDRESS, "port": 8642, "tls": False}
MESH_ADDRESS = "100.64.0.9"
URL = "https://relay.example/base"
LAN = {"role": "lan", "priority": 0, "api": API, "relay": {"url": f"ws://{ADDRESS}:8767", "transport_hint": "ws"}}
MESH_URL, PUBLIC_URL = f"ws://{MESH_ADDRESS}:8767", "wss://relay.example/base"
MESH = {"role": "mesh", "priority": 1, "relay": {"url": MESH_URL, "transport_hint": "ws"}}
MESH |= {"api": {"host": MESH_ADDRESS, "port": 8642, "tls": False}}
PUBLIC = {"role": "public", "priority": 2, "relay": {"url": PUBLIC_URL, "transport_hint": "wss"}}
PUBLIC |= {"api": {"host": "relay.example", "port": 443, "tls": True}}


class Tailscale(ScriptedProgram):
    """Program that prints the Tailscale status of this host and exits."""

    def on_start(self) -> None:
        status = {"Self": {"TailscaleIPs": [MESH_ADDRESS]}}
        self.child.emit(json.dumps(status).encode())
        self.child.exit(0)


class Silent(ScriptedProgram):
    def on_start(self) -> None:
        pass


def mesh_of(world: SimulatedEnvironment, program: Any = Tailscale) -> None:
    def start(child: SimChild) -> ScriptedProgram:
        script: ScriptedProgram = program(child)
        return script

    world.relay_host.programs["/bin/tailscale"] = start


class Minting:
    """Dashboard before a scripted relay that records requests and answers each with 200."""

    def __init__(self, world: SimulatedEnvironment, **config: Any) -> None:
        self._relay = CannedServer(http(200, b'{"ok":true}'))
        self._board = DashboardServer(world, relay_url=world.peer(self._relay), **config)

    def __call__(self, body: dict[str, object]) -> list[Any]:
        """Return the candidates that the relay receives for this request."""
        self._relay.heard.clear()
        answer = self._board.relay("POST", "/pairing", body)
        assert answer.status == 200, answer
        sent = json.loads(b"".join(self._relay.heard).partition(b"\r\n\r\n")[2])
        assert {"mode", "public_url", "prefer"}.isdisjoint(sent)  # wire core 9: removed before forwarding
        found: list[Any] = sent["endpoints"]
        return found


def placed(*candidates: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**candidate, "priority": place} for place, candidate in enumerate(candidates)]


def test_each_mode(virtual: SimulatedEnvironment) -> None:
    mint = Minting(virtual)
    assert mint({"mode": "lan"}) == [LAN]
    assert mint({"mode": "auto"}) == [LAN]
    assert mint({"mode": "PUBLIC", "public_url": URL}) == placed(PUBLIC)
    mesh_of(virtual)
    assert mint({"mode": "auto", "public_url": URL}) == [LAN, MESH, PUBLIC]
    for word in ("mesh", "tailscale"):
        assert mint({"mode": word, "public_url": URL}) == placed(MESH)


def test_preferred_role_is_first(virtual: SimulatedEnvironment) -> None:
    mint = Minting(virtual)
    body: dict[str, object] = {"mode": "auto", "public_url": URL}
    assert mint({**body, "prefer": "public"}) == placed(PUBLIC, LAN)
    assert mint({**body, "prefer": "sneakernet"}) == placed(LAN, PUBLIC)


def test_other_api_address(virtual: SimulatedEnvironment) -> None:
    minting = Minting(virtual)
    for port in (1, 65_535):
        (found,) = minting({"mode": "lan", "host": "box.example", "port": port})
        assert found["api"]["port"] == port
    (found,) = minting({"mode": "lan", "host": " box.example ", "port": 443, "tls": True})
    assert found["api"] == {"host": "box.example", "port": 443, "tls": True}
    assert found["relay"]["url"] == "ws://box.example:8767"


def test_addresses_of_the_relay_configuration(virtual: SimulatedEnvironment) -> None:
    addresses: Any = {"host": "192.0.2.8", "port": 9443, "webapi_url": "https://api.example"}
    relay = RelayConfig(**addresses, ssl_cert="c", ssl_key="k", brand=HERMES)
    mesh_of(virtual)
    lan, mesh = Minting(virtual, relay=relay)({"mode": "auto"})
    assert lan["api"] == {"host": "api.example", "port": 443, "tls": True}
    assert lan["relay"] == {"url": "wss://192.0.2.8:9443", "transport_hint": "wss"}
    assert (mesh["role"], mesh["relay"]["url"]) == ("tailscale", f"wss://{MESH_ADDRESS}:9443")


def test_without_an_address_on_a_network(virtual: SimulatedEnvironment) -> None:
    virtual.relay_host.compute["network_addresses"] = list
    (found,) = Minting(virtual)({"mode": "lan"})
    assert found["relay"]["url"] == "ws://127.0.0.1:8767"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"mode": "carrier pigeon"}, "auto, lan, mesh or public"),
        ({"mode": "public"}, "public_url"),
        ({"mode": "public", "public_url": "ftp://relay.example"}, "http:// or https://"),
        ({"mode": "auto", "public_url": "not a url"}, "http:// or https://"),
        ({"mode": "mesh"}, "no mesh VPN"),
    ],
    ids=str,
)
def test_invalid_requests(virtual: SimulatedEnvironment, body: dict[str, object], word: str) -> None:
    peer = CannedServer(http(200, b"{}"))
    board = DashboardServer(virtual, relay_url=virtual.peer(peer))
    answer = board.relay("POST", "/pairing", body)
    assert answer.status == 400
    assert word in json.dumps(board.detail(answer))
    assert peer.heard == []


def test_hanging_mesh_program_leaves_time_for_the_relay(virtual: SimulatedEnvironment) -> None:
    mesh_of(virtual, Silent)
    board = DashboardServer(virtual, relay_url=virtual.peer(CannedServer()))
    began = virtual.clock()
    assert board.relay("POST", "/pairing", {"mode": "auto"}).status == 502
    assert 4.9 < virtual.clock() - began < 5.1
