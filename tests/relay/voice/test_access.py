"""Access to the voice routes: the five steps of wire terminal-voice 7, and an API server without a key."""

from collections.abc import Callable
from typing import Any

import pytest

from svc_proto.engine.router import Route, RouteKind
from svc_proto.facts import Address
from svc_proto.relay.access import GRANTS, RelayAccess
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from tests.relay.harness import PEER, REMOTE, RelayHarness
from tests.support.http_codec import Response
from tests.support.http_harness import UpstreamRequest

KEY = "the-api-key"
TEXT = b"text/plain; charset=utf-8"
EVERY = Relay(RelayConfig()).router.routes
ROUTES = [route for route in EVERY if route.pattern.startswith("/voice/")]
OTHERS = [route for route in EVERY if not route.pattern.startswith("/voice/")]
HTTPS = ((b"x-forwarded-proto", b"https"),)


def guarded(key: str | None) -> Callable[[UpstreamRequest], tuple[int, bytes]]:
    """Return an API server that accepts this bearer; None stands for a server without a key."""

    def answer(asked: UpstreamRequest) -> tuple[int, bytes]:
        assert (asked.method, asked.path) == ("GET", "/v1/models")
        fine = key is None or asked.headers.get(b"authorization") == f"Bearer {key}".encode()
        return (200, b"{}") if fine else (401, b"")

    return answer


def voice_book(key: str | None = KEY, **config: Any) -> RelayHarness:
    book = RelayHarness(RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", **config))
    book.http = guarded(key)
    book.secrets.add(KEY)
    return book


@pytest.fixture
def book() -> RelayHarness:
    """Return a relay beside an API server with one key."""
    return voice_book()


def ask(book: RelayHarness, bearer: str | None = KEY, *, host: bytes = b"127.0.0.1:8767", **how: Any) -> Response:
    call = book.call("GET", "/voice/config", token=bearer, host=host, **how)
    book.answers.append(call.result)
    return call.result


def refused(answer: Response, status: int, *words: str) -> None:
    assert answer.status == status, answer
    assert answer.headers.get(b"content-type") == TEXT
    for word in words:
        assert word in answer.body.decode()


@pytest.mark.parametrize(
    ("header", "word"),
    [
        *((header, "Authorization") for header in (None, b"", b"Bearer", b"bearer x", b"BEARER x", b"Basic eDp5")),
        (b"Bearer " + b"x" * 4_097, "too long"),
        (b"Bearer " + b"x" * 4_096, "neither"),
    ],
)
def test_invalid_authorization_headers_are_refused(book: RelayHarness, header: bytes | None, word: str) -> None:
    refused(ask(book, None, headers=() if header is None else ((b"authorization", header),)), 401, word)
    assert len(book.asked) == (word == "neither")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.pattern}")
def test_a_session_without_the_grant(book: RelayHarness, route: Route) -> None:
    assert isinstance(route.access, RelayAccess)
    grant = GRANTS[route.access]
    token = book.pair(operator={"grants": {grant: 1}}).token
    book.after(2.0)
    path = route.pattern.replace("{provider_id}", "stub").replace("{session_id}", "x")
    fields = ((b"authorization", f"Bearer {token}".encode()),)
    if route.kind is RouteKind.WEBSOCKET:
        answer = book.open_websocket(path, peer=REMOTE, headers=fields).result
    else:
        answer = book.call(route.method, path, token=token, peer=REMOTE).result
    refused(answer, 403, grant)
    assert book.asked == []


def test_sessions_need_their_grant_alone_until_they_are_revoked(book: RelayHarness) -> None:
    assert ask(book, book.pair().token, peer=REMOTE).status == 200
    assert book.asked == []
    paired = book.pair()
    assert book.request("DELETE", f"/sessions/{paired.prefix}").status == 200
    refused(ask(book, paired.token, peer=REMOTE), 403, "HTTPS")
    refused(ask(book, paired.token), 401)


PROXIED = {"trusted_proxies": (REMOTE.host,)}


