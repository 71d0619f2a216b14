"""Pairing, coming back, every way to be refused, the limiter, and the sessions that come of it."""

from __future__ import annotations

import json

import pytest

from svc_proto.wire.events import SocketClosed
from tests.loops.virtual import VirtualWorld
from tests.loops.wires import Declined, Ws
from tests.loops.world import REMOTE, World, bearer


def refused(ws: Ws, message: dict[str, object], *words: str) -> None:
    """`auth.fail` with these words, then a close with 1000."""
    assert (message["channel"], message["type"]) == ("system", "auth.fail")
    payload = message["payload"]
    assert isinstance(payload, dict)
    reason = payload["reason"]
    assert all(word in reason for word in words), reason
    closed = ws.wait_closed()
    assert (closed.code, closed.reason, closed.clean) == (1000, "", True)


@pytest.mark.parametrize("path", ["/ws", "/"])
def test_a_code_pairs_once(relayed: World, path: str) -> None:
    code = relayed.register()
    ws = relayed.websocket(path)
    message = relayed.sign_in(ws, pairing_code=f" {code.lower()} ", device_name="Tablet", client_surface="desktop")
    assert (message["type"], message["id"]) == ("auth.ok", "auth-1")
    payload = message["payload"]
    assert set(payload["grants"]) >= {"chat", "terminal", "bridge", "tui", "voice:stt"}
    assert payload["transport_hint"] == "ws"
    assert payload["server_version"]
    assert relayed.http("GET", "/health").json["clients"] == 1
    second = relayed.websocket(path)
    refused(second, relayed.sign_in(second, pairing_code=code), "pairing", "invalid")


def test_a_token_reconnects_as_often_as_it_likes(relayed: World) -> None:
    token = relayed.pair().token
    for _ in range(3):
        ws = relayed.websocket()
        message = relayed.sign_in(ws, session_token=token)
        assert (message["type"], ws.token) == ("auth.ok", token)
    assert len(relayed.http("GET", "/sessions").json["sessions"]) == 1
    assert relayed.http("GET", "/health").json == {
        **relayed.http("GET", "/health").json,
        "clients": 4,
        "sessions": 1,
    }


def test_a_token_wins_over_a_code_and_leaves_it(relayed: World) -> None:
    token = relayed.pair().token
    code = relayed.register()
    ws = relayed.websocket()
    assert relayed.sign_in(ws, session_token=token, pairing_code=code)["type"] == "auth.ok"
    assert ws.token == token
    other = relayed.websocket()
    assert relayed.sign_in(other, session_token="stale", pairing_code=code)["type"] == "auth.ok"
    assert other.token != token


def test_the_operator_beats_the_phone(relayed: World) -> None:
    code = relayed.register(ttl_seconds=600, grants={"terminal": 60}, transport_hint="wss")
    ws = relayed.websocket()
    message = relayed.sign_in(ws, pairing_code=code, ttl_seconds=0, grants={"terminal": 9999, "tui": 1})
    payload = message["payload"]
    assert payload["expires_at"] - payload["grants"]["terminal"] == pytest.approx(540, abs=1)
    assert payload["transport_hint"] == "wss"


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"pairing_code": "NOSUCH"}, ("pairing code", "invalid")),
        ({"session_token": "nonsense"}, ("session token",)),
        ({}, ("authentication",)),
        ({"pairing_code": 5, "session_token": ["x"]}, ("authentication",)),
        ({"session_token": "nonsense", "pairing_code": "NOSUCH"}, ("pairing code",)),
    ],
)
def test_bad_credentials(relayed: World, payload: dict[str, object], words: tuple[str, ...]) -> None:
    ws = relayed.websocket()
    refused(ws, relayed.sign_in(ws, **payload), *words)


