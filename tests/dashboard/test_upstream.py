import json

import pytest

from svc_proto.dashboard.upstream import Upstream
from svc_proto.engine.http_client import MAX_ANSWER
from svc_proto.service_clients.service_client import ServiceClient
from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.servers.canned_server import CannedServer, http

NESTED = b"[" * 100 + b"]" * 100


def board_before(world: SimulatedEnvironment, peer: CannedServer) -> DashboardServer:
    return DashboardServer(world, relay_url=world.peer(peer))


@pytest.mark.parametrize(
    ("answer", "status", "detail"),
    [
        (http(503, b'{"ok":false}'), 502, 'it answered 503: {"ok":false}'),
        (http(500, b"x" * 300), 502, f"it answered 500: {'x' * 200}"),
        (http(500), 502, "it answered 500"),
        (http(300, b"{}"), 502, "it answered 300"),
        (http(302, b"{}"), 502, "it answered 302"),
        (http(400, b'{"ok":false}'), 400, {"ok": False}),
        (http(499, b"gone"), 499, "gone"),
        (http(200, b"<html>"), 502, "it did not answer in JSON"),
        (http(200, b'{"a":NaN}'), 502, "it did not answer in JSON"),
        (http(200, NESTED), 502, "it did not answer in JSON"),
        (http(404, b'{"ok":false,"error":"no"}'), 404, {"ok": False, "error": "no"}),
        (http(409, b"two of them"), 409, "two of them"),
        (http(418), 418, "relay answered 418"),
        (b"SSH-2.0-OpenSSH\r\n", 502, None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_answers_of_the_relay(virtual: SimulatedEnvironment, answer: bytes, status: int, detail: object) -> None:
    board = board_before(virtual, CannedServer(answer))
    found = board.relay("GET", "/overview")
    assert found.status == status
    told = board.detail(found)
    if status != 502:
        assert told == detail
        return
    assert told.startswith("relay unreachable at 10.0.0.3:9000: ")
    assert detail is None or told.endswith(f": {detail}")


def test_body_is_passed_on_unchanged(virtual: SimulatedEnvironment) -> None:
    body = '{ "name" : "Zoë <b>\\u0000",\n "n": 1.0 }'.encode()
    answer = board_before(virtual, CannedServer(http(201, body))).relay("GET", "/media")
    assert (answer.status, answer.body, answer.headers.get(b"cache-control")) == (201, body, b"no-store")
    assert answer.headers.get(b"content-type") == b"application/json"


def test_an_answer_without_a_body(virtual: SimulatedEnvironment) -> None:
    answer = board_before(virtual, CannedServer(http(204))).relay("DELETE", "/sessions/abcd")
    assert (answer.status, answer.body) == (204, b"")


def test_nothing_of_the_browser_reaches_the_relay(virtual: SimulatedEnvironment) -> None:
    peer = CannedServer(http(200, b"{}"))
    headers = {"cookie": "a=b", "x-secret": "1", "user-agent": "me", "authorization": "Bearer mine"}
    assert board_before(virtual, peer).request("GET", "/api/plugins/svc-relay/sessions", headers=headers).status == 200
    said = b"".join(peer.heard).lower()
    assert said.startswith(b"get /sessions http/1.1\r\nhost: 10.0.0.3:9000\r\n")
    for word in (b"cookie", b"x-secret", b"user-agent", b"authorization", b"origin"):
        assert word not in said


@pytest.mark.parametrize(
    ("peer", "reason"),
    [
        (CannedServer(http(200, b"{}", length=50), closes=True), "the connection ended within a message"),
        (CannedServer(http(200, b"x" * (MAX_ANSWER + 1))), f"the answer has more than {MAX_ANSWER} bytes"),
        (CannedServer(http(200, b"{", length=50)), "no answer within 5 seconds"),
        (CannedServer(), "no answer within 5 seconds"),
    ],
    ids=["cut", "huge", "stuck", "silent"],
)
def test_invalid_answers_give_502(virtual: SimulatedEnvironment, peer: CannedServer, reason: str) -> None:
    board = board_before(virtual, peer)
    began = virtual.clock()
    for path in ("/overview", "/sessions", "/bridge-activity", "/media"):
        answer = board.relay("GET", path)
        assert answer.status == 502
        assert reason in board.detail(answer)
    assert virtual.clock() - began < 4 * 5.1


def test_no_relay(virtual: SimulatedEnvironment) -> None:
    """Answer 502 while no relay runs, and forward the next request as soon as one has started."""
    board = DashboardServer(virtual)
    answer = board.relay("GET", "/overview")
    assert (answer.status, board.detail(answer).partition(": ")[0]) == (502, "relay unreachable at 127.0.0.1:8767")
    virtual.start_relay()
    assert board.relay("GET", "/overview").status == 200


def test_addresses_are_shown_and_keys_are_not() -> None:
    assert "at [::1]:8767: gone" in Upstream(ServiceClient("relay", "http://[::1]:8767")).unreachable("gone").message
    api = Upstream(ServiceClient("API server", "http://127.0.0.1:8642", "sk-secret"))
    assert "secret" not in repr(api)
    assert json.dumps(api.unreachable("x").message).count("secret") == 0
