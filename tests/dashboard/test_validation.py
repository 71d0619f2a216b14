from typing import Any

import pytest

from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "place"),
    [
        ("GET", "/bridge-activity?limit=ten", None, "int_parsing", ["query", "limit"]),
        ("GET", "/bridge-activity?limit=1234567890", None, "int_parsing", ["query", "limit"]),
        ("GET", "/bridge-activity?limit=", None, "int_parsing", ["query", "limit"]),
        ("GET", "/media?include_expired=maybe", None, "bool_parsing", ["query", "include_expired"]),
        ("DELETE", f"/sessions/{'a' * 65}", None, "string_too_long", ["path", "prefix"]),
        ("POST", "/pairing", b"{", "json_invalid", ["body"]),
        ("POST", "/pairing", [1], "dict_type", ["body"]),
        ("POST", "/pairing", {"mode": 1}, "string_type", ["body", "mode"]),
        ("POST", "/pairing", {"public_url": "x" * 2049}, "string_type", ["body", "public_url"]),
        ("POST", "/pairing", {"mode": "lan", "host": 5}, "string_type", ["body", "host"]),
        ("POST", "/pairing", {"mode": "lan", "port": "8642"}, "int_type", ["body", "port"]),
        ("POST", "/pairing", {"mode": "lan", "port": True}, "int_type", ["body", "port"]),
        ("POST", "/pairing", {"mode": "lan", "port": 0}, "int_type", ["body", "port"]),
        ("POST", "/pairing", {"mode": "lan", "port": 65_536}, "int_type", ["body", "port"]),
        ("POST", "/pairing", {"mode": "lan", "tls": "yes"}, "bool_type", ["body", "tls"]),
    ],
)
def test_proxy_refuses_invalid_input_itself(
    virtual: SimulatedEnvironment, method: str, path: str, body: Any, kind: str, place: list[str]
) -> None:
    """Answer 422 with a list of one detail, without a request to the relay (wire core 9)."""
    board = DashboardServer(virtual)
    answer = board.relay(method, path, body)
    assert answer.status == 422, answer
    (found,) = board.detail(answer)
    assert (found["type"], found["loc"]) == (kind, place)
    assert found["msg"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/bridge-activity?limit=123456789", None),
        ("DELETE", f"/sessions/{'a' * 64}", None),
        ("POST", "/pairing", {"public_url": "x" * 2048}),
    ],
)
def test_longest_accepted_values(virtual: SimulatedEnvironment, method: str, path: str, body: Any) -> None:
    assert DashboardServer(virtual).relay(method, path, body).status != 422
