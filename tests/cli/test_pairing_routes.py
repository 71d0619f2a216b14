import json
from typing import Any

import pytest
from attrs import evolve

from svc_proto.cli.pairing_candidates import ApiCandidate, CandidateMode
from svc_proto.cli.pairing_routes import API_HERE_ALONE, HERE_ALONE, NO_ADDRESS, FoundRoutes, RouteRequest, find_routes
from svc_proto.relay_config import RelayConfig
from tests.cli.harness import OneShotHarness

CONFIG = RelayConfig(home="/h", config_path="/h/config.yaml")
API = ApiCandidate("0.0.0.0", 8642, False)
REQUEST = RouteRequest(mode=CandidateMode.AUTO, api=API)
ROWS = [
    {"interface": "lo", "address": "127.0.0.1"},
    {"interface": "wlan0", "address": "192.168.1.20"},
    {"interface": "tun0", "address": "10.5.0.2", "default": True},
    {"interface": "wlan0", "address": "fd00::20"},
]
PROGRAM = "/bin/tailscale"
MESH = {f"{PROGRAM} status --json": json.dumps({"Self": {"TailscaleIPs": ["100.64.0.7"]}}).encode()}
URL = "https://home.example/relay"


def found(config: RelayConfig, request: RouteRequest, *, mesh: bool = False, rows: Any = ROWS) -> FoundRoutes:
    compute: dict[str, Any] = {"network_addresses": lambda: rows}
    if mesh:
        compute["which"] = lambda name: PROGRAM
    programs = MESH if mesh else {}
    return OneShotHarness(lambda engine: find_routes(engine, config, request), compute=compute, programs=programs).run()


def places(routes: FoundRoutes) -> list[tuple[str, str, str]]:
    return [(route.role, route.api.url, route.relay_url) for route in routes.routes]


@pytest.mark.parametrize(
    ("host", "api_host", "address"),
    [
        ("0.0.0.0", "0.0.0.0", "192.168.1.20"),
        ("0.0.0.0", "127.0.0.1", "192.168.1.20"),
        ("::", "localhost", "192.168.1.20"),
        ("fd00::20", "::", "[fd00::20]"),
        ("192.168.1.20", "127.0.0.1", "192.168.1.20"),
        ("10.5.0.2", "127.0.0.1", "10.5.0.2"),
    ],
)
def test_both_servers_at_one_address(host: str, api_host: str, address: str) -> None:
    (lan,) = places(found(evolve(CONFIG, host=host), evolve(REQUEST, api=evolve(API, host=api_host))))
    assert lan[0] == "lan"
    assert lan[2] == f"ws://{address}:8767"
    assert lan[1] == f"http://{address if (host, api_host) != ('fd00::20', '::') else '192.168.1.20'}:8642"


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "192.168.1.20"])
def test_a_named_host_counts_for_both(host: str) -> None:
    (lan,) = places(found(evolve(CONFIG, host=host), evolve(REQUEST, host=" box.example ")))
    assert lan == ("lan", "http://box.example:8642", "ws://box.example:8767")


def test_a_relay_behind_a_proxy_has_no_route_in_the_local_network() -> None:
    behind = evolve(CONFIG, host="127.0.0.1", public_url=URL)
    routes = found(behind, REQUEST)
    assert places(routes) == [("public", "https://home.example:443", "wss://home.example/relay")]
    assert routes.notes == ()
    assert [each.why for each in routes.left_out] == ["the relay listens on 127.0.0.1 alone"] * 3
    other = found(behind, evolve(REQUEST, public_url="https://other.example/"))
    assert places(other) == [("public", "https://other.example:443", "wss://other.example")]
    assert places(found(behind, evolve(REQUEST, mode=CandidateMode.LAN)))[0][2] == "ws://127.0.0.1:8767"


def test_the_address_from_outside_is_in_the_settings_once() -> None:
    config, lan = evolve(CONFIG, public_url=URL), evolve(REQUEST, mode=CandidateMode.LAN)
    routes = [found(config, each, mesh=True).routes for each in (REQUEST, evolve(REQUEST, prefer="public"), lan)]
    roles = [[route.role for route in each] for each in routes]
    assert roles == [["lan", "mesh", "public"], ["public", "lan", "mesh"], ["lan"]]


def test_a_relay_for_this_host_alone() -> None:
    config = evolve(CONFIG, host="127.0.0.1")
    routes = found(config, evolve(REQUEST, api=evolve(API, host="127.0.0.1")))
    assert places(routes) == [("lan", "http://127.0.0.1:8642", "ws://127.0.0.1:8767")]
    assert routes.notes == (HERE_ALONE,)
    meshed = found(config, REQUEST, mesh=True)  # some mesh programs pass connections on to loopback
    assert [route.relay_url for route in meshed.routes] == ["ws://100.64.0.7:8767"]
    assert meshed.notes == (HERE_ALONE,)


def test_a_host_without_a_network() -> None:
    routes = found(CONFIG, REQUEST, rows=[])
    assert places(routes) == [("lan", "http://127.0.0.1:8642", "ws://127.0.0.1:8767")]
    assert routes.notes == (NO_ADDRESS,)


def test_an_api_for_this_host_alone_is_noted_where_one_runs() -> None:
    request = evolve(REQUEST, api=evolve(API, host="127.0.0.1"))
    assert found(CONFIG, request).notes == ()
    assert found(evolve(CONFIG, webapi_inside="http://127.0.0.1:8642"), request).notes == (API_HERE_ALONE,)


def test_a_missing_mesh() -> None:
    routes = found(CONFIG, evolve(REQUEST, mode=CandidateMode.MESH))
    assert (routes.routes, routes.mesh_is_missing) == ((), True)


def test_addresses_that_are_left_out() -> None:
    left = found(CONFIG, REQUEST).left_out
    assert [(each.what, each.why) for each in left] == [
        ("fd00::20 (wlan0)", "the relay listens on 0.0.0.0 alone"),
        ("10.5.0.2 (tun0)", "belongs to a VPN: --host names it"),
    ]
    left = found(evolve(CONFIG, host="::"), REQUEST, mesh=True).left_out
    assert [each.what for each in left] == ["fd00::20 (wlan0)", "10.5.0.2 (tun0)"]


def test_an_unusable_public_address() -> None:
    request = evolve(REQUEST, public_url="ftp://x")
    assert "--public-url" in OneShotHarness(lambda engine: find_routes(engine, CONFIG, request)).fails().reason
