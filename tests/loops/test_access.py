"""Who may call what: programs on this host, bearers of a session, browsers, strangers, those behind a proxy."""

from __future__ import annotations

import pytest

from tests.loops.world import REMOTE, World, bearer

LOOPBACK_ONLY = [
    ("POST", "/pairing"),
    ("POST", "/pairing/register"),
    ("POST", "/pairing/approve"),
    ("POST", "/pairing/mint"),
    ("GET", "/relay/info"),
    ("GET", "/relay/security"),
    ("PATCH", "/relay/security"),
    ("GET", "/bridge/status"),
    ("GET", "/bridge/activity"),
    ("GET", "/bridge/devices"),
]


@pytest.mark.parametrize(("method", "path"), LOOPBACK_ONLY)
def test_routes_for_this_host_only(served: World, method: str, path: str) -> None:
    answer = served.http(method, path, peer=REMOTE)
    assert (answer.status, answer.json["ok"], answer.code) == (403, False, "loopback_only")
    assert served.http(method, path).status != 403


def test_a_refusal_comes_before_the_body(served: World) -> None:
    client = served.client(REMOTE)
    client.wire.send(b"POST /pairing/register HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
    assert client.wire.read_until(b"\r\n").startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8767"},
        {"host": "127.0.0.1.evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"x-forwarded-for": "127.0.0.1"},
        {"x-real-ip": "127.0.0.1"},
        {"forwarded": "for=127.0.0.1"},
    ],
    ids=str,
)
def test_a_web_page_or_a_proxy_is_not_this_host(served: World, headers: dict[str, str]) -> None:
    assert served.http("POST", "/pairing", headers=headers).status == 403
    assert served.http("GET", "/relay/security", headers=headers).status == 403
    assert served.http("GET", "/sessions", headers=headers).status == 401
    assert served.http("GET", "/health", headers=headers).status == 200


@pytest.mark.parametrize(
    "headers", [{"host": "localhost"}, {"host": "[::1]:8767"}, {"origin": "http://127.0.0.1:9119"}], ids=str
)
def test_a_local_page_is_this_host(served: World, headers: dict[str, str]) -> None:
    assert served.http("GET", "/relay/security", headers=headers).status == 200


@pytest.mark.parametrize("authorization", ["Bearer nonsense", "Bearer", "Basic abc", "nonsense"])
def test_a_bad_bearer_is_a_401(served: World, authorization: str) -> None:
    for method, path in (("GET", "/sessions"), ("PATCH", "/sessions/abcd"), ("GET", "/ping"), ("POST", "/tap")):
        answer = served.http(method, path, headers={"authorization": authorization})
        assert (answer.status, answer.code) == (401, "unauthorized")


def test_patch_and_device_control_need_a_bearer_on_this_host_too(served: World) -> None:
    assert served.http("PATCH", "/sessions/abcd", body=b"{}").status == 401
    assert served.http("GET", "/ping").status == 401


def test_a_remote_bearer_sees_the_sessions(relayed: World) -> None:
    ws = relayed.pair()
    assert relayed.http("GET", "/sessions", peer=REMOTE).status == 401
    answer = relayed.http("GET", "/sessions", headers=bearer(ws.token), peer=REMOTE)
    assert [record["is_current"] for record in answer.json["sessions"]] == [True]
    lower = {"authorization": f"bearer {ws.token}"}
    assert relayed.http("GET", "/sessions", headers=lower, peer=REMOTE).status == 200


def test_a_session_without_a_live_bridge_grant_drives_nothing(relayed: World) -> None:
    ws = relayed.pair(ttl_seconds=3600, grants={"bridge": 1})
    assert relayed.http("GET", "/ping", headers=bearer(ws.token)).status == 503  # no phone, but allowed
    patched = relayed.http(
        "PATCH", f"/sessions/{ws.token[:8]}", headers=bearer(ws.token), body=b'{"grants": {"bridge": 0.001}}'
    )
    assert patched.status == 200
    relayed.eventually(lambda: relayed.http("GET", "/ping", headers=bearer(ws.token)).status == 403)
    assert relayed.http("GET", "/ping", headers=bearer(ws.token)).code == "grant_required"
