"""Who may use the voice routes: the six steps of wire terminal-voice 7, on a relay with an API server behind it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from svc_proto.commands import Connect
from svc_proto.config import RelayConfig
from svc_proto.engine.router import Kind, Route
from svc_proto.facts import Address
from svc_proto.relay.access import GRANTS, Access
from svc_proto.relay.service import Relay
from svc_proto.voice.auth import CACHE_SECONDS, MAX_PROBES
from svc_proto.wire.events import RequestHead
from tests.relay.world import PEER, REMOTE, Answer, RelayBook

KEY = "the-api-key"
TEXT = b"text/plain; charset=utf-8"
MAPPED = Address("::ffff:127.0.0.9", 5)
EVERY = Relay(RelayConfig()).router.routes
ROUTES = [route for route in EVERY if route.pattern.startswith("/voice/")]
OTHERS = [route for route in EVERY if not route.pattern.startswith("/voice/")]
HTTPS = ((b"x-forwarded-proto", b"https"),)


def guarded(*keys: str) -> Callable[[RequestHead], tuple[int, bytes]]:
    """An API server that takes these bearers; without any, one that asks for none."""

    def answer(head: RequestHead) -> tuple[int, bytes]:
        assert (head.method, head.target) == ("GET", "/v1/models")
        given = head.headers.get(b"authorization")
        fine = not keys or given in [f"Bearer {key}".encode() for key in keys]
        return (200, b"{}") if fine else (401, b"")

    return answer


def voice_book(*keys: str, up: bool = True, **config: object) -> RelayBook:
    book = RelayBook(RelayConfig(home="/home/svc", config_path="/home/svc/config.yaml", **config))  # type: ignore[arg-type]
    book.upstream = guarded(*keys) if up else None
    book.secrets |= {KEY, *keys}
    return book


@pytest.fixture
def book() -> RelayBook:
    """A relay beside an API server with one key."""
    return voice_book(KEY)


def ask(
    book: RelayBook,
    bearer: str | None = KEY,
    *,
    peer: Address = PEER,
    tls: bool = False,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    host: bytes = b"127.0.0.1:8767",
) -> Answer:
    call = book.call("GET", "/voice/config", token=bearer, peer=peer, tls=tls, headers=headers, host=host)
    book.answers.append(call.result)
    return call.result


def refused(answer: Answer, status: int, *words: str) -> None:
    assert answer.status == status, answer
    assert answer.headers.get(b"content-type") == TEXT
    for word in words:
        assert word in answer.body.decode()


# --- 1 and 2: the header --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header", [None, b"", b"Bearer", b"bearer x", b"BEARER x", b"Basic eDp5", b"Bearer " + b"x" * 5000]
)
def test_a_header_that_is_none(book: RelayBook, header: bytes | None) -> None:
    fields = () if header is None else ((b"authorization", header),)
    refused(ask(book, None, headers=fields), 401)
    assert book.asked == []


# --- 3: sessions ----------------------------------------------------------------------------------------------------


def test_every_voice_route_names_its_grant() -> None:
    wanted = {"config": "voice:config", "transcribe": "voice:stt", "synthesize": "voice:tts"}
    wanted |= {"output": "voice:tts", "realtime": "voice:realtime", "realtime-agent": "voice:realtime"}
    assert {route.pattern.split("/")[2] for route in ROUTES} == set(wanted)
    for route in ROUTES:
        assert isinstance(route.access, Access)
        assert GRANTS[route.access] == wanted[route.pattern.split("/")[2]], route.pattern


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.pattern}")
def test_a_session_without_the_grant(book: RelayBook, route: Route) -> None:
    assert isinstance(route.access, Access)
    grant = GRANTS[route.access]
    token = book.pair(operator={"grants": {grant: 1}}).token
    book.after(2.0)
    path = route.pattern.replace("{provider_id}", "stub").replace("{session_id}", "x")
    fields = ((b"authorization", f"Bearer {token}".encode()),)
    if route.kind is Kind.WEBSOCKET:
        answer = book.knock(path, peer=REMOTE, headers=fields).result
    else:
        answer = book.call(route.method, path, token=token, peer=REMOTE).result
    refused(answer, 403, grant)
    assert book.asked == []


def test_a_session_with_the_grant_needs_no_api_server_and_no_https() -> None:
    book = voice_book(up=False)
    assert ask(book, book.pair().token, peer=REMOTE).status == 200


def test_a_session_that_is_over_is_no_session(book: RelayBook) -> None:
    paired = book.pair()
    assert book.request("DELETE", f"/sessions/{paired.prefix}").status == 200
    refused(ask(book, paired.token, peer=REMOTE), 403, "HTTPS")
    refused(ask(book, paired.token), 401)


# --- 4: the transport -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("peer", [PEER, Address("127.3.2.1", 5), Address("::1", 5), MAPPED])
def test_a_caller_on_this_host_is_safe(book: RelayBook, peer: Address) -> None:
    assert ask(book, peer=peer).status == 200
    refused(ask(book, "another", peer=peer), 401)
    asked = [head.headers.get(b"authorization") for head in book.asked]
    assert (asked[0], asked[-1]) == (b"Bearer the-api-key", b"Bearer another")


@pytest.mark.parametrize(("tls", "allowed"), [(True, False), (False, True)])
def test_so_is_https_on_the_relay_and_a_network_that_is_trusted(tls: bool, allowed: bool) -> None:
    assert ask(voice_book(KEY, allow_insecure_api_bearer=allowed), peer=REMOTE, tls=tls).status == 200


def test_the_switch_makes_it_safe_until_it_is_turned_off(book: RelayBook) -> None:
    refused(ask(book, peer=REMOTE), 403, "HTTPS", "RELAY_ALLOW_INSECURE_API_BEARER")
    for allowed, status in ((True, 200), (False, 403)):
        change = book.request("PATCH", "/relay/security", {"allow_insecure_api_bearer": allowed})
        assert change.json == {
            "ok": True,
            "scope": "runtime",
            "allow_insecure_api_bearer": allowed,
            "trust_proxy_headers": False,
        }
        assert ask(book, peer=REMOTE).status == status


@pytest.mark.parametrize(
    ("header", "status"),
    [(b"https", 200), (b"HTTPS, http", 200), (b"http, https", 403), (b"http", 403), (b"", 403), (b"httpsx", 403)],
)
def test_a_trusted_proxy_says_https(header: bytes, status: int) -> None:
    book = voice_book(KEY, trusted_proxies=(REMOTE.host,))
    assert ask(book, peer=REMOTE, headers=((b"x-forwarded-proto", header),)).status == status


@pytest.mark.parametrize("trusted", [(), (PEER.host,)])
def test_a_proxy_that_is_not_trusted_says_nothing(trusted: tuple[str, ...]) -> None:
    book = voice_book(KEY, trusted_proxies=trusted)
    refused(ask(book, peer=REMOTE, headers=HTTPS), 403, "HTTPS")


@pytest.mark.parametrize("trusted", [(), (PEER.host,)])
def test_a_proxy_on_this_host_passes_on_callers_from_elsewhere(trusted: tuple[str, ...]) -> None:
    book = voice_book(KEY, trusted_proxies=trusted)
    refused(ask(book, headers=((b"x-forwarded-for", b"203.0.113.9"),)), 403, "HTTPS")


@pytest.mark.parametrize("peer", [REMOTE, Address("192.168.1.5", 5), Address("100.64.0.1", 5), Address("?", 5)])
def test_none_of_the_four_ways(book: RelayBook, peer: Address) -> None:
    refused(ask(book, peer=peer), 403, "HTTPS")
    assert book.asked == []  # nobody was asked


def test_a_websocket_is_judged_the_same_way(book: RelayBook) -> None:
    fields = ((b"authorization", f"Bearer {KEY}".encode()),)
    refused(book.knock("/voice/output/x", headers=fields).result, 403, "HTTPS")
    refused(book.knock("/voice/output/x", headers=fields, tls=True).result, 404)
    refused(book.knock("/voice/output/x", tls=True).result, 401)


# --- 5: the API server ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 400, 401, 403, 404, 429, 500, 503])
def test_only_a_plain_yes_is_one(status: int) -> None:
    book = voice_book()
    book.upstream = lambda head: (status, b"")
    refused(ask(book), 401)


def test_an_api_server_that_never_answers_takes_nobody(book: RelayBook) -> None:
    book.hold = (Connect,)
    call = book.call("GET", "/voice/config", token=KEY)
    book.after(4.9)
    assert call.answer is None
    book.after(0.2)
    refused(call.result, 401)


def test_a_yes_is_remembered_for_a_minute(book: RelayBook) -> None:
    for _ in range(3):
        assert ask(book).status == 200
    assert len(book.asked) == 1
    book.after(CACHE_SECONDS - 0.1)
    assert ask(book).status == 200
    assert len(book.asked) == 1
    book.after(0.1)
    assert ask(book).status == 200
    assert len(book.asked) == 2


def test_nothing_is_remembered_of_a_key_that_is_no_more_the_one_of_this_home(book: RelayBook) -> None:
    dotenv = "/home/svc/.env"
    book.files[dotenv] = f"API_SERVER_KEY={KEY}".encode()
    assert [ask(book).status for _ in range(2)] == [200, 200]
    assert len(book.asked) == 1
    book.files[dotenv] = b"API_SERVER_KEY=the-next-one"
    assert ask(book).status == 200  # the API has not read its files yet: nor is that remembered
    book.upstream = guarded("the-next-one")
    refused(ask(book), 401)
    assert len(book.asked) == 3


def test_a_no_is_not_remembered() -> None:
    book = voice_book("later")
    refused(ask(book), 401)
    book.upstream = guarded(KEY)
    assert ask(book).status == 200
    book.upstream = None
    assert ask(book).status == 200  # remembered


def test_no_more_than_so_many_are_asked_about_at_once(book: RelayBook) -> None:
    book.hold = (Connect,)
    calls = [book.call("GET", "/voice/config", token=f"k{number}") for number in range(MAX_PROBES)]
    assert ask(book).status == 503
    calls[0].vanish()
    held = len(book.held)
    call = book.call("GET", "/voice/config", token=KEY)
    assert len(book.held) == held + 1
    book.hold = ()
    book.release()
    assert call.result.status == 200
    assert {waiting.result.status for waiting in calls[1:]} == {401}


# --- 6: an API server without a key ---------------------------------------------------------------------------------


def test_an_api_server_without_a_key_proves_nothing_to_those_elsewhere() -> None:
    book = voice_book()
    assert ask(book, "anything").status == 200
    refused(ask(book, "anything", peer=REMOTE, tls=True), 401, "API_SERVER_KEY")
    refused(ask(book, "anything", host=b"rebound.example"), 401, "API_SERVER_KEY")  # a page under DNS rebinding
    refused(ask(book, "anything", headers=((b"origin", b"https://evil.example"),)), 401, "API_SERVER_KEY")


def test_that_it_has_a_key_is_remembered_too() -> None:
    book = voice_book(KEY, "second")
    assert ask(book, peer=REMOTE, tls=True).status == 200
    assert [head.headers.get(b"authorization") for head in book.asked] == [b"Bearer the-api-key", None]
    assert ask(book, "second", peer=REMOTE, tls=True).status == 200
    assert len(book.asked) == 3
    book.after(CACHE_SECONDS)
    assert ask(book, peer=REMOTE, tls=True).status == 200
    assert len(book.asked) == 5


# --- everything else ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), [(route.method, route.pattern) for route in OTHERS])
def test_the_bearer_opens_no_other_route(book: RelayBook, method: str, path: str) -> None:
    assert ask(book).status == 200  # it is known
    path = path.replace("{token_prefix}", "abcd").replace("{token}", "x")
    answer = book.call(method, path, {}, token=KEY, peer=REMOTE, tls=True).result
    public = path in ("/ws", "/", "/health", "/healthz", "/readyz") or path.startswith(("/oauth/", "/.well-known/"))
    assert answer.status in ((200, 400, 404, 426) if public else (401, 403)), answer
    assert len(book.asked) == 1


def test_no_secret_is_told(book: RelayBook) -> None:
    paired = book.pair(operator={"grants": {"voice:config": 1}})
    book.after(2.0)
    for bearer in (paired.token, KEY, "nonsense"):
        for peer in (PEER, REMOTE):
            ask(book, bearer, peer=peer)
    assert book.leaks() == []


@pytest.mark.parametrize(("size", "too_long"), [(4_096, False), (4_097, True)])
def test_how_long_a_bearer_token_may_be(size: int, too_long: bool) -> None:
    book = RelayBook()
    answer = book.call("GET", "/voice/config", token="x" * size).result
    assert answer.status == 401
    assert (b"too long" in answer.body) is too_long
