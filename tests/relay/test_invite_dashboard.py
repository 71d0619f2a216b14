from __future__ import annotations

import json
from typing import Any

import pytest

from svc_proto.commands import Compute
from svc_proto.relay_config import RelayConfig
from tests.relay.harness import RelayHarness

LAN = {"role": "lan", "priority": 0, "api": {"host": "192.0.2.10", "port": 8642, "tls": False}}
MESH = {"role": "mesh", "priority": 1, "api": {"host": "100.64.0.9", "port": 8642, "tls": False}}
PUBLIC = {"role": "public", "priority": 2, "api": {"host": "relay.example", "port": 443, "tls": True}}
OWN = {**LAN, "dashboard": {"url": "http://192.0.2.10:1"}}


def invite(place: tuple[str, int] | None, body: dict[str, object]) -> dict[str, Any]:
    """Return the payload of an invite beside a dashboard that listens at `place`."""
    book = RelayHarness(RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", dashboard=place))
    answer = book.request("POST", "/pairing/mint", body)
    assert answer.status == 200, answer
    payload: dict[str, Any] = json.loads(answer.json["qr_payload"])
    return payload


def boards(payload: dict[str, Any]) -> list[object]:
    return [route.get("dashboard", {}).get("url") for route in payload["endpoints"]]


def test_a_dashboard_on_all_interfaces_is_named_on_the_routes_to_this_host() -> None:
    found = invite(("0.0.0.0", 9119), {"endpoints": [LAN, MESH, PUBLIC, OWN]})
    assert found["dashboard_url"] == "http://192.0.2.10:9119"
    assert boards(found) == ["http://192.0.2.10:9119", "http://100.64.0.9:9119", None, "http://192.0.2.10:1"]


def test_a_dashboard_on_one_address_is_named_on_its_route_alone() -> None:
    found = invite(("100.64.0.9", 9119), {"endpoints": [LAN, MESH]})
    assert found["dashboard_url"] == "http://100.64.0.9:9119"
    assert boards(found) == [None, "http://100.64.0.9:9119"]


@pytest.mark.parametrize(
    ("place", "body"),
    [(None, {}), (("0.0.0.0", 9119), {"grants": {"chat": False}}), (("0.0.0.0", 9119), {"endpoints": None})],
)
def test_the_top_level_address(place: tuple[str, int] | None, body: dict[str, object]) -> None:
    wanted = "http://192.0.2.10:9119" if place and "grants" not in body else None
    assert invite(place, body).get("dashboard_url") == wanted


def test_a_named_dashboard_stays() -> None:
    assert (
        invite(("0.0.0.0", 9119), {"dashboard_url": "https://board.example"})["dashboard_url"]
        == "https://board.example"
    )


def test_a_host_without_a_network_names_none() -> None:
    book = RelayHarness(RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", dashboard=("::", 9119)))
    book.refuse = (Compute,)
    assert "dashboard_url" not in book.request("POST", "/pairing/mint", {}).json
