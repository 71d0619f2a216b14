from base64 import b64encode

from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment


def test_answers_and_refusals_keep_other_pages_out(virtual: SimulatedEnvironment) -> None:
    board = DashboardServer(virtual)
    for path in ("/", "/nothing", "/api/plugins/svc-relay/push", "/api/plugins/svc-relay/overview"):
        answer = board.request("GET", path)
        assert b"default-src 'none'" in (answer.headers.get(b"content-security-policy") or b""), path
        assert answer.headers.get(b"cross-origin-resource-policy") == b"same-origin"
        assert answer.headers.get(b"access-control-allow-origin") is None
    assert board.request("GET", "/nothing").json == {"detail": "there is nothing at this path", "code": "not_found"}
    wrong = board.request("GET", "/", headers={"host": "rebound.example"})
    assert (wrong.status, list(wrong.json), wrong.json["code"]) == (403, ["detail", "code"], "host_not_allowed")


def test_guesses_are_logged_and_hold_no_password(virtual: SimulatedEnvironment) -> None:
    board = DashboardServer(virtual, password="correct horse")
    wrong = {"authorization": "Basic " + b64encode(b"me:wrong-guess").decode()}
    assert [board.request("GET", "/", headers=wrong).status for _ in range(7)] == [401] * 5 + [429] * 2
    guesses = [line.fields for line in board.server.logs if line.event == "wrong password"]
    assert guesses == [{"address": "127.0.0.1"}] * 5  # a blocked address cannot fill the log
    assert "wrong-guess" not in repr(board.server.logs)


def test_the_configured_version_is_shown_everywhere(virtual: SimulatedEnvironment) -> None:
    version = "1.0.0+g2009ac61abcd"
    board = DashboardServer(virtual, version=version)
    assert board.request("GET", "/openapi.json").json["info"]["version"] == version
    assert f'svc_build{{version="{version}"}} 1.0' in board.request("GET", "/metrics").body.decode()


def test_a_qr_is_drawn(virtual: SimulatedEnvironment) -> None:
    board = DashboardServer(virtual)
    rows = board.request("POST", "/api/qr", b'{"svc":3}').json["rows"]
    assert len(rows) == len(rows[0]) == 21  # version 1 has 21 modules: ISO/IEC 18004
    assert rows[0].startswith("1111111")  # a finder pattern
    assert {*"".join(rows)} == {"0", "1"}
    assert board.request("POST", "/api/qr", b"x" * 2_953).status == 200
    assert board.request("POST", "/api/qr", b"x" * 2_954).status == 413


def test_refused_qrs(virtual: SimulatedEnvironment) -> None:
    board = DashboardServer(virtual)
    for body in (b"", b"\xff"):
        answer = board.request("POST", "/api/qr", body)
        assert (answer.status, answer.json["detail"][0]["type"]) == (422, "string_type")
    del virtual.relay_host.compute["qr.rows"]
    assert board.request("POST", "/api/qr", b"x").status == 422


def test_ready_record_describes_the_server(virtual: SimulatedEnvironment) -> None:
    board = DashboardServer(virtual, password="correct horse", api_url="http://127.0.0.1:8642")
    (ready,) = [line for line in board.server.logs if line.event == "ready"]
    assert ready.fields == {"service": "dashboard", "port": 9119, "password": True, "chat": True}


def test_monitoring_needs_no_dashboard_password(virtual: SimulatedEnvironment) -> None:
    board = DashboardServer(virtual, password="correct horse")
    paths = ("/healthz", "/readyz", "/metrics", "/")
    assert [board.request("GET", path).status for path in paths] == [200, 200, 200, 401]
    assert board.request("GET", "/readyz").json == {"status": "ready", "reasons": []}
    assert b"svc_store_failures_total 0.0" in board.request("GET", "/metrics").body
