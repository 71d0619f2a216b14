import json
from base64 import b64encode
from typing import Any

import pytest

from svc_proto.dashboard.phone_commands import SESSION_NAME
from svc_proto.dashboard.relay_proxy import PREFIXES
from svc_proto.relay_config import LocalTrustPolicy
from svc_proto.service_clients.local_secret import HEADER, LOCAL_SECRET
from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.servers.canned_server import CannedServer, http


def heard(peer: CannedServer) -> tuple[str, Any]:
    """Return method and target, and the parsed body or None, of the only request that this server received."""
    head, _, body = b"".join(peer.heard).partition(b"\r\n\r\n")
    return head.split(b" HTTP/1.1", 1)[0].decode(), json.loads(body) if body else None


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("method", "path", "forwarded"),
    [
        ("GET", "/overview", "GET /relay/info"),
        ("GET", "/overview?x=1", "GET /relay/info"),
        ("GET", "/sessions", "GET /sessions"),
        ("DELETE", "/sessions/1c2d3e4f", "DELETE /sessions/1c2d3e4f"),
        ("DELETE", "/sessions/a%2Fb%3Fc", "DELETE /sessions/a%2Fb%3Fc"),
        ("GET", "/audit", "GET /audit"),
        ("GET", "/audit?limit=5", "GET /audit?limit=5"),
        ("GET", "/bridge-activity", "GET /bridge/activity"),
        ("GET", "/bridge-activity?limit=-5", "GET /bridge/activity?limit=-5"),
        ("GET", "/bridge-activity?limit=%20100", "GET /bridge/activity?limit=100"),
        ("GET", "/phones", "GET /bridge/devices"),
        ("GET", "/notifications", "GET /notifications/recent"),
        ("GET", "/notifications?limit=5", "GET /notifications/recent?limit=5"),
        ("GET", "/media", "GET /media/inspect"),
        ("GET", "/media?include_expired=1", "GET /media/inspect?include_expired=true"),
        ("GET", "/media?include_expired=No", "GET /media/inspect?include_expired=false"),
    ],
)
def test_the_fixed_calls(virtual: SimulatedEnvironment, prefix: str, method: str, path: str, forwarded: str) -> None:
    peer = CannedServer(http(200, b'{"ok":true}'))
    board = DashboardServer(virtual, relay_url=virtual.peer(peer))
    answer = board.request(method, prefix + path)
    assert (answer.status, answer.json) == (200, {"ok": True})
    assert heard(peer) == (forwarded, None)


def test_a_change_of_a_session(virtual: SimulatedEnvironment) -> None:
    peer = CannedServer(http(200, b'{"ok":true}'))
    board = DashboardServer(virtual, relay_url=virtual.peer(peer))
    assert board.relay("PATCH", "/sessions/a%2Fb", {"name": "Desk"}).status == 200
    assert heard(peer) == ("PATCH /sessions/a%2Fb", {"name": "Desk"})
    assert board.relay("PATCH", f"/sessions/{'a' * 65}", {}).status == 422


@pytest.mark.parametrize("password", ["", "correct horse"])
def test_the_host_secret_is_sent_for_an_owner_with_a_password(virtual: SimulatedEnvironment, password: str) -> None:
    virtual.start_relay(local_trust=LocalTrustPolicy.SECRET)
    board = DashboardServer(virtual, password=password)
    basic = {"authorization": "Basic " + b64encode(f"me:{password}".encode()).decode()} if password else {}
    seen = board.request("GET", f"{PREFIXES[0]}/sessions", headers=basic)
    assert seen.status == (200 if password else 401)
    board.request("POST", f"{PREFIXES[0]}/phones/Pixel/tap", {"x": 1, "y": 1}, headers=basic)
    secret = virtual.contents(f"{virtual.home}/{LOCAL_SECRET}").decode()
    rows = virtual.http("GET", "/sessions", headers={HEADER.decode(): secret}).json["sessions"]
    assert [row["device_name"] for row in rows] == ([SESSION_NAME] if password else [])  # it pairs itself by the secret


