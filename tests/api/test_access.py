"""Access: the bearer key, the session headers, and web pages (wire api 2.2, 2.4)."""

from enum import Enum

import pytest

from svc_proto.api import access
from svc_proto.api.config import ApiConfig
from svc_proto.basics.errors import LocalProtocolError
from svc_proto.engine.message import Request
from svc_proto.facts import Address
from svc_proto.wire.events import Headers
from tests.api.harness import KEY, PEER, ApiHarness
from tests.support.playbook import REMOTE

NO_KEY = ApiConfig()


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"Bearer",
        b"Basic " + KEY.encode(),
        b"Bearer  " + KEY.encode(),  # two blanks
        KEY.encode(),
        b"Bearer " + KEY.encode()[:-1],
        b"Bearer " + KEY.encode() + b"x",
        b"Bearer \xff\xfe",
    ],
)
def test_a_wrong_key(header: bytes | None) -> None:
    book = ApiHarness()
    headers = [] if header is None else [(b"authorization", header)]
    answer = book.request("GET", "/v1/models", key="", headers=headers)
    assert answer.status == 401
    error = {"message": "Invalid API key", "type": "invalid_request_error", "code": "invalid_api_key"}
    assert answer.json == {"error": error}
    assert answer.headers.get(b"www-authenticate") == b"Bearer"
    assert not book.leaks()


def test_right_key_with_trailing_blanks() -> None:
    book = ApiHarness()
    assert book.request("GET", "/v1/models").status == 200
    for scheme in ("Bearer", "bearer", "BEARER"):
        head = f"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: {scheme} {KEY} \t\r\n\r\n"
        assert book.raw(head.encode()).result.status == 200


def test_without_a_key_all_clients_have_access() -> None:
    book = ApiHarness(NO_KEY)
    assert book.request("GET", "/v1/models").status == 200
    assert book.request("GET", "/v1/models", key="anything", peer=REMOTE, host=b"192.0.2.5:8642").status == 200
    assert book.raw(b"GET /v1/models HTTP/1.0\r\n\r\n").result.status == 200  # without a host name


@pytest.mark.parametrize("name", [b"x-svc-session-id", b"X-Hermes-Session-Id", b"x-svc-session-key"])
def test_session_headers_need_a_key(name: bytes) -> None:
    headers = [(name.lower(), b"s-1")]
    answer = ApiHarness(NO_KEY).request("GET", "/v1/models", headers=headers)
    assert (answer.status, answer.json["error"]["code"]) == (403, None)
    assert ApiHarness().request("GET", "/v1/models", headers=headers).status == 200
    assert ApiHarness(NO_KEY).request("GET", "/health", headers=headers).status == 200


def test_branded_headers_are_read_in_both_spellings() -> None:
    headers = Headers([(b"x-hermes-session-id", b" one "), (b"x-svc-session-key", b"two")])
    assert access.find_branded_header(headers, access.SESSION_ID) == "one"
    assert access.find_branded_header(headers, access.SESSION_KEY) == "two"
    assert access.find_branded_header(Headers([]), access.SESSION_KEY) is None


@pytest.mark.parametrize("host", [b"evil.example", b"127.0.0.1.evil.example:8642"])
def test_a_rebound_name_gets_nothing_without_a_key(host: bytes) -> None:
    for peer in (PEER, REMOTE):  # rebinding can point to any address of this host
        answer = ApiHarness(NO_KEY).request("GET", "/api/sessions", host=host, peer=peer)
        assert (answer.status, answer.json["error"]["code"]) == (403, "host_not_allowed")
        assert ApiHarness().request("GET", "/api/sessions", host=host, peer=peer).status == 200


def test_configured_name_is_not_rebound() -> None:
    book = ApiHarness(ApiConfig(names=("box.example",)))
    assert book.request("GET", "/v1/models", peer=REMOTE, host=b"Box.example:8642").status == 200
    assert book.request("GET", "/v1/models", peer=REMOTE, host=b"a.box.example:8642").status == 403