@pytest.mark.parametrize(
    "first", ["nonsense", "[]", "5", '{"channel":"system","type":"ping"}', '{"type":"auth"}', "", "{}"]
)
def test_a_bad_first_frame_is_refused_and_not_counted(relayed: World, first: str) -> None:
    for _ in range(6):
        ws = relayed.websocket()
        ws.send_text(first)
        refused(ws, ws.hear(), "system/auth")
    relayed.pair()


def test_the_sixth_attempt_is_turned_away_until_someone_registers(relayed: World) -> None:
    for _ in range(5):
        ws = relayed.websocket(peer=REMOTE)
        assert relayed.sign_in(ws, pairing_code="NOSUCH")["type"] == "auth.fail"
        ws.wait_closed()
    with pytest.raises(Declined) as caught:
        relayed.websocket(peer=REMOTE)
    answer = caught.value.answer
    assert (answer.status, answer.code) == (429, "rate_limited")
    assert 295 <= int(answer.headers.get(b"retry-after") or 0) <= 301
    assert relayed.http("GET", "/health", peer=REMOTE).status == 200  # HTTP is never limited
    relayed.websocket()  # nor is another address
    code = relayed.register()
    ws = relayed.websocket(peer=REMOTE)
    assert relayed.sign_in(ws, pairing_code=code)["type"] == "auth.ok"


def test_an_upgrade_that_is_none(relayed: World) -> None:
    assert relayed.http("GET", "/ws").status == 400
    upgrade = {"upgrade": "websocket", "connection": "upgrade", "sec-websocket-key": "c2l4dGVlbiBieXRlcyBvaw=="}
    answer = relayed.http("GET", "/ws", headers={**upgrade, "sec-websocket-version": "8"})
    assert (answer.status, answer.headers.get(b"sec-websocket-version")) == (426, b"13")


def test_someone_who_leaves_without_a_word(relayed: World) -> None:
    for end in ("close", "abort", "close_write"):
        ws = relayed.websocket()
        getattr(ws.wire, end)()
    relayed.pair()


# --- sessions ---


def test_the_list_of_sessions(relayed: World) -> None:
    first, second = relayed.pair("First"), relayed.pair("Second", ttl_seconds=0)
    records = relayed.http("GET", "/sessions", headers=bearer(first.token)).json["sessions"]
    assert {record["device_name"]: record["is_current"] for record in records} == {"First": True, "Second": False}
    by_name = {record["device_name"]: record for record in records}
    assert by_name["Second"]["expires_at"] is None
    assert by_name["First"]["expires_at"] - by_name["First"]["created_at"] == pytest.approx(30 * 86_400, abs=1)
    assert by_name["First"]["token_prefix"] == first.token[:8]
    assert not any(record["is_current"] for record in relayed.http("GET", "/sessions").json["sessions"])
    assert first.token not in json.dumps(records)
    assert second.token not in json.dumps(records)


def test_a_patched_session(relayed: World) -> None:
    ws = relayed.pair()
    path = f"/sessions/{ws.token[:8]}"
    body = b'{"ttl_seconds": 86400, "grants": {"bridge": 3600}}'
    answer = relayed.http("PATCH", path, headers=bearer(ws.token), body=body)
    assert (answer.status, answer.json["token_prefix"]) == (200, ws.token[:8])
    assert answer.json["expires_at"] - answer.json["grants"]["bridge"] == pytest.approx(82_800, abs=1)
    for bad in (b"", b"{}", b"[]", b'{"ttl_seconds": -1}', b'{"ttl_seconds": true}', b'{"grants": {"chat": "x"}}'):
        assert relayed.http("PATCH", path, headers=bearer(ws.token), body=bad).status == 400
    assert relayed.http("PATCH", "/sessions/zzzzzzzz", headers=bearer(ws.token), body=body).status == 404


