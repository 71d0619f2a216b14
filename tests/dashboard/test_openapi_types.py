"""Answers of the phone's routes and of `/api/qr`, compared with the dashboard's document."""

import pytest

from svc_proto.dashboard.phone_proxy import PREFIX
from tests.loops.dashboard_client import DashboardServer
from tests.loops.phone_screen import PhoneScreen
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.openapi_validation import OpenApiValidator


def test_the_reference_phone(virtual: SimulatedEnvironment) -> None:
    virtual.start_relay()
    board = DashboardServer(virtual, api_url="http://127.0.0.1:8642")
    documented = OpenApiValidator.of(board.request("GET", "/openapi.json").body)
    PhoneScreen(virtual, name="Pixel 9")
    statuses = []
    for method, path, body in (
        ("GET", "/screen", None),
        ("POST", "/touch", {"kind": "wake"}),
        ("POST", "/touch", {"kind": "knock"}),
        ("POST", "/answer", {"question": "c9", "allow": True}),
        ("POST", "/toggle", {"on": False}),
        ("POST", "/say", {"text": "hello", "aloud": False}),
        ("GET", "/screen", None),
    ):
        answer = board.request(method, PREFIX + path, body)
        documented.check(f"{method} {PREFIX}{path}", answer)
        statuses.append(answer.status)
    assert statuses == [200, 200, 400, 409, 200, 200, 200]


@pytest.mark.parametrize(("body", "status"), [(b"https://relay.example", 200), (b"", 422), (b"\xff", 422)])
def test_a_qr(virtual: SimulatedEnvironment, body: bytes, status: int) -> None:
    board = DashboardServer(virtual)
    answer = board.request("POST", "/api/qr", body)
    assert answer.status == status
    OpenApiValidator.of(board.request("GET", "/openapi.json").body).check("POST /api/qr", answer)
