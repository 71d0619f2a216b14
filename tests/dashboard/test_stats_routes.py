"""Readings of the servers beside the dashboard, and their statistics on its page."""

from base64 import b64encode
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from svc_proto.relay_config import LocalTrustPolicy
from svc_proto.service_clients.server_stats import NAMES
from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.servers.canned_server import CannedServer, http

TEXT = b'svc_phones 2\nsvc_deltas_total 5\nsvc_runs{state="running"} 1\n# EOF\n'


def seen(board: DashboardServer) -> dict[str, Any]:
    answer = board.request("GET", "/api/vitals")
    assert (answer.status, answer.headers.get(b"cache-control")) == (200, b"no-store")
    found: dict[str, Any] = answer.json
    return found


def now(found: Mapping[str, Any]) -> dict[str, float | None]:
    return dict(zip(found["names"], found["now"], strict=True))


def test_first_request_takes_a_reading(virtual: SimulatedEnvironment) -> None:
    virtual.start_relay()
    virtual.pair("Workbench")
    found = seen(DashboardServer(virtual))
    assert (found["every"], found["span"], found["names"]) == (15.0, 3600.0, list(NAMES))
    assert (now(found)["sessions"], now(found)["phones"], now(found)["requests"]) == (1, 0, None)
    assert [row[0] for row in found["rows"]] == [now(found)["at"]]
    assert found["answers"] == {"relay": True}


def test_readings_are_taken_without_requests(virtual: SimulatedEnvironment) -> None:
    virtual.start_relay()
    board = DashboardServer(virtual, api=virtual.api())
    virtual.pass_time(46)
    found = seen(board)
    times = [row[0] for row in found["rows"]]
    assert [round(b - a) for a, b in pairwise(times)] == [15, 15]
    assert found["answers"] == {"relay": True, "api": True}
    assert now(found)["turns"] == 0
    assert now(found)["requests"] == 0  # the dashboard's own requests do not count
    assert now(found)["at"] > times[-1]


def test_silent_server_leaves_a_gap(virtual: SimulatedEnvironment) -> None:
    silent, well = CannedServer(), CannedServer(http(200, TEXT))
    board = DashboardServer(virtual, relay_url=virtual.peer(silent), api_url=virtual.peer(well, port=9001))
    found = seen(board)
    assert found["answers"] == {"relay": False, "api": True}
    assert now(found)["turns"] == 1
    virtual.pass_time(30)
    turns = [row[NAMES.index("turns")] for row in seen(board)["rows"]]
    assert turns == [1] * len(turns)


def test_slow_reading_is_not_repeated(virtual: SimulatedEnvironment) -> None:
    silent = CannedServer()
    board = DashboardServer(virtual, relay_url=virtual.peer(silent), patience=40.0)
    virtual.pass_time(50)
    assert b"".join(silent.heard).count(b"GET ") == 1
    board.server.stop()  # also cancels the reading


def test_readings_show_the_metrics_token(virtual: SimulatedEnvironment) -> None:
    peer = CannedServer(http(403, b"{}"))
    token = "monitor-0123456789"
    board = DashboardServer(virtual, relay_url=virtual.peer(peer), metrics_token=token)
    assert seen(board)["answers"] == {"relay": False}
    assert token.encode() in peer.heard[0]
    assert token not in repr(board.server.logs)


def test_a_dashboard_with_a_password_shows_the_secret_of_this_host(virtual: SimulatedEnvironment) -> None:
    virtual.start_relay(local_trust=LocalTrustPolicy.SECRET)
    for password, answers in (("", False), ("correct horse", True)):
        board = DashboardServer(virtual, password=password)
        sign_in = {"authorization": "Basic " + b64encode(f"me:{password}".encode()).decode()}
        found = board.request("GET", "/api/vitals", headers=sign_in if password else {})
        assert found.json["answers"] == {"relay": answers}
        board.server.stop()


def test_no_readings_after_the_stop(virtual: SimulatedEnvironment) -> None:
    peer = CannedServer(http(200, TEXT))
    board = DashboardServer(virtual, relay_url=virtual.peer(peer))
    board.server.stop()
    virtual.pass_time(60)
    assert peer.heard == []
