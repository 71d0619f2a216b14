from base64 import b64encode

import pytest

from svc_proto.dashboard.app_sign_in import HEALTH_CACHE
from tests.dashboard.app_client import PASSWORD, AppClient, AppHarness, token_of
from tests.support.playbook import PEER, REMOTE


def test_the_status_names_the_way_to_sign_in() -> None:
    book = AppHarness()
    status = book.request("GET", "/api/status", peer=REMOTE).json
    assert (status["auth_required"], status["profiles"], status["gateway_mode"]) == (True, ["default"], "single")
    assert status["auth_providers"] == [{"name": "basic", "display_name": "Password", "supports_password": True}]
    assert book.request("GET", "/api/auth/providers", peer=REMOTE).json["providers"] == status["auth_providers"]
    book = AppHarness(password="")
    assert book.request("GET", "/api/status").json["auth_required"] is False
    assert book.request("GET", "/api/auth/providers").json == {"providers": []}
    assert book.login(peer=PEER).status == 404
    assert book.request("GET", "/api/auth/me").json["user_id"] == "owner"
    assert book.request("GET", "/api/status", peer=REMOTE).status == 403
    ticket = book.request("POST", "/api/auth/ws-ticket").json["ticket"]
    assert book.open_socket(ticket, peer=PEER).is_open


def test_the_status_needs_a_chat_and_follows_the_api_server() -> None:
    book = AppHarness(chat=False)
    assert book.request("GET", "/api/status", peer=REMOTE).status == 404
    assert book.login().status == 404
    book = AppHarness()
    assert book.request("GET", "/api/status", peer=REMOTE).status == 200
    del book.servers[8642]
    assert book.request("GET", "/api/status", peer=REMOTE).status == 200  # for two seconds
    book.after(HEALTH_CACHE)
    answer = book.request("GET", "/api/status", peer=REMOTE)
    assert answer.status == 503
    assert "API server unreachable" in answer.json["detail"]
    book.http = lambda asked: (500, b"{}")
    assert book.request("GET", "/api/status", peer=REMOTE).json["detail"] == "the API server answers 500"


@pytest.mark.parametrize(("tls", "root", "marks"), [(False, "", "Path=/;"), (True, "/board", "Path=/board;")])
def test_signing_in_sets_a_cookie_for_this_origin_alone(tls: bool, root: str, marks: str) -> None:
    book = AppHarness(root_path=root)
    answer = book.login(tls=tls)
    assert answer.json == {"ok": True, "next": "/"}
    cookie = (answer.headers.get(b"set-cookie") or b"").decode()
    assert cookie.startswith("hermes_session=")
    assert all(mark in cookie for mark in (marks, "HttpOnly", "SameSite=Lax", "Max-Age=7776000"))
    assert ("Secure" in cookie) is tls
    assert "Domain" not in cookie


def test_a_session_is_renewed_when_the_user_is_asked_for() -> None:
    book = AppHarness()
    phone = book.sign_in()
    me = phone.request("GET", "/api/auth/me")
    assert (me.json["user_id"], me.json["provider"]) == ("owner", "basic")
    assert me.json["expires_at"] > book.now.wall
    assert token_of(me) == phone.token
    assert AppClient(book, "none").request("GET", "/api/auth/me").status == 401
    basic = (b"authorization", b"Basic " + b64encode(f"me:{PASSWORD}".encode()))
    assert "expires_at" not in book.request("GET", "/api/auth/me", headers=[basic]).json


@pytest.mark.parametrize("body", [{"provider": "moon", "password": PASSWORD}, {"provider": "basic"}, {}])
def test_a_sign_in_without_the_right_password_is_refused(body: dict[str, object]) -> None:
    book = AppHarness()
    answer = book.request("POST", "/auth/password-login", body, peer=REMOTE)
    assert answer.status == (404 if body.get("provider") == "moon" else 401)
    assert answer.headers.get(b"set-cookie") is None


def test_guesses_are_limited_and_logged_but_never_refuse_a_session() -> None:
    book = AppHarness()
    phone = book.sign_in()
    assert [book.login("wrong-guess").status for _ in range(7)] == [401] * 5 + [429] * 2
    assert book.login().status == 429
    assert phone.request("GET", "/api/auth/me").status == 200
    assert [log.event for log in book.logs].count("wrong password") == 5
    assert "wrong-guess" not in repr(book.logs)
    assert book.leaks() == []


def test_another_site_can_not_sign_in_and_signing_out_clears_the_cookie() -> None:
    book = AppHarness()
    origin = [(b"origin", b"https://evil.example")]
    assert book.login(headers=origin).status == 403
    assert book.request("GET", "/api/status", headers=origin, peer=REMOTE).status == 403
    phone = book.sign_in()
    answer = phone.request("POST", "/auth/logout")
    assert "hermes_session=; Path=/; Max-Age=0" in (answer.headers.get(b"set-cookie") or b"").decode()
    assert phone.request("GET", "/api/auth/me").status == 401
    assert phone.request("POST", "/auth/logout").status == 200


def test_signed_in_clients_are_listed_and_ended() -> None:
    book = AppHarness()
    phone = book.sign_in(headers=[(b"user-agent", b"okhttp/5 " + b"x" * 200)])
    book.after(1.0)
    other = book.sign_in()
    socket = other.socket()
    rows = phone.request("GET", "/api/auth/sessions").json["sessions"]
    assert [row["current"] for row in rows] == [False, True]
    assert [row["agent"][:9] for row in rows] == ["", "okhttp/5 "]
    assert len(rows[1]["agent"]) == 120
    assert other.token not in repr(rows)
    ticket = other.ticket()
    revoked = phone.request("DELETE", f"/api/auth/sessions/{rows[0]['id']}")
    assert (revoked.status, revoked.json) == (200, {"ok": True})
    assert not any((socket.is_open and not socket.gone, other.request("GET", "/api/auth/me").status == 200))
    refused = book.open_socket(ticket)
    assert refused.result.status == 401
    assert phone.request("DELETE", f"/api/auth/sessions/{rows[0]['id']}").status == 404
