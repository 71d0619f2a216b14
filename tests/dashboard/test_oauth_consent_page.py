"""The page on which the owner answers consent requests."""

import html
import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest

from svc_proto.engine.page_language import LANGUAGES, PageTexts
from tests.loops.dashboard_client import DashboardServer
from tests.loops.simulated_environment import SimulatedEnvironment
from tests.support.http_codec import Response
from tests.support.servers.canned_server import CannedServer, http

QUESTION = {
    "ok": True, "code": "ABC123", "ballot": "b4llot", "client_name": "<script>alert('x')</script>",
    "answer_goes_to": "agent.example", "answer_stays_there": False, "address": "192.0.2.9", "scope": "bridge",
}  # fmt: skip
FORM = {"content-type": "application/x-www-form-urlencoded", "origin": "http://127.0.0.1:9119"}


def asked(virtual: SimulatedEnvironment, *, status: int = 200, **more: object) -> tuple[DashboardServer, CannedServer]:
    peer = CannedServer(http(status, json.dumps({**QUESTION, **more}).encode()))
    return DashboardServer(virtual, relay_url=virtual.peer(peer)), peer


def sent(peer: CannedServer) -> tuple[str, Any]:
    head, _, body = b"".join(peer.heard).partition(b"\r\n\r\n")
    return head.split(b" HTTP/1.1", 1)[0].decode(), json.loads(body) if body else None


def post(board: DashboardServer, **fields: str) -> Response:
    said = {"code": "ABC123", "ballot": "b4llot", **fields}
    return board.request("POST", "/allow", urlencode(said).encode(), headers=FORM)


def test_page_requests_the_code_first(virtual: SimulatedEnvironment) -> None:
    board, peer = asked(virtual)
    answer = board.request("GET", "/allow")
    assert (answer.status, peer.heard) == (200, [])
    assert b'name="code"' in answer.body


def test_page_shows_the_consent_request(virtual: SimulatedEnvironment) -> None:
    board, peer = asked(virtual)
    answer = board.request("GET", "/allow?code=%20abc%2F1%20")
    text = answer.body.decode()
    assert sent(peer) == ("GET /mcp/questions/abc%2F1", None)
    assert "<script" not in text
    assert html.escape(str(QUESTION["client_name"])) in text
    for shown in ("agent.example", "192.0.2.9", 'value="b4llot"', 'value="bridge:read"', 'value="bridge" checked'):
        assert shown in text
    assert "computer that asks" not in text


def test_read_only_request_offers_only_read(virtual: SimulatedEnvironment) -> None:
    board, _ = asked(virtual, scope="bridge:read", answer_stays_there=True)
    text = board.request("GET", "/allow?code=ABC123").body.decode()
    assert re.findall(r'name="scope" value="([a-z:]+)"', text) == ["bridge:read"]
    assert "computer that asks" in text


def test_page_headers_forbid_frames_and_referrers(virtual: SimulatedEnvironment) -> None:
    board, _ = asked(virtual)
    fields = board.request("GET", "/allow?code=ABC123").headers
    policy = fields.get(b"content-security-policy") or b""
    assert b"frame-ancestors 'none'" in policy
    assert b"form-action 'self'" in policy
    assert (fields.get(b"x-frame-options"), fields.get(b"cache-control")) == (b"DENY", b"no-store")
    assert fields.get(b"referrer-policy") == b"same-origin"
    assert b"form-action 'none'" in (board.request("GET", "/").headers.get(b"content-security-policy") or b"")


@pytest.mark.parametrize(
    ("fields", "scope", "ttl"),
    [
        ({}, "bridge:read", 30),
        ({"scope": "bridge"}, "bridge", 30),
        *(({"scope": "bridge", "days": days}, "bridge", ttl) for days, ttl in (("1", 1), ("365", 365), ("9999", 30))),
    ],
)
def test_consent_is_allowed(virtual: SimulatedEnvironment, fields: dict[str, str], scope: str, ttl: int) -> None:
    board, peer = asked(virtual)
    answer = post(board, answer="allow", **fields)
    assert b"listed among the devices" in answer.body
    body = {"ballot": "b4llot", "allow": True, "scope": scope, "ttl_seconds": ttl * 86_400}
    assert sent(peer) == ("POST /mcp/questions/ABC123", body)
    assert "authorization request answered" in [line.event for line in board.server.logs]


@pytest.mark.parametrize("fields", [{"answer": "refuse"}, {}, {"answer": "ALLOW"}])
def test_any_other_answer_denies(virtual: SimulatedEnvironment, fields: dict[str, str]) -> None:
    board, peer = asked(virtual)
    assert b"was refused" in post(board, **fields).body
    assert sent(peer)[1] == {"ballot": "b4llot", "allow": False}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_refusals_of_the_relay_are_shown(virtual: SimulatedEnvironment, method: str) -> None:
    board, _ = asked(virtual, status=404, error="no agent <waits>")
    answer = board.request("GET", "/allow?code=ABC123") if method == "GET" else post(board, answer="allow")
    assert answer.status == 200
    assert b"no agent &lt;waits&gt;" in answer.body
    assert b'name="code"' in answer.body


@pytest.mark.parametrize("status", [400, 404, 499])
def test_relay_error_without_a_text(virtual: SimulatedEnvironment, status: int) -> None:
    board = DashboardServer(virtual, relay_url=virtual.peer(CannedServer(http(status, b""))))
    assert b"the relay refuses" in board.request("GET", "/allow?code=ABC123").body


def test_relay_error_gives_502(virtual: SimulatedEnvironment) -> None:
    board, _ = asked(virtual, status=500)
    assert board.request("GET", "/allow?code=ABC123").status == 502


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}, {"host": "re.example"}],
)
def test_foreign_page_cannot_answer(virtual: SimulatedEnvironment, headers: dict[str, str]) -> None:
    board, peer = asked(virtual)
    said = urlencode({"code": "ABC123", "ballot": "b4llot", "answer": "allow"}).encode()
    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert board.request("POST", "/allow", said, headers={**kind, **headers}).status == 403
    assert peer.heard == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_is_in_the_language_of_the_owner(virtual: SimulatedEnvironment, language: str) -> None:
    texts, spoken = PageTexts(language), {"accept-language": f"{language}-XX, fr;q=0.5"}
    board, _ = asked(virtual)
    page = board.request("GET", "/allow?code=ABC123", headers=spoken).body.decode()
    assert f'<html lang="{language}">' in page
    for text in ("Allow an agent", "Look at the phone and act on it", "30 days", "Refuse"):
        assert texts.html(text) in page


@pytest.mark.parametrize("language", LANGUAGES)
def test_refusals_are_in_the_language_of_the_owner(virtual: SimulatedEnvironment, language: str) -> None:
    over = "no agent waits with this word: it may be over already"
    board, _ = asked(virtual, status=404, error=over)
    page = board.request("GET", "/allow?code=ABC123", headers={"accept-language": language}).body.decode()
    assert PageTexts(language).html(over) in page
