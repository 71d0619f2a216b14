from typing import Any

import pytest

from svc_proto.service_clients.dashboard_address import dashboard_at, name_dashboard

LAN = {"role": "lan", "api": {"host": "192.0.2.10", "port": 8642}}
MESH = {"role": "Tailscale", "api": {"host": "fd00::9", "port": 8642}}
PUBLIC = {"role": "public", "api": {"host": "relay.example", "port": 443}}
PAYLOAD: dict[str, Any] = {"host": "192.0.2.10", "endpoints": [LAN, MESH, PUBLIC, {"role": "lan"}]}
EVERYWHERE = ("0.0.0.0", 9119)


@pytest.mark.parametrize(
    ("bound", "host", "url"),
    [
        ("0.0.0.0", "192.0.2.10", "http://192.0.2.10:9119"),
        ("::", "fd00::9", "http://[fd00::9]:9119"),
        ("192.0.2.10", "192.0.2.10", "http://192.0.2.10:9119"),
        ("192.0.2.10", "192.0.2.11", None),
        ("0.0.0.0", "127.0.0.1", None),
    ],
)
def test_a_dashboard_is_where_it_listens(bound: str, host: str, url: str | None) -> None:
    assert dashboard_at((bound, 9119), host) == url


def test_the_routes_to_this_host_name_it() -> None:
    named = name_dashboard(PAYLOAD, EVERYWHERE)
    assert named["dashboard_url"] == "http://192.0.2.10:9119"
    boards = [route.get("dashboard", {}).get("url") for route in named["endpoints"]]  # type: ignore[attr-defined]  # of a test
    assert boards == ["http://192.0.2.10:9119", "http://[fd00::9]:9119", None, None]
    assert name_dashboard({"endpoints": [{**LAN, "dashboard": {"url": "x"}}]}, EVERYWHERE)["dashboard_url"] == "x"
    assert name_dashboard({"host": "192.0.2.10"}, ("192.0.2.10", 1)) == {
        "host": "192.0.2.10",
        "dashboard_url": "http://192.0.2.10:1",
    }


@pytest.mark.parametrize(
    ("payload", "dashboard"),
    [
        (PAYLOAD, None),
        ({**PAYLOAD, "dashboard_url": "x"}, EVERYWHERE),
        ({"host": "127.0.0.1"}, EVERYWHERE),
        ({"host": "relay.example", "endpoints": [PUBLIC]}, EVERYWHERE),
    ],
)
def test_a_payload_without_a_place_for_it_stays(payload: dict[str, object], dashboard: tuple[str, int] | None) -> None:
    assert name_dashboard(payload, dashboard) == payload
