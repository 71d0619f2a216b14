"""Answers of `/api/qr`, compared with the dashboard's document; `test_phone_proxy` has those of the phone's routes."""

import pytest

from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.openapi_validation import OpenApiValidator


@pytest.mark.parametrize(("body", "status"), [(b"https://relay.example", 200), (b"", 422), (b"\xff", 422)])
def test_a_qr(virtual: SimulatedEnvironment, body: bytes, status: int) -> None:
    board = DashboardServer(virtual)
    answer = board.request("POST", "/api/qr", body)
    assert answer.status == status
    OpenApiValidator.of(board.request("GET", "/openapi.json").body).check("POST /api/qr", answer)