@pytest.mark.parametrize(
    ("host", "safe", "config", "how"),
    [
        ("127.3.2.1", True, {}, {}),  # the caller is on this host
        ("::1", True, {}, {}),
        ("::ffff:127.0.0.9", True, {}, {}),
        ("192.168.1.5", False, {}, {}),
        ("?", False, {}, {}),
        (REMOTE.host, True, {}, {"tls": True}),
        (REMOTE.host, True, {"allow_insecure_api_bearer": True}, {}),  # its network is trusted
        (REMOTE.host, True, PROXIED, {"headers": HTTPS}),
        (REMOTE.host, False, PROXIED, {}),
        (REMOTE.host, False, {"trusted_proxies": (PEER.host,)}, {"headers": HTTPS}),  # the trusted proxy is another one
        (PEER.host, False, {}, {"headers": ((b"x-forwarded-for", b"203.0.113.9"),)}),  # a proxy here passes it on
    ],
)
def test_transports_of_the_api_bearer(host: str, safe: bool, config: dict[str, Any], how: dict[str, Any]) -> None:
    book = voice_book(**config)
    answer = ask(book, peer=Address(host, 5), **how)
    assert bool(book.asked) is safe  # a bearer that others could have read is not verified
    if not safe:
        return refused(answer, 403, "HTTPS", "RELAY_ALLOW_INSECURE_API_BEARER")
    assert answer.status == 200
    return refused(ask(book, "another", peer=Address(host, 5), **how), 401)


def test_insecure_bearers_need_the_setting_on_every_route(book: RelayHarness) -> None:
    for allowed, status in ((True, 200), (False, 403)):
        change = book.request("PATCH", "/relay/security", {"allow_insecure_api_bearer": allowed})
        assert change.json["allow_insecure_api_bearer"] is allowed
        assert ask(book, peer=REMOTE).status == status
    book = voice_book()
    fields = ((b"authorization", f"Bearer {KEY}".encode()),)
    refused(book.open_websocket("/voice/output/x", headers=fields).result, 403, "HTTPS")
    refused(book.open_websocket("/voice/output/x", headers=fields, tls=True).result, 404)
    refused(book.open_websocket("/voice/output/x", tls=True).result, 401)


# --- 5: the API server; valid answers and their lifetime: tests/relay/test_api_bearer_verifier.py -------------------


def test_keys_of_the_api_server_count_as_it_has_them(book: RelayHarness) -> None:
    dotenv = "/home/svc/.env"
    book.disk.put(dotenv, f"API_SERVER_KEY={KEY}".encode())
    assert [ask(book).status for _ in range(2)] == [200, 200]
    assert len(book.asked) == 1
    book.disk.put(dotenv, b"API_SERVER_KEY=the-next-one")
    assert ask(book).status == 200  # the API server has not reloaded its files: a refusal is not cached either
    book.http = guarded("the-next-one")
    refused(ask(book), 401)
    assert len(book.asked) == 3
    book = voice_book(key=None)
    assert ask(book, "anything").status == 200
    refused(ask(book, "anything", peer=REMOTE, tls=True), 401, "API_SERVER_KEY")
    refused(ask(book, "anything", host=b"rebound.example"), 401, "API_SERVER_KEY")  # a page under DNS rebinding
    refused(ask(book, "anything", headers=((b"origin", b"https://evil.example"),)), 401, "API_SERVER_KEY")


@pytest.mark.parametrize(("method", "path"), [(route.method, route.pattern) for route in OTHERS])
def test_the_bearer_opens_no_other_route(book: RelayHarness, method: str, path: str) -> None:
    assert ask(book).status == 200  # the bearer is valid
    path = path.replace("{token_prefix}", "abcd").replace("{token}", "x")
    answer = book.call(method, path, {}, token=KEY, peer=REMOTE, tls=True).result
    public = path in ("/ws", "/", "/health", "/healthz", "/readyz") or path.startswith(("/oauth/", "/.well-known/"))
    assert answer.status in ((200, 400, 404, 426) if public else (401, 403)), answer
    assert len(book.asked) == 1


def test_no_secret_is_leaked(book: RelayHarness) -> None:
    paired = book.pair(operator={"grants": {"voice:config": 1}})
    book.after(2.0)
    for bearer in (paired.token, KEY, "nonsense"):
        for peer in (PEER, REMOTE):
            ask(book, bearer, peer=peer)
    assert book.leaks() == []