def test_a_revoked_session_is_told_and_closed(relayed: World) -> None:
    victim, judge = relayed.pair("Victim"), relayed.pair("Judge")
    answer = relayed.http("DELETE", f"/sessions/{victim.token[:8]}", headers=bearer(judge.token))
    assert answer.json == {"ok": True, "revoked": victim.token[:8], "revoked_self": False}
    message = victim.hear()
    assert (message["channel"], message["type"]) == ("system", "error")
    assert victim.wait_closed().code == 1008
    ws = relayed.websocket()
    refused(ws, relayed.sign_in(ws, session_token=victim.token), "session token")
    assert relayed.http("GET", "/sessions", headers=bearer(victim.token), peer=REMOTE).status == 401
    judge.pong()
    own = relayed.http("DELETE", f"/sessions/{judge.token}", headers=bearer(judge.token))
    assert own.json["revoked_self"] is True
    assert judge.wait_closed().code == 1008
    assert relayed.http("GET", "/sessions").json == {"sessions": []}


def test_what_cannot_be_revoked(relayed: World) -> None:
    relayed.pair()
    assert relayed.http("DELETE", "/sessions/abc").status == 400
    assert relayed.http("DELETE", "/sessions/zzzzzzzz").status == 404


# --- what takes time ---


def test_no_authentication_within_30_seconds(virtual_world: VirtualWorld) -> None:
    ws = virtual_world.websocket()
    ws.send_binary(b"does not count")
    began = virtual_world.clock()
    refused(ws, ws.hear(40.0), "auth", "timeout")
    assert virtual_world.clock() - began == pytest.approx(30.0, abs=0.1)


def test_a_code_is_good_for_600_seconds(virtual_world: VirtualWorld) -> None:
    early, late = virtual_world.register(), virtual_world.register()
    virtual_world.pass_time(595.0)
    ws = virtual_world.websocket()
    assert virtual_world.sign_in(ws, pairing_code=early)["type"] == "auth.ok"
    virtual_world.pass_time(10.0)
    ws = virtual_world.websocket()
    refused(ws, virtual_world.sign_in(ws, pairing_code=late), "pairing code", "expired")


def test_a_block_ends_after_300_seconds(virtual_world: VirtualWorld) -> None:
    for _ in range(5):
        ws = virtual_world.websocket()
        virtual_world.sign_in(ws, pairing_code="NOSUCH")
    virtual_world.pass_time(298.0)
    with pytest.raises(Declined):
        virtual_world.websocket()
    virtual_world.pass_time(3.0)
    virtual_world.websocket()


def test_failures_that_are_far_apart_do_not_block(virtual_world: VirtualWorld) -> None:
    for _ in range(12):
        ws = virtual_world.websocket()
        virtual_world.sign_in(ws, pairing_code="NOSUCH")
        virtual_world.pass_time(16.0)


def test_a_session_ends_with_its_lifetime(virtual_world: VirtualWorld) -> None:
    ws = virtual_world.pair(ttl_seconds=7200)
    token = ws.token
    while virtual_world.clock() < 1000.0 + 7190.0:
        event = ws.receive(40.0)
        assert not isinstance(event, SocketClosed)  # pings of the relay, answered
    assert ws.wait_closed(60.0).code == 1008
    other = virtual_world.websocket()
    refused(other, virtual_world.sign_in(other, session_token=token), "session token")


def test_a_client_that_is_silent_is_dropped(virtual_world: VirtualWorld) -> None:
    ws = virtual_world.pair()
    ws.wire.pause()
    virtual_world.pass_time(29.0)
    assert virtual_world.http("GET", "/health").json["clients"] == 1
    virtual_world.pass_time(22.0)
    assert virtual_world.http("GET", "/health").json["clients"] == 0
    assert ws.wait_closed().code == 1006


def test_a_client_that_answers_pings_stays(virtual_world: VirtualWorld) -> None:
    ws = virtual_world.pair()
    until = virtual_world.clock() + 3600.0
    while virtual_world.clock() < until:
        assert not isinstance(ws.receive(40.0), SocketClosed)
    assert virtual_world.http("GET", "/health").json["clients"] == 1