def origin(name: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"origin", name)]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/health"), ("GET", "/v1/models"), ("OPTIONS", "/v1/models"), ("POST", "/nowhere"), ("PUT", "/health")],
)
@pytest.mark.parametrize("allowed", [(), ("https://chat.example",)])
def test_foreign_page_gets_an_empty_403(method: str, path: str, allowed: tuple[str, ...]) -> None:
    book = ApiHarness(ApiConfig(key=KEY, cors_origins=allowed))
    answer = book.request(method, path, headers=origin(b"https://evil.example"))
    assert (answer.status, answer.body) == (403, b"")
    assert answer.headers.get(b"access-control-allow-origin") is None
    assert book.request("GET", "/v1/models", key="", headers=origin(b"null")).status == 403


def test_an_allowed_page() -> None:
    book = ApiHarness(ApiConfig(key=KEY, cors_origins=("https://chat.example", "http://localhost:3000")))
    for method, status in (("GET", 200), ("PUT", 405)):
        answer = book.request(method, "/v1/models", headers=origin(b"http://localhost:3000"))
        assert answer.status == status
        assert answer.headers.get(b"access-control-allow-origin") == b"http://localhost:3000"
        assert answer.headers.get(b"vary") == b"Origin"
    assert book.request("GET", "/v1/models", key="", headers=origin(b"https://chat.example")).status == 401
    plain = book.request("GET", "/v1/models")
    assert plain.headers.get(b"vary") == b"Origin"
    assert plain.headers.get(b"access-control-allow-origin") is None


PAGES = ("https://chat.example", "http://localhost:3000")
APPS = ("app://obsidian.md", "capacitor://localhost", "moz-extension://*")


@pytest.mark.parametrize(
    ("origins", "name", "allowed"),
    [
        *((PAGES, name, None) for name in (b"https://chat.example:444", b"http://chat.example", b"null")),
        *((PAGES, name, None) for name in (b"https://CHAT.example", b"https://a.chat.example")),
        *((APPS, name, name) for name in (b"app://obsidian.md", b"moz-extension://0b1c-2d")),
        *((APPS, name, None) for name in (b"app://other", b"capacitor://localhost.evil", b"chrome-extension://abc")),
        (("*",), b"https://any.example", b"*"),
    ],
)
def test_pages_that_may_call(origins: tuple[str, ...], name: bytes, allowed: bytes | None) -> None:
    answer = ApiHarness(ApiConfig(key=KEY, cors_origins=origins)).request("GET", "/v1/models", headers=origin(name))
    assert answer.status == (200 if allowed else 403)
    assert answer.headers.get(b"access-control-allow-origin") == allowed
    if allowed == b"*":
        assert answer.headers.get(b"vary") is None


@pytest.mark.parametrize("allowed", ["https://chat.example", "*"])
def test_pages_may_read_the_header_fields_of_answers(allowed: str) -> None:
    book = ApiHarness(ApiConfig(key=KEY, cors_origins=(allowed,)))
    answer = book.request("GET", "/v1/models", headers=origin(b"https://chat.example"))
    exposed = answer.headers.tokens(b"access-control-expose-headers")
    assert {b"x-svc-session-id", b"x-hermes-run-id", b"mcp-session-id", b"retry-after"} <= {*exposed}
    unlisted = ApiHarness(ApiConfig(key=KEY, cors_origins=("https://chat.example",))).request("GET", "/v1/models")
    assert unlisted.headers.get(b"access-control-expose-headers") is None


def test_a_page_may_send_what_its_preflight_asks_for() -> None:
    book = ApiHarness(ApiConfig(key=KEY, cors_origins=("https://chat.example",)))
    asked = b"authorization,x-stainless-os, OpenAI-Beta,bad name,a\xff,x-svc-session-id," + b"x-many," * 200 + b"late"
    headers = [
        *origin(b"https://chat.example"),
        (b"access-control-request-method", b"POST"),
        (b"access-control-request-headers", asked),
        (b"access-control-request-private-network", b"true"),
    ]
    answer = book.request("OPTIONS", "/v1/chat/completions", key="", headers=headers)
    assert answer.headers.get(b"access-control-allow-headers") == (
        b"Authorization, Content-Type, Idempotency-Key, x-stainless-os, openai-beta, x-svc-session-id, x-many"
    )
    assert answer.headers.get(b"access-control-allow-private-network") == b"true"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/health", b"GET, HEAD, OPTIONS"),
        ("/v1/chat/completions", b"HEAD, POST, OPTIONS"),
        ("/api/sessions/x", b"DELETE, GET, HEAD, PATCH, OPTIONS"),
        ("*", b"GET, HEAD, POST, PATCH, DELETE, OPTIONS"),
        ("/nowhere", None),
    ],
)
def test_options_name_the_methods_of_a_path(path: str, allowed: bytes | None) -> None:
    answer = ApiHarness().request("OPTIONS", path, key="")
    assert (answer.status, answer.headers.get(b"allow")) == (404 if allowed is None else 200, allowed)