def test_nothing_else_is_passed_on(virtual: SimulatedEnvironment) -> None:
    peer = CannedServer(http(200, b"{}"))
    board = DashboardServer(virtual, relay_url=virtual.peer(peer))
    for method, path, status in (
        ("GET", "/bridge/activity", 404),
        ("GET", "/sessions/abcd", 405),
        ("DELETE", "/sessions/", 405),
        ("POST", "/overview", 405),
        ("GET", "/pairing", 405),
        ("GET", "/security", 404),
        ("POST", "/media/t0ken", 405),
        ("GET", "/media/inspect/t0ken", 404),
    ):
        answer = board.relay(method, path)
        assert answer.status == status, path
        assert isinstance(board.detail(answer), str)
    assert peer.heard == []


def test_push_makes_no_request(virtual: SimulatedEnvironment) -> None:
    """Answer `{configured: false, reason}` without any network call, as specified."""
    answer = DashboardServer(virtual).relay("GET", "/push")
    assert answer.status == 200
    assert answer.json["configured"] is False
    assert answer.json["reason"]


@pytest.mark.parametrize(
    "body", [None, {}, {"ttl_seconds": 60, "grants": {"bridge": 5}, "prefer": "lan", "public_url": ""}]
)
def test_invite_without_mode_is_minted_by_the_relay(virtual: SimulatedEnvironment, body: Any) -> None:
    peer = CannedServer(http(200, b'{"ok":true}'))
    answer = DashboardServer(virtual, relay_url=virtual.peer(peer)).relay("POST", "/pairing", body)
    assert answer.json == {"ok": True}
    kept = {name: value for name, value in (body or {}).items() if name not in ("prefer", "public_url")}
    assert heard(peer) == ("POST /pairing/mint", kept)


def test_a_revoked_session_is_logged_by_its_prefix(virtual: SimulatedEnvironment) -> None:
    token = "1c2d3e4f-0000-4000-8000-000000000000"
    board = DashboardServer(virtual, relay_url=virtual.peer(CannedServer(http(200, b"{}"))))
    board.relay("DELETE", f"/sessions/{token}")
    (line,) = [line for line in board.server.logs if "revoked" in line.event]
    assert line.fields == {"session": "1c2d3e4f"}


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg", "image/gif", "image/webp"])
def test_a_picture(virtual: SimulatedEnvironment, kind: str) -> None:
    peer = CannedServer(http(200, b"\x89PNG", kind=kind))
    answer = DashboardServer(virtual, relay_url=virtual.peer(peer)).relay("GET", "/media/a%2Fb")
    assert (answer.status, answer.body) == (200, b"\x89PNG")
    assert answer.headers.get(b"content-type") == kind.encode()
    assert answer.headers.get(b"cache-control") == b"no-store"
    assert answer.headers.get(b"x-content-type-options") == b"nosniff"
    assert heard(peer) == ("GET /media/inspect/a%2Fb", None)


@pytest.mark.parametrize(
    ("name", "kind"), [("a b.PNG", "image/png"), ("x.jpg", "image/jpeg"), ("y.webp", "image/webp")]
)
def test_a_picture_of_the_host(virtual: SimulatedEnvironment, name: str, kind: str) -> None:
    peer = CannedServer(http(200, b'{"ok":true,"token":"t0ken"}'))
    board = DashboardServer(virtual, relay_url=virtual.peer(peer))
    answer = board.relay("POST", "/media", {"path": f"/srv/{name}", "x": 1})
    assert answer.json["token"] == "t0ken"
    body = {"path": f"/srv/{name}", "content_type": kind, "file_name": name}
    assert heard(peer) == ("POST /media/register", body)


@pytest.mark.parametrize("path", [None, "", "/etc/passwd", "/srv/a.svg", "/srv/png"])
def test_no_other_file_of_the_host(virtual: SimulatedEnvironment, path: str | None) -> None:
    peer = CannedServer(http(200, b"{}"))
    assert DashboardServer(virtual, relay_url=virtual.peer(peer)).relay("POST", "/media", {"path": path}).status == 415
    assert peer.heard == []


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (http(200, b"<svg/>", kind="image/svg+xml"), 415),
        (http(200, b"<b>", kind="text/html"), 415),
        (b"HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n", 415),
        (http(404, b'{"ok":false,"error":"no such token"}'), 404),
        (http(500, b"x"), 502),
        (b"", 502),
    ],
)
def test_invalid_images(virtual: SimulatedEnvironment, answer: bytes, status: int) -> None:
    board = DashboardServer(virtual, relay_url=virtual.peer(CannedServer(answer)))
    assert board.relay("GET", "/media/t0ken").status == status
