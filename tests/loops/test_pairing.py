"""Pairing, coming back, every way to be refused, the limiter, and the sessions that come of it."""

from __future__ import annotations

import pytest

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
    message = ws.sign_in(pairing_code=f" {code.lower()} ", device_name="Tablet", client_surface="desktop")
    assert (message["type"], message["id"]) == ("auth.ok", "auth-1")
    payload = message["payload"]
    assert set(payload["grants"]) >= {"chat", "terminal", "bridge", "tui", "voice:stt"}
    assert payload["transport_hint"] == "ws"
    assert payload["server_version"]
    assert relayed.clients() == 1
    second = relayed.websocket(path)
    refused(second, second.sign_in(pairing_code=code), "pairing", "invalid")


def test_the_sixth_attempt_is_turned_away_until_someone_registers(relayed: World) -> None:
    for _ in range(5):
        ws = relayed.websocket(peer=REMOTE)
        assert ws.sign_in(pairing_code="NOSUCH")["type"] == "auth.fail"
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
    assert ws.sign_in(pairing_code=code)["type"] == "auth.ok"


def test_someone_who_leaves_without_a_word(relayed: World) -> None:
    for end in ("close", "abort", "close_write"):
        ws = relayed.websocket()
        getattr(ws.wire, end)()
    relayed.pair()


# --- sessions ---


def test_a_revoked_session_is_told_and_closed(relayed: World) -> None:
    victim, judge = relayed.pair("Victim"), relayed.pair("Judge")
    answer = relayed.http("DELETE", f"/sessions/{victim.token[:8]}", headers=bearer(judge.token))
    assert answer.json == {"ok": True, "revoked": victim.token[:8], "revoked_self": False}
    message = victim.hear()
    assert (message["channel"], message["type"]) == ("system", "error")
    assert victim.wait_closed().code == 1008
    ws = relayed.websocket()
    refused(ws, ws.sign_in(session_token=victim.token), "session token")
    assert relayed.http("GET", "/sessions", headers=bearer(victim.token), peer=REMOTE).status == 401
    judge.pong()
    own = relayed.http("DELETE", f"/sessions/{judge.token}", headers=bearer(judge.token))
    assert own.json["revoked_self"] is True
    assert judge.wait_closed().code == 1008
    assert relayed.http("GET", "/sessions").json == {"sessions": []}


# --- what takes time ---


def test_a_client_that_is_silent_is_dropped(virtual_world: VirtualWorld) -> None:
    ws = virtual_world.pair()
    ws.wire.pause()
    virtual_world.pass_time(29.0)
    assert virtual_world.clients() == 1
    virtual_world.pass_time(22.0)
    assert virtual_world.clients() == 0
    assert ws.wait_closed().code == 1006
