"""The dashboard's own types, held to what the reference phone answers through it, and what it takes."""

from __future__ import annotations

import pytest

from svc_proto.dashboard.phone_proxy import PREFIX
from tests.loops.dashboard_client import Board
from tests.loops.phone_screen import Seen
from tests.loops.simulated_environment import VirtualWorld
from tests.support.openapi_validation import Documented


def test_the_reference_phone(virtual: VirtualWorld) -> None:
    virtual.start_relay()
    board = Board(virtual, api_url="http://127.0.0.1:8642")
    documented = Documented.of(board.ask("GET", "/openapi.json").body)
    Seen(virtual, name="Pixel 9")
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
        answer = board.ask(method, PREFIX + path, body)
        documented.check(f"{method} {PREFIX}{path}", answer)
        statuses.append(answer.status)
    assert statuses == [200, 200, 400, 409, 200, 200, 200]


@pytest.mark.parametrize(("body", "status"), [(b"https://relay.example", 200), (b"", 422), (b"\xff", 422)])
def test_a_qr(virtual: VirtualWorld, body: bytes, status: int) -> None:
    board = Board(virtual)
    answer = board.ask("POST", "/api/qr", body)
    assert answer.status == status
    Documented.of(board.ask("GET", "/openapi.json").body).check("POST /api/qr", answer)