@pytest.mark.parametrize("path", ["/api/sessions", "/nowhere", "*"])
def test_preflight_request(path: str) -> None:
    book = ApiHarness(ApiConfig(key=KEY, cors_origins=("https://chat.example",)))
    headers = [*origin(b"https://chat.example"), (b"access-control-request-method", b"PATCH")]
    answer = book.request("OPTIONS", path, key="", headers=headers)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers.get(b"access-control-allow-origin") == b"https://chat.example"
    assert answer.headers.get(b"access-control-allow-methods") == b"GET, POST, PATCH, DELETE, OPTIONS"
    assert answer.headers.get(b"access-control-max-age") == b"600"


@pytest.mark.parametrize(("method", "path"), [("GET", "/health"), ("GET", "/nowhere"), ("DELETE", "/api/sessions/x")])
def test_every_answer_has_the_security_headers(method: str, path: str) -> None:
    answer = ApiHarness().request(method, path)
    assert {name: answer.headers.get(name) for name, _ in access.SECURITY_HEADERS} == dict(access.SECURITY_HEADERS)


def test_hsts_is_sent_over_tls_only() -> None:
    book = ApiHarness()
    found = [book.request("GET", "/health", tls=tls).headers.get(b"strict-transport-security") for tls in (False, True)]
    assert found == [None, b"max-age=31536000"]


def test_routes_have_to_name_a_policy() -> None:
    class Other(Enum):
        ONE = 1

    request = Request("GET", "/", "", Headers([]), PEER, False, {})
    with pytest.raises(TypeError):
        ApiHarness().api.authorize(Other.ONE, request)
    with pytest.raises(LocalProtocolError, match="a gate of its own"):
        access.authorize(access.ApiAccess.MONITOR, request, "", (), lambda key: None)


def test_streams_have_the_security_headers() -> None:
    book = ApiHarness(ApiConfig(key=KEY, cors_origins=("https://chat.example",)))
    path = f"/api/sessions/{book.session()}/chat/stream"
    call = book.call("POST", path, {"message": "/count 2"}, headers=origin(b"https://chat.example"))
    book.after(5.0)
    assert call.result.headers.get(b"content-type") == b"text/event-stream"
    assert call.result.headers.get(b"access-control-allow-origin") == b"https://chat.example"
    assert call.result.headers.get(b"x-content-type-options") == b"nosniff"
    assert [event.event for event in call.stream()][-1] == "done"


def test_wrong_keys_are_limited_and_the_right_one_is_not() -> None:
    """Block wrong keys of an address for five minutes after five of them; accept the right key meanwhile."""
    book = ApiHarness()

    def ask(key: str, peer: Address = PEER) -> int:
        return book.request("GET", "/v1/models", key=key, peer=peer).status

    assert [ask("wrong") for _ in range(6)] == [401] * 5 + [429]
    (log,) = [log for log in book.logs if log.event == "wrong API key"]
    assert log.fields == {"address": PEER.host, "blocked": False}
    refused = book.request("GET", "/v1/models", key="wrong")
    assert refused.json["error"]["code"] == "rate_limit_exceeded"
    assert refused.headers.get(b"retry-after") == b"300"
    assert (ask(KEY), ask("wrong")) == (200, 429)  # the right key is accepted, and the block stays
    assert ask("wrong", REMOTE) == 401  # another address
    assert ask("") == 401  # a request without a key is not a guess
    book.after(300.0)
    assert ask("wrong") == 401


def test_public_route_neither_counts_nor_clears_wrong_keys() -> None:
    book = ApiHarness()
    for _ in range(5):
        assert book.request("GET", "/v1/models", key="wrong").status == 401
        for method, path, status in (
            ("GET", "/openapi.json", 200),
            ("GET", "/none", 404),
            ("OPTIONS", "/v1/models", 200),
        ):
            for key in ("wrong", KEY, ""):
                assert book.request(method, path, key=key).status == status
    assert book.request("GET", "/v1/models", key="wrong").status == 429
