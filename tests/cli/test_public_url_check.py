from collections.abc import Mapping
from typing import Any

import pytest

from svc_proto.cli.health_facts import Finding
from svc_proto.cli.pairing_candidates import public_candidate
from svc_proto.cli.public_url_check import LOCAL_ROUTES, PublicUrlCheck, check_public_url
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.relay_client import RelayClient
from tests.cli.harness import REFUSED, OneShotHarness, Reply, UpstreamRequest, as_json
from tests.support.core_harness import HOME

URL = "https://home.example"
HERE = RelayClient("the relay", "http://127.0.0.1:8767", local=True)
SECRET = "0123456789abcdef" * 4
TOKEN = "1c2d3e4f-0000-4000-8000-000000000000"
SHUT = "shut, all 7 that were tried"
WELL = ["answers in 0 ms, version 1.0.0", "TLS: a certificate counts that this host trusts", SHUT]


class Host:
    """Relay, API and dashboard that work; `answers` replaces the answers of single paths."""

    def __init__(self, hint: str = "wss", /, **answers: Reply) -> None:
        self.hint = hint
        self.answers = answers

    def http(self, asked: UpstreamRequest) -> Reply:
        outside = "127.0.0.1" not in asked.url
        assert outside is (asked.headers.get(b"x-svc-local-secret") is None)  # an outside client has no secret
        path = asked.path.removeprefix("/relay")
        name = ("" if outside else "inside_") + path.strip("/").replace("/", "_").split("-")[0]
        if name in self.answers:
            return self.answers[name]
        if path == "/health":
            return as_json({"status": "ok", "version": "1.0.0"})
        if not outside:
            return as_json({"ok": True, "revoked": TOKEN[:8]})
        return as_json({"error": "no"}, 401 if path in ("/v1/models", "/board/") else 403)

    def socket(self, said: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
        payload = {"session_token": TOKEN, "transport_hint": self.hint, "server_version": "1.0.0", "grants": {}}
        return [{"channel": "system", "type": "auth.ok", "id": said["id"], "payload": payload}]


def found(
    host: Host, url: str = f"{URL}/relay", *, relay: RelayClient | None = HERE, board: str = "", socket: bool = True
) -> list[Finding]:
    asked = PublicUrlCheck(route=public_candidate(url, 8767), relay=relay, dashboard_path=board)
    world = OneShotHarness(
        lambda engine: check_public_url(engine, asked),
        http=host.http,
        socket=host.socket if socket else None,
        files={f"{HOME}/local-secret": SECRET.encode()},
    )
    return world.run()


def words(findings: list[Finding]) -> list[str]:
    return [finding.text for finding in findings]


def of(findings: list[Finding], subject: str) -> tuple[str, str]:
    (one,) = [finding for finding in findings if finding.subject == subject]
    assert one.remedy or one.verdict == "ok"
    return one.verdict, one.text


def test_all_checks_pass() -> None:
    findings = found(Host(), board="/board")
    assert {finding.verdict for finding in findings} == {"ok"}
    relay = ["a phone can pair", "what the relay says of a phone's connection is so"]
    assert words(findings) == [*WELL, *relay, "the API asks for its key", "the dashboard asks for its password"]


def test_checked_routes_are_local() -> None:
    listener = (RelayAccess.LOOPBACK, RelayAccess.LOOPBACK_OR_BEARER, RelayAccess.LOCAL_OR_NOTIFICATIONS)
    local = {(each.method, each.pattern) for each in Relay(RelayConfig()).router.routes if each.access in listener}
    assert set(LOCAL_ROUTES) <= local


def test_unreachable_servers() -> None:
    findings = found(Host(health=REFUSED, v1_models=REFUSED))
    assert [(each.verdict, each.text) for each in findings] == [
        ("failure", "cannot be reached: connection refused"),
        ("warning", "no API, so phones cannot chat this way: connection refused"),
    ]


@pytest.mark.parametrize(
    ("url", "verdict"),
    [("http://192.0.2.1/relay", "warning"), ("http://box.lan", "warning"), ("http://a.example", "failure")],
)
def test_no_encryption(url: str, verdict: str) -> None:
    text = "none: every host on the way can read tokens, chats and screens"
    assert of(found(Host("ws"), url), "encryption") == (verdict, text)


OPEN, UNKNOWN = "open to every caller on this way:", "not known: no answer from"


@pytest.mark.parametrize(
    ("answers", "verdict", "text"),
    [
        (
            {"pairing_mint": (499, b""), "sessions": (200, b"{}")},
            "failure",
            f"{OPEN} GET /sessions, POST /pairing/mint",
        ),
        ({"media_inspect": (404, b""), "bridge_activity": (405, b""), "sessions": (401, b"")}, "ok", SHUT),
        ({"sessions": (500, b""), "pairing_mint": REFUSED}, "warning", f"{UNKNOWN} /sessions, /pairing/mint"),
        ({"media_inspect": (429, b"")}, "warning", f"{UNKNOWN} /media/inspect"),
    ],
)
def test_local_routes(answers: dict[str, Reply], verdict: str, text: str) -> None:
    assert of(found(Host(**answers)), "local routes") == (verdict, text)


def test_blocked_websockets() -> None:
    verdict, text = of(found(Host(ws=(400, b""), relay=(400, b"")), socket=False), "WebSocket")
    assert verdict == "failure"
    assert text.startswith("a phone cannot pair: ")


FULL, STAYS = as_json({"error": "full"}, 503), "the session of this test stays for 60 s"


@pytest.mark.parametrize(
    ("answers", "relay", "text"),
    [
        ({}, None, "not tried: no relay runs on this host"),
        ({"inside_pairing_register": FULL}, HERE, "not tried: the relay refuses: full (status 503)"),
        ({"inside_sessions_1c2d3e4f": FULL}, HERE, f"{STAYS}: the relay refuses: full (status 503)"),
    ],
)
def test_untried_websocket_and_unrevoked_session(
    answers: dict[str, Reply], relay: RelayClient | None, text: str
) -> None:
    (one,) = [finding for finding in found(Host(**answers), relay=relay) if finding.subject == "WebSocket"]
    assert (one.verdict, one.text) == ("warning", text)


@pytest.mark.parametrize(
    ("url", "hint", "verdict", "text", "remedy"),
    [
        (URL, "ws", "failure", "not believed: the relay takes phones for not encrypted", "set RELAY_TRUST_PROXY"),
        ("http://192.0.2.1", "wss", "failure", "wrong: the relay takes phones for encrypted", "have the proxy send"),
        ("http://192.0.2.1", "ws", "ok", "the relay knows that there is none", ""),
    ],
)
def test_forwarded_headers(url: str, hint: str, verdict: str, text: str, remedy: str) -> None:
    (one,) = [finding for finding in found(Host(hint), url) if finding.subject == "forwarded headers"]
    assert one.verdict == verdict
    assert one.text.startswith(text)
    assert one.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("status", "verdict", "text"),
    [
        (200, "failure", "the API has no key: every caller may use the agent"),
        (403, "failure", "the API has no key, so it refuses every caller"),
        (404, "warning", "no API, so phones cannot chat this way: status 404"),
    ],
)
def test_the_api(status: int, verdict: str, text: str) -> None:
    assert of(found(Host(v1_models=(status, b""))), f"{URL}:443") == (verdict, text)


def test_the_dashboard() -> None:
    where = f"{URL}:443/board/"
    assert of(found(Host(board=(200, b"")), board="/board"), where) == ("failure", "the dashboard lets every caller in")
    assert where not in [each.subject for each in found(Host(board=(404, b"")), board="/board")]
    assert where not in [each.subject for each in found(Host(board=REFUSED), board="/board")]
