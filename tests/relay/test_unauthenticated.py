"""Limits for unauthenticated connections at the relay."""

import pytest

from svc_proto.engine.router import Route
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.store_requests import SaveSession
from tests.relay.harness import REMOTE, RelayHarness

LARGE = 64 * 1024  # bytes
ROUTES = Relay(RelayConfig()).router.routes
OPEN = (RelayAccess.PUBLIC, RelayAccess.SOCKET)  # open to any client


def test_messages_are_small_before_and_large_after_the_sign_in(book: RelayHarness) -> None:
    phone = book.websocket()
    phone.text(" " * (LARGE + 1))
    assert phone.close_code == 1009
    code = book.register()
    phone = book.websocket()
    fields = {f"field_{number}": "x" * 1000 for number in range(50)}
    assert phone.auth(pairing_code=code, device_name="n" * 1000, supports=fields)["type"] == "auth.ok"
    phone = book.pair().phone
    phone.send("bridge", "bridge.status", {"device": {"name": "x" * 8_000_000}})
    assert phone.is_open
    phone.text("x" * 9_000_000)
    assert phone.close_code == 1009
    code = book.register()
    phone = book.websocket()
    book.hold = (SaveSession,)
    phone.send("system", "auth", {"pairing_code": code})
    phone.text(" " * (LARGE + 1))
    assert phone.close_code == 1009


def head(method: str, path: str, length: int) -> bytes:
    return b"%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (method.encode(), path.encode(), length)


@pytest.mark.parametrize("path", ["/health", "/ws", "/"])
def test_public_routes_take_no_body(book: RelayHarness, path: str) -> None:
    assert book.raw(head("GET", path, LARGE + 1)).result.status == 413
    call = book.raw(head("GET", path, LARGE))
    assert call.answer is None if path == "/health" else call.result.status == 400
    call.say_bytes(bytes(LARGE))
    assert call.result.status == (200 if path == "/health" else 400)


def test_public_routes_and_their_body_limits(book: RelayHarness) -> None:
    assert book.call("GET", "/health", b"{}", peer=REMOTE).result.status == 200
    public = [route for route in ROUTES if route.access in OPEN]  # tests/test_authority_table.py lists them
    assert {route.body_limit for route in public if route.method == "GET"} == {0}
    assert {route.body_limit for route in public if route.method != "GET"} == {16_384}


@pytest.mark.parametrize("route", ROUTES, ids=[f"{route.method} {route.pattern}" for route in ROUTES])
def test_access_is_checked_before_the_body_is_read(book: RelayHarness, route: Route) -> None:
    answer = book.raw(head(route.method, route.pattern, 1_000_000)).result
    assert answer.status == (
        413 if route.access in OPEN else 403 if route.access in (RelayAccess.LOOPBACK, RelayAccess.MONITOR) else 401
    )
